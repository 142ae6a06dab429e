// SPDX-License-Identifier: Apache-2.0

package results

import (
	"cmp"
	"fmt"
	"go/token"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/textpoke/textpoke/internal/inputs"
)

// Declared is a column as a line of text declares it.
type Declared struct {
	Column
	Path string // of a row: where its cells come from; "" for the field or method of its name
	Expr string // an expression in place of a path, which only experiments know
	If   string // the cell is empty where this path leads to nothing, false or 0
	// Hidden columns are for expressions alone; the table does not have them.
	Hidden bool
}

// kinds are the words for the kinds of cells.
var kinds = map[string]Kind{"text": Text, "integer": Integer, "number": Number, "boolean": Boolean}

// ParseColumn reads a line such as
//
//	lookup_max integer detail if Traps = Lookup.Max : most comparisons of addresses
//
// where only the name must be. Paths begin with a capital letter.
func ParseColumn(text string) (c Declared, err error) {
	head, doc, _ := strings.Cut(text, " : ")
	c.Doc = strings.TrimSpace(doc)
	head, from, _ := strings.Cut(head, " = ")
	if from = strings.TrimSpace(from); IsPath(from) {
		c.Path = from
	} else {
		c.Expr = from
	}
	words := strings.Fields(head)
	if len(words) == 0 || strings.Trim(words[0], "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return c, fmt.Errorf("column %q: want a name of small letters, digits and _", text)
	}
	c.Name = words[0]
	for i := 1; i < len(words); i++ {
		kind, isKind := kinds[words[i]]
		switch {
		case isKind:
			c.Kind = kind
		case words[i] == "hidden":
			c.Hidden = true
		case words[i] == "detail":
			c.Detail = true
		case words[i] == "lead":
			c.Lead = true
		case words[i] == "if" && i+1 < len(words):
			i++
			c.If = words[i]
		default:
			return c, fmt.Errorf("column %s: %q: want text, integer, number, boolean, detail, lead, hidden, if COLUMN, "+
				"= EXPRESSION or : WHAT IT MEANS", c.Name, words[i])
		}
	}
	return c, nil
}

// IsPath tells whether text is a path of a row, and no expression.
func IsPath(s string) bool { return s != "" && s[0] >= 'A' && s[0] <= 'Z' }

// Declare makes the columns of a table of what text declares: its name with a colon on a line, and below it, indented, a
// line a column, as [ParseColumn] reads them. A column without a kind has that of its path. own has the cells that are
// no field and no method of a row. Whatever is wrong in the text is a mistake of ours, and panics.
func Declare[R any](text, table string, own map[string]func(R) any) (out Columns[R]) {
	for _, line := range inputs.Below(text, table) {
		d, err := ParseColumn(line)
		c := Col[R]{d.Column, own[d.Name]}
		if err == nil && c.Cell == nil {
			c.Cell, c.Kind, err = PathCell[R](d)
		}
		if err != nil {
			panic(fmt.Sprintf("results: table %s: column %s: %v", table, d.Name, err))
		}
		part := Columns[R]{c}
		if d.If != "" {
			holds, err := Holds[R](d.If)
			if err != nil {
				panic(fmt.Sprintf("results: table %s: column %s: %v", table, d.Name, err))
			}
			part = part.When(holds)
		}
		out = append(out, part...)
	}
	if out == nil {
		panic(fmt.Sprintf("results: no table %s is declared", table))
	}
	for name := range own {
		if !slices.ContainsFunc(out, func(c Col[R]) bool { return c.Name == name }) {
			panic(fmt.Sprintf("results: table %s declares no column %s", table, name))
		}
	}
	return out
}

// Holds tells of a row whether what a path leads to is there, and not false or 0.
func Holds[R any](path string) (func(R) bool, error) {
	to, _, err := At[R](path)
	return func(r R) bool { v := to(r); return v.IsValid() && !v.IsZero() }, err
}

// PathCell is the cell that a column's path leads to, and its kind.
func PathCell[R any](d Declared) (cell func(R) any, kind Kind, err error) {
	to, t, err := At[R](cmp.Or(d.Path, strings.ReplaceAll(d.Name, "_", "")))
	if err != nil {
		return nil, "", err
	}
	kind = cmp.Or(d.Kind, kindOf(t))
	return func(r R) any { return CellAt(to(r), kind) }, kind, nil
}

// kindOf is what cells of a type are.
func kindOf(t reflect.Type) Kind {
	if t.Implements(reflect.TypeFor[fmt.Stringer]()) {
		return Text
	}
	switch k := t.Kind(); {
	case k == reflect.Pointer:
		return kindOf(t.Elem())
	case k == reflect.Bool:
		return Boolean
	case k >= reflect.Int && k <= reflect.Uint64:
		return Integer
	case k == reflect.Float64:
		return Number
	}
	return Text
}

