// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"errors"
	"slices"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
)

// versions is a window: numbers of texts. Where order matters, the newest is first and
// neighbours differ; else they are in the order of their numbers.
type versions struct {
	n    number
	list [maxVersions]number
}

// maxVersions is how many stores to one site a CPU can fetch between, in models in which
// their order matters.
const maxVersions = 12

// stores are those to one site that are not visible yet: one to the text and one to the
// literal at most, since a younger one to the same place waits for the older. Each is a
// number of machine.stores, plus 1.
type stores struct{ text, literal number }

// machine is what is to be proved, with the domains of all attributes.
type machine struct {
	code      *cpus.Code
	patches   []poke.Patch // of the site of a view, and of another one
	nopOps    uint64
	lookup    int3.Lookup
	refs      int3.Refs
	misplaced bool // an index can miss what is in it
	shifted   bool // an entry can be the next site's
	ordered   bool // windows keep their order
	rules     poke.Rules
	overfull  bool // batches may hold more than the vector
	several   bool // other patchers have other sites
	preempts  bool // tasks are preempted between any two of their instructions
	table     cpus.OpsTable
	codec     cpus.Codec
	program   *program
	roles     []cpus.Role

	texts    domain[isa.Text]
	literals domain[uint64]
	ops      domain[cpus.OpsStates]
	cpus     domain[cpus.CPU]
	windows  domain[versions]
	waits    domain[stores]
	places   domain[spot]
	stores   []poke.StoreID // those that can wait

	first view // of the patcher and a site before anything has happened
	pad   *cpus.Scratchpad
}

// newMachine lays out one site of a protocol, and compiles what the patcher does for
// ever.
func newMachine(s *explore.Setup) (*machine, error) {
	if err := one(s); err != nil {
		return nil, err
	}
	two := *s
	two.Sites, two.Patchers = 2, 1
	two.Descending = false // a batch has any sites, in any order
	if len(two.Roles) < 2 {
		two.Roles = []cpus.Role{cpus.Busy, cpus.Busy}
	}
	if s.Patchers > 1 {
		of := two
		of.Preempt, of.Sites, of.Patchers, of.Roles = false, s.Patchers, s.Patchers, slices.Repeat([]cpus.Role{cpus.Busy}, s.Patchers)
		if _, err := of.Model(); err != nil {
			return nil, err
		}
	}
	from, err := two.Model()
	if err != nil {
		return nil, err
	}
	code := *from.Code
	if err := nmisTold(&code.Path); err != nil {
		return nil, err
	}
	if err := severalTold(s, &code.Path); err != nil {
		return nil, err
	}
	if err := preemptionTold(&code.Path); s.Preempt && err != nil {
		return nil, err
	}
	code.Sites = code.Sites[:1]
	m := &machine{
		code: &code, patches: from.Programs[0].Patches, nopOps: from.NopOps, lookup: s.Lookup, refs: s.Refs,
		roles: []cpus.Role{cpus.Busy}, pad: cpus.NewScratchpad(), preempts: s.Preempt,
		several: s.Patchers > 1,
	}
	m.misplaced = s.Mutation.Filling == poke.AsQueued && m.misses()
	m.shifted = s.Mutation.Filling == poke.Shifted && s.Protocol.Batching != poke.Single
	if code.Path.Tells {
		m.roles = append(m.roles, cpus.Isolated)
	}
	m.rules = poke.NewRules(m.code, max(from.Slots, 1))
	m.texts.of, m.literals.of, m.ops.of, m.cpus.of = text, literal, opsStates, does
	m.windows.of, m.waits.of, m.places.of = window, waiting, place
	m.ordered = code.Fetch.InOrder() && code.Grains(code.Sites[0]) > 1
	if m.program, err = newProgram(s, &code, m.patches[:1]); err != nil {
		return nil, err
	}
	m.overfull = (s.Mutation.Overfull || m.program.wide) && s.Protocol.Batching == poke.Buffered
	if err := m.findValues(from); err != nil {
		return nil, err
	}
	m.begin()
	return m, nil
}

// one refuses sites that are not all alike, or not one patcher's.
func one(s *explore.Setup) error {
	switch {
	case s.Contend:
		return &ShapeError{"sites that several patchers want: a view is of one patcher's"}
	case s.Switch:
		return &ShapeError{"sites that go over from one ops to another: in a view they call it or they do not"}
	case slices.ContainsFunc(s.Lengths, func(n int) bool { return n != s.Lengths[0] }):
		return &ShapeError{"sites of several lengths: a view is about one site, and the others are as long"}
	}
	return nil
}

