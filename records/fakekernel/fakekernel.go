// SPDX-License-Identifier: Apache-2.0

// Package fakekernel makes raw images of kernels for tests. It states every table here, so that
// tests know a parser's answers without a parser.
package fakekernel

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/records/vmlinux"
)

var le = binary.LittleEndian

func align(n, to int) int { return (n + to - 1) / to * to }

// Layouts are the ways in which kallsyms has had its addresses.
var Layouts = []string{"offsets-first", "offsets-first,sequences-before-tokens", "offsets-last", "offsets-last,place-relative"}

// Kernel is a raw image of riscv64 with every table written down here, so that tests know
// the right answers without a parser.
type Kernel struct {
	Layout string
	Data   []byte
	Names  []vmlinux.Symbol // ascending
}

const (
	Text   = 0x10000  // text from here on, a function every 32 bytes
	Init   = 0x180000 // text that is thrown away
	Tables = 0x200000
	Syms   = 0x280000 // kallsyms
	Size   = 0x500000
	Funcs  = 20000
	Base   = 0xffffffff80000000
)

func (s *Kernel) u32(at int, v uint32) { le.PutUint32(s.Data[at:], v) }
func (s *Kernel) u64(at int, v uint64) { le.PutUint64(s.Data[at:], v) }

// name adds a symbol at a place in the image.
func (s *Kernel) name(at int, kind byte, name string) {
	s.Names = append(s.Names, vmlinux.Symbol{Addr: Base + uint64(at), Type: kind, Name: name})
}

// Make lays out an image: functions of which every second one has a record, three with
// names of 127, 128 and 300 tokens, a key with two branches, one of them in init text, a static call with a site, a tracepoint
// with its event.
func Make(layout string) *Kernel {
	s := &Kernel{Layout: layout, Data: make([]byte, Size)}
	copy(s.Data[0x38:], "RSC\x05")
	copy(s.Data[0x100:], "Linux version 9.9.9-synthetic (nobody) #1 SMP PREEMPT_RT\x00")
	s.name(Text, 'T', "_stext")
	for i := range Funcs {
		s.name(Text+32*i, 't', fmt.Sprintf("function_%05d", i))
	}
	for i, tokens := range []int{127, 128, 300} {
		s.name(Text+32*(20+i), 't', strings.Repeat("l", tokens-1))
	}
	s.name(Init-0x1000, 'T', "_etext")
	s.name(Init, 'T', "__init_begin")
	s.name(Init, 'T', "_sinittext")
	s.name(Init+0x1000, 'T', "_einittext")
	s.name(Init+0x1000, 'T', "__init_end")
	at := Tables
	table := func(first, last string, size int, fill func(at int)) {
		s.name(at, 'D', first)
		fill(at)
		at += size
		s.name(at, 'D', last)
		at = align(at+64, 64)
	}
	table("__start_mcount_loc", "__stop_mcount_loc", 8*4, func(at int) {
		for i, v := range []uint64{Base + Text + 64, Base + Text, 0, Base + Init + 32} { // unsorted, empty, init
			s.u64(at+8*i, v)
		}
	})
	const key, call, tp, name, event, class, group = Tables + 0x1008, Tables + 0x1100, Tables + 0x1000, Tables + 0x1200,
		Tables + 0x1300, Tables + 0x1400, Tables + 0x1500
	table("__start___jump_table", "__stop___jump_table", 16*3, func(at int) {
		for i, branch := range []int{Text + 100, Text + 68, Init + 8} {
			p := at + 16*i
			s.u32(p, uint32(branch-p))
			s.u32(p+4, uint32(branch+16-p-4))
			s.u64(p+8, uint64(int64(key-p-8))|uint64(i&1))
		}
	})
	table("__start_static_call_sites", "__stop_static_call_sites", 8, func(at int) {
		s.u32(at, uint32(int32(Text+132-at)))
		s.u32(at+4, uint32(call-at-4)|1)
	})
	table("__start_ftrace_events", "__stop_ftrace_events", 8, func(at int) { s.u64(at, Base+event) })
	s.name(tp, 'D', "__tracepoint_a_point")
	s.name(call, 'D', "__SCK__tp_func_a_point")
	s.name(Text+32*7, 'T', "__SCT__tp_func_a_point")
	s.name(event, 'D', "event_a_point")
	s.u64(tp, Base+name)
	copy(s.Data[name:], "a_point\x00")
	s.u64(event+16, Base+class)
	s.u64(event+24, Base+tp)
	s.u64(class, Base+group)
	copy(s.Data[group:], "a_group\x00")
	slices.SortStableFunc(s.Names, func(a, b vmlinux.Symbol) int { return int(int64(a.Addr - b.Addr)) })
	s.kallsyms()
	return s
}

