// SPDX-License-Identifier: Apache-2.0

package promela

import (
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
)

// Texts as a fetch gives them, by number; others follow in order of appearance.
const (
	mixture    = iota // what no version of the site ever was
	breakpoint        // one instruction, whatever follows
	firstText
)

// site is a site's bytes. One patcher stores to a site in one order, and a buffer keeps
// the order of stores to one place. So the site goes through versions that can be
// numbered beforehand.
type site struct {
	addr     records.Addr
	versions []isa.Text // 0 is the text at the start
	literals []uint64   // likewise, the ops that the literal names
	insns    []insn
}

// traps tells whether a breakpoint is ever there.
func (s site) traps() bool { return s.insns[0].has[breakpoint] != 0 }

// insn is one of a site's instructions.
type insn struct {
	texts []isa.Text // as fetched, by number
	has   []uint     // by number: the versions that have this text, as bits
	may   [][]uint   // by the oldest and the newest version of a window: the numbers that a fetch may give, as bits
}

// findSites works out what the program makes of every site.
func (x *export) findSites() {
	for i, at := range x.code.Sites {
		s := site{addr: at, versions: []isa.Text{x.m.Initial[i]}, literals: []uint64{x.m.Literals[i]}}
		for _, st := range x.program.Plan {
			if st.Op != poke.Write {
				continue
			}
			for k := st.From; k < st.To; k++ {
				if p := &x.program.Patches[k]; int(p.Site) == i {
					s.store(x.code, st, p)
				}
			}
		}
		for k := range x.code.Len / x.code.Traits.FetchLen {
			s.insns = append(s.insns, x.insn(&s, k))
		}
		x.sites = append(x.sites, s)
	}
}

// store appends what one Write leaves.
func (s *site) store(c *cpus.Code, st poke.Step, p *poke.Patch) {
	text, ops := p.New, p.NewOps
	if st.Undo {
		text, ops = p.Old, p.OldOps
	}
	old, literal := s.versions[len(s.versions)-1], s.literals[len(s.literals)-1]
	bp := c.Traits.BreakpointLen
	const lower = 1<<32 - 1
	switch st.Part {
	case poke.Breakpoint:
		s.versions = append(s.versions, old.Splice(0, bp, c.Arch.Breakpoint()))
	case poke.Tail:
		s.versions = append(s.versions, old.Splice(bp, c.Len-bp, text.Slice(bp, c.Len-bp)))
	case poke.Head:
		s.versions = append(s.versions, old.Splice(0, bp, text))
	case poke.Word:
		s.versions = append(s.versions, old.Splice(0, c.Len, text))
	case poke.Literal:
		s.literals = append(s.literals, ops)
	case poke.LiteralLow:
		s.literals = append(s.literals, literal&^lower|ops&lower)
	case poke.LiteralHigh:
		s.literals = append(s.literals, literal&lower|ops&^lower)
	}
}

// insn numbers the texts of a site's k-th instruction, and finds what can be
// fetched out of every window.
func (x *export) insn(s *site, k int) insn {
	n := x.code.Traits.FetchLen
	in := insn{texts: make([]isa.Text, firstText), has: make([]uint, firstText)}
	parts := make([]isa.Text, len(s.versions))
	for v, t := range s.versions {
		parts[v] = t.Slice(k*n, n)
		number := x.number(&in, parts[v])
		if number == mixture {
			number = len(in.texts)
			in.texts, in.has = append(in.texts, parts[v]), append(in.has, 0)
		}
		in.has[number] |= 1 << v
	}
	at := s.addr + records.Addr(k*n)
	for oldest := range parts {
		row := make([]uint, len(parts))
		for newest := oldest; newest < len(parts); newest++ {
			for _, t := range x.mixes(parts[oldest:newest+1], at, n) {
				row[newest] |= 1 << x.number(&in, t)
			}
		}
		in.may = append(in.may, row)
	}
	return in
}

// number is that of a text, mixture where it has none.
func (x *export) number(in *insn, t isa.Text) int {
	if x.code.Arch.Decode(0, t, 0).Kind == isa.Breakpoint {
		return breakpoint
	}
	if i := slices.Index(in.texts[firstText:], t); i >= 0 {
		return firstText + i
	}
	return mixture
}

// mixes lists what a fetch of n bytes at address at can give: window holds the
// versions, the oldest first.
func (x *export) mixes(window []isa.Text, at records.Addr, n int) []isa.Text {
	grain := x.code.Arch.Grain(at)
	grained := func(border int) bool { return border%grain == 0 }
	quadword := func(border int) bool { return grained(border) && (uint64(at)+uint64(border))%8 == 0 }
	switch x.code.Fetch {
	case cpus.Weak:
		return blends(window, n, grained)
	case cpus.Coherent:
		return upwards(window, 0, 0, n, grained, quadword)
	case cpus.Quadword:
		return blends(window, n, quadword)
	}
	var out []isa.Text // Atomic: one store is in flight at most
	for i := range window {
		out = append(out, blends(window[i:min(i+2, len(window))], n, quadword)...)
	}
	return out
}

// blends takes each part from any of some texts; cut tells where one ends.
func blends(of []isa.Text, n int, cut func(border int) bool) []isa.Text {
	out := []isa.Text{0}
	for at := 0; at < n; {
		w := width(at, n, cut)
		var longer []isa.Text
		for _, t := range out {
			for _, v := range of {
				if t := t.Splice(at, w, v.Slice(at, w)); !slices.Contains(longer, t) {
					longer = append(longer, t)
				}
			}
		}
		out, at = longer, at+w
	}
	return out
}

// upwards takes each part of n bytes, from at on, from a text as old as the i-th or newer;
// the part behind it from one as old as that or newer, or where a quadword begins from the
// one before that.
func upwards(of []isa.Text, i, at, n int, cut, quadword func(border int) bool) []isa.Text {
	if at == n {
		return []isa.Text{0}
	}
	w := width(at, n, cut)
	var out []isa.Text
	for ; i < len(of); i++ {
		next := i
		if quadword(at + w) {
			next = max(i-1, 0)
		}
		for _, rest := range upwards(of, next, at+w, n, cut, quadword) {
			out = append(out, rest.Splice(at, w, of[i].Slice(at, w)))
		}
	}
	return out
}

// width is how many of n bytes, from at on, are one part.
func width(at, n int, cut func(border int) bool) int {
	for border := at + 1; border < n; border++ {
		if cut(border) {
			return border - at
		}
	}
	return n - at
}

// execute decodes a site's last instruction, after the one before it.
func (x *export) execute(s *site, t isa.Text) (insn isa.Insn) {
	var scratch uint64
	if x.code.Literals() {
		scratch = x.code.Arch.Scratch(isa.Site{Addr: s.addr, Len: uint8(x.code.Len)}, x.code.Entry)
	}
	n := x.code.Traits.FetchLen
	for i := range x.code.Len / n {
		insn = x.code.Arch.Decode(s.addr+records.Addr(i*n), t.Slice(i*n, n), scratch)
		scratch = uint64(insn.Target)
	}
	return insn
}
