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

// site is all that is to be known of a site's bytes. One patcher stores to a
// site in one order, and stores to one place keep theirs in a buffer too: so the
// site goes through versions that can be numbered beforehand.
type site struct {
	addr     records.Addr
	versions []isa.Text // 0 is what is there at first
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
		for k := range x.code.Insns() {
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
	grain := x.code.Arch.Grain(s.addr + records.Addr(k*n))
	for oldest := range parts {
		row := make([]uint, len(parts))
		for newest := oldest; newest < len(parts); newest++ {
			for _, t := range x.mixes(parts[oldest:newest+1], n, grain) {
				row[newest] |= 1 << x.number(&in, t)
			}
		}
		in.may = append(in.may, row)
	}
	return in
}

// number is that of the text of a version.
func (in *insn) number(version int) int {
	return slices.IndexFunc(in.has, func(set uint) bool { return set>>version&1 != 0 })
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

// mixes lists what a fetch of n bytes can give: window holds the versions, the
// oldest first, and grain bytes never mix.
func (x *export) mixes(window []isa.Text, n, grain int) []isa.Text {
	switch {
	case x.code.Fetch == cpus.Atomic:
		return window
	case x.code.Fetch == cpus.Weak:
		return blends(window, n, grain)
	}
	var out []isa.Text // Ordered: one store is in flight at most
	for i := range window {
		out = append(out, blends(window[i:min(i+2, len(window))], n, grain)...)
	}
	return out
}

// blends takes each grain from any of some texts.
func blends(of []isa.Text, n, grain int) []isa.Text {
	out := []isa.Text{0}
	for at := 0; at < n; at += grain {
		var longer []isa.Text
		for _, t := range out {
			for _, v := range of {
				w := min(grain, n-at)
				if t := t.Splice(at, w, v.Slice(at, w)); !slices.Contains(longer, t) {
					longer = append(longer, t)
				}
			}
		}
		out = longer
	}
	return out
}

// execute decodes a site's last instruction, after the one before it.
func (x *export) execute(s *site, t isa.Text) (insn isa.Insn) {
	var scratch uint64
	if x.code.Literals() {
		scratch = x.code.Arch.Scratch(isa.Site{Addr: s.addr, Len: uint8(x.code.Len)}, x.code.Entry)
	}
	n := x.code.Traits.FetchLen
	for i := range x.code.Insns() {
		insn = x.code.Arch.Decode(s.addr+records.Addr(i*n), t.Slice(i*n, n), scratch)
		scratch = uint64(insn.Target)
	}
	return insn
}
