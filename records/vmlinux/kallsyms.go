// SPDX-License-Identifier: Apache-2.0

package vmlinux

import "bytes"

// names is what stands in kallsyms before a name has an address (scripts/kallsyms.c of
// Linux): each name is its length and its tokens, 256 tokens stand for texts, and a
// marker tells where every 256th name begins.
type names struct {
	seg     Segment
	tokens  [256]string
	table   int // where the tokens begin, from the start of the segment
	end     int // behind the index of the tokens
	num     int // where the number of symbols stands
	first   int // where the names begin
	count   int
	seqs    bool // a table of sequence numbers stands before the tokens (some 6.1 and 6.2)
	markers []uint32
}

const (
	markerEvery  = 256       // names
	minSymbols   = 64 * 256  // fewer are no kernel's; the search for markers is worth nothing then
	maxSymbols   = 1_000_000 // of vmlinux; distributions have 100,000 to 250,000
	maxTokenText = 64        // bytes of one token's text
)

// ReadSymbols finds and decodes kallsyms. It needs only the bytes: the ten
// digits stand for themselves among the tokens, the index that follows proves the
// tokens, and the names prove their number against the markers.
func ReadSymbols(m *Memory) (*Symbols, error) {
	var digits []byte
	for c := byte('0'); c <= '9'; c++ {
		digits = append(digits, c, 0)
	}
	reason := "no table of tokens"
	for _, seg := range m.Segments {
		for from := 0; ; {
			i := bytes.Index(seg.Data[from:], digits)
			if i < 0 {
				break
			}
			n := &names{seg: seg}
			switch {
			case !n.readTokens(from + i):
			case !n.findMarkers():
				reason = "tokens, but no names that agree with their markers"
			default:
				if s := n.decode(); s != nil {
					return s, nil
				}
				reason = "names, but no addresses in a known layout"
			}
			from += i + 1
		}
	}
	return nil, Fail("kernel", "no symbol table that is understood (%s); CONFIG_KALLSYMS is needed", reason)
}

// readTokens reads the table around the token '0', and insists on the index behind it.
// Only the index tells where the first token begins: data before it, such as sequence
// numbers, need not end with a zero.
func (n *names) readTokens(zero int) bool {
	d, at := n.seg.Data, zero
	for range '0' - 1 {
		if at < 2 {
			return false
		}
		lo := max(0, at-maxTokenText)
		q := bytes.LastIndexByte(d[lo:at-1], 0)
		if q < 0 {
			return false
		}
		at = lo + q + 1
	}
	for first := at - 1; first >= max(0, at-maxTokenText); first-- {
		if n.tokensFrom(first) {
			return true
		}
		if first == 0 || d[first-1] == 0 {
			break
		}
	}
	return false
}

// tokensFrom reads the tokens from where the first begins.
func (n *names) tokensFrom(at int) bool {
	d := n.seg.Data
	n.table = at
	var index []byte
	for i := range n.tokens {
		l := bytes.IndexByte(d[at:min(len(d), at+maxTokenText)], 0)
		if l < 0 {
			return false
		}
		index = le.AppendUint16(index, uint16(at-n.table))
		n.tokens[i] = string(d[at : at+l])
		at += l + 1
	}
	pad := bytes.Index(d[at:min(len(d), at+16+len(index))], index)
	n.end = at + pad + len(index)
	return pad >= 0
}

// findMarkers finds the markers that end before the tokens, or before the sequence
// numbers that stand there, three bytes a symbol.
func (n *names) findMarkers() bool {
	if n.markersBefore(n.table) {
		return true
	}
	d := n.seg.Data
	u := func(at int) uint32 { return le.Uint32(d[at:]) }
	for end := (n.table - 3*minSymbols) &^ 3; end > n.table-3*maxSymbols && end >= 8; end -= 4 {
		if u(end-8) < u(end-4) && u(end-4)-u(end-8) < markerEvery*MaxName && n.markersBefore(end) {
			n.seqs = true
			return true
		}
	}
	return false
}

// markersBefore reads markers that end at a place, and the names that end where they
// begin.
func (n *names) markersBefore(end int) bool {
	d := n.seg.Data
	u := func(at int) uint32 { return le.Uint32(d[at:]) }
	top := end &^ 3
	for top >= 8 && u(top-4) == 0 { // padding
		top -= 4
	}
	at := top
	for at >= 8 && u(at-4) != 0 && (at == top || u(at-4) < u(at)) {
		at -= 4
	}
	if at -= 4; at < 8 || (top-at)/4 < minSymbols/markerEvery {
		return false
	}
	n.markers = n.markers[:0]
	for p := at; p < top; p += 4 {
		n.markers = append(n.markers, u(p))
	}
	return n.findCount(at)
}

// findCount finds the number of symbols, which stands right before the names.
func (n *names) findCount(markers int) bool {
	last := n.markers[len(n.markers)-1]
	if uint64(last) > uint64(markers) {
		return false
	}
	high := (markers - int(last)) &^ 3
	for p := high; p >= max(0, high-markerEvery*(MaxName+2)); p -= 4 {
		if p+4 > len(n.seg.Data) {
			continue
		}
		count := le.Uint32(n.seg.Data[p:])
		if (uint64(count)+markerEvery-1)/markerEvery != uint64(len(n.markers)) {
			continue
		}
		for _, gap := range []int{8, 4} { // each of the tables is aligned to a word of the machine, or not
			if n.walk(p+gap, int(count), markers) {
				n.num, n.first, n.count = p, p+gap, int(count)
				return true
			}
		}
	}
	return false
}

// walk goes through all names and compares with the markers.
func (n *names) walk(first, count, end int) bool {
	at := first
	for i := range count {
		if i%markerEvery == 0 && uint32(at-first) != n.markers[i/markerEvery] {
			return false
		}
		size, head := nameSize(n.seg.Data[min(at, end):end])
		if at += head + size; size == 0 || at > end {
			return false
		}
	}
	return end-at < 16
}

// nameSize is how many tokens a name has, and how many bytes say so: two for more than
// 127 tokens, since Linux 6.1.
func nameSize(b []byte) (size, head int) {
	switch {
	case len(b) < 2:
		return 0, 1
	case b[0]&0x80 != 0:
		return int(b[0]&0x7f) | int(b[1])<<7, 2
	}
	return int(b[0]), 1
}

// expand makes the names from their tokens; nil where one is longer than the kernel's.
func (n *names) expand() []Symbol {
	out := make([]Symbol, n.count)
	at := n.first
	var buf []byte
	for i := range out {
		size, head := nameSize(n.seg.Data[at:])
		at += head
		buf = buf[:0]
		for _, c := range n.seg.Data[at : at+size] {
			buf = append(buf, n.tokens[c]...)
		}
		at += size
		if len(buf) < 2 || len(buf) > MaxName {
			return nil
		}
		out[i].Type, out[i].Name = buf[0], string(buf[1:])
	}
	return out
}

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
func (n *names) decode() *Symbols {
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
