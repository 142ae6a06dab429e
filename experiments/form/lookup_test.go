// SPDX-License-Identifier: Apache-2.0

package form

import "testing"

// TestLookups: a column sees all rows of its table, or of another one; my.NAME is the row that looks.
func TestLookups(t *testing.T) {
	rows := Rows{{"who": "a", "n": int64(3)}, {"who": "b", "n": int64(1)}, {"who": "a", "n": nil}, {"who": "a", "n": int64(7)}}
	of := func(table string) Rows {
		if table == "other" {
			return Rows{{"key": "b", "v": "found"}}
		}
		return rows
	}
	var columns []Column
	for _, text := range []string{
		`first number = first(who == my.who, n)`, `last number = last(who == my.who, n)`, `most number = most(who == my.who, n)`,
		`least integer = least(n > my.n, n)`, `sum integer = sum(true, n)`, `count integer = count(who == my.who && n != "")`,
		`found if n = first("other", key == my.who, v)`, `after = count(most == my.most && sum == my.sum)`,
		`nested integer = first(n == most(who == my.who, n), n)`,
	} {
		c, err := column(text)
		if err != nil {
			t.Fatal(err)
		}
		columns = append(columns, c)
	}
	late(columns)
	if err := Finish(columns, rows, of); err != nil {
		t.Fatal(err)
	}
	want := []Row{
		{"first": 3.0, "last": 7.0, "most": 7.0, "least": int64(7), "sum": int64(11), "count": int64(2), "found": nil, "after": 3.0, "nested": int64(1)},
		{"first": 1.0, "last": 1.0, "most": 1.0, "least": int64(3), "sum": int64(11), "count": int64(1), "found": "found", "after": 1.0, "nested": int64(1)},
		{"first": 3.0, "last": 7.0, "most": 7.0, "least": nil, "found": nil}, {"first": 3.0, "least": nil, "after": 3.0},
	}
	for i, w := range want {
		for name, v := range w {
			if rows[i][name] != v {
				t.Errorf("row %d: %s is %v, want %v", i, name, rows[i][name], v)
			}
		}
	}
	for _, text := range []string{"first(a)", "count(a, b, c)", `most("t")`, "first()"} {
		if _, err := ParseExpr(text); err == nil {
			t.Errorf("%s was read", text)
		}
	}
	if e, err := ParseExpr("count(true)"); err != nil {
		t.Error(err)
	} else if _, err := e.Eval(rows[0]); err == nil {
		t.Error("an expression of a single row has looked at others")
	}
}
