// SPDX-License-Identifier: Apache-2.0

// Package grid counts or runs what a form's grid asks for: an experiment that is data.
// The values of the grid's axes can be changed by flags; what else has to be computed is
// added in Go, as [More].
package grid

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/form"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sim"
	"github.com/textpoke/textpoke/sim/axis"
)

// Config is what the flags of a grid have chosen.
type Config struct {
	Values   map[string]*string // of axes, as lists
	Records  []string
	Sites    []int // of sorted tables that are generated
	Machines []experiments.Machine
	Kallsyms string
	Limit    int    // of interrupts, above which an update is counted and not timed
	Own      string // of [More]'s field
}

// More is what an experiment computes besides its rows. All may be nil.
type More struct {
	Fields func(*Config) []*choice.Field
	// Prepare is called before the first row; what it returns is what templates call More.
	Prepare func(ctx context.Context, c *Config) (any, error)
	// Facts are what rows have besides those of all grids, by name.
	Facts results.Columns[*Measured]
	// Compute finishes the report: comparisons and documents.
	Compute func(*Report) error
	// Open reads the files that the grid names; nil for those beside the experiment's.
	Open func(name string) ([]byte, error)
}

// Report is what the templates of a grid's report are filled with.
type Report struct {
	*experiments.Study[Config, form.Row]
	More any
}

// Set is the value that an axis has.
func (r *Report) Set(axis string) string {
	if axis == recordsAxis && len(r.Config.Records) > 0 {
		return strings.Join(r.Config.Records, " ")
	}
	if v := r.Config.Values[axis]; v != nil {
		return *v
	}
	return ""
}

// Must makes the experiment of a form that comes with the program, which is parsed when it is first asked for.
func Must(name, text string, more More) func() *experiments.Experiment {
	return sync.OnceValue(func() *experiments.Experiment {
		f, err := experiments.ParseForm(name, []byte(text))
		if err == nil {
			var e *experiments.Experiment
			if e, err = New(f, more); err == nil {
				return e
			}
		}
		panic(fmt.Sprintf("experiments: %v", err)) // a mistake of ours
	})
}

// Open reads an experiment from a file. Errors name file and line.
func Open(path string) (*experiments.Experiment, error) {
	src, err := read(path)
	if err != nil {
		return nil, err
	}
	f, err := experiments.ParseForm(path, src)
	if err != nil {
		return nil, err
	}
	return New(f, More{Open: func(name string) ([]byte, error) {
		return read(filepath.Join(filepath.Dir(inputs.Place(path)), name))
	}})
}

// read reads a file, and one byte more than is allowed at most.
func read(path string) ([]byte, error) {
	file, err := inputs.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, form.MaxFile+1))
}

// New makes the experiment that a form says.
func New(f *form.Form, more More) (*experiments.Experiment, error) {
	g := &grid{form: f, more: more}
	if f.Grid == nil {
		return nil, g.wrong(1, "no grid: the file needs a block that begins with %q or %q", "grid: count", "grid: run")
	}
	g.axes = axesFor(f.Grid.Mode)
	if err := g.check(); err != nil {
		return nil, err
	}
	columns, err := g.columns()
	if err != nil {
		return nil, err
	}
	spec := &experiments.Spec[Config, form.Row]{Parsed: f, Columns: columns, Fields: g.fields, Measure: g.measure}
	return spec.Experiment()(), nil
}

// grid is a form with a grid.
type grid struct {
	form *form.Form
	more More
	axes axis.Table[sim.Config] // that combinations can have
}

func (g *grid) wrong(line int, format string, args ...any) error {
	return &inputs.ParseError{File: g.form.File, Line: line, Reason: fmt.Sprintf(format, args...)}
}

