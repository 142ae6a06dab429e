// SPDX-License-Identifier: Apache-2.0

package vmlinux_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/records/vmlinux"
)

// TestLookups: what is at, before and behind an address, as a walk over all symbols finds it.
func TestLookups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []vmlinux.Symbol
		for range rapid.IntRange(0, 12).Draw(t, "n") {
			all = append(all, vmlinux.Symbol{
				Addr: rapid.Uint64Range(2, 12).Draw(t, "at"), Type: rapid.SampledFrom([]byte("tTwWdDrA")).Draw(t, "type"),
				Name: rapid.SampledFrom([]string{"a", "b", "a.isra.0", ".x", "b.cold"}).Draw(t, "name"),
			})
		}
		sorted := slices.Clone(all)
		slices.SortStableFunc(sorted, func(a, b vmlinux.Symbol) int { return cmp.Compare(a.Addr, b.Addr) })
		s := vmlinux.NewSymbols("layout", all)
		if s.Layout != "layout" || !slices.Equal(s.All, sorted) {
			t.Fatalf("%v, want %v", s.All, sorted)
		}
		for at := range uint64(15) {
			var starting []vmlinux.Symbol
			var after *vmlinux.Symbol
			var last vmlinux.Symbol
			found := false
			for i, y := range sorted {
				switch {
				case y.Addr == at:
					starting = append(starting, y)
				case y.Addr > at && after == nil:
					after = &sorted[i]
				}
				if y.Addr <= at && (!found || y.Addr > last.Addr) {
					last, found = y, true // the first of those at one address
				}
			}
			if got := s.Starting(at); !slices.Equal(got, starting) {
				t.Fatalf("starting at %d: %v, want %v", at, got, starting)
			}
			if got := s.After(at); (got == nil) != (after == nil) || got != nil && *got != *after {
				t.Fatalf("after %d: %v, want %v", at, got, after)
			}
			if y, offset, ok := s.Symbol(at); ok != found || found && (y != last || offset != at-last.Addr) {
				t.Fatalf("at %d: %v+%d, %v, want %v", at, y, offset, ok, last)
			}
		}
		if s.Add("added", 99); len(s.Names["added"]) != 1 || s.Names["added"][0] != 99 || len(s.All) != len(sorted) {
			t.Fatal("a name that is added is found by its name alone")
		}
		for _, name := range []string{"a", "b", "a.isra.0", ".x", "b.cold", "c"} {
			var at, parts []uint64
			for _, y := range sorted {
				if y.Name == name {
					at = append(at, y.Addr)
				}
				base, _, _ := strings.Cut(y.Name, ".")
				if text := strings.ContainsRune("tTwW", rune(y.Type)); text && (base == name || base == "" && y.Name == name) {
					parts = append(parts, y.Addr)
				}
			}
			addr, ok := s.Addr(name)
			if ok != (len(at) > 0) || ok && addr != at[0] || s.Has(name) != ok || !slices.Equal(s.Names[name], at) ||
				!slices.Equal(s.Parts[name], parts) {
				t.Fatalf("%s is at %v, its parts at %v, want %v and %v", name, s.Names[name], s.Parts[name], at, parts)
			}
		}
	})
}

// kernelOf is a kernel of 64 bytes at 0x1000 and 16 at 0x1040, the first byte of each
// address its low one.
func kernelOf(symbols ...vmlinux.Symbol) *vmlinux.Kernel {
	b := make([]byte, 80)
	for i := range b {
		b[i] = byte(i)
	}
	b[0], b[0x48] = 7, 0
	return &vmlinux.Kernel{Symbols: vmlinux.NewSymbols("", symbols), Memory: &vmlinux.Memory{
		Segments: []vmlinux.Segment{{Addr: 0x1000, Data: b[:64]}, {Addr: 0x1040, Data: b[64:]}}}}
}

