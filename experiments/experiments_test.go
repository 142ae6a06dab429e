// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/choice/flags"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

// pair is a row of the experiment that the tests run.
type pair struct{ N, Square int }

// config is its configuration.
type config struct{ Numbers []int }

// squares squares numbers; what is published of 3 is wrong.
var squares = Spec[config, pair]{
	Form: `name: squares
short: how big is a square?
columns: again
    n integer : number
    square integer : its square
chart:
    title: T
    of: again
    x: n
    y: square
    draw: line
---
{{define "question"}}How big
is a square?{{end}}
{{define "about"}}
squares multiplies.
{{end}}
{{define "headline"}}
{{len .}} of them
{{end}}

More.

{{if not .}}None.{{end}}

{{if .}}
{{head "a" "b|c"}}
{{range .}}{{row .N .Square}}
{{end}}{{end}}

{{with .}}{{template "comparisons" (index . 0).Published}}{{end}}
`,
	Columns: results.Columns[pair]{
		{Column: results.Column{Name: "n", Doc: "number", Kind: results.Integer}, Cell: func(p pair) any { return p.N }},
		{Column: results.Column{Name: "square", Doc: "its square", Kind: results.Integer}, Cell: func(p pair) any { return p.Square }},
	},
	Fields: func(c *config) []*choice.Field {
		return []*choice.Field{choice.Counts(&c.Numbers, "n", "1,2", "`list` of numbers", 1, 9)}
	},
	Check: func(c *config) error {
		if len(c.Numbers) > 3 {
			return errors.New("too many")
		}
		return nil
	},
	Measure: func(ctx context.Context, s *Study[config, pair]) (any, error) {
		err := Each(ctx, s, s.Config.Numbers, func(n int) (pair, error) {
			if n == 9 {
				return pair{}, errors.New("nine")
			}
			return pair{n, n * n}, nil
		})
		if table := Beside(s, "again", s.Rows); err == nil {
			err = table
		}
		return s.Rows, err
	},
}

// runSquares runs it with a Config, whose zero values stand for the defaults.
func runSquares(ctx context.Context, c config, lab Lab) (*Answer, error) {
	fields, err := squares.complete(&c)
	if err != nil {
		return nil, err
	}
	return squares.run(ctx, &c, fields, lab)
}

// Published are comparisons of all kinds.
func (pair) Published() []Comparison {
	return []Comparison{
		{What: "count", Published: 7, Ours: 6, Exact: true, Source: "s"},
		{What: "time", Published: 2.5, Ours: 3, Source: "s"},
		{What: "nothing", Published: 0, Ours: 3, Source: "s"},
	}
}

// written is a document of an answer.
func written(t *testing.T, a *Answer, name string) string {
	t.Helper()
	for _, d := range a.Documents {
		var b bytes.Buffer
		if err := d.Write(&b); err != nil || b.Len() == 0 {
			t.Errorf("%s: %d bytes, %v", d.Name, b.Len(), err)
		}
		if d.Name == name {
			return b.String()
		}
	}
	t.Fatalf("no document %s", name)
	return ""
}

