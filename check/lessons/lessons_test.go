// SPDX-License-Identifier: Apache-2.0

package lessons

import (
	"bytes"
	"html/template"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/check/stepper"
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
