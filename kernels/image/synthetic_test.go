// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// synthetic is a raw image of riscv64 whose every table is written down here: what a
// parser must find in it is known without one.
type synthetic struct {
	layout string
	base   uint64
	data   []byte
	syms   []Symbol // ascending
}

const (
	synText   = 0x10000  // text from here on, a function every 32 bytes
	synInit   = 0x180000 // text that is thrown away
	synTables = 0x200000
	synSyms   = 0x280000 // kallsyms
	synSize   = 0x500000
	synFuncs  = 20000
	synBase   = 0xffffffff80000000
)

func (s *synthetic) u32(at int, v uint32) { le.PutUint32(s.data[at:], v) }
func (s *synthetic) u64(at int, v uint64) { le.PutUint64(s.data[at:], v) }

// name adds a symbol at a place in the image.
func (s *synthetic) name(at int, kind byte, name string) {
	s.syms = append(s.syms, Symbol{synBase + uint64(at), kind, name})
}

// makeSynthetic lays out an image: functions of which every second one has a record, a key
// with two branches, one of them in init text, a static call with a site, a tracepoint
// with its event.
func makeSynthetic(layout string) *synthetic {
	s := &synthetic{layout: layout, base: synBase, data: make([]byte, synSize)}
	copy(s.data[0x38:], "RSC\x05")
	copy(s.data[0x100:], "Linux version 9.9.9-synthetic (nobody) #1 SMP PREEMPT_RT\x00")
	s.name(synText, 'T', "_stext")
	for i := range synFuncs {
		s.name(synText+32*i, 't', fmt.Sprintf("function_%05d", i))
	}
	s.name(synInit-0x1000, 'T', "_etext")
	s.name(synInit, 'T', "__init_begin")
	s.name(synInit, 'T', "_sinittext")
	s.name(synInit+0x1000, 'T', "_einittext")
	s.name(synInit+0x1000, 'T', "__init_end")
	at := synTables
	table := func(first, last string, size int, fill func(at int)) {
		s.name(at, 'D', first)
		fill(at)
		at += size
		s.name(at, 'D', last)
		at = align(at+64, 64)
	}
	table("__start_mcount_loc", "__stop_mcount_loc", 8*4, func(at int) {
		for i, v := range []uint64{synBase + synText + 64, synBase + synText, 0, synBase + synInit + 32} { // unsorted, empty, init
			s.u64(at+8*i, v)
		}
	})
	const key, call, tp, name, event, class, group = synTables + 0x1008, synTables + 0x1100, synTables + 0x1000, synTables + 0x1200,
		synTables + 0x1300, synTables + 0x1400, synTables + 0x1500
	table("__start___jump_table", "__stop___jump_table", 16*3, func(at int) {
		for i, branch := range []int{synText + 100, synText + 68, synInit + 8} {
			p := at + 16*i
			s.u32(p, uint32(branch-p))
			s.u32(p+4, uint32(branch+16-p-4))
			s.u64(p+8, uint64(int64(key-p-8))|uint64(i&1))
		}
	})
	table("__start_static_call_sites", "__stop_static_call_sites", 8, func(at int) {
		s.u32(at, uint32(int32(synText+132-at)))
		s.u32(at+4, uint32(call-at-4)|1)
	})
	table("__start_ftrace_events", "__stop_ftrace_events", 8, func(at int) { s.u64(at, synBase+event) })
	s.name(tp, 'D', "__tracepoint_a_point")
	s.name(call, 'D', "__SCK__tp_func_a_point")
	s.name(synText+32*7, 'T', "__SCT__tp_func_a_point")
	s.name(event, 'D', "event_a_point")
	s.u64(tp, synBase+name)
	copy(s.data[name:], "a_point\x00")
	s.u64(event+16, synBase+class)
	s.u64(event+24, synBase+tp)
	s.u64(class, synBase+group)
	copy(s.data[group:], "a_group\x00")
	slices.SortStableFunc(s.syms, func(a, b Symbol) int { return int(int64(a.Addr - b.Addr)) })
	s.kallsyms()
	return s
}

// kallsyms writes the symbols as scripts/kallsyms.c does: each name byte by byte, every
// token standing for one byte, but for token 1, which is "function_".
func (s *synthetic) kallsyms() {
	var names, tokens, index []byte
	var markers []uint32
	for i, y := range s.syms {
		if i%markerEvery == 0 {
			markers = append(markers, uint32(len(names)))
		}
		text := strings.Replace(string(y.Type)+y.Name, "function_", "\x01", 1)
		names = append(append(names, byte(len(text))), text...)
	}
	for c := range 256 {
		index = le.AppendUint16(index, uint16(len(tokens)))
		switch {
		case c == 1:
			tokens = append(tokens, "function_"...)
		case c > ' ' && c < 127:
			tokens = append(tokens, byte(c))
		}
		tokens = append(tokens, 0)
	}
	at := synSyms
	put := func(b []byte, to int) int {
		here := at
		copy(s.data[at:], b)
		at = align(at+len(b), to)
		return here
	}
	offsets := func(own bool) {
		here := at
		var b []byte
		for i, y := range s.syms {
			v := uint32(y.Addr - synBase)
			if own {
				v = uint32(int32(int64(y.Addr-synBase) - int64(here+4*i)))
			}
			b = le.AppendUint32(b, v)
		}
		put(b, 8)
	}
	num := func() { put(le.AppendUint32(nil, uint32(len(s.syms))), 8) }
	marks := func() {
		var b []byte
		for _, m := range markers {
			b = le.AppendUint32(b, m)
		}
		put(b, 8)
	}
	base := func() { put(le.AppendUint64(nil, synBase), 8) }
	if s.layout == "offsets-first" || s.layout == "offsets-first,sequences-before-tokens" {
		offsets(false)
		base()
	}
	num()
	put(names, 8)
	marks()
	if strings.HasSuffix(s.layout, "sequences-before-tokens") {
		put(bytes.Repeat([]byte{9, 8, 7}, len(s.syms)), 8)
	}
	put(tokens, 8)
	put(index, 8)
	switch s.layout {
	case "offsets-last":
		offsets(false)
		base()
	case "offsets-last,place-relative":
		offsets(true)
	}
}

