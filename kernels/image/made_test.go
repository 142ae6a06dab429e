// SPDX-License-Identifier: Apache-2.0

package image

import (
	"debug/elf"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/records/vmlinux"
)

// made is a kernel of x86-64 that is written by hand: text in its first half, data in its second.
type made struct {
	data  []byte
	names []vmlinux.Symbol
}

const (
	madeBase = 0xffffffff81000000
	madeInit = 0x1800 // code that is thrown away, up to the data
	madeData = 0x2000
	madeSize = 0x10000
)

func newMade() *made {
	m := &made{data: make([]byte, madeSize)}
	m.name(0, 'T', "_stext")
	m.name(madeInit-8, 'T', "_etext")
	m.name(madeInit, 'T', "__init_begin")
	m.name(madeInit, 'T', "_sinittext")
	m.name(madeData, 'T', "_einittext")
	m.name(madeData, 'T', "__init_end")
	return m
}

func (m *made) name(at int, kind byte, name string) {
	m.names = append(m.names, vmlinux.Symbol{Addr: madeBase + uint64(at), Type: kind, Name: name})
}

// put writes bytes, words of four bytes or of eight, or an address of the kernel (of type int).
func (m *made) put(at int, what ...any) {
	for _, w := range what {
		var b []byte
		switch w := w.(type) {
		case string:
			b = append([]byte(w), 0)
		case []byte:
			b = w
		case uint32:
			b = le.AppendUint32(nil, w)
		case uint64:
			b = le.AppendUint64(nil, w)
		case int:
			b = le.AppendUint64(nil, madeBase+uint64(w))
		}
		copy(m.data[at:], b)
		at += len(b)
	}
}

// near is a distance of 32 bits.
func near(from, to int) uint32 { return uint32(int32(to - from)) }

// kernel is what an image of it says.
func (m *made) kernel() *Kernel {
	slices.SortStableFunc(m.names, func(a, b vmlinux.Symbol) int { return int(int64(a.Addr - b.Addr)) })
	return Of(&vmlinux.Kernel{File: "made", Memory: &vmlinux.Memory{Arch: vmlinux.OfMachine(elf.EM_X86_64),
		Segments: []vmlinux.Segment{{Addr: madeBase, Data: m.data}}}, Symbols: vmlinux.NewSymbols("", m.names)})
}

// call and lea are instructions of five and of seven bytes.
func call(at, to int) []byte { return le.AppendUint32([]byte{0xe8}, near(at+5, to)) }
func lea(at, to int) []byte  { return le.AppendUint32([]byte{0x48, 0x8d, 0x3d}, near(at+7, to)) }

// jumps writes a table of branches: of each the code and the key.
func (m *made) jumps(at int, named bool, branches ...[2]int) {
	if named {
		m.name(at, 'D', "__start___jump_table")
		m.name(at+16*len(branches), 'D', "__stop___jump_table")
	}
	for i, b := range branches {
		p := at + 16*i
		m.put(p, near(p, b[0]), near(p+4, b[0]+16), uint64(int64(b[1]-p-8))|uint64(i&1))
	}
}

// TestTracepointsOfTables: the key, what is called before the first user, over the layouts of the releases, and the
// keys that this switches.
func TestTracepointsOfTables(t *testing.T) {
	const reg, helper, other = 0x100, 0x200, 0x300
	const tp, names, key = 0x3000, 0x4000, 0x5000
	for name, c := range map[string]struct {
		behind []any // the key: what stands behind it, from the second word on
		kind   byte
		want   string
	}{
		"at once":               {[]any{reg}, 't', "switches"},
		"behind the iterator":   {[]any{0x400, reg}, 't', "switches"},
		"behind both":           {[]any{0x400, 0x440, reg}, 't', "switches"},
		"behind another symbol": {[]any{0x480, reg}, 't', "other_iterator"},
		"in the next word":      {[]any{uint64(0), reg}, 't', "switches"},
		"through a pointer":     {[]any{0x400, 0x440, uint64(0), 0x6000}, 't', "switches"},
		"nothing":               {[]any{0x400, 0x440}, 't', ""},
		"inside of a function":  {[]any{reg + 4}, 't', ""},
		"no text":               {[]any{names}, 't', ""},
	} {
		m := newMade()
		m.name(reg, c.kind, "switches.part.0")
		m.name(helper, 't', "static_key_slow_inc")
		m.name(other, 't', "end_of_it")
		m.name(0x400, 't', "__traceiter_a_point")
		m.name(0x440, 't', "__probestub_a_point")
		m.name(0x480, 't', "other_iterator")
		m.put(reg, call(reg, helper), lea(reg+5, key), lea(reg+12, key), lea(reg+19, names), []byte{0x48, 0xc7, 0xc7})
		m.name(tp, 'D', "__tracepoint_a_point")
		m.name(tp+0x100, 'D', "__tracepoint_ext_a_point")
		m.put(names, "a_point")
		m.put(tp, names, uint64(0), uint64(0))
		m.put(tp+8+16, c.behind...)
		m.put(0x6000, reg)
		m.jumps(0x7000, true, [2]int{0x20, key}, [2]int{0x10, key}, [2]int{madeInit + 8, key}, [2]int{0x30, tp + 8})
		k := m.kernel()
		want := Tracepoint{Name: "a_point", Key: madeBase + tp + 8, RegFunc: c.want}
		if c.want == "switches" {
			want.Switches = []uint64{madeBase + key}
		}
		if d := cmp.Diff([]Tracepoint{want}, k.Tracepoints()); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if k.Keys.Entries != 4 || k.Keys.Init != 1 || !slices.Equal(k.Keys.Branches[madeBase+key], []uint64{madeBase + 0x10,
			madeBase + 0x20}) {
			t.Errorf("%s: %+v", name, k.Keys)
		}
	}
}