// misses tells whether an index misses an address that it holds, when it is built in some
// order other than that of the addresses. That it never does otherwise is for package
// int3 to show, whose indexes are held against a map.
func (m *machine) misses() bool {
	for order := range 4 {
		var batch []poke.Patch
		for i := range 4 {
			p := m.patches[0]
			p.Addr += records.Addr(64 * ((i + order) % 4))
			batch = append(batch, p)
		}
		slices.Reverse(batch)
		index, _ := poke.Batch(m.code, m.lookup, poke.AsQueued, batch, false)
		for _, p := range batch {
			if _, ok := index.Find(p.Addr, &cpus.Probe{}); !ok {
				return true
			}
		}
	}
	return false
}

// site is the patch of the view's site.
func (m *machine) site() *poke.Patch { return &m.patches[0] }

// findValues lists the texts and literals that a site can have, the ops that a CPU can have
// loaded, and the stores that can wait.
func (m *machine) findValues(from *explore.Model) error {
	m.texts.index(from.Initial[0])
	m.literals.index(from.Literals[0])
	p := poke.Patcher{Code: m.code, Patches: m.patches, Plan: m.program.plans.own}
	for at, st := range p.Plan {
		if st.Op == poke.Write {
			m.stores = append(m.stores, poke.StoreID{At: int32(at)})
		}
	}
	m.closeTexts(&p)
	m.codec = cpus.Codec{Code: m.code, NopOps: m.nopOps, CPUs: 1}
	add := func(v uint64) {
		if !slices.Contains(m.codec.Ops, v) {
			m.codec.Ops = append(m.codec.Ops, v)
		}
	}
	add(m.nopOps)
	for _, v := range m.literals.list {
		add(v)
	}
	acted := append(slices.Clone(m.texts.list), m.site().Old, m.site().New)
	if m.shifted {
		acted = append(acted, m.patches[1].Old, m.patches[1].New)
	}
	for _, t := range acted {
		act := m.code.Act(int(m.site().Site), t)
		if act.Kind == isa.Call {
			add(uint64(act.Target))
		}
		m.codec.Acts = append(m.codec.Acts, act)
	}
	m.codec.Inside = [][]cpus.Executed{m.code.Halfway(int(m.site().Site), m.texts.list)}
	m.codec.Acts = append(m.codec.Acts, isa.Insn{})
	if len(m.codec.Ops) > cpus.CodecValues || len(m.codec.Acts) > cpus.CodecValues {
		return errors.New("more texts than can be told apart")
	}
	real := []uint64{m.site().OldOps, m.site().NewOps}
	table, states, err := cpus.NewOpsTable(m.nopOps, real...)
	if err != nil {
		return err
	}
	m.table = table
	for _, v := range real {
		outcome := cpus.CalledWild
		if slices.Contains(from.Attached, v) {
			outcome = cpus.CalledTracer
		}
		states = m.table.Set(states, v, outcome)
	}
	m.ops.index(states)
	return nil
}

// closeTexts lists the texts that stores can make, in any order.
func (m *machine) closeTexts(p *poke.Patcher) {
	for before := 0; before < len(m.texts.list)+len(m.literals.list); {
		before = len(m.texts.list) + len(m.literals.list)
		for _, id := range m.stores {
			_, off, n, t, code := p.StoreAt(id)
			for i := 0; code && i < len(m.texts.list); i++ {
				m.texts.index(m.texts.list[i].Splice(off, n, t))
			}
			for i := 0; !code && i < len(m.literals.list); i++ {
				m.literals.index(uint64(isa.Text(m.literals.list[i]).Splice(off, n, t)))
			}
		}
	}
}

// begin finds the view of a busy CPU before anything has happened, without the CPU's state.
func (m *machine) begin() {
	var v view
	v[place] = m.places.index(spot{})
	v[waiting] = m.waits.index(stores{})
	v[window] = m.windows.index(versions{n: 1})
	m.first = v
}

// initial are the views before anything has happened.
func (m *machine) initial() (list []view) {
	for _, r := range m.roles {
		v := m.first
		v[does] = m.cpu(cpus.CPU{Role: r})
		list = append(list, v)
	}
	if m.code.Path.ComesUp {
		v, c := m.first, cpus.CPU{Role: cpus.Busy} // busy, once it is online
		c.PowerOff()
		v[does] = m.cpu(c)
		list = append(list, v)
	}
	return list
}

// pushed is a window when a store comes.
func (m *machine) pushed(w, t number) number {
	is := m.windows.list[w]
	list := slices.Clone(is.list[:is.n])
	switch {
	case !m.ordered && slices.Contains(list, t), m.ordered && list[0] == t:
		return w
	case m.ordered:
		list = slices.Insert(list, 0, t)
	default:
		list = append(list, t)
		slices.Sort(list)
	}
	if len(list) > maxVersions {
		panic(limit("a CPU can fetch between more than 12 stores to one site, whose order matters"))
	}
	is = versions{n: number(len(list))}
	copy(is.list[:], list)
	return m.windows.index(is)
}

// onlyText is the window of a CPU that has just synchronised.
func (m *machine) onlyText(t number) number {
	w := versions{n: 1}
	w.list[0] = t
	return m.windows.index(w)
}
