// SPDX-License-Identifier: Apache-2.0

package lessons

import (
	"bytes"
	"html/template"
	"regexp"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/check/stepper"
	"github.com/textpoke/textpoke/sim/axis"
)

// TestAnswers: what the lessons' paragraphs say is what is answered.
func TestAnswers(t *testing.T) {
	p, err := Page(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"UNSAFE: torn-fetch", "SAFE for 2 CPUs, 1 site"},
		{"UNSAFE: torn-fetch", "UNSAFE: torn-fetch", "UNSAFE: unhandled-breakpoint"},
		{"order table: 522 interrupts of each CPU; order random: 66498 interrupts", "UNSAFE: unhandled-breakpoint"},
		{"UNSAFE: unhandled-breakpoint", "SAFE for 2 CPUs, 1 site"},
		{"SAFE for 2 CPUs, 1 site", "REFUTED: wrong-instruction", "PROVED for any number of CPUs, sites and updates"},
	}
	if len(p.Chapters) != len(want) {
		t.Fatalf("%d lessons", len(p.Chapters))
	}
	for i, c := range p.Chapters {
		if len(c.Cases) != len(want[i]) {
			t.Fatalf("%s: %d cases", c.Title, len(c.Cases))
		}
		for n, c := range c.Cases {
			broke := strings.HasPrefix(c.Answer, "UNSAFE") || strings.HasPrefix(c.Answer, "REFUTED")
			if !strings.HasPrefix(c.Answer, want[i][n]) || broke != (c.Trace != nil) {
				t.Errorf("%s: %s, want %s", c.Command, c.Answer, want[i][n])
			}
			proved := strings.HasPrefix(c.Answer, "PROVED")
			if proved != strings.Contains(c.Outline, "\nno-handler-left: ") || proved != strings.HasSuffix(c.Command, "--explain") {
				t.Errorf("%s: %s, with the outline %q", c.Command, c.Answer, c.Outline)
			}
		}
	}
}

// TestEdited: the plan that a page offers asks what its command asks, whatever its fetch model or
// machine is, but without the defect of --mutate; what is edited is judged, or refused by its line.
func TestEdited(t *testing.T) {
	offered := 0
	for _, choices := range []axis.Choices{
		{"arch": {"x86_64"}, "sites": {"1"}, "mutate": {"drop-sync-2"}},
		{"arch": {"x86_64"}, "sites": {"2"}, "fetch": {"coherent"}, "preempt": {"true"}, "refs": {"shared"}},
		{"arch": {"arm64"}, "cpus": {"busy=1,isolated=1"}, "sites": {"1"}},
		{"arch": {"riscv64"}, "protocol": {"fence-per-write"}, "sites": {"1"}, "workload": {"once"}},
	} {
		asked, err := one(choices)
		if err != nil {
			t.Fatal(err)
		}
		c, err := ask(t.Context(), asked)
		if err != nil || c.Edit == nil {
			t.Fatalf("%s offers no plan, %v", c.Command, err)
		}
		offered++
		delete(choices, "mutate")
		plain, err := one(choices)
		if err != nil {
			t.Fatal(err)
		}
		want, err := ask(t.Context(), plain)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Edited(t.Context(), *c.Edit)
		if err != nil || got.Answer != want.Answer {
			t.Errorf("%s: %s, want %s, %v", c.Command, got.Answer, want.Answer, err)
		}
		if offered > 1 {
			continue
		}
		c.Edit.Plan = regexp.MustCompile(`(?m)^ *Sync 2.*\n`).ReplaceAllString(c.Edit.Plan, "")
		if got, err := Edited(t.Context(), *c.Edit); err != nil || got.Answer != c.Answer || got.Trace == nil {
			t.Errorf("without its line Sync 2: %s, want %s as by --mutate, %v", got.Answer, c.Answer, err)
		}
		c.Edit.Plan = "Sunc 2\n" + c.Edit.Plan
		if _, err := Edited(t.Context(), *c.Edit); err == nil || !strings.HasPrefix(err.Error(), "plan:1: ") {
			t.Errorf("a line that is none: %v", err)
		}
	}
	bug, err := check.BugQuestions([]string{"unsorted-array"}, false)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := ask(t.Context(), bug[0]); err != nil || c.Edit != nil {
		t.Errorf("%s offers a plan, %v", c.Command, err)
	}
}

// TestSelfContained: a page names nobody else, has every step in it as text, and lets
// nothing that a trace says become markup.
func TestSelfContained(t *testing.T) {
	p, err := Page(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	evil := &explore.Trace{Steps: []explore.Step{{Who: "cpu 1", What: "</script><script>alert(1)</script>"}}}
	p.Chapters = append(p.Chapters, stepper.Chapter{Title: "evil", Cases: []stepper.Case{{Trace: evil}}})
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	html := b.String()
	for _, no := range []string{"http://", "https://", "src=", "@import", "<script>alert", "ZgotmplZ"} {
		if strings.Contains(html, no) {
			t.Errorf("%q is in the page", no)
		}
	}
	for _, c := range p.Chapters[:5] {
		for _, c := range c.Cases {
			if c.Trace == nil {
				continue
			}
			for _, s := range c.Trace.Steps {
				if !strings.Contains(html, "<li><b>"+s.Who+"</b> "+template.HTMLEscapeString(s.What)+"</li>") {
					t.Errorf("%s: %s %q is missing", c.Command, s.Who, s.What)
				}
			}
		}
	}
}
