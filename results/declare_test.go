// SPDX-License-Identifier: Apache-2.0

package results

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

type part struct {
	Took time.Duration
	Name string
}

func (p *part) Twice() int { return 2 * len(p.Name) }

type whole struct {
	Count uint8
	At    Kind
	*part
	Inner  *part
	Within bool
}

const declared = `
other:
    count

whole:
    count detail : how many
    at
    name lead if Within
    twice = Inner.Twice : of a method
    took_ns = Inner.Took.Nanoseconds
    half number : of own
last:
    count
`

// TestDeclare: columns have the kinds of what their paths lead to, and are empty where a path or a condition leads to
// nothing.
func TestDeclare(t *testing.T) {
	own := map[string]func(whole) any{"half": func(w whole) any { return float64(w.Count) / 2 }}
	cs := Declare(declared, "whole", own)
	table := cs.Table("t")
	var columns []string
	for _, c := range table.Columns {
		columns = append(columns, fmt.Sprintf("%s %s %v %v %s", c.Name, c.Kind, c.Detail, c.Lead, c.Doc))
	}
	if got, want := strings.Join(columns, "; "), "count integer true false how many; at  false false ; name  false true ; "+
		"twice integer false false of a method; took_ns integer false false ; half number false false of own"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	p := &part{time.Microsecond, "abc"}
	for _, tt := range []struct {
		row  whole
		want string
	}{
		{whole{3, "x", p, p, true}, "[3 x abc 6 1000 1.5]"},
		{whole{3, "x", p, nil, false}, "[3 x    1.5]"},
		{whole{Within: true}, "[0     0]"},
	} {
		if row, err := cs.Row(tt.row); err != nil || fmt.Sprint(row) != tt.want {
			t.Errorf("%v, %v, want %s", row, err, tt.want)
		}
	}
}

// TestDeclareWrong: a mistake in a declaration is seen when the program begins.
func TestDeclareWrong(t *testing.T) {
	for table, text := range map[string]string{
		"none": "a:\n    count\n", "a": "a:\n    nothing\n", "b": "b:\n    count if Nothing\n", "c": "c:\n    Count\n",
		"d": "d:\n    x = Count.Length\n", "e": "e:\n    count\n", // and own has another
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is declared", text)
				}
			}()
			own := map[string]func(whole) any{}
			if table == "e" {
				own["half"] = func(whole) any { return 1 }
			}
			Declare(text, table, own)
		}()
	}
}
