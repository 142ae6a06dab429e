// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"encoding/binary"
	"slices"
)

var le = binary.LittleEndian

// segment is bytes of the kernel at the address where it is linked.
type segment struct {
	addr uint64
	data []byte
}

func (s segment) end() uint64 { return s.addr + uint64(len(s.data)) }

// memory is the kernel as it is linked, before it is moved anywhere. A raw image lies at
// 0 until its tables tell where it is linked.
type memory struct {
	arch     *arch
	form     string // how it was packed, from the outside in: bzImage/xz
	segments []segment
}

// raw tells whether the segments lie where nobody has said yet.
func (m *memory) raw() bool { return len(m.segments) == 1 && m.segments[0].addr == 0 }

// at is the memory from an address to the end of its segment, nil outside.
func (m *memory) at(addr uint64) []byte {
	for _, s := range m.segments {
		if addr >= s.addr && addr < s.end() {
			return s.data[addr-s.addr:]
		}
	}
	return nil
}

// span is the memory from one address to another, nil where it is not all there.
func (m *memory) span(from, to uint64) []byte {
	if b := m.at(from); to >= from && uint64(len(b)) >= to-from {
		return b[:to-from]
	}
	return nil
}

func (m *memory) u64(addr uint64) (uint64, bool) {
	if b := m.at(addr); len(b) >= 8 {
		return le.Uint64(b), true
	}
	return 0, false
}

// pointer is what a place holds, 0 outside.
func (m *memory) pointer(addr uint64) uint64 {
	v, _ := m.u64(addr)
	return v
}

// maxName is the longest name that is read: KSYM_NAME_LEN (include/linux/kallsyms.h,
// since Linux 6.1).
const maxName = 512

// text is a string that ends with 0, "" where there is none.
func (m *memory) text(addr uint64) string {
	b := m.at(addr)
	if i := bytes.IndexByte(b[:min(len(b), maxName)], 0); i >= 0 {
		return string(b[:i])
	}
	return ""
}

// contains tells whether the kernel holds a text.
func (m *memory) contains(s string) bool {
	return slices.ContainsFunc(m.segments, func(g segment) bool { return bytes.Contains(g.data, []byte(s)) })
}

// reaches is one past the highest address.
func (m *memory) reaches() (end uint64) {
	for _, s := range m.segments {
		end = max(end, s.end())
	}
	return end
}
