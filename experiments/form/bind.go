// SPDX-License-Identifier: Apache-2.0

package form

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/textpoke/textpoke/results"
)

// Bind makes columns of rows that are computed in Go. A column's cell is the field, or
// the method without parameters, whose name is that of the column but for underscores
// and case: rounds_saved is RoundsSaved. A path such as Modelled.Update says otherwise.
// Where a pointer on the way is nil, and where the text at the end is "", the cell is
// empty. Other cells are own's, by the names of their columns.
// Hidden columns stand apart.
func Bind[R any](declared []Column, own map[string]func(R) any) (shown, hidden results.Columns[R], err error) {
	cells := map[string]func(R) any{}
	for _, c := range declared {
		cell := own[c.Name]
		if cell == nil {
			cell, err = source[R](c, cells)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("column %s: %w", c.Name, err)
		}
		if c.If != "" {
			if cell, err = onlyIf(c, cell, cells); err != nil {
				return nil, nil, fmt.Errorf("column %s: %w", c.Name, err)
			}
		}
		cells[c.Name] = cell
		to := &shown
		if c.Hidden {
			to = &hidden
		}
		*to = append(*to, results.Col[R]{Name: c.Name, Doc: c.Doc, Kind: c.Kind, Detail: c.Detail, Lead: c.Lead, Cell: cell})
	}
	return shown, hidden, nil
}

// source is where a column's cells come from.
func source[R any](c Column, before map[string]func(R) any) (func(R) any, error) {
	if c.From == nil {
		path := c.Path
		if path == "" {
			path = strings.ReplaceAll(c.Name, "_", "")
		}
		to, err := at[R](path)
		return func(r R) any { return plain(to(r), c.Kind) }, err
	}
	names := c.From.Names()
	for _, name := range names {
		if before[name] == nil {
			return nil, fmt.Errorf("there is no column %s above it", name)
		}
	}
	return func(r R) any {
		row := Row{}
		for _, name := range names {
			v, err := results.ValueOf(before[name](r))
			if err != nil {
				return err // no cell: whoever writes the row says so
			}
			row[name] = v.Any()
		}
		v, err := c.From.Eval(row)
		if err != nil {
			return err
		}
		return Cell(v, c.Kind)
	}, nil
}

// Cell makes a cell of the value of an expression.
func Cell(v any, kind results.Kind) any {
	f, ok := v.(float64)
	switch {
	case v == nil:
		return results.Empty
	case ok && kind == results.Integer:
		return int64(f)
	case ok && kind == results.Text:
		return results.Plain(f)
	}
	return v
}

// onlyIf leaves a cell empty where the condition's column is, or the path's value is
// nil, false or 0.
func onlyIf[R any](c Column, cell func(R) any, before map[string]func(R) any) (func(R) any, error) {
	holds := func(r R) bool {
		v, err := results.ValueOf(before[c.If](r))
		return err == nil && !v.IsEmpty() && v != results.Bool(false)
	}
	if before[c.If] == nil {
		to, err := at[R](c.If)
		if err != nil {
			return nil, err
		}
		holds = func(r R) bool {
			v := to(r)
			return v.IsValid() && !v.IsZero()
		}
	}
	return func(r R) any {
		if !holds(r) {
			return results.Empty
		}
		return cell(r)
	}, nil
}

// at finds what a path leads to: no value where a pointer on the way is nil.
func at[R any](path string) (func(R) reflect.Value, error) {
	t := reflect.TypeFor[R]()
	var steps []step
	for name := range strings.SplitSeq(path, ".") {
		s, next, err := stepTo(t, name)
		if err != nil {
			return nil, err
		}
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
	}, nil
}

// step goes from a value to what is inside of it; to no value where a pointer is nil.
type step func(reflect.Value) reflect.Value

func stepTo(t reflect.Type, name string) (step, reflect.Type, error) {
	for _, of := range []reflect.Type{t, reflect.PointerTo(t)} {
		for i := range of.NumMethod() {
			m := of.Method(i)
			in := 1
			if of.Kind() == reflect.Interface {
				in = 0
			}
			if strings.EqualFold(m.Name, name) && m.Type.NumIn() == in && m.Type.NumOut() == 1 {
				return func(v reflect.Value) reflect.Value {
					if of != t && v.CanAddr() {
						v = v.Addr()
					}
					if k := v.Kind(); (k == reflect.Pointer || k == reflect.Interface) && v.IsNil() {
						return reflect.Value{}
					}
					return v.MethodByName(m.Name).Call(nil)[0]
				}, m.Type.Out(0), nil
			}
		}
	}
	st, pointer := t, t.Kind() == reflect.Pointer
	if pointer {
		st = t.Elem()
	}
	if st.Kind() != reflect.Struct {
		return nil, nil, fmt.Errorf("%v has no %s", t, name)
	}
	field, ok := st.FieldByNameFunc(func(s string) bool { return strings.EqualFold(s, name) })
	if !ok {
		return nil, nil, fmt.Errorf("%v has no %s", t, name)
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
	}, field.Type, nil
}

// plain is a value as a cell holds it: numbers without their types, and texts of what
// has a name.
func plain(v reflect.Value, kind results.Kind) any {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		if s, named := stringer(v); named && !v.IsNil() && kind == results.Text {
			return textCell(s.String())
		}
		v = v.Elem()
	}
	if !v.IsValid() {
		return results.Empty
	}
	if s, named := stringer(v); named && kind == results.Text {
		return textCell(s.String())
	}
	switch v.Kind() {
	case reflect.String:
		return textCell(v.String())
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

func textCell(s string) any {
	if s == "" {
		return results.Empty
	}
	return s
}
