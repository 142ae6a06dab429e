// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/poke"
)

// The limits of a model: a state's words have room for no more.
const (
	MaxCPUs     = 8
	MaxSites    = cpus.CodecSites
	MaxPatchers = 3
	maxSteps    = 4095
	maxStores   = cpus.CodecSynced - 3 // of text that some CPU may not have seen
	maxTexts    = 16                   // of one site
	maxOps      = 8
	maxBuffered = 1<<bitsCount - 1 // stores that wait
)

// Model is a small machine whose every interleaving is to be explored.
type Model struct {
	Code     *cpus.Code
	Roles    []cpus.Role
	Programs []Program // patcher i sits on the i-th CPU that houses patchers
	Initial  []isa.Text
	Literals []uint64 // what each site's literal names at first
	NopOps   uint64
	Attached []uint64 // ops that may be called from the start

	Lookup  int3.Lookup
	Refs    int3.Refs
	Slots   int          // of the vector, 0 for as many as there are patches
	Filling poke.Filling // of the vector
	Preempt bool         // tasks may be preempted between any two instructions

	// SameSites says that all sites are patched in the same way: from the same
	// instruction to the same one, with the same ops.
	SameSites bool

	// ticks lets timers tick at any time; see TestTicksMakeNoDifference.
	ticks bool
	// anyEnd leaves out the look at what programs leave at their sites, for those
	// that do not say.
	anyEnd bool
	// around says that text_mutex is taken around plans, which do not take it.
	around bool

	codec    cpus.Codec
	homes    []int
	ops      []uint64
	table    cpus.OpsTable
	attached cpus.OpsStates // of table, at first
	rules    poke.Rules
	texts    [][]isa.Text    // by site: every text that it can have
	grains   []int           // by site: see findGrains
	changes  [][]cpus.Change // by site: the changes that updates make
	batches  [][]*batch      // by program and step: the batch that a Publish publishes
	flat     []*batch        // the same, numbered from 1
	final    [][][]left      // by program and update: the texts and literals at the end
	stores   []storeList     // by program: every store that can be buffered
	quiet    [][]quiet       // by program and step, for reductions
	alike    []int8          // by CPU: the equal one before it, -1 for none
	past     []int           // by program: the first step that is about no site any more
	layout   layout
}

// batch is what a Publish publishes.
type batch struct {
	number int
	index  int3.Index
	acts   []isa.Insn
}

// Prepare checks a model and works out what all its states have in common. It
// must be called once before anything else. Errors say in one line what cannot be
// explored.
func (m *Model) Prepare() error {
	if err := m.checkSizes(); err != nil {
		return err
	}
	plans := spelling.Each(m.Programs, func(p Program) []poke.Step { return p.Plan })
	m.rules = poke.NewRules(m.Code, m.Slots, plans...)
	m.codec = cpus.Codec{Code: m.Code, NopOps: m.NopOps, CPUs: len(m.Roles)}
	for cpu, r := range m.Roles {
		if r.RunsPatcher() {
			m.homes = append(m.homes, cpu)
		}
	}
	m.Code.Complete()
	if m.Code.Path.Masks() && m.Preempt {
		return errors.New("an entry that masks interrupts and is preempted: it is one or the other")
	}
	if m.Preempt && len(m.Roles) <= len(m.Programs) {
		return fmt.Errorf("%d CPUs for %d patchers: a task that is preempted needs one more "+
			"to go on", len(m.Roles), len(m.Programs))
	}
	if len(m.homes) < len(m.Programs) {
		return fmt.Errorf("%d patchers on %d CPUs that may house one", len(m.Programs), len(m.homes))
	}
	for _, find := range []func() error{m.checkWidths, m.findOps, m.findTexts, m.findChanges, m.findBatches, m.findStores} {
		if err := find(); err != nil {
			return err
		}
	}
	m.findMeant()
	for _, p := range m.Programs {
		m.final = append(m.final, p.finals(m.Initial, m.Literals))
	}
	m.findQuiet()
	m.findAlike()
	m.findPast()
	m.layOut()
	return nil
}