// TestLayouts: every layout of kallsyms gives the same symbols, and the tables what was
// written into them.
func TestLayouts(t *testing.T) {
	for _, layout := range []string{"offsets-first", "offsets-first,sequences-before-tokens", "offsets-last",
		"offsets-last,place-relative"} {
		s := makeSynthetic(layout)
		k, err := Read("f", s.data)
		if layout == "offsets-last,place-relative" {
			// Nothing absolute says where it is linked, and no pointer to an iterator.
			if err == nil || !strings.Contains(err.Error(), "where it is linked cannot be told") {
				t.Errorf("%s: %v", layout, err)
			}
			s = makeSynthetic(layout)
			s.iterator()
			k, err = Read("f", s.data)
		}
		if err != nil {
			t.Errorf("%s: %v", layout, err)
			continue
		}
		if n, got := k.Symbols(); n != len(s.syms) || got != layout {
			t.Errorf("%s: %d symbols in layout %s, want %d", layout, n, got, len(s.syms))
		}
		for i, y := range s.syms {
			if k.symbols.all[i] != y {
				t.Fatalf("%s: symbol %d is %v, want %v", layout, i, k.symbols.all[i], y)
			}
		}
		s.check(t, k)
	}
}

// iterator lets the tracepoint of sched_switch point to its iterator.
func (s *synthetic) iterator() {
	const tp, iter = synTables + 0x1800, synText + 32*9
	s.syms = append(
		s.syms,
		Symbol{synBase + tp, 'D', "__tracepoint_sched_switch"},
		Symbol{synBase + iter, 't', "__traceiter_sched_switch"},
	)
	slices.SortStableFunc(s.syms, func(a, b Symbol) int { return int(int64(a.Addr - b.Addr)) })
	s.u64(tp+8+16, synBase+iter)
	clear(s.data[synSyms:])
	s.kallsyms()
}

// check compares the tables with what makeSynthetic wrote.
func (s *synthetic) check(t *testing.T, k *Kernel) {
	t.Helper()
	r := k.Records
	if want := []uint64{synBase + synText, synBase + synText + 64}; !slices.Equal(r.Sites, want) || r.Marks != 4 || r.Empty != 1 ||
		r.Init != 1 || r.Invalid != 0 ||
		r.Order != 1 {
		t.Errorf("%s: records %+v", s.layout, r)
	}
	const key = synBase + synTables + 0x1008
	if want := []uint64{synBase + synText + 68, synBase + synText + 100}; k.Keys.Entries != 3 || k.Keys.Init != 1 ||
		!slices.Equal(k.Keys.Branches[key], want) || k.Name(key) != "__tracepoint_a_point+0x8" {
		t.Errorf("%s: keys %+v", s.layout, k.Keys)
	}
	if calls := k.StaticCalls(); len(calls) != 1 || calls[0] != (Call{"tp_func_a_point", true, 1}) {
		t.Errorf("%s: static calls %+v", s.layout, calls)
	}
	if !slices.Equal(k.Events, []Event{{"a_group", "a_point", "a_point"}}) {
		t.Errorf("%s: events %+v", s.layout, k.Events)
	}
	if k.Release != "9.9.9-synthetic" || k.Preempt() != "rt" || k.Arch() != "riscv64" || k.Form() != "Image" {
		t.Errorf("%s: %s %s %s %s", s.layout, k.Release, k.Preempt(), k.Arch(), k.Form())
	}
	if _, unknown := k.Mechanisms(); !slices.ContainsFunc(
		unknown,
		func(u string) bool { return strings.HasPrefix(u, UpdateRounds) },
	) {
		t.Errorf("%s: a kernel without any code is understood: %v", s.layout, unknown)
	}
	table, err := k.Table()
	if err != nil || table.Len() != 2 || table.Symbol(0) != "_stext" || table.Symbol(1) != "function_00002" {
		t.Errorf("%s: table %v, %v", s.layout, table, err)
	}
}

// FuzzImage: whatever is written into an image at up to two places, it is read or refused
// in one line.
func FuzzImage(f *testing.F) {
	s := makeSynthetic("offsets-last")
	f.Add(uint32(synSyms), []byte{1, 2, 3}, uint32(synTables), []byte{0xff})
	f.Add(uint32(0x38), []byte("XXXX"), uint32(0), []byte("\x7fELF"))
	f.Fuzz(func(t *testing.T, at1 uint32, b1 []byte, at2 uint32, b2 []byte) {
		d := slices.Clone(s.data)
		copy(d[at1%synSize:], b1)
		copy(d[at2%synSize:], b2)
		k, err := Read("f", d)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q", err)
			}
			return
		}
		k.use(t)
	})
}

// FuzzUnwrap: so is any file.
func FuzzUnwrap(f *testing.F) {
	for _, p := range packings {
		f.Add([]byte(p.magic + "rest"))
	}
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	f.Add([]byte("MZ\x00\x00zimg\x10\x00\x00\x00\x20\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := Read("f", b); err != nil && strings.Contains(err.Error(), "\n") {
			t.Fatalf("%q", err)
		}
		if _, err := ReadModule("f", b); err != nil && strings.Contains(err.Error(), "\n") {
			t.Fatalf("%q", err)
		}
	})
}
