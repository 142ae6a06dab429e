// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results/fit"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
	"github.com/textpoke/textpoke/sim/axis"
)

// Of is a field of a list whose values are those of an axis of combinations, which says how they are read and printed:
// one value of each is field. Without a preset it is all values that have names.
func Of[T any](to *[]T, name, preset, doc string, field func(*sim.Config) *T) *choice.Field {
	a := sim.Axes.Named(name)
	if preset == "" {
		preset = strings.Join(a.Names, ",")
	}
	return choice.List(to, name, preset, cmp.Or(doc, "`list` of "+a.Doc), choice.Kind[T]{
		Names: a.Names,
		Parse: func(s string) (v T, err error) {
			if err := a.Known(s); err != nil {
				return v, err
			}
			set, err := a.Parse(s)
			if err != nil {
				return v, errors.New(strings.TrimPrefix(err.Error(), fmt.Sprintf("%s %q: ", name, s)))
			}
			var c sim.Config
			err = set(&c)
			return *field(&c), err
		},
		Format: func(v T) string {
			var c sim.Config
			*field(&c) = v
			return a.Print(&c)
		},
	})
}

// Axis is a field of the text of an axis's values, with commas between them.
func Axis[C any](a *axis.Axis[C], preset string, to *string) *choice.Field {
	return choice.One(to, a.Name, preset, a.Doc, choice.Kind[string]{
		Type: "list", Names: a.Names, Format: strings.Clone,
		Parse: func(s string) (string, error) {
			_, err := Sets(a, s)
			if err != nil { // who is asked says which value it is
				err = errors.New(strings.TrimPrefix(err.Error(), fmt.Sprintf("%s %q: ", a.Name, s)))
			}
			return s, err
		},
	})
}

// Sets reads such a text.
func Sets[C any](a *axis.Axis[C], text string) (out []axis.Set[C], err error) {
	values := strings.Split(text, ",")
	if a.Split != nil {
		if values, err = a.Split([]string{text}); err != nil {
			return nil, err
		}
	}
	for _, v := range values {
		if err := a.Known(v); err != nil {
			return nil, err
		}
		set, err := a.Parse(v)
		if err != nil {
			return nil, err
		}
		out = append(out, set)
	}
	return out, nil
}

// Repeats is the field repeats: as many measurements as bound a median with 95 %
// confidence, or more.
func Repeats(to *int, preset, doc string) *choice.Field {
	k := choice.Whole(fit.MinMedian, 1_000_000)
	parse := k.Parse
	k.Parse = func(s string) (int, error) {
		n, err := parse(s)
		if err != nil {
			err = fmt.Errorf("want %d or more: fewer measurements bound no median with 95 %% confidence", fit.MinMedian)
		}
		return n, err
	}
	return choice.One(to, "repeats", preset, doc, k)
}

// Records is the field records: one table of records.
func Records(to *string, preset, doc string) *choice.Field {
	f := choice.File(to, "records", doc)
	f.Type, f.Default, f.NamesFile = "table", preset, recordsFile
	return f
}

// Tables is the field records where it can be repeated.
func Tables(to *[]string, doc string) *choice.Field {
	return choice.Strings(to, "records", "table", "", doc, recordsFile)
}

// recordsFile tells whether a table of records would be read from a file.
func recordsFile(src string) bool {
	return !strings.HasPrefix(src, "gen:") && !slices.ContainsFunc(records.Builtins(),
		func(b records.Builtin) bool { return b.Name == src })
}

// flagged are the fields of a Config that a form declares, in its order; then those of own
// that it does not name. The type of the Config's field says what kind of field it is.
func flagged[C any](c *C, flags []choice.Declared, own []*choice.Field) (out []*choice.Field, err error) {
	own = slices.Clone(own)
	for _, flag := range flags {
		if i := slices.IndexFunc(own, func(f *choice.Field) bool { return f.Name == flag.Name }); i >= 0 {
			out, own = append(out, own[i]), slices.Delete(own, i, i+1)
			continue
		}
		to := flag.Variable(c)
		if to == nil {
			return nil, fmt.Errorf("line %d: flag %s: %T has no field %s", flag.Line, flag.Name, c, flag.Field)
		}
		f := fieldOf(to, flag)
		if f == nil {
			return nil, fmt.Errorf("line %d: flag %s: %T is of no kind that can be declared", flag.Line, flag.Name, to)
		}
		out = append(out, f)
	}
	return append(out, own...), nil
}

// between is the kind of numbers that a flag takes.
func between(f choice.Declared) choice.Kind[float64] {
	least, _ := strconv.ParseFloat(f.Low, 64)
	most, _ := strconv.ParseFloat(f.High, 64)
	word := "from"
	if f.Above {
		word = "above"
	}
	return choice.Number(fmt.Sprintf("numbers %s %g, to %g", word, least, most), func(v float64) bool {
		return (v > least || v == least && !f.Above) && v <= most
	})
}