func (m *Model) checkSizes() error {
	switch n := len(m.Roles); {
	case n < 1 || n > MaxCPUs:
		return fmt.Errorf("%d CPUs: every interleaving can be explored of 1 to %d", n, MaxCPUs)
	case slices.Contains(m.Roles, cpus.Offline) && !m.Code.Path.ComesUp:
		return fmt.Errorf(
			"an offline CPU takes no part: leave it out, or say how it comes online (section %q of the path)",
			cpus.OnUp,
		)
	}
	if m.Code.Path.GoesDown && m.Preempt {
		return fmt.Errorf("preempted tasks beside CPUs that go offline (section %q of the path): no rule says where the tasks go",
			cpus.OnDown)
	}
	switch n := len(m.Code.Sites); {
	case n < 1 || n > MaxSites:
		return fmt.Errorf("%d sites: every interleaving can be explored of 1 to %d", n, MaxSites)
	case len(m.Programs) < 1 || len(m.Programs) > MaxPatchers:
		return fmt.Errorf("%d patchers: want 1 to %d", len(m.Programs), MaxPatchers)
	}
	for _, p := range m.Programs {
		if len(p.Plan) == 0 || len(p.Plan) > maxSteps {
			return fmt.Errorf("a plan of %d steps: want 1 to %d", len(p.Plan), maxSteps)
		}
	}
	return m.checkGraces()
}

// checkGraces refuses grace periods that several patchers can wait for at the same
// time: a CPU remembers one. Those under a lock that all take are one at a time.
func (m *Model) checkGraces() error {
	var common uint
	waiting := 0
	for _, p := range m.Programs {
		var held uint
		under, waits := ^uint(0), false
		for _, s := range p.Plan {
			switch s.Op {
			case poke.Lock:
				held |= 1 << s.Mutex
			case poke.Unlock:
				held &^= 1 << s.Mutex
			case poke.GracePeriod, poke.SynchronizeRCU:
				under, waits = under&held, true
			}
		}
		if !waits {
			continue
		}
		if waiting++; waiting == 1 {
			common = under
		}
		common &= under
	}
	if waiting > 1 && common == 0 {
		return fmt.Errorf("%d patchers can wait for grace periods at the same time: a CPU remembers one; take "+
			"ftrace_lock around them", waiting)
	}
	return nil
}

// findOps lists every value that a loaded ops can have: also half of one pointer
// with half of another, where literals are stored in halves.
func (m *Model) findOps() error {
	whole := append([]uint64{m.NopOps}, m.Attached...)
	halves := m.anyStep(func(s poke.Step) bool {
		return s.Op == poke.Write && (s.Part == poke.LiteralLow || s.Part == poke.LiteralHigh)
	})
	for _, p := range m.Programs {
		for i := range p.Patches {
			whole = append(whole, p.Patches[i].OldOps, p.Patches[i].NewOps)
		}
	}
	slices.Sort(whole)
	m.ops = slices.Compact(whole)
	if len(m.ops) > maxOps {
		return fmt.Errorf("%d ops: at most %d can be told apart", len(m.ops), maxOps)
	}
	var err error
	if m.table, m.attached, err = cpus.NewOpsTable(m.NopOps, m.ops...); err != nil {
		return err
	}
	for _, a := range m.ops {
		outcome := cpus.CalledWild
		if slices.Contains(m.Attached, a) {
			outcome = cpus.CalledTracer
		}
		m.attached = m.table.Set(m.attached, a, outcome)
	}
	m.codec.Ops = slices.Clone(m.ops)
	if halves {
		for _, a := range m.ops {
			for _, b := range m.ops {
				torn := uint64(isa.Text(a).Splice(4, 4, isa.Text(b).Slice(4, 4)))
				m.codec.Ops = append(m.codec.Ops, torn)
			}
		}
		slices.Sort(m.codec.Ops)
		m.codec.Ops = slices.Compact(m.codec.Ops)
	}
	if len(m.codec.Ops) > cpus.CodecValues {
		return fmt.Errorf("%d values of a torn pointer: at most %d can be told apart", len(m.codec.Ops), cpus.CodecValues)
	}
	return nil
}

// findTexts lists every text that a site can have: whatever stores make of what
// is there, in any order. Where pages are mapped first, stores for one site can
// go to another.
func (m *Model) findTexts() error {
	astray := m.executes(poke.Map)
	m.texts = make([][]isa.Text, len(m.Code.Sites))
	m.codec.Inside = make([][]cpus.Executed, len(m.Code.Sites))
	stores := 0
	for site := range m.texts {
		list := []isa.Text{m.Initial[site]}
		for i := 0; i < len(list); i++ {
			m.eachStore(func(p *poke.Patcher, id poke.StoreID) {
				at, off, n, text, code := p.StoreAt(id)
				if !code || at != site && !astray {
					return
				}
				if i == 0 && at == site {
					stores++
				}
				if t := list[i].Splice(off, n, text); !slices.Contains(list, t) {
					list = append(list, t)
				}
			})
			if len(list) > maxTexts {
				return fmt.Errorf("site %d can have over %d texts", site, maxTexts)
			}
		}
		m.texts[site] = list
		m.addTargets(site, list)
		m.codec.Inside[site] = m.Code.Halfway(site, list)
		if n := len(m.codec.Inside[site]); n > cpus.CodecValues {
			return fmt.Errorf("site %d can be left in the middle in %d ways: at most %d can be told apart", site, n,
				cpus.CodecValues)
		}
	}
	if n := len(m.codec.Ops); n > cpus.CodecValues {
		return fmt.Errorf("%d values that a call can have: at most %d can be told apart", n, cpus.CodecValues)
	}
	m.findGrains()
	m.layout.stores = m.logLength(stores)
	return nil
}

