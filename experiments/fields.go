// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/experiments/form"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
)

// Arches is the field arch: all instruction sets by default.
func Arches(to *[]isa.Arch) *choice.Field {
	return choice.NamedList(to, "arch", "`list` of instruction sets", cpus.ArchNames(), cpus.ParseArch, func(a isa.Arch) string {
		if a == nil {
			return ""
		}
		return a.Traits().Name
	})
}

// Buffers is the field buffer.
func Buffers(to *[]sched.Buffer, preset string) *choice.Field {
	const doc = "`list` of vector sizes: a number of slots (TP_VEC_MAX), or dynamic, as many as there are patches"
	return choice.List(to, "buffer", preset, doc, choice.Kind[sched.Buffer]{
		Format: sched.Buffer.String,
		Parse: func(s string) (sched.Buffer, error) {
			b, err := sched.ParseBuffer(s)
			if err != nil {
				err = fmt.Errorf("want numbers of slots, 1 or more, or %s%s", sched.Dynamic,
					spelling.Hint(s, []string{sched.Dynamic.String()}))
			}
			return b, err
		},
	})
}

// Lookups is the field lookup: all indexes by default.
func Lookups(to *[]int3.Lookup) *choice.Field {
	return choice.NamedList(to, "lookup", "`list` of indexes that trap handlers search", int3.LookupNames(), int3.ParseLookup,
		int3.Lookup.String)
}

// Refs is the field refs.
func Refs(to *[]int3.Refs, preset string) *choice.Field {
	return choice.List(to, "refs", preset, "`list` of ways in which handlers are counted", choice.Named(int3.RefsNames(), int3.ParseRefs,
		int3.Refs.String))
}

// Repeats is the field repeats: as many measurements as bound a median with 95 %
// confidence, or more.
func Repeats(to *int, preset int, doc string) *choice.Field {
	k := choice.Whole(MinRepeats, 1_000_000)
	parse := k.Parse
	k.Parse = func(s string) (int, error) {
		n, err := parse(s)
		if err != nil {
			err = fmt.Errorf("want %d or more: fewer measurements bound no median with 95 %% confidence", MinRepeats)
		}
		return n, err
	}
	return choice.One(to, "repeats", strconv.Itoa(preset), doc, k)
}

// Roles is the field cpus: the CPUs of a machine by role.
func Roles(to *[]cpus.Role, preset, doc string) *choice.Field {
	return choice.One(to, "cpus", preset,
		doc+": a number of CPUs, or roles (busy, idle, isolated, irqsoff, offline) such as busy=6,isolated=2",
		choice.Kind[[]cpus.Role]{Type: "machine", Parse: cpus.ParseRoles, Format: cpus.FormatRoles})
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
func flagged[C any](c *C, flags []form.Flag, own []*choice.Field) (out []*choice.Field, err error) {
	own = slices.Clone(own)
	for _, flag := range flags {
		if i := slices.IndexFunc(own, func(f *choice.Field) bool { return f.Name == flag.Name }); i >= 0 {
			out, own = append(out, own[i]), slices.Delete(own, i, i+1)
			continue
		}
		v := reflect.ValueOf(c).Elem().FieldByNameFunc(func(s string) bool { return strings.EqualFold(s, flag.Field) })
		if !v.IsValid() {
			return nil, fmt.Errorf("line %d: flag %s: %T has no field %s", flag.Line, flag.Name, c, flag.Field)
		}
		f := fieldOf(v.Addr().Interface(), flag)
		if f == nil {
			return nil, fmt.Errorf("line %d: flag %s: %v is of no kind that can be declared", flag.Line, flag.Name, v.Type())
		}
		out = append(out, f)
	}
	return append(out, own...), nil
}

// between is the kind of numbers that a flag takes.
func between(f form.Flag) choice.Kind[float64] {
	word := "from"
	if f.Above {
		word = "above"
	}
	return choice.Number(fmt.Sprintf("numbers %s %g, to %g", word, f.Least, f.Most), func(v float64) bool {
		return (v > f.Least || v == f.Least && !f.Above) && v <= f.Most
	})
}

// fieldOf is the field of a variable; nil for types that have none of their own.
func fieldOf(to any, f form.Flag) *choice.Field {
	number, _ := strconv.Atoi(f.Default) // "" is 0
	switch to := to.(type) {
	case *bool:
		return choice.Flag(to, f.Name, f.Doc)
	case *int:
		if f.Name == "repeats" {
			return Repeats(to, number, f.Doc)
		}
		return choice.Count(to, f.Name, number, f.Doc, f.Low, f.High)
	case *[]int:
		return choice.Counts(to, f.Name, f.Default, f.Doc, f.Low, f.High)
	case *[]uint64:
		return choice.Sizes(to, f.Name, f.Default, f.Doc, uint64(f.High))
	case **float64:
		out := choice.Rate(to, f.Name, f.Doc)
		out.Default = f.Default
		return out
	case *float64:
		return choice.One(to, f.Name, f.Default, f.Doc, between(f))
	case *[]float64:
		if f.Most > 0 {
			return choice.List(to, f.Name, f.Default, f.Doc, between(f))
		}
		return choice.Rates(to, f.Name, f.Default, f.Doc)
	case *string:
		if f.Values != nil {
			return choice.One(to, f.Name, f.Default, f.Doc, choice.OneOf(f.Values))
		}
		if f.Name == "records" {
			return Records(to, f.Default, f.Doc)
		}
		return choice.File(to, f.Name, f.Doc)
	case *[]string:
		return Tables(to, f.Doc)
	case *[]isa.Arch:
		return Arches(to)
	case *[]Machine:
		return Machines(to, f.Default)
	case *[]cpus.Role:
		return Roles(to, f.Default, f.Doc)
	case *[]sched.Buffer:
		return Buffers(to, f.Default)
	case *[]int3.Lookup:
		return Lookups(to)
	case *[]int3.Refs:
		return Refs(to, f.Default)
	}
	return nil
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
