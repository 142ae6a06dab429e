package experiments

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results/plots"
	"github.com/textpoke/textpoke/sched"
)

// TestReport: a full report, and one that has nothing to say.
func TestReport(t *testing.T) {
	r := NewReport("n", "Why?")
	r.Headline, r.CutShort = "Because", "1 of 2."
	r.Answer = []string{"More."}
	r.Sheets = []Sheet{{"S", []string{"a", "b"}, [][]string{{"1|2", "3"}}}}
	r.Measured, r.Modelled, r.Notes = []string{"m"}, []string{"o"}, []string{"note"}
	r.Beside = []Beside{
		{What: "count", Published: 7, Ours: 6, Exact: true, Source: "s"},
		{What: "time", Published: 2.5, Ours: 3, Source: "s"},
		{What: "nothing", Published: 0, Ours: 3, Source: "s"},
	}
	want := `# Experiment n

Why?

## Answer

**Cut short:** 1 of 2.

**Because**

More.

### S

| a | b |
|---|---|
| 1\|2 | 3 |

## What was measured

- m

## What was modelled

- o

## Published figures beside it

| figure | published | here | error | source |
|---|---|---|---|---|
| count | 7 | 6 | -1 | s |
| time | 2.5 | 3 | +20.0 % | s |
| nothing | 0 | 3 |  | s |

note
`
	var b bytes.Buffer
	if err := r.Write(&b); err != nil || b.String() != want {
		t.Errorf("%v\n%s", err, b.String())
	}
	b.Reset()
	if err := NewReport("n", "Why?").Write(&b); err != nil || b.String() != "# Experiment n\n\nWhy?\n\n## Answer\n" {
		t.Errorf("%v\n%q", err, b.String())
	}
}

func TestP(t *testing.T) {
	for p, want := range map[float64]string{1: "1.0000", 0.05: "0.0500", 0.0001: "0.0001", 0.00009: "below 0.0001", 0: "below 0.0001"} {
		if got := P(p); got != want {
			t.Errorf("%v: %s", p, got)
		}
	}
}

// TestAnswer: the documents of an experiment have its name.
func TestAnswer(t *testing.T) {
	c := plots.Chart{Title: "T", Series: []plots.Series{{X: []float64{1, 2}, Y: []float64{3, 4}}}}
	a := NewAnswer("n", NewReport("n", "Why?"), c.Picture())
	var names []string
	for _, d := range a.Documents {
		var b bytes.Buffer
		if err := d.Write(&b); err != nil || b.Len() == 0 {
			t.Errorf("%s: %d bytes, %v", d.Name, b.Len(), err)
		}
		names = append(names, d.Name)
	}
	if got := strings.Join(names, " "); got != "n.svg n.png report.md" {
		t.Error(got)
	}
}

// TestFlags: lists are read whole or not at all, and complaints name what was
// probably meant.
func TestFlags(t *testing.T) {
	var (
		arches  []isa.Arch
		buffers []sched.Buffer
		kinds   []int3.Kind
		counts  []int
		roles   []cpus.Role
	)
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	Arches(f, &arches)
	Buffers(f, &buffers, "7,dynamic")
	Lookups(f, &kinds)
	Counts(f, &counts, "n", "1,2", "`list` of n", 1, 9)
	Machine(f, &roles, "busy=2,isolated=1")
	if len(arches) != 3 || len(buffers) != 2 || buffers[1] != sched.Dynamic || len(kinds) != 4 || len(counts) != 2 || len(roles) != 3 {
		t.Errorf("defaults: %v %v %v %v %v", arches, buffers, kinds, counts, roles)
	}
	if err := f.Parse([]string{"--arch=riscv64,arm64", "--buffer=1", "--lookup=hash", "--n=3,9", "--cpus=4"}); err != nil {
		t.Fatal(err)
	}
	if len(arches) != 2 || arches[0].Traits().Name != "riscv64" || buffers[0].Slots != 1 || kinds[0] != int3.Hash || counts[1] != 9 || len(roles) != 4 {
		t.Errorf("%v %v %v %v %v", arches, buffers, kinds, counts, roles)
	}
	for flag, want := range map[string]string{
		"--arch=arm46":      "did you mean arm64",
		"--buffer=dynamik":  "did you mean dynamic",
		"--buffer=3,0":      "want numbers of slots",
		"--buffer=":         "want numbers of slots",
		"--lookup=hsah":     "did you mean hash",
		"--n=3,10":          "want whole numbers from 1 to 9",
		"--n=1.5":           "want whole numbers from 1 to 9",
		"--cpus=isolated=2": "at least one CPU must be busy",
	} {
		if err := f.Parse([]string{flag}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", flag, err, want)
		}
	}
	if f.Lookup("n").Value.String() != "3,9" || len(counts) != 2 {
		t.Error("a list that was refused has changed the flag")
	}
}

// TestCalibrations: a machine is a calibration, with its own number of CPUs or
// another one.
func TestCalibrations(t *testing.T) {
	var machines []Calibrated
	var budgets []float64
	rate := -1.0
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	Calibrations(f, &machines, "jump-label-24,vm-2@8,vm-2@1")
	Rates(f, &budgets, "budget", "0,2.5", "`list` of budgets")
	Rate(f, &rate, "calls", "`rate` of calls")
	for i, want := range []struct{ name, busy, shielded string }{
		{"jump-label-24", "24", "busy=18,isolated=6"}, {"vm-2@8", "8", "busy=6,isolated=2"}, {"vm-2@1", "1", "1"},
	} {
		m := machines[i]
		if m.String() != want.name || cpus.FormatRoles(m.Busy()) != want.busy || cpus.FormatRoles(m.Shielded()) != want.shielded {
			t.Errorf("%s: %s, %s, want %v", m, cpus.FormatRoles(m.Busy()), cpus.FormatRoles(m.Shielded()), want)
		}
		if a, err := m.ISA(); err != nil || a.Traits().Name != m.Arch {
			t.Errorf("%s: %v", m, err)
		}
	}
	values := f.Lookup("calibration").Value.(*Values[Calibrated]).Get()
	if len(values) != 3 || len(budgets) != 2 || budgets[1] != 2.5 || f.Lookup("calls").Value.String() != "" {
		t.Errorf("%v, %v", values, budgets)
	}
	if err := f.Parse([]string{"--calls=1e6", "--budget=0"}); err != nil || rate != 1e6 || len(budgets) != 1 {
		t.Errorf("%v, %v, %v", err, rate, budgets)
	}
	for flag, want := range map[string]string{
		"--calibration=vm-2@":     "vm-2@: want 1 to 8192 CPUs behind the @",
		"--calibration=vm-2@8193": "want 1 to 8192 CPUs behind the @",
		"--calibration=@8":        "no such file",
		"--calibration=vm-3":      "did you mean vm-2",
		"--budget=1,-1":           "want a number from 0 to 1e9",
		"--budget=NaN":            "want a number from 0 to 1e9",
		"--calls=":                "want a number from 0 to 1e9",
	} {
		if err := f.Parse([]string{flag}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", flag, err, want)
		}
	}
}

func TestOpen(t *testing.T) {
	s, err := Open(t.Context(), []string{"arm64-6.12", "gen:n=3"}, records.Options{})
	if err != nil || len(s) != 2 || s[0].Arch.Traits().Name != "arm64" || s[1].Arch.Traits().Name != "x86_64" {
		t.Errorf("%v, %v", s, err)
	}
	if _, err := Open(t.Context(), []string{"gen:n=3", "nosuchtable"}, records.Options{}); err == nil {
		t.Error("a table that is not there was opened")
	}
}