// check holds the grid's axes and their values against those that there are.
func (g *grid) check() error {
	d := g.form.Grid
	if len(g.form.Tables) > 0 && g.more.Compute == nil {
		return g.wrong(g.form.Tables[0].Line, "columns: %s: only what is computed in Go has other tables", g.form.Tables[0].Name)
	}
	axes := slices.Clone(d.Axes)
	for _, b := range d.Beside {
		axes = append(axes, b.Axes...)
	}
	for _, p := range d.Points {
		for i, name := range d.Labels {
			if g.known(name) && p.Values[i] != "" {
				axes = append(axes, form.Axis{Name: name, Values: p.Values[i], Line: p.Line})
			}
		}
	}
	for _, a := range axes {
		if !g.known(a.Name) {
			return g.wrong(a.Line, "%q: no such axis%s", a.Name, spelling.Hint(a.Name, g.names()))
		}
		if err := g.checkValues(a); err != nil {
			return g.wrong(a.Line, "%s: %s", a.Name, strings.TrimPrefix(err.Error(), a.Name+" "))
		}
	}
	return nil
}

// checkValues reads the values of an axis. Tables of records are opened later.
func (g *grid) checkValues(a form.Axis) error {
	values := strings.ReplaceAll(a.Values, keep, ",")
	switch {
	case a.Name == recordsAxis, values == "" && !a.Fixed: // what it is then follows from other axes
		return nil
	case a.Name == planAxis: // relative to the experiment's file
		for name := range strings.SplitSeq(values, ",") {
			if _, err := g.plan(name); err != nil {
				return err
			}
		}
		return nil
	}
	if own := g.axes.Named(a.Name); own != nil {
		_, err := experiments.Sets(own, values)
		return err
	}
	return g.field(&Config{}, a.Name, "", nil).Set(values)
}

// fields are the flags: those of axes that are not fixed, and those of More.
func (g *grid) fields(c *Config) (out []*choice.Field) {
	if c.Values == nil {
		c.Values = map[string]*string{}
	}
	for _, a := range g.form.Grid.Axes {
		if c.Values[a.Name] == nil {
			c.Values[a.Name] = new(string)
		}
		preset := a.Values
		if _, rest, some := strings.Cut(a.Values, keep); some {
			preset = rest
		}
		switch {
		case a.Fixed:
			*c.Values[a.Name] = a.Values
		case a.Name == recordsAxis:
			summary := cmp.Or(preset, "those of the instruction sets' own kernels")
			if len(preset) > 100 {
				summary = "those of real kernels, and generated ones"
			}
			out = append(out, experiments.Tables(&c.Records, "`table` of records: a built-in one, a file or gen:...; "+
				"repeatable (default: "+summary+")"),
				choice.File(&c.Kallsyms, "kallsyms", "`file` with the addresses for a list of functions without"))
			*c.Values[a.Name] = preset
		default:
			out = append(out, g.field(c, a.Name, preset, c.Values[a.Name]))
		}
	}
	if g.more.Fields != nil {
		out = append(out, g.more.Fields(c)...)
	}
	return out
}

// field is the flag of an axis, whose text goes to a variable where the Config has no place for its values.
func (g *grid) field(c *Config, name, preset string, to *string) *choice.Field {
	switch name {
	case sitesAxis:
		return choice.Counts(&c.Sites, name, preset, "`list` of numbers of sites that one update changes", 1, records.MaxRecords)
	case calibrationAxis:
		return experiments.Machines(&c.Machines, preset)
	case limitAxis:
		f := choice.Count(&c.Limit, name, 0, "what takes more `interrupts` than that, of all CPUs together, is counted and not timed",
			0, math.MaxInt)
		f.Default = preset
		return f
	}
	return experiments.Axis(g.axes.Named(name), preset, to)
}

// measure makes the rows.
func (g *grid) measure(ctx context.Context, s *experiments.Study[Config, form.Row]) (any, error) {
	r := &Report{Study: s}
	if g.more.Prepare != nil {
		var err error
		if r.More, err = g.more.Prepare(ctx, &s.Config); err != nil {
			return nil, err
		}
	}
	points, err := g.combinations(ctx, &s.Config, s.Seed)
	if err != nil {
		return nil, err
	}
	err = experiments.Each(ctx, s, points, func(p Point) (form.Row, error) { return g.row(ctx, s, p) })
	if g.more.Compute != nil {
		if cerr := g.more.Compute(r); cerr != nil {
			return nil, cmp.Or(err, cerr)
		}
	}
	return r, err
}

// breaks is how often an address of a table is lower than the one before it.
func breaks(t *records.Table) (n int) {
	for i := 1; i < t.Len(); i++ {
		if t.Addr(i) < t.Addr(i-1) {
			n++
		}
	}
	return n
}
