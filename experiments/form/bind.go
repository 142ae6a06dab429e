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
// empty.
func Bind[R any](declared []Column) (results.Columns[R], error) {
	var out results.Columns[R]
	cells := map[string]func(R) any{}
	for _, c := range declared {
		cell, err := source[R](c, cells)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.Name, err)
		}
		if c.If != "" {
			cell, err = onlyIf(c, cell, cells)
			if err != nil {
				return nil, fmt.Errorf("column %s: %w", c.Name, err)
			}
		}
		cells[c.Name] = cell
		if c.Hidden {
			continue
		}
		out = append(out, results.Col[R]{Name: c.Name, Doc: c.Doc, Kind: c.Kind, Detail: c.Detail, Lead: c.Lead, Cell: cell})
	}
	return out, nil
}

// source is where a column's cells come from.
func source[R any](c Column, before map[string]func(R) any) (func(R) any, error) {
	if c.From == nil {
		path := c.Path
		if path == "" {
			path = strings.ReplaceAll(c.Name, "_", "")
		}
		return at[R](path, c.Kind)
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
	holds := before[c.If]
	if holds == nil {
		path, err := at[R](c.If, "")
		if err != nil {
			return nil, err
		}
		holds = path
	}
	return func(r R) any {
		if v, err := results.ValueOf(holds(r)); err == nil && (v.IsEmpty() || v == results.Bool(false) ||
			v == results.Int(0) || v == results.Uint(0) || v == results.Float(0)) {
			return results.Empty
		}
		return cell(r)
	}, nil
}

// at finds what a path leads to.
func at[R any](path string, kind results.Kind) (func(R) any, error) {
	t := reflect.TypeFor[R]()
	var steps []step
	for name := range strings.SplitSeq(path, ".") {
		s, next, err := stepTo(t, name)
		if err != nil {
			return nil, err
		}
		steps, t = append(steps, s), next
	}
	return func(r R) any {
		v := reflect.ValueOf(&r).Elem()
		for _, s := range steps {
			if v = s(v); !v.IsValid() {
				return results.Empty
			}
		}
		return plain(v, kind)
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
	if !ok || !field.IsExported() {
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
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return results.Empty
		}
		if _, named := v.Interface().(fmt.Stringer); named {
			break
		}
		v = v.Elem()
	}
	if s, named := v.Interface().(fmt.Stringer); named && kind == results.Text {
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
	case reflect.Pointer:
		return results.If(!v.IsNil(), true)
	}
	return v.Interface()
}

func textCell(s string) any {
	if s == "" {
		return results.Empty
	}
	return s
}
