// SPDX-License-Identifier: Apache-2.0

package metadata

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/records"
)

// TestAgainstMap: whatever is done to a table, it holds what a map holds.
func TestAgainstMap(t *testing.T) {
	for k, name := range KindNames() {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			tab, want := must(New(TableKind(k), Text{text.Start, at(400)})), map[records.Addr]*Record{}
			functions := rapid.IntRange(1, 300).Draw(t, "functions")
			one := rapid.Custom(func(t *rapid.T) records.Addr {
				return at(rapid.IntRange(0, functions-1).Draw(t,
					"function"))
			})
			set := func(a records.Addr) {
				r := &Record{Func: a, Args: 2, Image: uint64(rapid.Uint64().Draw(t, "cookie"))}
				if err := tab.Set(r); err != nil {
					t.Fatal(err)
				}
				want[a] = r
			}
			remove := func(a records.Addr) {
				_, had := want[a]
				if tab.Remove(a) != had {
					t.Fatalf("Remove(%v) is %v", a, !had)
				}
				delete(want, a)
			}
			t.Repeat(map[string]func(*rapid.T){
				"set":    func(t *rapid.T) { set(one.Draw(t, "at")) },
				"remove": func(t *rapid.T) { remove(one.Draw(t, "at")) },
				// Many at a time, so that tables grow and shrink.
				"fill": func(t *rapid.T) {
					for i := range rapid.IntRange(0, functions).Draw(t, "to") {
						set(at(i))
					}
				},
				"drain": func(t *rapid.T) {
					for _, a := range slices.Sorted(maps.Keys(want))[rapid.IntRange(0, len(want)).Draw(t, "from"):] {
						remove(a)
					}
				},
				"": func(t *rapid.T) {
					if tab.Len() != len(want) {
						t.Fatalf("Len is %d, want %d", tab.Len(), len(want))
					}
					for i := range functions {
						if got := tab.Lookup(at(i)); got != want[at(i)] {
							t.Fatalf("Lookup(%v) = %v, want %v", at(i), got, want[at(i)])
						}
					}
				},
			})
		}))
	}
}

// TestEdges: addresses that no function has.
func TestEdges(t *testing.T) {
	each(t, func(t *testing.T, tab Table) {
		if err := tab.Set(&Record{Func: at(3), Args: 1}); err != nil {
			t.Fatal(err)
		}
		for _, a := range []records.Addr{0, 1, 4, text.Start, text.End, text.End + 4, at(3) - 4, at(3) + 1, at(3) + 3,
			at(3) + 4, ^records.Addr(0)} {
			if tab.Lookup(a) != nil || tab.Remove(a) {
				t.Errorf("%v is in the table", a)
			}
			if c, ok := tab.(Counted); ok && c.Cost(a).Loads == 0 {
				t.Errorf("%v was looked for without a load", a)
			}
		}
		for want, r := range map[string]*Record{
			"no function is at address 0":            &Record{Func: 0, Args: 1},
			"13 arguments: a trampoline saves 12 at": &Record{Func: at(1), Args: 13},
		} {
			if err := tab.Set(r); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
		if tab.Len() != 1 || tab.Lookup(at(3)) == nil {
			t.Error("what was refused has left something")
		}
	})
}

// TestLookupsAllocateNothing, whether they find something or not.
func TestLookupsAllocateNothing(t *testing.T) {
	for k, name := range KindNames() {
		tab := filled(t, TableKind(k), 1000)
		if n := testing.AllocsPerRun(100, func() { tab.Lookup(at(500)); tab.Lookup(at(2000)) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestPaddingRefuses(t *testing.T) {
	p := must(NewPadding(text))
	for _, a := range []records.Addr{text.Start, text.Start + 6, text.Start - 16, text.End, text.End + 16} {
		if err := p.Set(&Record{Func: a, Args: 1}); err == nil || !strings.Contains(err.Error(),
			a.String()+": no number fits before it") {
			t.Errorf("%v: %v", a, err)
		}
	}
	for _, bad := range []Text{{}, {8, 8}, {16, 8}, {2, 16}, {4, 17}, {0, maxText + 4}} {
		if _, err := New(FunctionPadding, bad); err == nil || !strings.Contains(err.Error(), "want multiples of 4") {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if p.Len() != 0 {
		t.Error("something was put in")
	}
}

// TestPaddingNumbersComeBack: the array is as large as the most functions there were.
func TestPaddingNumbersComeBack(t *testing.T) {
	p := must(NewPadding(text))
	for round := range 50 {
		for i := range 100 {
			if err := p.Set(&Record{Func: at(100*round + i), Args: 1}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 100 {
			p.Remove(at(100*round + i))
		}
	}
	if n := len(*p.records.Load()); n != 128 {
		t.Errorf("%d places for 100 functions at a time, want 128", n)
	}
}

// TestZero: zero values are tables, or are refused.
func TestZero(t *testing.T) {
	for name, tab := range map[string]Table{"resizable": &Resizable{}, "fixed": NewFixed(0)} {
		if tab.Lookup(at(1)) != nil || tab.Remove(at(1)) || tab.Len() != 0 {
			t.Errorf("%s: something is in it", name)
		}
		if err := tab.Set(&Record{Func: at(1)}); err != nil || tab.Lookup(at(1)) == nil {
			t.Errorf("%s: %v", name, err)
		}
		if tab.(Counted).Cost(at(1)).Loads == 0 || tab.(Counted).Bytes() == 0 {
			t.Errorf("%s: costs nothing", name)
		}
	}
	for buckets, want := range map[int]int{-1: 256, 0: 256, 1: 1, 3: 4, 1024: 1024} {
		f := NewFixed(buckets)
		if err := f.Set(&Record{Func: at(2)}); err != nil || len(f.buckets) != want || f.Lookup(at(2)) == nil {
			t.Errorf("%d buckets: %d, %v", buckets, len(f.buckets), err)
		}
	}
	if tab, err := New(99, text); err == nil || tab != nil || TableKind(99).String() != "kind 99" {
		t.Error(tab, err)
	}
}

func TestKinds(t *testing.T) {
	for i, name := range KindNames() {
		if k, err := ParseKind(name); err != nil || k != TableKind(i) || k.String() != name {
			t.Errorf("%s: %v, %v", name, k, err)
		}
	}
	if _, err := ParseKind("hash"); err == nil {
		t.Error("hash is a kind")
	}
}