// TestSwitchesNothing: a function that names a key and calls no static_key_ function switches none.
func TestSwitchesNothing(t *testing.T) {
	const key = 0x5000
	for callee, want := range map[string][]uint64{"static_key_enable": {madeBase + key}, "my_static_key_enable": nil} {
		m := newMade()
		m.name(0x100, 't', "f")
		m.name(0x200, 't', callee)
		m.put(0x100, call(0x100, 0x200), lea(0x105, key))
		m.jumps(0x7000, true, [2]int{0x20, key})
		if got := m.kernel().keysIn("f"); !slices.Equal(got, want) {
			t.Errorf("%s: %#x", callee, got)
		}
	}
}

// TestNamesOfPlaces: a symbol, one and a distance, or the address where none is near; tracepoints that code names, each
// once.
func TestNamesOfPlaces(t *testing.T) {
	m := newMade()
	m.name(0x100, 't', "f")
	m.name(0x200, 't', "g")
	m.name(0x3000, 'D', "__tracepoint_a")
	m.put(0x3000, 0x4000)
	m.put(0x4000, "a")
	m.put(0x100, lea(0x100, 0x3000), lea(0x107, 0x3000), lea(0x10e, 0x3008))
	m.names = append(m.names, vmlinux.Symbol{Addr: madeBase + madeSize, Type: 'D', Name: "_end"})
	k := m.kernel()
	for at, want := range map[uint64]string{madeBase + 0x100: "f", madeBase + 0x108: "f+0x8",
		madeBase + madeSize + 1<<16:     "_end+0x10000",
		madeBase + madeSize + 1<<16 + 1: fmt.Sprintf("%#x", uint64(madeBase+madeSize+1<<16+1)), 5: "0x5"} {
		if got := k.Name(at); got != want {
			t.Errorf("%#x: %s, want %s", at, got, want)
		}
	}
	if got := k.TracepointsIn("f"); !slices.Equal(got, []string{"a"}) {
		t.Errorf("%q", got)
	}
}

