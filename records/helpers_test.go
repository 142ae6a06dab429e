// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"
)

var long = flag.Bool("long", false, "run slow tests")

// readString reads a source given as text.
func readString(text string, opt Options) (*Table, error) {
	return Read(context.Background(), "in", strings.NewReader(text), opt)
}

// mustOpen opens a source that has to work.
func mustOpen(t testing.TB, src string, opt Options) *Table {
	t.Helper()
	tab, err := Open(context.Background(), src, opt)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// tempFile makes a file for one test.
func tempFile(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func gzipped(t testing.TB, s string) string {
	t.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	if _, err := w.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

func xzed(t testing.TB, s string) string {
	t.Helper()
	var buf bytes.Buffer
	w, err := xz.WriterConfig{DictCap: 1 << 20}.NewWriter(&buf)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

// raws are a table's records, for comparisons.
func raws(t *Table) []Raw {
	out := make([]Raw, t.Len())
	for i := range out {
		out[i] = Raw{t.Addr(i), t.Symbol(i), t.Module(i)}
	}
	return out
}

// wantError checks an error's whole text, and that it is one line.
func wantError(t testing.TB, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %q", want)
	}
	if got := err.Error(); got != want || strings.Contains(got, "\n") {
		t.Errorf("error\n %s\nwant\n %s", got, want)
	}
}

// checkTable verifies what holds for every table, whatever its source.
func checkTable(t testing.TB, tab *Table) {
	t.Helper()
	if tab.Len() == 0 || tab.Len() > MaxRecords {
		t.Fatalf("%d records", tab.Len())
	}
	next := 0
	for k, g := range tab.Groups() {
		if g.First != next || g.Len() <= 0 {
			t.Fatalf("group %d is %v, want one from record %d on", k, g, next)
		}
		for i := g.First + 1; i < g.Last; i++ {
			if tab.Addr(i) <= tab.Addr(i-1) {
				t.Fatalf("group %d does not ascend at %s", k, tab.Describe(i))
			}
		}
		next = g.Last
	}
	if next != tab.Len() {
		t.Fatalf("groups end at %d of %d", next, tab.Len())
	}
	for i := range tab.Len() {
		if tab.Addr(i) == 0 || tab.Symbol(i) == "" || !printable([]byte(tab.Symbol(i))) || !printable([]byte(tab.Module(i))) {
			t.Fatalf("record %d: %q", i, tab.Describe(i))
		}
	}
	if err := tab.CheckSites(1); err != nil {
		t.Fatal(err)
	}
}

// checkParsed verifies what every parser promises for any input: a good table,
// or an error that says where.
func checkParsed(t testing.TB, tab *Table, err error) {
	t.Helper()
	switch {
	case err == nil && tab.Len() == 0: // a list may hold none: the header of a CSV alone, gen:n=0
		if n := len(tab.Groups()); n != 0 {
			t.Fatalf("%d groups of no records", n)
		}
		return
	case err == nil:
		checkTable(t, tab)
		return
	}
	var parse *ParseError
	if !errors.As(err, &parse) || strings.ContainsAny(err.Error(), "\n\r") {
		t.Fatalf("not one line with a place: %T %q", err, err)
	}
}
