// SPDX-License-Identifier: Apache-2.0

package results

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/internal/golden"
)

// TestDetailColumns: left out of a table for people, whatever they hold, and there for
// scripts. A column that leads is there though all rows have the same.
func TestDetailColumns(t *testing.T) {
	table := Table{Name: "t", Columns: []Column{{Name: "kept", Kind: Integer},
		{Name: "fine", Kind: Integer, Detail: true}, {Name: "same", Kind: Integer, Detail: true},
		{Name: "first", Kind: Integer, Lead: true}}}
	for i := range 2 {
		var b strings.Builder
		if err := table.Add(i, 10+i, 7, 5); err != nil {
			t.Fatal(err)
		}
		if err := Write(&b, FormatTable, table); err != nil {
			t.Fatal(err)
		}
		if s := b.String(); strings.Contains(s, "fine") || strings.Contains(s, "same") ||
			!strings.Contains(s, "kept  first\n") {
			t.Errorf("%d rows:\n%s", i+1, s)
		}
		b.Reset()
		if err := WriteCSV(&b, table); err != nil || !strings.Contains(b.String(), "fine,same") {
			t.Errorf("CSV lacks detail: %v\n%s", err, b.String())
		}
	}
}

func planColumns() []Column {
	var columns []Column
	for name := range strings.SplitSeq("arch,protocol,buffer,cpus,patches,flushes,flush_order,rounds,ipis,lookup_mean,seed,safe,elapsed_ns,reason", ",") {
		kind := Integer
		switch name {
		case "arch", "protocol", "buffer", "reason":
			kind = Text
		case "lookup_mean":
			kind = Number
		case "safe":
			kind = Boolean
		}
		columns = append(columns, Column{Name: name, Kind: kind})
	}
	return columns
}

// showcase has every case that the table view treats in its own way.
func showcase(t *testing.T, rows int) Table {
	t.Helper()
	tab := Table{Name: "plan", Columns: planColumns()}
	for _, row := range [][]any{
		{"x86_64", "native", "256", 8, 56064, 219, Empty, 657, 4599, 17.25, uint64(1 << 60), true, int64(1234567890123),
			Empty},
		{"x86_64", "native", "dynamic", 8, 56064, 1, Empty, 3, 21, 1.0 / 3, uint64(1 << 60), true, int64(99), Empty},
		{"x86_64", "stop-machine", Empty, 8, 56064, 0, Empty, 0, 0, Empty, uint64(1 << 60), false, Empty,
			"bad\x1b[31m\nname"},
	}[:rows] {
		if err := tab.Add(row...); err != nil {
			t.Fatal(err)
		}
	}
	return tab
}

func tableText(t *testing.T, tab Table) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, FormatTable, tab); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTableView(t *testing.T) {
	same := Table{Columns: []Column{{Name: "a", Kind: Integer}, {Name: "b"}}, Rows: [][]Value{{Int(1), Empty}, {Int(1), Empty}}}
	wide := showcase(t, 1)
	wide.Columns[1].Name = strings.Repeat("long_name_", 4) + "x"
	for name, tab := range map[string]Table{
		"several-rows":  showcase(t, 3),
		"one-row":       showcase(t, 1),
		"one-wide-row":  wide,
		"no-rows":       showcase(t, 0),
		"all-the-same":  same,
		"all-are-empty": {Columns: same.Columns, Rows: [][]Value{{Empty, Empty}}},
	} {
		t.Run(name, func(t *testing.T) { golden.Check(t, "testdata/"+name+".golden", []byte(tableText(t, tab))) })
	}
}

// Whatever the cells are, every row is one line, nothing can steer a terminal,
// and lines do not end in blanks.
func TestTableViewStaysInLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab := drawTable(t)
		var b bytes.Buffer
		if err := Write(&b, FormatTable, tab); err != nil {
			t.Fatal(err)
		}
		if most := len(tab.Rows) + len(tab.Columns) + 3; strings.Count(b.String(), "\n") > most {
			t.Fatalf("more than %d lines:\n%s", most, b.String())
		}
		for line := range strings.Lines(b.String()) {
			line = strings.TrimSuffix(line, "\n")
			if !printable(line) {
				t.Fatalf("unprintable line %q", line)
			}
		}
	})
}

// TestScreens: on a screen nothing is wider than it, and nothing is missing.
func TestScreens(t *testing.T) {
	for _, width := range []int{30, 46, 80, 120} {
		t.Run(strconv.Itoa(width), func(t *testing.T) {
			look := Look{Width: width, Paint: func(column, cell string) string {
				if column == "safe" {
					return "\x1b[32m" + cell + "\x1b[0m"
				}
				return cell
			}}
			var b strings.Builder
			said := showcase(t, 3)
			said.Columns = append(said.Columns, Column{Name: "why"})
			for i := range said.Rows {
				said.Rows[i] = append(
					said.Rows[i],
					String(strings.Repeat("for a reason that takes time to tell, ", i+1)+"in short."),
				)
			}
			for _, tab := range []Table{showcase(t, 3), showcase(t, 1), said} {
				if err := look.Write(&b, FormatTable, tab); err != nil {
					t.Fatal(err)
				}
				b.WriteString("\n")
			}
			for line := range strings.Lines(b.String()) {
				if n := Displayed(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%d characters: %s", n, line)
				}
			}
			if n := strings.Count(b.String(), "\x1b[32mtrue\x1b[0m"); n != 5 {
				t.Errorf("%d cells are painted, want 5", n)
			}
			golden.Check(t, "testdata/screen-"+strconv.Itoa(width)+".golden", []byte(strings.ReplaceAll(b.String(), "\x1b", "ESC")))
		})
	}
}

func TestPeople(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{Nanoseconds(0), "0 ns"}, {Nanoseconds(99), "99 ns"}, {Nanoseconds(-1500), "-1.5 us"},
		{Nanoseconds(465748370), "465.7 ms"}, {Nanoseconds(1e9), "1 s"}, {Nanoseconds(119e9), "119 s"},
		{Nanoseconds(85.4 * 60e9), "85.4 min"}, {Nanoseconds(1e15), "277.8 h"}, {Nanoseconds(1e17), "27778 h"},
		{Bytes(16), "16 B"}, {Bytes(4096), "4 KiB"}, {Bytes(684112), "668.1 KiB"}, {Bytes(1e13), "9313 GiB"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s, want %s", tt.got, tt.want)
		}
	}
}
