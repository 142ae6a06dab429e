// SPDX-License-Identifier: Apache-2.0

package mutations

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/results/plots"
)

func report(t *testing.T, a *Answer) string {
	t.Helper()
	var b bytes.Buffer
	answer, err := spec.Answer(a.Study, a.findings())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range answer.Documents {
		if d.Name != "report.md" {
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
	unexplained := answerOf(1, slices.Clone(wholeAnswer(t).Rows)...)
	for i, r := range unexplained.Rows {
		if r.Mutation == "late-publish" {
			safe := explore.Result{Verdict: explore.Safe}
			unexplained.Rows[i].Result = &safe
		}
	}
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
		if _, err := cells(tt.a); err != nil {
			t.Errorf("%s: plot: %v", name, err)
		}
	}
}

// TestFacts: each says where it is from, is about something, and has a reason
// where rows differ.
func TestFacts(t *testing.T) {
	preempted := wholeGrid()
	preempted["protocol"], preempted["preempt"] = []string{"stop-machine"}, []string{"true"}
	all := append(wholeAnswer(t).all(), ask(t, preempted, search).all()...)
	for _, f := range facts {
		about := all.where(func(r *check.VerdictRow) bool { return f.about(r.Question) })
		differ := about.where(func(r *check.VerdictRow) bool { return !f.says(r) })
		if len(about) == 0 || f.Source == "" || (f.Differs != "") != (len(differ) > 0) {
			t.Errorf("%q: %d rows, %d of them differ, because %q", f.Claim, len(about), len(differ), f.Differs)
		}
	}
}

var cellText = regexp.MustCompile(`^(safe|\?|[A-Z]{2} \d+)$`)

// cells counts the cells in the drawing, legend left out.
func cells(a *Answer) (n int, err error) {
	var b bytes.Buffer
	m := a.Matrix()
	if err := plots.WriteSVG(&b, m.Picture()); err != nil {
		return 0, err
	}
	d := xml.NewDecoder(&b)
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
		if text, ok := token.(xml.CharData); ok && cellText.Match(text) {
			n++
		}
	}
	for _, mark := range m.marks() {
		if cellText.MatchString(mark.code) {
			n--
		}
	}
	return n, nil
}

// TestPlot: every row has its cell, in either kind of file, and says what breaks
// in letters too.
func TestPlot(t *testing.T) {
	a := wholeAnswer(t)
	if n, err := cells(a); err != nil || n != len(a.Rows) {
		t.Errorf("%d cells for %d rows, %v", n, len(a.Rows), err)
	}
	several := wholeGrid()
	several["arch"], several["protocol"] = []string{"x86_64"}, []string{"word", "stop-machine"}
	several["sites"] = []string{"1", "2"}
	b := ask(t, several, search)
	if n, err := cells(b); err != nil || n != len(b.Rows) {
		t.Errorf("several machines: %d cells for %d rows, %v", n, len(b.Rows), err)
	}
	var picture bytes.Buffer
	if err := plots.WritePNG(&picture, a.Matrix().Picture()); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&picture)
	if err != nil {
		t.Fatal(err)
	}
	const dpi = 200 // Landscape A4
	if s := img.Bounds().Size(); s.X > 297*dpi*10/254 || s.Y > 210*dpi*10/254 {
		t.Errorf("%v does not fit on a page", s)
	}
	for _, p := range []cpus.Property{
		cpus.TornFetch, cpus.UnhandledBreakpoint, cpus.StaleAfterCompletion, cpus.HalfPair, cpus.TornLiteral,
		cpus.UseAfterFree, cpus.LostCall, cpus.Deadlock, cpus.Overflow, cpus.BrokenSite,
	} {
		if m := markOf(&check.VerdictRow{Result: &explore.Result{Verdict: explore.Unsafe,
			Violation: &cpus.Violation{Property: p}}}); m.name != string(p) {
			t.Errorf("%s is drawn as %s", p, m.name)
		}
	}
}
