// SPDX-License-Identifier: Apache-2.0

package vmlinux_test

import (
	"bytes"
	"debug/elf"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/records/fakekernel"
)

// offsets is where the addresses of a fake kernel stand that has them before their base, and
// where the base stands.
func offsets(s *fakekernel.Kernel) (first, base int) {
	base = bytes.LastIndex(s.Data, le.AppendUint64(nil, fakekernel.Base))
	return base - (4*len(s.Names)+7)/8*8, base
}

// TestAbsolutePerCPU: on x86_64 before 6.15 an address that is not negative is a per-CPU
// variable's, and the others count downwards from the base (kallsyms_sym_address,
// kernel/kallsyms.c of Linux 6.12: base - 1 - offset).
func TestAbsolutePerCPU(t *testing.T) {
	const variables = 40
	for _, layout := range []string{"offsets-first", "offsets-last"} {
		s := fakekernel.Make(layout)
		at, _ := offsets(s)
		for i := range s.Names {
			if i < variables {
				s.Names[i].Addr = uint64(16 * i)
				le.PutUint32(s.Data[at+4*i:], uint32(16*i))
				continue
			}
			le.PutUint32(s.Data[at+4*i:], uint32(fakekernel.Base-1-s.Names[i].Addr))
		}
		k, err := read(elfFile(elf.EM_X86_64, elf.ET_EXEC, load(fakekernel.Base, s.Data)))
		if err != nil {
			t.Errorf("%s: %v", layout, err)
			continue
		}
		if k.Layout != layout+",absolute-percpu" || !slices.Equal(k.All, s.Names) {
			t.Errorf("%s: %d symbols in layout %s, the first %v", layout, len(k.All), k.Layout, k.All[0])
		}
	}
}