// TestMemory: what is there is read, up to the end of its segment, and nothing beyond.
func TestMemory(t *testing.T) {
	k := kernelOf()
	for addr, n := range map[uint64]int{0xfff: 0, 0x1000: 64, 0x103f: 1, 0x1040: 16, 0x104f: 1, 0x1050: 0} {
		b := k.At(addr)
		if len(b) != n || n > 1 && b[1] != byte(addr)+1 {
			t.Errorf("%d bytes at %#x, want %d", len(b), addr, n)
		}
		for size := range uint64(66) {
			if got := len(k.Span(addr, addr+size)); n > 0 && got != map[bool]int{true: int(size)}[int(size) <= n] {
				t.Errorf("%d bytes of %d from %#x", got, size, addr)
			}
		}
	}
	if k.Span(0x1001, 0x1000) != nil {
		t.Error("bytes from an end to a beginning")
	}
	for addr, want := range map[uint64]uint64{0x1038: 0x3f3e3d3c3b3a3938, 0x1039: 0, 0x0: 0} {
		if got := k.Pointer(addr); got != want {
			t.Errorf("%#x at %#x, want %#x", got, addr, want)
		}
	}
	for addr, want := range map[uint64]string{0x1040: "@ABCDEFG", 0x1048: "", 0x1049: "", 0x1030: "", 0x0: ""} {
		if got := k.Text(addr); got != want {
			t.Errorf("%q at %#x, want %q", got, addr, want)
		}
	}
	if !k.Contains("@AB") || k.Contains(">?@") {
		t.Error("a text is in a segment, and none goes over its end")
	}
	long := &vmlinux.Memory{Segments: []vmlinux.Segment{{Data: append([]byte(strings.Repeat("x", vmlinux.MaxName)), 0)}}}
	if long.Text(0) != "" || len(long.Text(1)) != vmlinux.MaxName-1 {
		t.Error("a text is as long as names are, with its end")
	}
}

// TestSections: text stays, or is thrown away after boot; the end of a section is outside of it.
func TestSections(t *testing.T) {
	var symbols []vmlinux.Symbol
	at := func(addr uint64, names ...string) {
		for _, name := range names {
			symbols = append(symbols, vmlinux.Symbol{Addr: addr, Name: name})
		}
	}
	at(0x10, "_stext")
	at(0x20, "_sinittext") // within the other, as nowhere
	at(0x28, "_einittext")
	at(0x30, "_etext")
	at(0x40, "__init_begin")
	at(0x48, "__init_end", "backwards_end")
	at(0x50, "backwards")
	k := kernelOf(symbols...)
	for addr := range uint64(0x60) {
		text, init := addr >= 0x10 && addr < 0x30, addr >= 0x20 && addr < 0x28 || addr >= 0x40 && addr < 0x48
		if k.Discarded(addr) != init || k.Stays(addr) != (text && !init) || k.IsText(addr) != (text || init) {
			t.Errorf("%#x: thrown away %v, stays %v, text %v", addr, k.Discarded(addr), k.Stays(addr), k.IsText(addr))
		}
	}
	bare := kernelOf()
	if bare.Stays(0) || bare.Discarded(0) {
		t.Error("text without symbols that say where it is")
	}
	if from, to, ok := k.Limits("_stext", "_etext"); from != 0x10 || to != 0x30 || !ok {
		t.Errorf("limits %#x, %#x, %v", from, to, ok)
	}
	for _, pair := range [][2]string{{"backwards", "backwards_end"}, {"no", "_etext"}, {"_stext", "no"}} {
		if _, _, ok := k.Limits(pair[0], pair[1]); ok {
			t.Errorf("%v are limits", pair)
		}
	}
	if _, _, ok := k.Limits("_stext", "_stext"); !ok {
		t.Error("an empty table has limits")
	}
}

// TestBetween: a table is so many whole rows, and one that is not there is noted.
func TestBetween(t *testing.T) {
	k := kernelOf(vmlinux.Symbol{Addr: 0x1002, Name: "first"}, vmlinux.Symbol{Addr: 0x100d, Name: "last"},
		vmlinux.Symbol{Addr: 0x2000, Name: "out"}, vmlinux.Symbol{Addr: 0x2008, Name: "side"})
	for size, want := range map[uint64]int{1: 11, 4: 8, 8: 8, 11: 11, 12: 0} {
		if from, b := k.Between("first", "last", size); from != 0x1002 || len(b) != want || want > 0 && b[0] != 2 {
			t.Errorf("rows of %d bytes: %d bytes from %#x, want %d", size, len(b), from, want)
		}
	}
	if len(k.Notes) != 0 {
		t.Errorf("notes %q", k.Notes)
	}
	if from, b := k.Between("no", "last", 1); from != 0 || b != nil {
		t.Errorf("no table at %#x: %d bytes", from, len(b))
	}
	if _, b := k.Between("out", "side", 8); b != nil {
		t.Errorf("%d bytes outside", len(b))
	}
	want := []string{"no no: the table is not there, or not named", "out lies outside of the image"}
	if !slices.Equal(k.Notes, want) {
		t.Errorf("notes %q", k.Notes)
	}
}
