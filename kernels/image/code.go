// SPDX-License-Identifier: Apache-2.0

package image

import (
	"maps"
	"slices"

	"github.com/textpoke/textpoke/cpus/arm64"
	"github.com/textpoke/textpoke/cpus/riscv64"
	"github.com/textpoke/textpoke/cpus/x86_64"
	"github.com/textpoke/textpoke/records/vmlinux"
)

// decoder is how the code of an instruction set is read.
type decoder struct {
	calls func(code, func(to uint64))
	refs  func(code, func(to uint64))
}

// decoders are by the instruction set's name (package cpus).
var decoders = map[string]decoder{
	x86_64.Name:  {callsX86, refsX86},
	arm64.Name:   {callsARM64, refsARM64},
	riscv64.Name: {callsRISCV, refsRISCV},
}

// code is instructions and where they lie.
type code struct {
	at    uint64
	bytes []byte
}

func signed(v uint32, bits uint) uint64 { return uint64(int64(int32(v<<(32-bits)) >> (32 - bits))) }

// callsX86 finds call and jmp with 32 bits of displacement. Instructions are not
// decoded one by one: who asks looks whether a function starts there.
func callsX86(c code, hit func(to uint64)) {
	for i := 0; i+5 <= len(c.bytes); i++ {
		if op := c.bytes[i]; op == 0xe8 || op == 0xe9 {
			hit(c.at + uint64(i+5) + signed(le.Uint32(c.bytes[i+1:]), 32))
		}
	}
}

// refsX86 finds what is loaded into a register: mov $imm32 and lea disp32(%rip).
func refsX86(c code, hit func(to uint64)) {
	for i := 0; i+7 <= len(c.bytes); i++ {
		rex, op, modrm := c.bytes[i], c.bytes[i+1], c.bytes[i+2]
		imm := signed(le.Uint32(c.bytes[i+3:]), 32)
		switch {
		case rex&0xf8 == 0x48 && op == 0xc7 && modrm&0xf8 == 0xc0:
			hit(imm)
		case rex&0xf8 == 0x48 && op == 0x8d && modrm&0xc7 == 0x05:
			hit(c.at + uint64(i+7) + imm)
		}
	}
}

// callsARM64 finds b and bl.
func callsARM64(c code, hit func(to uint64)) {
	for i := 0; i+4 <= len(c.bytes); i += 4 {
		if w := le.Uint32(c.bytes[i:]); w>>26 == 0x25 || w>>26 == 0x05 {
			hit(c.at + uint64(i) + signed(w, 26)<<2)
		}
	}
}

// refsARM64 finds adrp and the add that completes it, with at most a few instructions
// between them.
func refsARM64(c code, hit func(to uint64)) {
	var page [32]uint64
	for i := 0; i+4 <= len(c.bytes); i += 4 {
		w := le.Uint32(c.bytes[i:])
		rd, rn := w&31, w>>5&31
		switch {
		case w>>24&0x9f == 0x90: // adrp
			page[rd] = (c.at+uint64(i))&^0xfff + signed(w>>5&0x7ffff<<2|w>>29&3, 21)<<12
		case w>>22 == 0x91000000>>22 && page[rn] != 0: // add rd, rn, #imm
			hit(page[rn] + uint64(w>>10&0xfff))
		case w>>24&0x9f == 0x10: // adr
			hit(c.at + uint64(i) + signed(w>>5&0x7ffff<<2|w>>29&3, 21))
		}
	}
}

// callsRISCV finds auipc and jalr, jal, and c.j.
func callsRISCV(c code, hit func(to uint64)) {
	for i := 0; i+4 <= len(c.bytes); i += 2 {
		w, pc := le.Uint32(c.bytes[i:]), c.at+uint64(i)
		switch {
		case w&0x7f == 0x17 && i+8 <= len(c.bytes):
			if j := le.Uint32(c.bytes[i+4:]); j&0x7f == 0x67 && j>>15&31 == w>>7&31 {
				hit(pc + signed(w&0xfffff000, 32) + signed(j>>20, 12))
			}
		case w&0x7f == 0x6f:
			hit(pc + signed(w>>31<<20|w>>12&0xff<<12|w>>20&1<<11|w>>21&0x3ff<<1, 21))
		case w&3 == 1 && w>>13&7 == 5:
			hit(pc + signed(w>>12&1<<11|w>>11&1<<4|w>>9&3<<8|w>>8&1<<10|w>>7&1<<6|w>>6&1<<7|w>>3&7<<1|w>>2&1<<5, 12))
		}
	}
}

