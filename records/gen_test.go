// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestGenErrors(t *testing.T) {
	keys := "keys are n, groups, order, spacing, modules, misaligned, seed, lengths, base"
	for _, c := range []struct{ spec, want string }{
		{"n=-1", `n "-1": not a number from 0 to 100000000`},
		{"n=1e9", `n "1e9": not a number from 0 to 100000000`},
		{"n=0x10", `n "0x10": not a number from 0 to 100000000`},
		{"n=1.5", `n "1.5": not a number from 0 to 100000000`},
		{"n=NaN", `n "NaN": not a number from 0 to 100000000`},
		{"n", `key "n": has no value; expected n=a number from 0 to 100000000`},
		{"n=1,n=2", `key "n": given twice`},
		{"", ""},
		{"n=5,", `key "": unknown; ` + keys},
		{"group=5", `key "group": unknown; did you mean groups? ` + keys},
		{"xyzxyzxyz=5", `key "xyzxyzxyz": unknown; ` + keys},
		{"order=sort", `order "sort": not one of grouped, sorted, random, descending`},
		{"spacing=8", `spacing "8": not bytes, a multiple of 8 from 16 to 1048576`},
		{"spacing=20", `spacing "20": not bytes, a multiple of 8 from 16 to 1048576`},
		{"modules=1.1", `modules "1.1": not a share from 0 to 1`},
		{"modules=NaN", `modules "NaN": not a share from 0 to 1`},
		{"misaligned=-1", `misaligned "-1": not a share from 0 to 1`},
		{"seed=-1", `seed "-1": not a number below 2^64`},
		{"base=12", `base "12": not an address, a multiple of 4096 like 0xffffffff81000000`},
		{"n=10,groups=11", `groups=11: more than the 10 records of the core kernel`},
		{"n=10,modules=0.5,groups=6", `groups=6: more than the 5 records of the core kernel`},
		{"groups=2,order=random",
			`groups=2: order=random makes a group of every ascending run; groups need order=grouped or order=sorted`},
		{"n=1000000,spacing=4096",
			`n=1000000, spacing=4096: does not fit between base=0xffffffff81000000 and the end of memory; take a lower base or a smaller spacing`},
		{"n=10,modules=1,base=0xfffffffffffff000",
			`n=10, spacing=64: does not fit between base=0xfffffffffffff000 and the end of memory; take a lower base or a smaller spacing`},
	} {
		t.Run(c.spec, func(t *testing.T) {
			_, err := Open(context.Background(), "gen:"+c.spec, Options{})
			if c.want == "" && err == nil {
				return
			}
			wantError(t, err, "gen:"+c.spec+": "+c.want)
		})
	}
}

func TestGenOrders(t *testing.T) {
	const spec = "gen:n=1000,modules=0.2,seed=7,order="
	sorted := mustOpen(t, spec+"sorted,groups=7", Options{})
	if !slices.IsSorted(sorted.Addrs()) || len(sorted.Groups()) != 7+3 {
		t.Errorf("sorted: %d groups", len(sorted.Groups()))
	}
	for order, breaks := range map[string]func(int) bool{
		"grouped,groups=7": func(n int) bool { return n >= 2 && n <= 9 },
		"random":           func(n int) bool { return n > 400 && n < 600 },
		"descending":       func(n int) bool { return n == 999 },
	} {
		tab := mustOpen(t, spec+order, Options{})
		st := tab.Stats()
		if !breaks(st.OrderBreaks) {
			t.Errorf("%s: %d order breaks", order, st.OrderBreaks)
		}
		if st.ModuleRecords != 200 || st.Modules != 3 {
			t.Errorf("%s: %d records in %d modules", order, st.ModuleRecords, st.Modules)
		}
		if d := cmp.Diff(sorted.Addrs(), tab.ascending()); order != "grouped,groups=7" && d != "" {
			t.Errorf("%s: other sites: %s", order, d)
		}
		for i := range tab.Len() {
			k, _ := slices.BinarySearch(sorted.Addrs(), tab.Addr(i))
			if order != "grouped,groups=7" && tab.Module(i) != sorted.Module(k) {
				t.Fatalf("%s: %s was in module %q", order, tab.Describe(i), sorted.Module(k))
			}
		}
	}
	// The core kernel comes first, modules behind it in whole groups.
	grouped := mustOpen(t, spec+"grouped,groups=7", Options{})
	for k, g := range grouped.Groups() {
		for i := g.First; i < g.Last; i++ {
			if m := grouped.Module(i); m != grouped.Module(g.First) || (m != "") != (k >= 7) {
				t.Fatalf("group %d: %s", k, grouped.Describe(i))
			}
		}
	}
	if tab := mustOpen(t, "gen:n=10,groups=2", Options{}); tab.Stats().OrderBreaks != 1 {
		t.Error("two shuffled groups stayed in order")
	}
}

func TestGenProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3000).Draw(t, "n")
		spacing := rapid.IntRange(2, 40).Draw(t, "spacing") * 8
		modules := float64(rapid.IntRange(0, 10).Draw(t, "modules")) / 10
		misaligned := float64(rapid.IntRange(0, 10).Draw(t, "misaligned")) / 10
		order := rapid.SampledFrom(genOrders).Draw(t, "order")
		seed := rapid.Uint64().Draw(t, "seed")
		spec := fmt.Sprintf("gen:n=%d,spacing=%d,modules=%v,misaligned=%v,order=%s,seed=%d", n, spacing, modules, misaligned,
			order, seed)
		groups := 0
		if order == orderGrouped || order == orderSorted {
			groups = rapid.IntRange(1, max(1, (n-int(modules*float64(n)+1))/2)).Draw(t, "groups")
			spec += fmt.Sprintf(",groups=%d", groups)
		}
		tab, err := Open(context.Background(), spec, Options{})
		if err != nil {
			t.Fatal(err)
		}
		checkGenerated(t, tab, n, modules, misaligned)
		again, err := Open(context.Background(), spec, Options{})
		if err != nil || !slices.Equal(again.Addrs(), tab.Addrs()) || !slices.Equal(again.Groups(), tab.Groups()) {
			t.Fatalf("%s: the second time another table, %v", spec, err)
		}
	})
}

func checkGenerated(t *rapid.T, tab *Table, n int, modules, misaligned float64) {
	st := tab.Stats()
	if st.Records != n {
		t.Fatalf("%d records, want %d", st.Records, n)
	}
	if want := int(modules*float64(n) + 0.5); st.ModuleRecords != want {
		t.Fatalf("%d records in modules, want %d", st.ModuleRecords, want)
	}
	if want := int(misaligned*float64(n) + 0.5); st.Misaligned != want {
		t.Fatalf("%d misaligned, want %d", st.Misaligned, want)
	}
	// A site with its literal, 12 bytes before to 4 behind, is its own.
	asc := tab.ascending()
	for i := 1; i < len(asc); i++ {
		literal := (asc[i] - 12) &^ 7
		if asc[i]%4 != 0 || literal < asc[i-1]+4 || asc[i] < asc[i-1]+5 {
			t.Fatalf("%s reaches into %s", asc[i-1], asc[i])
		}
	}
	if err := tab.CheckSites(5); err != nil {
		t.Fatal(err)
	}
	next := 0
	for _, g := range tab.Groups() {
		if g.First != next || !slices.IsSorted(tab.Addrs()[g.First:g.Last]) {
			t.Fatalf("group %v behind record %d", g, next)
		}
		next = g.Last
	}
	if next != n {
		t.Fatalf("groups end at %d", next)
	}
}

