// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
)

// Named is the kind of values that have names; a wrong name is told which was
// probably meant.
func Named[T any](names []string, parse func(string) (T, error), format func(T) string) FieldKind[T] {
	return FieldKind[T]{
		Type: "name", Names: names, Format: format,
		Parse: func(s string) (T, error) {
			v, err := parse(s)
			if err != nil {
				err = spelling.NotOneOf(s, names)
			}
			return v, err
		},
	}
}

// OneOf is the kind of texts that are one of some names.
func OneOf(names []string) FieldKind[string] {
	return Named(names, func(s string) (string, error) {
		if !slices.Contains(names, s) {
			return "", spelling.NotOneOf(s, names)
		}
		return s, nil
	}, strings.Clone)
}

// NamedList is the field of a list of names, all of them by default.
func NamedList[T any](to *[]T, name, doc string, names []string, parse func(string) (T, error),
	format func(T) string) *Field {
	return List(to, name, strings.Join(names, ","), doc, Named(names, parse, format))
}

// Arches is the field --arch: all instruction sets by default.
func Arches(to *[]isa.Arch) *Field {
	return NamedList(to, "arch", "`list` of instruction sets", cpus.ArchNames(), cpus.ParseArch, func(a isa.Arch) string {
		if a == nil {
			return ""
		}
		return a.Traits().Name
	})
}

// Buffers is the field --buffer.
func Buffers(to *[]sched.Buffer, preset string) *Field {
	const doc = "`list` of vector sizes: a number of slots (TP_VEC_MAX), or dynamic, as many as there are patches"
	return List(to, "buffer", preset, doc, FieldKind[sched.Buffer]{
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

// Lookups is the field --lookup: all indexes by default.
func Lookups(to *[]int3.Lookup) *Field {
	return NamedList(to, "lookup", "`list` of indexes that trap handlers search", int3.LookupNames(), int3.ParseLookup,
		int3.Lookup.String)
}

// Refs is the field --refs.
func Refs(to *[]int3.Refs, preset string) *Field {
	return List(to, "refs", preset, "`list` of ways in which handlers are counted", Named(int3.RefsNames(), int3.ParseRefs,
		int3.Refs.String))
}

// whole is the kind of whole numbers from low to high.
func whole(low, high int) FieldKind[int] {
	return FieldKind[int]{
		Type: "count", Format: strconv.Itoa,
		Parse: func(s string) (int, error) {
			n, err := strconv.Atoi(s)
			if err != nil || n < low || n > high {
				return 0, fmt.Errorf("want whole numbers from %d to %d", low, high)
			}
			return n, nil
		},
	}
}

// Count is a field of one whole number from low to high.
func Count(to *int, name string, preset int, doc string, low, high int) *Field {
	return One(to, name, orNothing(preset), doc, whole(low, high))
}

func orNothing(preset int) string {
	if preset == 0 {
		return ""
	}
	return strconv.Itoa(preset)
}

// Counts is a field of whole numbers from low to high.
func Counts(to *[]int, name, preset, doc string, low, high int) *Field {
	return List(to, name, preset, doc, whole(low, high))
}

// Repeats is the field --repeats: as many measurements as bound a median with 95 %
// confidence, or more.
func Repeats(to *int, preset int, doc string) *Field {
	k := whole(MinRepeats, 1_000_000)
	parse := k.Parse
	k.Parse = func(s string) (int, error) {
		n, err := parse(s)
		if err != nil {
			err = fmt.Errorf("want %d or more: fewer measurements bound no median with 95 %% confidence", MinRepeats)
		}
		return n, err
	}
	return One(to, "repeats", strconv.Itoa(preset), doc, k)
}

// Flag is a field that is true or false, false by default.
func Flag(to *bool, name, doc string) *Field {
	return One(to, name, "", doc, FieldKind[bool]{Type: "bool", Parse: strconv.ParseBool, Format: strconv.FormatBool})
}

// Number is the kind of numbers that ok holds of; want says which these are.
func Number(want string, ok func(float64) bool) FieldKind[float64] {
	return FieldKind[float64]{
		Type: "number", Format: func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) },
		Parse: func(s string) (float64, error) {
			v, err := strconv.ParseFloat(s, 64)
			if err != nil || !ok(v) {
				return 0, fmt.Errorf("want %s", want)
			}
			return v, nil
		},
	}
}

var rates = Number("a number from 0 to 1e9", func(v float64) bool { return v >= 0 && v <= 1e9 })

// Rates is a field of numbers from 0 to 1e9.
func Rates(to *[]float64, name, preset, doc string) *Field { return List(to, name, preset, doc, rates) }

// Rate is a field of a number of events a second, 0 to 1e9; nil, the default, leaves
// it to what doc says.
func Rate(to **float64, name, doc string) *Field {
	return One(to, name, "", doc, FieldKind[*float64]{
		Type:   "rate",
		Format: func(v *float64) string { return rates.Format(*v) },
		Parse: func(s string) (*float64, error) {
			v, err := rates.Parse(s)
			return &v, err
		},
	})
}

// units are the letters that a number of bytes may end in.
var units = map[byte]uint64{'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}

// Sizes is a field of numbers of bytes up to high, such as 512, 4K or 2G.
func Sizes(to *[]uint64, name, preset, doc string, high uint64) *Field {
	return List(to, name, preset, doc, FieldKind[uint64]{
		Format: Size,
		Parse: func(s string) (uint64, error) {
			digits, unit := s, uint64(1)
			if n := len(s) - 1; n > 0 && units[s[n]] != 0 {
				digits, unit = s[:n], units[s[n]]
			}
			n, err := strconv.ParseUint(digits, 10, 64)
			if err != nil || n > high/unit {
				return 0, fmt.Errorf("want numbers of bytes up to %d, such as 512, 4K, 96M or 2G", high)
			}
			return n * unit, nil
		},
	})
}

// Size prints a number of bytes as Sizes reads it, in the largest unit that divides
// it.
func Size(n uint64) string {
	for _, unit := range []byte("GMK") {
		if n > 0 && n%units[unit] == 0 {
			return strconv.FormatUint(n/units[unit], 10) + string(unit)
		}
	}
	return strconv.FormatUint(n, 10)
}

// Roles is the field --cpus: the CPUs of a machine by role.
func Roles(to *[]cpus.Role, preset, doc string) *Field {
	return One(to, "cpus", preset,
		doc+": a number of CPUs, or roles (busy, idle, isolated, irqsoff, offline) such as busy=6,isolated=2",
		FieldKind[[]cpus.Role]{Type: "machine", Parse: cpus.ParseRoles, Format: cpus.FormatRoles})
}

// File is a field that names a file of this machine.
func File(to *string, name, doc string) *Field {
	return One(to, name, "", doc, FieldKind[string]{
		Type: "file", Format: strings.Clone, NamesFile: func(string) bool { return true },
		Parse: func(s string) (string, error) {
			if s == "" {
				return "", fmt.Errorf("want a name")
			}
			return s, nil
		},
	})
}

// Records is the field --records: one table of records.
func Records(to *string, preset, doc string) *Field {
	f := File(to, "records", doc)
	f.Type, f.Default, f.NamesFile = "table", preset, recordsFile
	return f
}

// Tables is the field --records where it can be repeated.
func Tables(to *[]string, doc string) *Field {
	return Strings(to, "records", "table", "", doc, recordsFile)
}

// recordsFile tells whether a table of records would be read from a file.
func recordsFile(src string) bool {
	return !strings.HasPrefix(src, "gen:") && !slices.ContainsFunc(records.Builtins(),
		func(b records.Builtin) bool { return b.Name == src })
}