// TestBrokenTables: each table of kallsyms proves another. Where one does not fit no symbol
// is made up, and the error says how far it got.
func TestBrokenTables(t *testing.T) {
	const tokens, markers, layout = "no table of tokens", "no names that agree with their markers",
		"no addresses in a known layout"
	// What are no offsets from a base may be offsets from their own places, of an image that
	// nothing says where it is linked.
	const where = "where it is linked cannot be told"
	s := fakekernel.Make("offsets-last")
	at, base := offsets(s)
	index := bytes.LastIndex(s.Data[:at], []byte{'0', 0, '1', 0, '2', 0})
	num := bytes.Index(s.Data[fakekernel.Syms:], le.AppendUint32(nil, uint32(len(s.Names)))) + fakekernel.Syms
	for name, c := range map[string]struct {
		do   func(d []byte)
		want string
	}{
		"a token":             {func(d []byte) { d[index+2] = 'x' }, tokens},
		"no token before '0'": {func(d []byte) { d[index-1] = 'x' }, tokens},
		"the index":           {func(d []byte) { d[at-8]++ }, tokens},
		"the number":          {func(d []byte) { le.PutUint32(d[num:], uint32(len(s.Names)-1)) }, markers},
		"far too many":        {func(d []byte) { le.PutUint32(d[num:], 1<<30) }, markers},
		"a length":            {func(d []byte) { d[num+8]-- }, markers},
		"an empty name":       {func(d []byte) { first(d, num+8, 0) }, markers},
		"a name of one token": {func(d []byte) { first(d, num+8, 1) }, layout},
		"a name without end":  {func(d []byte) { d[last(s, num+8)] = 99 }, markers},
		"two addresses":       {func(d []byte) { swap(d, at+4000, at+4400) }, layout},
		"one too high":        {func(d []byte) { d[at+4003] = 0x7f }, layout},
		"all the same":        {func(d []byte) { clear(d[at : at+4*len(s.Names)]) }, where},
		"no kernel's base":    {func(d []byte) { d[base+7] = 0x7f }, where},
		"a base that is none": {func(d []byte) { clear(d[base : base+8]); d[base] = 1 }, where},
		"cut off":             {func(d []byte) { clear(d[at:]) }, where},
	} {
		d := slices.Clone(s.Data)
		c.do(d)
		if _, err := read(d); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	s = fakekernel.Make("offsets-last")
	_, base = offsets(s)
	if k, err := read(s.Data[:base+8]); err != nil || !slices.Equal(k.All, s.Names) {
		t.Errorf("nothing lies behind the base: %v", err)
	}
	if _, err := read(s.Data[:base+7]); err == nil || !strings.Contains(err.Error(), where) {
		t.Errorf("the base is cut off: %v", err)
	}
}

// swap exchanges two words.
func swap(d []byte, a, b int) {
	x, y := le.Uint32(d[a:]), le.Uint32(d[b:])
	le.PutUint32(d[a:], y)
	le.PutUint32(d[b:], x)
}

// first makes of the first name, whose length stands there, one of so many tokens and one of
// the rest, and of the two behind it one: as many names, and as many bytes.
func first(d []byte, at, tokens int) {
	n := int(d[at])
	second := at + 1 + n
	third := second + 1 + int(d[second])
	d[at], d[at+1+tokens] = byte(tokens), byte(n-1-tokens)
	d[second] += 1 + d[third]
}

// last is where the length of the last name stands.
func last(s *fakekernel.Kernel, at int) int {
	for _, y := range s.Names[:len(s.Names)-1] {
		n := 1 + len(strings.Replace(y.Name, "function_", "f", 1))
		if at += 1 + n; n > 127 {
			at++
		}
	}
	return at
}

// tokensEnd is the end of a fake kernel's tokens: behind '~', the last that has a text, there
// are 129 without.
func tokensEnd(s *fakekernel.Kernel) int {
	return bytes.LastIndex(s.Data, []byte{'~', 0}) + 2 + 129
}

// TestPadding: the index of the tokens is next to them, or up to 16 bytes away.
func TestPadding(t *testing.T) {
	for pad := range 18 {
		s := fakekernel.Make("offsets-first")
		end := tokensEnd(s)
		from := end
		for from%8 != 0 {
			from++
		}
		index := slices.Clone(s.Data[from : from+512])
		clear(s.Data[end : from+512])
		copy(s.Data[end+pad:], index)
		if k, err := read(s.Data); (err == nil) != (pad <= 16) || err == nil && !slices.Equal(k.All, s.Names) {
			t.Errorf("padded with %d bytes: %v", pad, err)
		}
	}
}

// TestSegmentOfTables: the tables may be the beginning of their segment, and its end.
func TestSegmentOfTables(t *testing.T) {
	for _, layout := range fakekernel.Layouts {
		s := fakekernel.Make(layout)
		end := bytes.LastIndexFunc(s.Data, func(r rune) bool { return r != 0 }) + 1
		if strings.HasPrefix(layout, "offsets-first") {
			end = (tokensEnd(s)+7)/8*8 + 512
		}
		const from = fakekernel.Syms
		k, err := read(elfFile(elf.EM_RISCV, elf.ET_EXEC, load(fakekernel.Base, s.Data[:from]),
			load(fakekernel.Base+from, s.Data[from:end])))
		if err != nil || !slices.Equal(k.All, s.Names) {
			t.Errorf("%s: %v", layout, err)
		}
		if k, err = read(elfFile(elf.EM_RISCV, elf.ET_EXEC, load(fakekernel.Base, s.Data[:from]),
			load(fakekernel.Base+from, s.Data[from:end-1]))); err == nil && k.Layout == layout {
			t.Errorf("%s: read with a byte less", layout)
		}
	}
}

// TestIterator: where no address says where a raw image is linked, a tracepoint does that
// points to its iterator from one of its words (struct tracepoint,
// include/linux/tracepoint-defs.h).
func TestIterator(t *testing.T) {
	const tp = fakekernel.Tables + 0x1800
	for at := 0; at <= 104; at += 8 {
		s := fakekernel.Make("offsets-last,place-relative")
		s.Iterator()
		pointer := slices.Clone(s.Data[tp+24 : tp+32])
		clear(s.Data[tp+24 : tp+32])
		copy(s.Data[tp+at:], pointer)
		k, err := read(s.Data)
		if at < 8 || at >= 96 {
			if err == nil || !strings.HasSuffix(err.Error(), "kernel: where it is linked cannot be told") {
				t.Errorf("a pointer at %d: %v", at, err)
			}
			continue
		}
		if err != nil || k.Segments[0].Addr != fakekernel.Base || !slices.Equal(k.All, s.Names) {
			t.Errorf("a pointer at %d: %v", at, err)
			continue
		}
		want := []string{"addends are in place; linked at 0xffffffff80000000, by a pointer to __traceiter_sched_switch"}
		if at, ok := k.Addr("_stext"); !slices.Equal(k.Notes, want) || !ok || at != fakekernel.Base+fakekernel.Text {
			t.Errorf("notes %q, _stext at %#x", k.Notes, at)
		}
		if part := k.Parts["function_00001"]; !slices.Equal(part, []uint64{fakekernel.Base + fakekernel.Text + 32}) {
			t.Errorf("function_00001 is at %#x", part)
		}
	}
	const noPage, noKernel, tooHigh = fakekernel.Base + 32*9 + 1, 1 << 40, ^uint64(0)&^0xfff | 0x120
	for _, wrong := range []uint64{noPage, noKernel, tooHigh} {
		s := fakekernel.Make("offsets-last,place-relative")
		s.Iterator()
		le.PutUint64(s.Data[tp+24:], wrong)
		if _, err := read(s.Data); err == nil {
			t.Errorf("a pointer %#x to the iterator says where the kernel is linked", wrong)
		}
	}
	for _, layout := range []string{"offsets-first", "offsets-last"} { // with no base but in its relocations
		s := fakekernel.Make(layout)
		s.Iterator()
		_, base := offsets(s)
		clear(s.Data[base : base+8])
		if k, err := read(s.Data); err != nil || k.Layout != layout || !slices.Equal(k.All, s.Names) {
			t.Errorf("%s: %v", layout, err)
		}
	}
}
