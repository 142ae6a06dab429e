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
	"github.com/textpoke/textpoke/sched"
)

// flagged are the fields of a Config that a form declares, in its order; then those of own
// that it does not name. The type of the Config's field says what kind of field it is.
func flagged[C any](c *C, flags []form.Flag, own []*Field) (out []*Field, err error) {
	own = slices.Clone(own)
	for _, flag := range flags {
		if i := slices.IndexFunc(own, func(f *Field) bool { return f.Name == flag.Name }); i >= 0 {
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

// fieldOf is the field of a variable; nil for types that have none of their own.
func fieldOf(to any, f form.Flag) *Field {
	number, _ := strconv.Atoi(f.Default) // "" is 0
	switch to := to.(type) {
	case *bool:
		return Flag(to, f.Name, f.Doc)
	case *int:
		if f.Name == "repeats" {
			return Repeats(to, number, f.Doc)
		}
		return Count(to, f.Name, number, f.Doc, f.Low, f.High)
	case *[]int:
		return Counts(to, f.Name, f.Default, f.Doc, f.Low, f.High)
	case *[]uint64:
		return Sizes(to, f.Name, f.Default, f.Doc, uint64(f.High))
	case **float64:
		out := Rate(to, f.Name, f.Doc)
		out.Default = f.Default
		return out
	case *[]float64:
		return Rates(to, f.Name, f.Default, f.Doc)
	case *string:
		if f.Name == "records" {
			return Records(to, f.Default, f.Doc)
		}
		return File(to, f.Name, f.Doc)
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