// fieldOf is the field of a variable; nil for types that have none of their own.
func fieldOf(to any, f choice.Declared) *choice.Field {
	switch to := to.(type) {
	case *int:
		if f.Name == "repeats" {
			return Repeats(to, f.Default, f.Doc)
		}
	case *[]uint64:
		high, _ := strconv.ParseUint(f.High, 10, 64)
		return choice.Sizes(to, f.Name, f.Default, f.Doc, high)
	case **float64:
		out := choice.Rate(to, f.Name, f.Doc)
		out.Default = f.Default
		return out
	case *float64:
		return choice.One(to, f.Name, f.Default, f.Doc, between(f))
	case *[]float64:
		if f.High != "" {
			return choice.List(to, f.Name, f.Default, f.Doc, between(f))
		}
		return choice.Rates(to, f.Name, f.Default, f.Doc)
	case *string:
		if f.Name == "records" {
			return Records(to, f.Default, f.Doc)
		}
	case *[]string:
		return Tables(to, f.Doc)
	case *[]isa.Arch:
		return Of(to, "arch", "", "", func(c *sim.Config) *isa.Arch { return &c.Arch })
	case *[]Machine:
		return Machines(to, f.Default)
	case *[]cpus.Role:
		return choice.One(to, f.Name, f.Default,
			f.Doc+": a number of CPUs, or roles (busy, idle, isolated, irqsoff, offline) such as busy=6,isolated=2",
			choice.Kind[[]cpus.Role]{Type: "machine", Parse: cpus.ParseRoles, Format: cpus.FormatRoles})
	case *[]sched.Buffer:
		return Of(to, "buffer", f.Default, "", func(c *sim.Config) *sched.Buffer { return &c.Buffer })
	case *[]int3.Lookup:
		return Of(to, "lookup", "", "", func(c *sim.Config) *int3.Lookup { return &c.Lookup })
	case *[]int3.Refs:
		return Of(to, "refs", f.Default, "", func(c *sim.Config) *int3.Refs { return &c.Refs })
	}
	return f.Of(to)
}

// Machine is a calibration, and how many CPUs it is asked about.
type Machine struct {
	*calibration.Calibration
	Online int
}

// String is how the field calibration spells it.
func (m Machine) String() string {
	if m.Online == m.CPUs {
		return m.Name
	}
	return fmt.Sprintf("%s@%d", m.Name, m.Online)
}

// ISA is its instruction set.
func (m Machine) ISA() (isa.Arch, error) { return cpus.ParseArch(m.Arch) }

// Job is a combination on it, on the timed engine, about a table of records: all that follows from the machine.
func (m Machine) Job(ctx context.Context, lab Lab, table string) (c sim.Config, err error) {
	c = sim.Config{Engine: sim.TimedEngine, Calibration: m.Calibration, Roles: m.Busy(), Seed: lab.Seed, Revision: lab.Revision,
		Log: lab.Log}
	if c.Arch, err = m.ISA(); err != nil {
		return c, err
	}
	c.Table, err = records.Open(ctx, table, records.Options{})
	return c, err
}

// Ascending is a table of so many records in the order of their addresses.
func Ascending(n int) string { return fmt.Sprintf("gen:n=%d,order=sorted", n) }

// Busy are its CPUs, all of them busy.
func (m Machine) Busy() []cpus.Role { return make([]cpus.Role, m.Online) }

// Shielded are its CPUs, a quarter of which are isolated, as where some are kept for
// latency-critical work: one at least, if there is another.
func (m Machine) Shielded() []cpus.Role {
	roles := m.Busy()
	isolated := min(max(m.Online/4, 1), m.Online-1)
	for i := m.Online - isolated; i < m.Online; i++ {
		roles[i] = cpus.Isolated
	}
	return roles
}

// ParseMachine reads a machine: a built-in calibration or a file, with @CPUS behind it
// where it is to have another number of CPUs than its own.
func ParseMachine(s string) (m Machine, err error) {
	name, number, sized := machineName(s)
	if m.Calibration, err = calibration.Open(name); err != nil {
		return m, err
	}
	m.Online = m.CPUs
	if sized {
		if m.Online, err = strconv.Atoi(number); err != nil {
			m.Online = 0
		}
	}
	if err := m.check(); err != nil {
		return m, fmt.Errorf("%s: %w", s, err)
	}
	return m, nil
}

func machineName(s string) (name, number string, sized bool) {
	if i := strings.LastIndexByte(s, '@'); i >= 0 && !slices.Contains(calibration.Names(), s) {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

func (m Machine) check() error {
	switch {
	case m.Calibration == nil:
		return fmt.Errorf("a machine without a calibration")
	case m.Online < 1 || m.Online > cpus.MaxCPUs:
		return fmt.Errorf("want 1 to %d CPUs behind the @", cpus.MaxCPUs)
	}
	return nil
}

// Machines is the field calibration.
func Machines(to *[]Machine, preset string) *choice.Field {
	const doc = "`list` of machines that times are modelled of: files, or names, each with @CPUS where it is to have " +
		"another number of CPUs"
	return choice.List(to, "calibration", preset, doc, choice.Kind[Machine]{
		Names: calibration.Names(), Parse: ParseMachine, Format: Machine.String, Check: Machine.check,
		NamesFile: func(s string) bool {
			name, _, _ := machineName(s)
			return !slices.Contains(calibration.Names(), name)
		},
	})
}