// addTargets lists the functions that a site's texts call by themselves, also those that no patch
// was meant to call.
func (m *Model) addTargets(site int, texts []isa.Text) {
	if path := &m.Code.Path; path.Apart || path.After == cpus.DoLoadLiteral {
		return
	}
	for _, t := range texts {
		insn := m.Code.Act(site, t)
		if insn.Kind == isa.Call && !slices.Contains(m.codec.Ops, uint64(insn.Target)) {
			m.codec.Ops = append(m.codec.Ops, uint64(insn.Target))
		}
	}
}

// eachStore calls f with every store that a program can make.
func (m *Model) eachStore(f func(p *poke.Patcher, id poke.StoreID)) {
	for _, prog := range m.Programs {
		p := &poke.Patcher{Code: m.Code, Patches: prog.Patches, Plan: prog.Plan}
		for at, s := range prog.Plan {
			if s.Op != poke.Write {
				continue
			}
			for i := s.From; i < s.To; i++ {
				f(p, poke.StoreID{At: int32(at), Patch: i})
			}
		}
	}
}

// findBatches builds what Publish steps publish.
func (m *Model) findBatches() error {
	for _, p := range m.Programs {
		list := make([]*batch, len(p.Plan))
		for at, s := range p.Plan {
			if s.Op != poke.Publish {
				continue
			}
			b := &batch{number: len(m.flat) + 1}
			b.index, b.acts = poke.Batch(m.Code, m.Lookup, m.Filling, p.Patches[s.From:s.To], s.Undo)
			for _, act := range b.acts {
				if !slices.Contains(m.codec.Acts, act) {
					m.codec.Acts = append(m.codec.Acts, act)
				}
			}
			m.flat, list[at] = append(m.flat, b), b
		}
		m.batches = append(m.batches, list)
	}
	if len(m.flat) > 255 {
		return fmt.Errorf("%d batches are published: at most 255 can be told apart", len(m.flat))
	}
	if n := len(m.codec.Acts); n > cpus.CodecValues {
		return fmt.Errorf("%d instructions to act as: at most %d can be told apart", n, cpus.CodecValues)
	}
	return nil
}

// storeList is what a store buffer can hold.
type storeList struct {
	all   []poke.StoreID
	first []int // by step: where its stores begin in all
}

// findStores lists what a store buffer can hold.
func (m *Model) findStores() error {
	m.stores = make([]storeList, len(m.Programs))
	if !m.Code.Traits.StoresBuffered {
		return nil
	}
	for i, p := range m.Programs {
		l := &m.stores[i]
		patcher := p.patcher(m.Code)
		var most int
		if l.all, most = patcher.Stores(); most > maxBuffered {
			return fmt.Errorf("%d stores that can wait at the same time: at most %d", most, maxBuffered)
		}
		l.first = make([]int, len(p.Plan))
		for k, of := range slices.Backward(l.all) {
			l.first[of.At] = k
		}
		m.layout.store = max(m.layout.store, width(len(l.all)))
		m.layout.buffered += most
	}
	return nil
}

// index finds a store.
func (l *storeList) index(p *Program, s poke.StoreID) uint64 {
	return uint64(l.first[s.At] + int(s.Patch-p.Plan[s.At].From))
}

// shares tells whether another program patches a site of this one.
func (m *Model) shares(program int) bool {
	p := &m.Programs[program]
	return slices.ContainsFunc(p.Patches, func(patch poke.Patch) bool { return m.sharedSite(program, patch.Site) })
}

// sharedSite tells whether another program patches the same site.
func (m *Model) sharedSite(program int, site int32) bool {
	for i, p := range m.Programs {
		for k := range p.Patches {
			if i != program && p.Patches[k].Site == site {
				return true
			}
		}
	}
	return false
}
