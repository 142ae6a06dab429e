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

// reaches is one past the highest address.
func (m *Memory) reaches() (end uint64) {
	for _, s := range m.Segments {
		end = max(end, s.end())
	}
	return end
}
