// SPDX-License-Identifier: Apache-2.0

package results

import (
	"fmt"
	"strings"
	"testing"
)

// screen is what a table looks like on a screen of so many characters.
func screen(t *testing.T, tab Table, width int) string {
	t.Helper()
	var b strings.Builder
	if err := (Look{Width: width}).Write(&b, FormatTable, tab); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// textTable is a table of text without anything that all rows have in common.
func textTable(columns []string, rows ...[]string) Table {
	tab := Table{Name: "t"}
	for _, name := range columns {
		tab.Columns = append(tab.Columns, Column{Name: name, Kind: Text})
	}
	for _, row := range rows {
		var values []Value
		for _, s := range row {
			values = append(values, String(s))
		}
		tab.Rows = append(tab.Rows, values)
	}
	return tab
}

// TestExactlyAsWide: a table that is as wide as the screen is printed across, and one that is a
// character wider is not. Where there is no screen a single row has 120 characters, and several
// rows have as many as they take.
func TestExactlyAsWide(t *testing.T) {
	for n := range 3 {
		var rows [][]string
		for i := range n + 1 {
			rows = append(rows, []string{fmt.Sprint(i), strings.Repeat("x", 117-i)})
		}
		tab := textTable([]string{"a", "b"}, rows...) // 1 + 2 + 117 characters
		across := screen(t, tab, 1000)
		if width(across) != 120 {
			t.Fatalf("%d characters", width(across))
		}
		for width := 110; width < 130; width++ {
			if got := screen(t, tab, width); (got == across) != (width >= 120) {
				t.Errorf("%d rows on a screen of %d:\n%s", n+1, width, got)
			}
		}
		tab.Rows[0][0] = String("12")
		across = screen(t, tab, 1000)
		if got := screen(t, tab, 0); (got == across) != (n > 0) {
			t.Errorf("%d rows of 121 characters and no screen:\n%s", n+1, got)
		}
		tab.Rows[0][0] = String("1")
		if screen(t, tab, 0) != screen(t, tab, 1000) {
			t.Errorf("%d rows of 120 characters and no screen", n+1)
		}
	}
}

// TestNarrowSentences: the column with the longest sentence gets narrower as the screen does, to 32
// characters or those of its name; on a narrower screen rows are printed downwards.
func TestNarrowSentences(t *testing.T) {
	const sentence = "a reason that takes some time to tell, and then some more"
	for _, name := range []string{"why", strings.Repeat("n", 40)} {
		least := max(32, len(name))
		tab := textTable([]string{"a", "short", name}, []string{"word", "of two", sentence},
			[]string{strings.Repeat("w", 70), "of two or", "none"})
		for room := least - 3; room <= len(sentence)+2; room++ {
			wide := 70 + 2 + len("of two or") + 2 + room
			got := screen(t, tab, wide)
			names, _, _ := strings.Cut(got, "\n")
			if across := strings.Contains(names, "short"); across != (room >= least) {
				t.Errorf("%d characters for sentences below %s:\n%s", room, name, got)
			}
			if n := width(got); n > wide {
				t.Errorf("%d characters on a screen of %d:\n%s", n, wide, got)
			}
		}
	}
}

// TestParagraphs: what all rows have in common is told in lines that are as wide as the screen, and
// no wider.
func TestParagraphs(t *testing.T) {
	tab := textTable([]string{"a", "bb", "c", "none", "row"}, []string{"x", "yy", "z", "", "1"},
		[]string{"x", "yy", "z", "", "2"})
	const first, second, third = "a: x", "bb: yy", "c: z"
	for width := 6; width < 30; width++ {
		want := first
		for line, s := first, second; ; s = third {
			if len(line)+3+len(s) <= width {
				line, want = line+"   "+s, want+"   "+s
			} else {
				line, want = s, want+"\n"+s
			}
			if s == third {
				break
			}
		}
		if got := screen(t, tab, width); !strings.HasPrefix(got, want+"\n\n") {
			t.Errorf("on a screen of %d:\n%s\nwant\n%s", width, got, want)
		}
	}
}
