// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawTable draws records in groups, with names that need quoting.
func drawTable(t *rapid.T, names *rapid.Generator[string]) *Table {
	addrs := rapid.SliceOfNDistinct(rapid.Uint64Range(1, 1<<20), 1, 60, rapid.ID[uint64]).Draw(t, "addresses")
	mods := rapid.SampledFrom([]string{"", "", "ext4", `a,b"c`, "x"})
	var recs []Raw
	var groups []Group
	for len(addrs) > 0 {
		n := rapid.IntRange(1, len(addrs)).Draw(t, "group")
		run := slices.Sorted(slices.Values(addrs[:n]))
		groups = append(groups, Group{len(recs), len(recs) + n})
		for _, a := range run {
			recs = append(recs, Raw{Addr(a), names.Draw(t, "symbol"), mods.Draw(t, "module")})
		}
		addrs = addrs[n:]
	}
	tab, err := New("drawn", "", recs, groups...)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(recs, raws(tab)); d != "" {
		t.Fatal(d)
	}
	return tab
}

func TestCSVRoundTrip(t *testing.T) {
	names := rapid.StringMatching(`["',\[\]a-z_.\x{80}-\x{ff}]{1,12}`)
	rapid.Check(t, func(t *rapid.T) {
		tab := drawTable(t, names)
		var text bytes.Buffer
		if err := WriteCSV(&text, tab); err != nil {
			t.Fatal(err)
		}
		back, err := Read(context.Background(), "back", bytes.NewReader(text.Bytes()), Options{})
		if err != nil {
			t.Fatalf("%v\n%s", err, text.String())
		}
		if d := cmp.Diff(raws(tab), raws(back)); d != "" {
			t.Fatal(d)
		}
		if d := cmp.Diff(tab.Groups(), back.Groups()); d != "" {
			t.Fatal(d)
		}
	})
}

func TestAddrsRoundTrip(t *testing.T) {
	names := rapid.StringMatching(`[a-z_.,"]{1,12}`)
	rapid.Check(t, func(t *rapid.T) {
		tab := drawTable(t, names)
		var text bytes.Buffer
		if err := WriteAddrs(&text, tab); err != nil {
			t.Fatal(err)
		}
		if bytes.IndexByte(bytes.SplitN(text.Bytes(), []byte("\n"), 2)[0], ',') >= 0 {
			t.Skip("a comma in the first line makes it CSV")
		}
		back, err := Read(context.Background(), "back", bytes.NewReader(text.Bytes()), Options{})
		if err != nil {
			t.Fatalf("%v\n%s", err, text.String())
		}
		if d := cmp.Diff(raws(tab), raws(back)); d != "" {
			t.Fatal(d)
		}
	})
}