// TestReport: what stands in a report, and what is left out of it.
func TestReport(t *testing.T) {
	want := `# Experiment squares

How big is a square?

## Answer

**2 of them**

More.

| a | b\|c |
|---|---|
| 1 | 1 |
| 2 | 4 |

## Published figures beside it

| figure | published | here | error | source |
|---|---|---|---|---|
| count | 7 | 6 | -1 | s |
| time | 2.5 | 3 | +20.0 % | s |
| nothing | 0 | 3 |  | s |
`
	a, err := runSquares(t.Context(), config{}, Lab{})
	if err != nil || a.Headline != "2 of them" || len(a.Table.Rows) != 2 {
		t.Fatalf("%+v, %v", a, err)
	}
	if got := written(t, a, "report.md"); got != want {
		t.Error(got)
	}
	if got := written(t, a, "again.csv"); got != "n,square\n1,1\n2,4\n" {
		t.Error(got)
	}
	var names []string
	for _, d := range a.Documents {
		names = append(names, d.Name)
	}
	if got := strings.Join(names, " "); got != "squares.svg report.md again.csv" {
		t.Error(got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a, err = runSquares(ctx, config{}, Lab{})
	want = "# Experiment squares\n\nHow big is a square?\n\n## Answer\n\n**Cut short:** 0 of 2 rows were " +
		"finished.\n\n**0 of them**\n\nMore.\n\nNone.\n"
	if got := written(t, a, "report.md"); !errors.Is(err, context.Canceled) || got != want {
		t.Errorf("%v\n%s", err, got)
	}
}

// TestRun: the zero value stands for the defaults, rows are handed over one by one,
// and what cannot be asked is refused before anything is done.
func TestRun(t *testing.T) {
	var seen []any
	lab := Lab{Add: func(cells ...any) error {
		seen = append(seen, cells...)
		return nil
	}}
	a, err := runSquares(t.Context(), config{Numbers: []int{3, 9, 4}}, lab)
	if err == nil || err.Error() != "nine" || len(a.Table.Rows) != 1 || len(seen) != 2 || seen[1] != 9 {
		t.Errorf("%+v, %v, %v", a, err, seen)
	}
	for _, wrong := range [][]int{{0}, {1, 10}, {1, 2, 3, 4}} {
		a, err := runSquares(t.Context(), config{Numbers: wrong}, lab)
		if err == nil || a != nil {
			t.Errorf("%v: %v, %v", wrong, a, err)
		}
	}
	e := squares.Experiment()()
	if e.Question != "How big is a square?" || e.About != "squares multiplies." {
		t.Errorf("%+v", e)
	}
	r := e.New()
	if f := r.Field("n"); f.String() != "1,2" || r.Field("m") != nil || f.Set("5") != nil {
		t.Error(f)
	}
	if a, err := r.Run(t.Context(), Lab{}); err != nil || len(a.Table.Rows) != 1 || a.Table.Rows[0][1].String() != "25" {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestFlags: lists are read whole or not at all, and complaints name what was
// probably meant.
func TestFlags(t *testing.T) {
	var (
		arches  []isa.Arch
		buffers []sched.Buffer
		kinds   []int3.Lookup
		counts  []int
		roles   []cpus.Role
		texts   []string
		yes     bool
		file    string
		one     int
		repeats int
		sizes   []uint64
	)
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	fields := []*choice.Field{
		Of(&arches, "arch", "", "", func(c *sim.Config) *isa.Arch { return &c.Arch }),
		Of(&buffers, "buffer", "7,dynamic", "", func(c *sim.Config) *sched.Buffer { return &c.Buffer }),
		Of(&kinds, "lookup", "", "", func(c *sim.Config) *int3.Lookup { return &c.Lookup }),
		choice.Counts(&counts, "n", "1,2", "`list` of n", 1, 9), fieldOf(&roles,
			choice.Declared{Name: "cpus", Default: "busy=2,isolated=1", Doc: "`machine`"}),
		choice.Strings(&texts, "text", "text", "one", "`texts`", nil), choice.Flag(&yes, "yes", "or no"),
		choice.File(&file, "file", "`file`"),
		choice.Count(&one, "one", 3, "`number`", 0, 5), choice.Sizes(&sizes, "size", "4K", "`list` of sizes", 1<<40), Repeats(&repeats, "15",
			"`number`"),
	}
	if err := choice.Complete(fields); err != nil {
		t.Fatal(err)
	}
	flags.Bind(f, fields...)
	if err := choice.Validate(fields); err != nil {
		t.Error(err)
	}
	if len(arches) != 3 || len(buffers) != 2 || buffers[1] != sched.Dynamic || len(kinds) != 4 || len(counts) != 2 ||
		len(roles) != 3 {
		t.Errorf("defaults: %v %v %v %v %v", arches, buffers, kinds, counts, roles)
	}
	if err := f.Parse([]string{"--arch=riscv64,arm64", "--buffer=1", "--lookup=hash", "--n=3,9", "--cpus=4", "--text=a,b",
		"--text=c", "--yes", "--one=0", "--size=1,2M,1536M"}); err != nil {
		t.Fatal(err)
	}
	if len(arches) != 2 || arches[0].Traits().Name != "riscv64" || buffers[0].Slots != 1 || kinds[0] != int3.Hash ||
		counts[1] != 9 || len(roles) != 4 {
		t.Errorf("%v %v %v %v %v", arches, buffers, kinds, counts, roles)
	}
	if len(texts) != 2 || texts[0] != "a,b" || !yes || one != 0 || len(sizes) != 3 || sizes[2] != 1536<<20 {
		t.Errorf("%q %v %v %v", texts, yes, one, sizes)
	}
	for flag, want := range map[string]string{
		"--arch=arm46":      "did you mean arm64",
		"--buffer=dynamik":  "did you mean dynamic",
		"--buffer=3,0":      "want a number of slots",
		"--buffer=":         "want a number of slots",
		"--lookup=hsah":     "did you mean hash",
		"--n=3,10":          "want whole numbers from 1 to 9",
		"--n=1.5":           "want whole numbers from 1 to 9",
		"--cpus=isolated=2": "at least one CPU must be busy",
		"--one=6":           "want whole numbers from 0 to 5",
		"--repeats=5":       "want 6 or more",
		"--size=4T":         "want numbers of bytes",
		"--file=":           "want a name",
		"--text=":           "want a name",
	} {
		if err := f.Parse([]string{flag}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", flag, err, want)
		}
	}
	if f.Lookup("n").Value.String() != "3,9" || len(counts) != 2 {
		t.Error("a list that was refused has changed the flag")
	}
}

// TestMachines: a machine is a calibration, with its own number of CPUs or
// another one.
func TestMachines(t *testing.T) {
	var machines []Machine
	var budgets []float64
	var rate *float64
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	fields := []*choice.Field{
		Machines(&machines, "jump-label-24,vm-2@8,vm-2@1"), choice.Rates(&budgets, "budget", "0,2.5",
			"`list` of budgets"), choice.Rate(&rate, "calls", "`rate` of calls"),
	}
	if err := choice.Complete(fields); err != nil {
		t.Fatal(err)
	}
	flags.Bind(f, fields...)
	for i, want := range []struct{ name, busy, shielded string }{
		{"jump-label-24", "24", "busy=18,isolated=6"}, {"vm-2@8", "8", "busy=6,isolated=2"}, {"vm-2@1", "1", "1"},
	} {
		m := machines[i]
		if m.String() != want.name || cpus.FormatRoles(m.Busy()) != want.busy ||
			cpus.FormatRoles(m.Shielded()) != want.shielded {
			t.Errorf("%s: %s, %s, want %v", m, cpus.FormatRoles(m.Busy()), cpus.FormatRoles(m.Shielded()), want)
		}
		if a, err := m.ISA(); err != nil || a.Traits().Name != m.Arch {
			t.Errorf("%s: %v", m, err)
		}
	}
	values := fields[0].Get().([]Machine)
	if len(values) != 3 || len(budgets) != 2 || budgets[1] != 2.5 || f.Lookup("calls").Value.String() != "" {
		t.Errorf("%v, %v", values, budgets)
	}
	if err := f.Parse([]string{"--calls=1e6", "--budget=0"}); err != nil || *rate != 1e6 || len(budgets) != 1 {
		t.Errorf("%v, %v, %v", err, *rate, budgets)
	}
	for text, want := range map[string]bool{"vm-2": false, "vm-2@9": false, "vm-2,jump-label-24@4": false,
		"vm-2,/etc/passwd": true, "x@4": true} {
		if got := fields[0].IsFile(text); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	for _, m := range []Machine{{}, {machines[0].Calibration, 0}} {
		wrong := []Machine{m}
		if err := choice.Validate([]*choice.Field{Machines(&wrong, "")}); err == nil {
			t.Errorf("%+v", m)
		}
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

// TestModelled: shares are whole numbers of percent, all of it 100.
func TestModelled(t *testing.T) {
	for share, want := range map[float64]string{1: "100 %", 0.997: "100 %", 0.372: "37 %", 0.01: "1 %"} {
		s := calibration.Spread{Likely: 7.1e8, Low: 2.1e8, High: 2e9, Assumed: share}
		if got := Modelled(s); got != "710 ms (210 ms to 2.0 s, "+want+" of it assumed)" {
			t.Errorf("%v: %s", share, got)
		}
	}
}