// TestUnnamedTables: without names of data the table of branches is the longest run of at least a hundred entries,
// tracepoints are keys with a name before and a function behind them, events point to one, and system calls go by their
// functions.
func TestUnnamedTables(t *testing.T) {
	const tp, key, names, event, class = 0x3000, 0x3008, 0x4000, 0x4800, 0x5000
	build := func(n int, change func(m *made)) *Kernel {
		m := newMade()
		m.name(0x100, 't', "f")
		m.name(0x200, 'T', "__x64_sys_read")
		m.name(0x240, 'T', "__x64_sys_write")
		var branches [][2]int
		for i := range n {
			branches = append(branches, [2]int{0x300 + 16*i, key})
		}
		m.jumps(0x8000, false, branches...)
		m.put(names, "a_point")
		m.put(names+16, "a_group")
		m.put(tp, names, uint64(0), uint64(0), uint64(0), 0x100) // the function lies three words behind the key
		m.put(class, names+16)
		m.put(event+16, class, tp)
		change(m)
		return m.kernel()
	}
	k := build(100, func(*made) {})
	if k.Keys.Entries != 100 || !k.Unnamed() || len(k.Keys.Branches[madeBase+key]) != 100 {
		t.Errorf("%d entries, unnamed %v: %q", k.Keys.Entries, k.Unnamed(), k.Notes)
	}
	want := []Event{{"syscalls", "sys_enter_read", ""}, {"syscalls", "sys_exit_read", ""}, {"syscalls", "sys_enter_write",
		""},
		{"syscalls", "sys_exit_write", ""}, {"a_group", "a_point", "a_point"}}
	if d := cmp.Diff(want, k.Events); d != "" {
		t.Error(d)
	}
	for _, note := range []string{"the table of branches is not named: 100 entries at 0xffffffff81008000 by their contents",
		"tracepoints are not named: 1 by their contents"} {
		if !slices.Contains(k.Notes, note) {
			t.Errorf("%q lack %q", k.Notes, note)
		}
	}
	if k := build(99, func(*made) {}); k.Keys.Entries != 0 || len(k.Events) != 0 || !k.Unnamed() {
		t.Errorf("of 99: %+v, %v", k.Keys, k.Events)
	}
	for what, change := range map[string]func(m *made){
		"no name":            func(m *made) { m.put(names, "a point") },
		"too short a name":   func(m *made) { m.put(names, "ab") },
		"no function":        func(m *made) { m.put(tp+32, names) },
		"a group of no name": func(m *made) { m.put(names+16, "A group") },
		"a class in text":    func(m *made) { m.put(event+16, 0x100); m.put(0x100, names+16) },
		"a class of text":    func(m *made) { m.put(class, 0x100); m.put(0x100, []byte("a_group\x00")) },
	} {
		k := build(100, change)
		if slices.ContainsFunc(k.Events, func(e Event) bool { return e.Tracepoint != "" }) {
			t.Errorf("%s: %v", what, k.Events)
		}
	}
	for words := 1; words <= 5; words++ { // behind the key, in the second to fifth word
		k := build(100, func(m *made) { m.put(tp+32, uint64(0)); m.put(key+8*words, 0x100) })
		if got := len(k.Tracepoints()) == 1; got != (words > 1) {
			t.Errorf("a function %d words behind: %v", words, got)
		}
	}
	named := build(100, func(m *made) {
		m.name(0xf000, 'D', "__start_ftrace_events")
		m.name(0xf000, 'D', "__stop_ftrace_events")
	})
	if len(named.Events) != 0 {
		t.Errorf("the table of events is named, and empty: %v", named.Events)
	}
}