// refsRISCV finds auipc and the addi that completes it.
func refsRISCV(c code, hit func(to uint64)) {
	var page [32]uint64
	for i := 0; i+4 <= len(c.bytes); i += 2 {
		w := le.Uint32(c.bytes[i:])
		rd, rs := w>>7&31, w>>15&31
		switch {
		case w&0x7f == 0x17:
			page[rd] = c.at + uint64(i) + signed(w&0xfffff000, 32)
		case w&0x707f == 0x13 && page[rs] != 0:
			hit(page[rs] + signed(w>>20, 12))
		}
	}
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// maxBody bounds a function's code where no symbol follows it.
const maxBody = 4096

// bodies are a function's code: from each of its symbols to the next one behind it. The parts that
// a compiler split off a function, or cloned from it, belong to it.
func (k *Kernel) bodies(name string) (out []code) {
	for _, at := range k.Parts[name] {
		b, end := k.At(at), uint64(maxBody)
		if next := k.After(at); next != nil {
			end = next.Addr - at
		}
		if len(b) > 0 {
			out = append(out, code{at, b[:min(uint64(len(b)), end)]})
		}
	}
	return out
}

// Calls are the functions that a function calls or jumps to directly, and how often
// the code names them. It is empty for a function that there is not. Counts of calls
// in code are not counts of calls made.
func (k *Kernel) Calls(name string) map[string]int {
	if c, ok := k.called[name]; ok {
		return c
	}
	out := map[string]int{}
	for _, c := range k.bodies(name) {
		k.calls(c, func(to uint64) {
			if to >= c.at && to < c.at+uint64(len(c.bytes)) {
				return
			}
			for _, s := range k.Starting(to) {
				if to := vmlinux.Plain(s.Name); s.IsText() && to != name {
					out[to]++
				}
			}
		})
	}
	k.called[name] = out
	return out
}

// Refs are the addresses that a function's code makes, such as those of its arguments.
func (k *Kernel) Refs(name string) []uint64 {
	var out []uint64
	for _, c := range k.bodies(name) {
		k.refs(c, func(to uint64) { out = append(out, to) })
	}
	return out
}

// Path is how a function leads to another by direct calls, at most so many deep: the
// functions on the shortest way, both included; nil if there is none.
func (k *Kernel) Path(from, to string, depth int) []string {
	seen := map[string]bool{from: true}
	ways := [][]string{{from}}
	for range depth {
		var next [][]string
		for _, way := range ways {
			for _, name := range sortedNames(k.Calls(way[len(way)-1])) {
				longer := append(way[:len(way):len(way)], name)
				if name == to {
					return longer
				}
				if !seen[name] {
					seen[name] = true
					next = append(next, longer)
				}
			}
		}
		ways = next
	}
	return nil
}

// Touches tells whether a function's code names a place relative to itself (x86-64's
// instructions with %rip, which end with up to four more bytes behind the distance).
func (k *Kernel) Touches(name string, addr uint64) bool {
	for _, c := range k.bodies(name) {
		for i := 0; i+4 <= len(c.bytes); i++ {
			to := c.at + uint64(i+4) + signed(le.Uint32(c.bytes[i:]), 32)
			if to == addr || to+1 == addr || to+4 == addr {
				return true
			}
		}
	}
	return false
}

// HoldsWord tells whether a function's code has an instruction of four bytes.
func (k *Kernel) HoldsWord(name string, insn uint32) bool {
	for _, c := range k.bodies(name) {
		for i := 0; i+4 <= len(c.bytes); i += 2 {
			if le.Uint32(c.bytes[i:]) == insn {
				return true
			}
		}
	}
	return false
}
