// SPDX-License-Identifier: Apache-2.0

package mutations

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/internal/spelling"

	"github.com/textpoke/textpoke/check/explore"
)

func report(t *testing.T, a *Answer) string { return document(t, a, "report.md") }

func document(t *testing.T, a *Answer, name string) string {
	t.Helper()
	var b bytes.Buffer
	a.No = a.Unexpected()
	answer, err := spec.Answer(a.Study, a)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range answer.Documents {
		if d.Name != name {
			continue
		}
		if err := d.Write(&b); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func TestGoldenReport(t *testing.T) {
	golden(t, "report.md", report(t, known(wholeAnswer(t))))
}

// TestReportOfLess: reports of answers that are cut short, or of little.
func TestReportOfLess(t *testing.T) {
	small := wholeGrid()
	small["arch"], small["protocol"] = []string{"arm64"}, []string{"breakpoint"}
	limited := search
	limited.LimitStates = 100
	cut := ask(t, small, limited)
	preempted := wholeGrid()
	preempted["protocol"], preempted["preempt"] = []string{"stop-machine"}, []string{"true"}
	lazy := wholeGrid()
	lazy["arch"], lazy["protocol"], lazy["cpus"] = []string{
		"arm64",
	}, []string{
		"breakpoint-lazy",
	}, []string{
		"busy=1,isolated=1",
	}
	some := answerOf(39, ask(t, small, search).Rows[:5]...)
	changed := slices.Clone(wholeAnswer(t).Rows)
	for i, r := range changed {
		if r.Mutation == "late-publish" {
			changed[i].Result = &explore.Result{Verdict: explore.Safe}
		}
	}
	unexplained := answerOf(1, changed...)
	for name, tt := range map[string]struct {
		a          *Answer
		has, lacks string
	}{
		"limits":      {cut, `cut short by limits:\*\* of \d+ combinations nothing`, `can break in any way`},
		"some":        {some, `Cut short:\*\* 5 of 39 rows`, `by limits`},
		"none":        {answerOf(3), `Cut short:\*\* 0 of 3 rows`, `%!`},
		"preemption":  {ask(t, preempted, search), `half-pair: riscv64 \(stop-machine\)`, `Tasks give way`},
		"lazy":        {ask(t, lazy, search), `2 sites|isolated`, `leave out nobody`},
		"unexplained": {unexplained, `nobody has written down:\n\n- late-publish: x86_64`, `no value`},
	} {
		text := report(t, tt.a)
		if !regexp.MustCompile(`(?i)`+tt.has).MatchString(text) || strings.Contains(text, tt.lacks) {
			t.Errorf("%s: want %q and not %q:\n%s", name, tt.has, tt.lacks, text)
		}
		document(t, tt.a, "mutations.svg")
	}
}

// TestFacts: each says where it is from, is about something, and has a reason
// where rows differ.
func TestFacts(t *testing.T) {
	preempted := wholeGrid()
	preempted["protocol"], preempted["preempt"] = []string{"stop-machine"}, []string{"true"}
	all := append(wholeAnswer(t).all(), ask(t, preempted, search).all()...)
	for _, f := range facts {
		about := spelling.Where(all, func(r *check.VerdictRow) bool { return f.About.holds(r.Question) })
		differ := spelling.Where(about, func(r *check.VerdictRow) bool { return !f.says(r) })
		if len(about) == 0 || f.Source == "" || (f.Differs != "") != (len(differ) > 0) {
			t.Errorf("%q: %d rows, %d of them differ, because %q", f.Claim, len(about), len(differ), f.Differs)
		}
	}
}

var cellText = regexp.MustCompile(`>(safe|\?|[A-Z]+ \d+)</text>`)

// cellsOf counts the cells in the drawing.
func cellsOf(t *testing.T, a *Answer) int {
	t.Helper()
	return len(cellText.FindAllString(document(t, a, "mutations.svg"), -1))
}

// TestPlot: every row has its cell, and says what breaks in letters too.
func TestPlot(t *testing.T) {
	a := wholeAnswer(t)
	if n := cellsOf(t, a); n != len(a.Rows) {
		t.Errorf("%d cells for %d rows", n, len(a.Rows))
	}
	several := wholeGrid()
	several["arch"], several["protocol"] = []string{"x86_64"}, []string{"word", "stop-machine"}
	several["sites"] = []string{"1", "2"}
	b := ask(t, several, search)
	if n := cellsOf(t, b); n != len(b.Rows) {
		t.Errorf("several machines: %d cells for %d rows", n, len(b.Rows))
	}
}