// TestIsJump: code and target lie in text, less than 2^18 bytes apart, and the key at a multiple of eight in the
// kernel's data.
func TestIsJump(t *testing.T) {
	m := newMade()
	k := m.kernel()
	const at = 0x8000
	for what, c := range map[string]struct {
		code, target int
		key          int64
		want         bool
	}{
		"as it is": {0x100, 0x180, 0x3000, true}, "backwards": {0x180, 0x100, 0x3000, true}, "thrown away": {madeInit,
			madeInit + 16, 0x3000, true},
		"code in data": {0x4000, 0x180, 0x3000, false}, "target in data": {0x100, 0x4000, 0x3000, false},
		"a key in text":     {0x100, 0x180, 0x200, false},
		"a key out of line": {0x100, 0x180, 0x3004, false}, "below the kernel": {0x100, 0x180, -8, false},
		"the last data": {0x100, 0x180, farData - 8, true},
		"beyond":        {0x100, 0x180, farData, false},
	} {
		m.put(at, near(at, c.code), near(at+4, c.target), uint64(c.key-at-8))
		if got := k.isJump(madeBase+at, m.data[at:]); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
	wide := &made{data: make([]byte, 1<<20)}
	wide.name(0, 'T', "_stext")
	wide.name(0x90000, 'T', "_etext")
	k = wide.kernel()
	for apart, want := range map[int]bool{farJump - 1: true, farJump: false, -farJump + 1: true, -farJump: false} {
		code := 0x48000
		wide.put(0xa0000, near(0xa0000, code), near(0xa0004, code-apart), uint64(0xb0000-0xa0008))
		if got := k.isJump(madeBase+0xa0000, wide.data[0xa0000:]); got != want {
			t.Errorf("%d apart: %v", apart, got)
		}
	}
}

// TestEventsOfTable: an event goes by the name of its symbol where it hooks a tracepoint, by that of the tracepoint
// without one, and by its own name where it hooks none; one without a group or a name is none.
func TestEventsOfTable(t *testing.T) {
	m := newMade()
	m.name(0x3000, 'D', "__tracepoint_a")
	m.put(0x3000, 0x4000)
	m.put(0x4000, "a")
	m.put(0x4010, "own")
	m.put(0x4020, "group")
	m.put(0x4100, 0x4020)
	event := func(at, class, what int, symbol string) {
		m.put(at+16, class, what)
		if symbol != "" {
			m.name(at, 'D', symbol)
		}
	}
	event(0x5000, 0x4100, 0x3000, "event_renamed")
	event(0x5100, 0x4100, 0x3000, "another_symbol")
	event(0x5200, 0x4100, 0x4010, "event_unused")
	event(0x5300, 0x4200, 0x3000, "event_without_group")
	event(0x5400, 0x4100, 0x4200, "event_without_name")
	m.name(0x6000, 'D', "__start_ftrace_events")
	m.put(0x6000, 0x5000, 0x5100, 0x5200, 0x5300, 0x5400)
	m.name(0x6000+5*8+4, 'D', "__stop_ftrace_events")
	want := []Event{{"group", "renamed", "a"}, {"group", "a", "a"}, {"group", "own", ""}}
	if d := cmp.Diff(want, m.kernel().Events); d != "" {
		t.Error(d)
	}
}

// TestTypesAreRead: where members lie, also inside of a union without a name, and how large the vector is; without what
// is looked for structures stay as they were.
func TestTypesAreRead(t *testing.T) {
	word := &btf.Int{Name: "u64", Size: 8}
	structure := func(name string, size uint32, members ...btf.Member) *btf.Struct {
		return &btf.Struct{Name: name, Size: size, Members: members}
	}
	member := func(name string, at uint32, t btf.Type) btf.Member {
		return btf.Member{Name: name, Type: t, Offset: btf.Bits(8 * at)}
	}
	union := &btf.Union{Size: 16, Members: []btf.Member{member("name", 0, word), member("tp", 8, word)}}
	array := &btf.Array{Type: word, Index: &btf.Int{Name: "int", Size: 4}, Nelems: 170}
	types := []btf.Type{
		structure("trace_event_call", 64, member("list", 0, word), member("class", 8, word), member("", 24, union)),
		structure("trace_event_class", 64, member("system", 16, word)), structure("tracepoint", 64, member("key", 40, word)),
		structure("smp_text_poke_array", 2048, member("vec", 0, array), member("nr", 1360, word)), structure("text_poke_loc",
			16),
	}
	build := func(types ...btf.Type) *Kernel {
		b, err := btf.NewBuilder(types, nil)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := b.Marshal(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		m := newMade()
		m.name(0x3000, 'D', "__start_BTF")
		m.name(0x3000+len(raw), 'D', "__stop_BTF")
		m.put(0x3000, raw)
		return m.kernel()
	}
	k := build(types...)
	if want := (layouts{class: 8, event: 32, system: 16, key: 40, poke: 16, vector: 170,
		fromTypes: true}); k.layouts != want {
		t.Errorf("%+v, want %+v: %q", k.layouts, want, k.Notes)
	}
	if d := cmp.Diff(map[string]bool{"vec": true, "nr": true}, k.Members("smp_text_poke_array")); d != "" {
		t.Error(d)
	}
	if got := k.Members("nothing"); got != nil {
		t.Errorf("%v", got)
	}
	k = build(structure("smp_text_poke_loc", 20), structure("text_poke_loc", 0), word)
	if want := (layouts{class: 16, event: 24, key: 8, poke: 20, fromTypes: true}); k.layouts != want {
		t.Errorf("%+v, want %+v", k.layouts, want)
	}
	plain := newMade()
	for _, c := range []struct {
		change func(m *made)
		note   string
	}{
		{func(*made) {}, "no type information (BTF): structures are read as Linux has had them since 5.0"},
		{func(m *made) { m.name(0x3000, 'D', "__start_BTF"); m.name(madeSize+8, 'D', "__stop_BTF") },
			"type information lies outside of the image"},
	} {
		plain = newMade()
		c.change(plain)
		k := plain.kernel()
		if !slices.Contains(k.Notes, c.note) || k.layouts.fromTypes || k.Members("tracepoint") != nil {
			t.Errorf("%q, want %q; %+v", k.Notes, c.note, k.layouts)
		}
	}
	plain.name(0x3010, 'D', "__stop_BTF")
	plain.names = slices.DeleteFunc(plain.names, func(s vmlinux.Symbol) bool { return s.Addr == madeBase+madeSize+8 })
	if k := plain.kernel(); k.layouts.fromTypes || !slices.ContainsFunc(k.Notes,
		func(n string) bool { return strings.HasPrefix(n, "type information: ") }) {
		t.Errorf("no types: %q", k.Notes)
	}
}
