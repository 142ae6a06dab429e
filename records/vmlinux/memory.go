// SPDX-License-Identifier: Apache-2.0

package vmlinux

import (
	"bytes"
	"encoding/binary"
	"slices"
)

var le = binary.LittleEndian

// Segment is bytes of the kernel at the address where it is linked.
type Segment struct {
	Addr uint64
	Data []byte
}

func (s Segment) end() uint64 { return s.Addr + uint64(len(s.Data)) }

// Memory is the kernel as it is linked, before it is moved anywhere. A raw image lies at
// 0 until its tables tell where it is linked.
type Memory struct {
	Arch     *Arch
	Form     string // how it was packed, from the outside in: bzImage/xz
	Segments []Segment
}

// raw tells whether the Segments have no addresses yet.
func (m *Memory) raw() bool { return len(m.Segments) == 1 && m.Segments[0].Addr == 0 }

// At is the memory from an address to the end of its segment, nil outside.
func (m *Memory) At(addr uint64) []byte {
	for _, s := range m.Segments {
		if addr >= s.Addr && addr < s.end() {
			return s.Data[addr-s.Addr:]
		}
	}
	return nil
}

// Span is the memory from one address to another, nil where it is not all there.
func (m *Memory) Span(from, to uint64) []byte {
	if b := m.At(from); to >= from && uint64(len(b)) >= to-from {
		return b[:to-from]
	}
	return nil
}

// Pointer is what a place holds, 0 outside.
func (m *Memory) Pointer(addr uint64) uint64 {
	if b := m.At(addr); len(b) >= 8 {
		return le.Uint64(b)
	}
	return 0
}

// MaxName is the longest name that is read: KSYM_NAME_LEN (include/linux/kallsyms.h,
// since Linux 6.1).
const MaxName = 512

// Text is a string that ends with 0, "" where there is none.
func (m *Memory) Text(addr uint64) string {
	b := m.At(addr)
	if i := bytes.IndexByte(b[:min(len(b), MaxName)], 0); i >= 0 {
		return string(b[:i])
	}
	return ""
}

// Contains tells whether the kernel holds a text.
func (m *Memory) Contains(s string) bool {
	return slices.ContainsFunc(m.Segments, func(g Segment) bool { return bytes.Contains(g.Data, []byte(s)) })
}

// Longest is the longest run of entries of so many bytes that all are what is looked for: where it
// begins, and how many.
func (m *Memory) Longest(size int, is func(at uint64, entry []byte) bool) (best uint64, most int) {
	for _, s := range m.Segments {
		for o := 0; o+size <= len(s.Data); {
			n := 0
			for p := o; p+size <= len(s.Data) && is(s.Addr+uint64(p), s.Data[p:]); p += size {
				n++
			}
			if n > most {
				best, most = s.Addr+uint64(o), n
			}
			o += max(8, size*n)
		}
	}
	return best, most
}

// reaches is one past the highest address.
func (m *Memory) reaches() (end uint64) {
	for _, s := range m.Segments {
		end = max(end, s.end())
	}
	return end
}
