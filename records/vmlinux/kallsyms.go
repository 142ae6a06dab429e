// SPDX-License-Identifier: Apache-2.0

package vmlinux

import (
	"bytes"
)

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

// ReadSymbols finds and decodes kallsyms. It needs nothing but the bytes: the ten
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
				if s := n.decode(m); s != nil {
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
// Where the first token begins only the index tells: what stands before it, such as
// sequence numbers, need not end with a zero.
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
