// SPDX-License-Identifier: Apache-2.0

package force

import (
	"fmt"
)

// Bits of an entry of x86_64's page tables (arch/x86/include/asm/pgtable_types.h, Linux 7.2).
const (
	present   = 1 << 0
	writeBit  = 1 << 1
	largeBit  = 1 << 7
	frame     = 0x000f_ffff_ffff_f000
	levelBits = 9
	pageShift = 12
	entrySize = 8

	// Where all memory is mapped, from page_offset_base on, lies below this with five levels of tables, and above it
	// with four (Documentation/arch/x86/x86_64/mm.rst).
	halfOf4 = 0xffff_8000_0000_0000
)

// split looks an argument of the function that is being entered up in init_mm's tables, and keeps where its two last
// entries lie.
func (m *machine) split(cpu int, c condition) (bool, error) {
	r, err := m.Registers(cpu)
	if err != nil {
		return false, err
	}
	at := r.Arg(c.n)
	table, err := symbol(m.image, []string{"init_top_pgt"})
	if err != nil {
		return false, err
	}
	direct, err := m.variable(cpu, "page_offset_base")
	if err != nil {
		return false, err
	}
	levels := 4
	if direct < halfOf4 {
		levels = 5
	}
	const largePage = 1 // the level of its entry, where 0 is a page's
	for level := levels - 1; ; level-- {
		place := table + at>>(pageShift+levelBits*level)&(1<<levelBits-1)*entrySize
		entry, err := m.Word(cpu, place)
		if err != nil {
			return false, fmt.Errorf("page tables of %#x: %w", at, err)
		}
		if level == 0 {
			m.slot = place
			return entry&present != 0, nil
		}
		if level == largePage {
			m.entry = place
		}
		if entry&present == 0 || entry&largeBit != 0 {
			return false, nil
		}
		table = direct + entry&frame
	}
}

// writable looks through the table that split has found.
func (m *machine) writable(cpu int, _ condition) (bool, error) {
	const size = entrySize << levelBits
	table, err := m.Read(cpu, m.slot&^(size-1), size)
	for ; len(table) > 0; table = table[entrySize:] {
		if table[0]&(present|writeBit) == present|writeBit {
			return true, nil
		}
	}
	return false, err
}