// kallsyms writes the symbols as scripts/kallsyms.c does: each name byte by byte, every
// token standing for one byte, but for token 1, which is "function_".
func (s *Kernel) kallsyms() {
	var names, tokens, index []byte
	var markers []uint32
	for i, y := range s.Names {
		if i%256 == 0 {
			markers = append(markers, uint32(len(names)))
		}
		text := strings.Replace(string(y.Type)+y.Name, "function_", "\x01", 1)
		if n := len(text); n > 127 { // two bytes for the number of tokens, since Linux 6.1
			names = append(names, byte(n)|0x80, byte(n>>7))
		} else {
			names = append(names, byte(n))
		}
		names = append(names, text...)
	}
	for c := range 256 {
		index = le.AppendUint16(index, uint16(len(tokens)))
		switch {
		case c == 0 || c == 2: // the longest that are read, the first and any other
			tokens = append(tokens, strings.Repeat("q", 63-c/2)...)
		case c == 1:
			tokens = append(tokens, "function_"...)
		case c > ' ' && c < 127:
			tokens = append(tokens, byte(c))
		}
		tokens = append(tokens, 0)
	}
	at, word := Syms, 8
	if s.Layout == "offsets-last,place-relative" { // tables that start anywhere in a word, since Linux 7.2
		word = 4
	}
	put := func(b []byte) {
		copy(s.Data[at:], b)
		at = align(at+len(b), word)
	}
	offsets := func(own bool) {
		here := at
		var b []byte
		for i, y := range s.Names {
			v := uint32(y.Addr - Base)
			if own {
				v = uint32(int32(int64(y.Addr-Base) - int64(here+4*i)))
			}
			b = le.AppendUint32(b, v)
		}
		put(b)
	}
	num := func() { put(le.AppendUint32(nil, uint32(len(s.Names)))) }
	marks := func() {
		var b []byte
		for _, m := range markers {
			b = le.AppendUint32(b, m)
		}
		put(b)
	}
	base := func() { put(le.AppendUint64(nil, Base)) }
	if s.Layout == "offsets-first" || s.Layout == "offsets-first,sequences-before-tokens" {
		offsets(false)
		base()
	}
	num()
	put(names)
	marks()
	if strings.HasSuffix(s.Layout, "sequences-before-tokens") {
		put(bytes.Repeat([]byte{9, 8, 7}, align(len(s.Names), 8))) // no zero stands before the tokens
	}
	put(tokens)
	put(index)
	switch s.Layout {
	case "offsets-last":
		offsets(false)
		base()
	case "offsets-last,place-relative":
		offsets(true)
	}
}

// Iterator lets the tracepoint of sched_switch point to its iterator.
func (s *Kernel) Iterator() {
	const tp, iter = Tables + 0x1800, Text + 32*9
	s.Names = append(
		s.Names,
		vmlinux.Symbol{Addr: Base + tp, Type: 'D', Name: "__tracepoint_sched_switch"},
		vmlinux.Symbol{Addr: Base + iter, Type: 't', Name: "__traceiter_sched_switch"},
	)
	slices.SortStableFunc(s.Names, func(a, b vmlinux.Symbol) int { return int(int64(a.Addr - b.Addr)) })
	s.u64(tp+8+16, Base+iter)
	clear(s.Data[Syms:])
	s.kallsyms()
}

// Compile makes a kernel of a file of C, linked to where kernels lie, without any table. The
// test is skipped where there is no compiler for x86-64.
func Compile(t testing.TB, source string, options ...string) *vmlinux.Kernel {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kernel")
	args := append([]string{"-O2", "-nostdlib", "-static", "-ffreestanding", "-fno-pic", "-no-pie", "-mcmodel=kernel",
		"-mno-sse", "-fno-stack-protector", "-Wl,-Ttext-segment=0xffffffff81000000", "-o", path, source}, options...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Skipf("skipped: gcc: %v: %s", err, out)
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m := &vmlinux.Memory{Arch: vmlinux.OfMachine(f.Machine)}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			b := make([]byte, p.Memsz)
			if _, err := io.ReadFull(p.Open(), b[:p.Filesz]); err != nil {
				t.Fatal(err)
			}
			m.Segments = append(m.Segments, vmlinux.Segment{Addr: p.Vaddr, Data: b})
		}
	}
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	var all []vmlinux.Symbol
	for _, s := range symbols {
		kind := byte('D')
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			kind = 'T'
		}
		if s.Name != "" && s.Value>>63 == 1 {
			all = append(all, vmlinux.Symbol{Addr: s.Value, Type: kind, Name: s.Name})
		}
	}
	return &vmlinux.Kernel{Memory: m, Symbols: vmlinux.NewSymbols("", all), File: source}
}
