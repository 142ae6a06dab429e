// SPDX-License-Identifier: Apache-2.0

package vmlinux

// layout is one way in which kallsyms has had its addresses (scripts/kallsyms.c).
type layout struct {
	name     string
	offsets  int  // where they stand, from the start of the segment
	base     int  // where the base stands that they are relative to
	ownPlace bool // they are relative to where each stands
}

// layouts are all places where a kernel may have its addresses: before the number of
// symbols, with the base between, to 6.3; behind the tokens' index, with the base behind
// them, since 6.4; without a base, each relative to its own place, in 7.2.
func (n *names) layouts() []layout {
	offsets := 4 * n.count
	return []layout{
		{"offsets-first", n.num - 8 - align(offsets, 8), n.num - 8, false},
		{"offsets-last", n.end, n.end + align(offsets, 8), false},
		{"offsets-last,place-relative", n.end, 0, true},
	}
}

func align(n, to int) int { return (n + to - 1) / to * to }

// decode gives the names their addresses; nil in no known layout. Addresses must ascend
// as the kernel's own search wants them (get_symbol_pos, kernel/kallsyms.c).
func (n *names) decode(m *Memory) *Symbols {
	d := n.seg.Data
	all := n.expand()
	if all == nil {
		return nil
	}
	for _, l := range n.layouts() {
		if l.offsets < 0 || l.offsets+4*n.count > len(d) || !l.ownPlace && l.base+8 > len(d) {
			continue
		}
		name := l.name
		if n.seqs {
			name += ",sequences-before-tokens"
		}
		if l.ownPlace {
			if n.place(l, all) {
				return NewSymbols(name, all)
			}
			continue
		}
		base := le.Uint64(d[l.base:])
		if base != 0 && base>>63 == 0 {
			continue // no address of a kernel
		}
		if perCPU, ok := n.relative(l, base, all); ok {
			if perCPU {
				name += ",absolute-percpu"
			}
			return NewSymbols(name, all)
		}
	}
	return nil
}

// place fills in addresses that are relative to where they stand.
func (n *names) place(l layout, all []Symbol) bool {
	for i := range all {
		at := l.offsets + 4*i
		all[i].Addr = n.seg.Addr + uint64(at) + uint64(int32(le.Uint32(n.seg.Data[at:])))
	}
	return ascend(all, 0)
}

// relative fills in addresses that are relative to a base. On x86_64 before 6.15 what is
// not negative is absolute, a per-CPU variable's, and the rest counts from the base
// downwards (CONFIG_KALLSYMS_ABSOLUTE_PERCPU).
func (n *names) relative(l layout, base uint64, all []Symbol) (perCPU, ok bool) {
	negative := 0
	for i := range all {
		v := le.Uint32(n.seg.Data[l.offsets+4*i:])
		if all[i].Addr = base + uint64(v); int32(v) < 0 {
			negative++
		}
	}
	if perCPU = negative > n.count/2; !perCPU {
		return false, ascend(all, 0)
	}
	absolute := 0
	for i := range all {
		v := le.Uint32(n.seg.Data[l.offsets+4*i:])
		if all[i].Addr = base - 1 - uint64(int32(v)); int32(v) >= 0 {
			all[i].Addr = uint64(v)
			absolute = i + 1
		}
	}
	return true, ascend(all, absolute)
}

// ascend tells whether addresses ascend within the first so many symbols, and within
// the others, and reach further than a byte a symbol.
func ascend(all []Symbol, first int) bool {
	if len(all) == 0 || all[len(all)-1].Addr-all[0].Addr < uint64(len(all)) {
		return false
	}
	for i := 1; i < len(all); i++ {
		if all[i].Addr < all[i-1].Addr && i != first {
			return false
		}
	}
	return true
}
