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
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
)

// Field is one field of a Config.
type (
	Field            = choice.Field
	FieldKind[T any] = choice.Kind[T]
)

// What fields of a Config are made with, beside those below.
var (
	Count, Counts = choice.Count, choice.Counts
	Number        = choice.Number
	Rate, Rates   = choice.Rate, choice.Rates
	Size, Sizes   = choice.Size, choice.Sizes
	Flag          = choice.Flag
	File          = choice.File
	Strings       = choice.Strings
	OneOf         = choice.OneOf
)

// One is choice.One, List is choice.List, and so on: a variable can hold no generic function.
func One[T any](to *T, name, preset, doc string, k FieldKind[T]) *Field {
	return choice.One(to, name, preset, doc, k)
}

// List makes a field of a list.
func List[T any](to *[]T, name, preset, doc string, k FieldKind[T]) *Field {
	return choice.List(to, name, preset, doc, k)
}

// NamedList is the field of a list of names, all of them by default.
func NamedList[T any](to *[]T, name, doc string, names []string, parse func(string) (T, error),
	format func(T) string) *Field {
	return choice.NamedList(to, name, doc, names, parse, format)
}

// Arches is the field arch: all instruction sets by default.
func Arches(to *[]isa.Arch) *Field {
	return NamedList(to, "arch", "`list` of instruction sets", cpus.ArchNames(), cpus.ParseArch, func(a isa.Arch) string {
		if a == nil {
			return ""
		}
		return a.Traits().Name
	})
}

// Buffers is the field buffer.
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

// Lookups is the field lookup: all indexes by default.
func Lookups(to *[]int3.Lookup) *Field {
	return NamedList(to, "lookup", "`list` of indexes that trap handlers search", int3.LookupNames(), int3.ParseLookup,
		int3.Lookup.String)
}

// Refs is the field refs.
func Refs(to *[]int3.Refs, preset string) *Field {
	return List(to, "refs", preset, "`list` of ways in which handlers are counted", choice.Named(int3.RefsNames(), int3.ParseRefs,
		int3.Refs.String))
}

// Repeats is the field repeats: as many measurements as bound a median with 95 %
// confidence, or more.
func Repeats(to *int, preset int, doc string) *Field {
	k := choice.Whole(MinRepeats, 1_000_000)
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

// Roles is the field cpus: the CPUs of a machine by role.
func Roles(to *[]cpus.Role, preset, doc string) *Field {
	return One(to, "cpus", preset,
		doc+": a number of CPUs, or roles (busy, idle, isolated, irqsoff, offline) such as busy=6,isolated=2",
		FieldKind[[]cpus.Role]{Type: "machine", Parse: cpus.ParseRoles, Format: cpus.FormatRoles})
}

// Records is the field records: one table of records.
func Records(to *string, preset, doc string) *Field {
	f := File(to, "records", doc)
	f.Type, f.Default, f.NamesFile = "table", preset, recordsFile
	return f
}

// Tables is the field records where it can be repeated.
func Tables(to *[]string, doc string) *Field {
	return Strings(to, "records", "table", "", doc, recordsFile)
}

// recordsFile tells whether a table of records would be read from a file.
func recordsFile(src string) bool {
	return !strings.HasPrefix(src, "gen:") && !slices.ContainsFunc(records.Builtins(),
		func(b records.Builtin) bool { return b.Name == src })
}