// At finds what a path such as Modelled.Update leads to, by the names of fields and of methods without parameters,
// whatever their case, and its type: no value where a pointer on the way is nil.
func At[R any](path string) (to func(R) reflect.Value, t reflect.Type, err error) {
	t = reflect.TypeFor[R]()
	var steps []step
	shown := true // what is not exported can be read, and none of its methods called
	for name := range strings.SplitSeq(path, ".") {
		s, next, field, err := stepTo(t, name)
		if err == nil && !shown && field == nil {
			err = fmt.Errorf("a method of a field that is not exported: %s", name)
		}
		if err != nil {
			return nil, nil, err
		}
		shown = shown && (field == nil || field.IsExported())
		steps, t = append(steps, s), next
	}
	return func(r R) reflect.Value {
		v := reflect.ValueOf(&r).Elem()
		for _, s := range steps {
			if v = s(v); !v.IsValid() {
				break
			}
		}
		return v
	}, t, nil
}

// step goes from a value to a field or method of it; to no value where a pointer is nil.
type step func(reflect.Value) reflect.Value

// methods are those without parameters and with one result, by type and by name in small letters.
var methods sync.Map

func methodsOf(t reflect.Type) map[string]int {
	if known, ok := methods.Load(t); ok {
		return known.(map[string]int)
	}
	own, receiver := map[string]int{}, 1
	if t.Kind() == reflect.Interface {
		receiver = 0
	}
	for i := range t.NumMethod() {
		if m := t.Method(i); m.Type.NumIn() == receiver && m.Type.NumOut() == 1 {
			own[strings.ToLower(m.Name)] = i
		}
	}
	methods.Store(t, own)
	return own
}

// stepTo finds the step to a method or a field, which is nil for a method.
func stepTo(t reflect.Type, name string) (step, reflect.Type, *reflect.StructField, error) {
	for _, of := range []reflect.Type{t, reflect.PointerTo(t)} {
		i, ok := methodsOf(of)[strings.ToLower(name)]
		if !ok {
			continue
		}
		return func(v reflect.Value) reflect.Value {
			if of != t && v.CanAddr() {
				v = v.Addr()
			}
			if k := v.Kind(); (k == reflect.Pointer || k == reflect.Interface) && v.IsNil() {
				return reflect.Value{}
			}
			return v.Method(i).Call(nil)[0]
		}, of.Method(i).Type.Out(0), nil, nil
	}
	st, pointer := t, t.Kind() == reflect.Pointer
	if pointer {
		st = t.Elem()
	}
	if st.Kind() != reflect.Struct {
		return nil, nil, nil, fmt.Errorf("%v has no %s", t, name)
	}
	field, ok := st.FieldByNameFunc(func(s string) bool { return token.IsExported(s) && strings.EqualFold(s, name) })
	if !ok {
		field, ok = st.FieldByNameFunc(func(s string) bool { return strings.EqualFold(s, name) })
	}
	if !ok {
		return nil, nil, nil, fmt.Errorf("%v has no %s", t, name)
	}
	return func(v reflect.Value) reflect.Value {
		if pointer {
			if v.IsNil() {
				return reflect.Value{}
			}
			v = v.Elem()
		}
		inner, err := v.FieldByIndexErr(field.Index)
		if err != nil {
			return reflect.Value{} // an embedded pointer is nil
		}
		return inner
	}, field.Type, &field, nil
}

// CellAt is a value as a cell of a kind holds it: numbers without their types, and texts of Stringers. It is empty
// without a value, and where the text is "".
func CellAt(v reflect.Value, kind Kind) any {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		if s, named := stringer(v); named && !v.IsNil() && kind == Text {
			return OrEmpty(s.String())
		}
		v = v.Elem()
	}
	if !v.IsValid() {
		return Empty
	}
	if s, named := stringer(v); named && kind == Text {
		return OrEmpty(s.String())
	}
	switch v.Kind() {
	case reflect.String:
		return OrEmpty(v.String())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return v.Uint()
	case reflect.Float64:
		return v.Float()
	case reflect.Bool:
		return v.Bool()
	}
	if v.CanInterface() {
		return v.Interface()
	}
	return fmt.Errorf("a field of type %v that is not exported", v.Type()) // no cell
}

// stringer is what says its own name; a field that is not exported does not.
func stringer(v reflect.Value) (s fmt.Stringer, is bool) {
	if v.CanInterface() {
		s, is = v.Interface().(fmt.Stringer)
	}
	return s, is
}