// TestGenPinned fixes what a seed means: results name it.
func TestGenPinned(t *testing.T) {
	tab := mustOpen(t, "gen:n=6,groups=2,modules=0.34,misaligned=0.2", Options{})
	var out strings.Builder
	if err := WriteCSV(&out, tab); err != nil {
		t.Fatal(err)
	}
	want := `address,symbol,module,group
0xffffffff810000bc,fn0,,0
0xffffffff81000124,fn1,,0
0xffffffff81000014,fn2,,1
0xffffffff81000084,fn3,,1
0xffffffff81205018,fn4,mod1,2
0xffffffff81200014,fn5,mod0,3
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}

func TestGenSpacing(t *testing.T) {
	for _, spacing := range []uint64{16, 64, 328} {
		tab := mustOpen(t, fmt.Sprintf("gen:n=20000,order=sorted,spacing=%d", spacing), Options{})
		st := tab.Stats()
		mean := float64(st.Span) / float64(st.Records-1)
		if mean < 0.97*float64(spacing) || mean > 1.03*float64(spacing) {
			t.Errorf("spacing %d: mean %.1f", spacing, mean)
		}
		if st.SpacingMin < 16 || st.SpacingMax > 2*spacing-16 || st.SpacingMin%8 != 0 {
			t.Errorf("spacing %d: from %d to %d", spacing, st.SpacingMin, st.SpacingMax)
		}
		if st.Misaligned != 0 || tab.Addr(0) != Addr(genDefaults.base+firstRecord) {
			t.Errorf("spacing %d: first at %s, %d misaligned", spacing, tab.Addr(0), st.Misaligned)
		}
	}
}

// TestGenLengths: each length is drawn about as often as the others, and the rest of
// the table is the same as without.
func TestGenLengths(t *testing.T) {
	plain := mustOpen(t, "gen:n=3000,groups=3,order=grouped", Options{})
	tab := mustOpen(t, "gen:n=3000,groups=3,order=grouped,lengths=1+2+5", Options{})
	seen := map[int]int{}
	for i := range tab.Len() {
		seen[tab.Length(i)]++
		if tab.Addr(i) != plain.Addr(i) || plain.Length(i) != 0 {
			t.Fatalf("record %d: %s, and %s with lengths", i, plain.Describe(i), tab.Describe(i))
		}
	}
	for _, n := range []int{1, 2, 5} {
		if seen[n] < 850 || seen[n] > 1150 {
			t.Errorf("%d of 3000 sites have %d bytes", seen[n], n)
		}
	}
	if len(seen) != 3 || !tab.HasLengths() || plain.HasLengths() {
		t.Errorf("%v", seen)
	}
	var text bytes.Buffer
	if err := WriteCSV(&text, tab); err != nil {
		t.Fatal(err)
	}
	back, err := readString(text.String(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range tab.Len() {
		if back.Length(i) != tab.Length(i) {
			t.Fatalf("record %d: %d bytes, written and read %d", i, tab.Length(i), back.Length(i))
		}
	}
}

// TestCSVLengths: a length may be missing, and is not anything else than 1 to 8.
func TestCSVLengths(t *testing.T) {
	const header = csvHeader + csvLengths + "\n"
	tab, err := readString(header+"10,a,,,2\n20,b,,,\n30,c,,,1\n40,d,,,\n", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := []int{tab.Length(0), tab.Length(1), tab.Length(2), tab.Length(3)}; !slices.Equal(got, []int{2, 0, 1, 0}) {
		t.Errorf("%v", got)
	}
	for row, want := range map[string]string{
		"10,a,,,9": `in:2: length "9": want the bytes of the site, 1 to 8, or nothing`, "10,a,,,x": `in:2: length "x": want the bytes of the site, 1 to 8, or nothing`,
		"10,a,,": `in:2: row "10,a,,": 4 fields instead of the 5 fields address,symbol,module,group,length`,
	} {
		_, err := readString(header+row+"\n", Options{})
		wantError(t, err, want)
	}
}
