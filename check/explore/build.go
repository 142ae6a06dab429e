// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
)

// Setup is a protocol to be checked. A patcher attaches an ops, enables sites,
// disables them again, and releases the ops; or it makes sites go over from one
// ops to another: once, or for ever. Several patchers do so with an ops and sites of
// their own, or each with all sites.
type Setup struct {
	Arch     isa.Arch
	Protocol *poke.Protocol
	Mutation poke.Mutation
	Roles    []cpus.Role
	Sites    int
	Fetch    cpus.Fetch
	Preempt  bool

	Buffer     sched.Buffer
	Descending bool // patches are queued from the highest address down
	Lookup     int3.Lookup
	Refs       int3.Refs
	Early      bool // traced code runs on the way in from user space

	Lengths []int  // bytes of each site, again from the first when they are through; nil: as usual
	Offset  Offset // where all sites lie in an aligned quadword

	Workload Workload
	Patchers int  // that share the sites between them; 0 is one
	Contend  bool // every patcher wants all sites, and takes what is there for their old text
	Switch   bool // all sites call one ops throughout, and go over to another one
}

// patchers is how many there are.
func (s *Setup) patchers() int { return max(s.Patchers, 1) }

// Where things lie. Any two ops differ in both halves, so that half of one and
// half of the other is neither.
const (
	entryAt   records.Addr = 0xffff_ffff_80ff_0000 // ftrace_caller
	firstSite records.Addr = 0xffff_ffff_8100_0004
	siteStep               = 64
	nopOps    uint64       = 0xffff_8000_8234_5678 // ftrace_nop_ops
	tracerOps uint64       = 0xffff_ffff_c0a0_1040 // the ops of the first tracer
	opsStep   uint64       = 0x0000_0001_0000_1000
	entryStep              = 0x1000 // between their trampolines
)

// tracer is the i-th ops, and the trampoline that sites call for it.
func (s *Setup) tracer(m *Model, i int) (ops uint64, entry records.Addr) {
	entry = entryAt
	if !m.Code.Literals() {
		entry += records.Addr(entryStep * i)
		return uint64(entry), entry
	}
	return tracerOps + opsStep*uint64(i), entry
}

// Model lays the machine out and compiles the program. Errors say what is wrong
// with the request.
func (s *Setup) Model() (*Model, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	longest, err := s.longest()
	if err != nil {
		return nil, err
	}
	m := &Model{
		Code: &cpus.Code{
			Arch: longest, Traits: longest.Traits(), Layout: s.Protocol.Layout, Fetch: s.Fetch,
			Entry: entryAt, Stretch: 1, Always: s.Switch,
		},
		Roles: s.Roles, NopOps: nopOps, Lookup: s.Lookup, Refs: s.Refs, Filling: s.Mutation.Filling,
		Preempt: s.Preempt, SameSites: s.patchers() == 1 && len(s.Lengths) < 2,
	}
	if s.Early && !slices.Contains(s.Roles, cpus.Isolated) {
		return nil, errors.New("no CPU is isolated: none comes in from user space early")
	}
	if s.Protocol.Batching == poke.Buffered {
		m.Slots = s.Buffer.Slots
	}
	patches, err := s.layOut(m)
	if err != nil {
		return nil, err
	}
	shape := poke.Shape{Traits: m.Code.Traits, Len: m.Code.Len, Patches: s.Sites}
	if m.Code.Path, err = s.path(shape); err != nil {
		return nil, err
	}
	for _, own := range patches {
		program, err := s.program(shape, own)
		if err != nil {
			return nil, err
		}
		m.Programs = append(m.Programs, program)
	}
	shape.Patches = len(patches[0])
	plan, err := s.compile(shape, patches[0], false)
	if err != nil {
		return nil, err
	}
	m.around = !takesMutex(plan)
	return m, m.Prepare()
}

// validate refuses what no model can be made of.
func (s *Setup) validate() error {
	switch {
	case s.Arch == nil:
		return errors.New("no instruction set")
	case s.Protocol == nil || !s.Protocol.Stated():
		return errors.New("no protocol")
	case len(s.Roles) == 0:
		return errors.New("no CPU")
	case slices.ContainsFunc(s.Roles, func(r cpus.Role) bool { return !r.Valid() }):
		return errors.New("a CPU has a role that there is not")
	case s.Contend && s.patchers() < 2:
		return errors.New("one patcher contends with no other: want 2 or more")
	case s.Contend && s.Switch:
		return errors.New("sites that several patchers contend for are enabled and disabled: they do not go over " +
			"from one ops to another")
	case int(s.Fetch) >= len(cpus.FetchNames()),
		int(s.Lookup) >= len(int3.LookupNames()),
		int(s.Refs) >= len(int3.RefsNames()):
		return errors.New("a fetch model, a lookup or a kind of references that there is not")
	}
	return nil
}

// path is what CPUs do, with the defects that are asked for.
func (s *Setup) path(shape poke.Shape) (cpus.Path, error) {
	p, err := s.Protocol.Path(shape)
	if err != nil {
		return p, err
	}
	if p = s.Mutation.OnPath(p); !s.Early {
		return p, nil
	}
	if !p.Tells {
		return p, fmt.Errorf("protocol %s leaves no CPU out: there is nothing to be early for", s.Protocol.Name)
	}
	return p.With(cpus.EntryEarly), nil
}

// program is what a patcher does with its patches.
func (s *Setup) program(shape poke.Shape, patches []poke.Patch) (Program, error) {
	shape.Patches = len(patches)
	if s.Workload == Endless {
		return s.endless(shape, patches)
	}
	attach, err := s.compile(shape, patches, false)
	if err != nil {
		return Program{}, err
	}
	shape.Detach = true
	detach, err := s.compile(shape, patches, !s.Switch)
	if err != nil {
		return Program{}, err
	}
	life := s.life(shape)
	plan := life.Toggle(attach, detach)
	if s.Switch {
		plan = life.Update(detach, false, true, true) // the new ops is attached, all sites call it, the old one is released
	}
	return Program{Patches: patches, Plan: s.bare(attach, s.spared(shape, plan))}, nil
}

// life is how updates of such a shape are told.
func (s *Setup) life(shape poke.Shape) poke.Life {
	return poke.Life{
		Patches: shape.Patches, Settles: s.Protocol.Settles(shape), Locked: s.patchers() > 1,
		Fenced: shape.Traits.StoresBuffered,
	}
}

// takesMutex tells whether a plan takes text_mutex.
func takesMutex(plan []poke.Step) bool {
	return slices.Contains(plan, poke.Step{Op: poke.Lock, Mutex: poke.TextMutex})
}

// bare is a program without the text_mutex that is held around a plan, where it is only
// the plan's to take.
func (s *Setup) bare(plan, program []poke.Step) []poke.Step {
	if s.Protocol.Locks == poke.LocksOfCaller || takesMutex(plan) {
		return program
	}
	return slices.DeleteFunc(program, func(st poke.Step) bool {
		return (st.Op == poke.Lock || st.Op == poke.Unlock) && st.Mutex == poke.TextMutex
	})
}

// spared is a plan without the steps that have no object: the release of an ops that is not there,
// or steps that the mutation leaves out.
func (s *Setup) spared(shape poke.Shape, plan []poke.Step) []poke.Step {
	return s.Mutation.OnProgram(slices.DeleteFunc(plan, func(st poke.Step) bool {
		return st.Op == poke.Release && !shape.Frees()
	}))
}

// Shape is the shape of the updates: it decides which mutations the protocol offers.
func (s *Setup) Shape() (poke.Shape, error) {
	longest, err := s.longest()
	if err != nil {
		return poke.Shape{}, err
	}
	site, err := longest.Site(firstSite, s.Protocol.Layout)
	return poke.Shape{
		Traits: longest.Traits(), Len: int(site.Len), Patches: s.Sites, Detach: true, Patchers: s.patchers(),
		Switch: s.Switch,
	}, err
}

// archOf is the instruction set with sites as long as the i-th.
func (s *Setup) archOf(i int) (isa.Arch, error) {
	if len(s.Lengths) == 0 {
		return s.Arch, nil
	}
	return cpus.WithLength(s.Arch, s.Lengths[i%len(s.Lengths)])
}

// longest is the instruction set with sites as long as the longest one.
func (s *Setup) longest() (longest isa.Arch, err error) {
	for i := range max(s.Sites, 1) {
		arch, err := s.archOf(i)
		if err != nil {
			return nil, err
		}
		if longest == nil || arch.Traits().FetchLen > longest.Traits().FetchLen {
			longest = arch
		}
	}
	return longest, nil
}

// layOut places the sites and makes each patcher's patches. Site i is that of patcher
// i modulo their number, or of all.
func (s *Setup) layOut(m *Model) ([][]poke.Patch, error) {
	switch {
	case s.Sites < 1 || s.Sites > MaxSites:
		return nil, fmt.Errorf("%d sites: every interleaving can be explored of 1 to %d", s.Sites, MaxSites)
	case s.patchers() > MaxPatchers:
		return nil, fmt.Errorf("%d patchers: want 1 to %d", s.patchers(), MaxPatchers)
	case s.patchers() > s.Sites && !s.Contend:
		return nil, fmt.Errorf("%d patchers for %d sites: each wants one", s.patchers(), s.Sites)
	}
	first, err := s.firstRecord()
	if err != nil {
		return nil, err
	}
	patches := make([][]poke.Patch, s.patchers())
	for i := range s.Sites {
		arch, err := s.archOf(i)
		if err != nil {
			return nil, err
		}
		site, err := arch.Site(first+records.Addr(siteStep*i), s.Protocol.Layout)
		if err != nil {
			return nil, err
		}
		m.Code.Len = max(m.Code.Len, int(site.Len))
		m.Code.Sites = append(m.Code.Sites, site.Addr)
		if len(s.Lengths) > 0 {
			m.Code.Lens = append(m.Code.Lens, site.Len)
		}
		for owner := range patches {
			if !s.Contend && owner != i%len(patches) {
				continue
			}
			p, err := s.patch(m, arch, site, owner)
			if err != nil {
				return nil, err
			}
			if p.Site = int32(i); len(m.Initial) == i {
				m.Initial, m.Literals = append(m.Initial, p.Old), append(m.Literals, p.OldOps)
			}
			patches[owner] = append(patches[owner], p)
		}
	}
	if s.Descending {
		for _, own := range patches {
			slices.Reverse(own)
		}
	}
	return patches, nil
}

// patch is the change of one site: from no tracer to the owner's ops, or from that to another one
// of the owner's.
func (s *Setup) patch(m *Model, arch isa.Arch, site isa.Site, owner int) (poke.Patch, error) {
	calls := func(i int) (isa.Text, uint64, error) {
		ops, entry := s.tracer(m, i)
		target := entry
		if s.Contend && m.Code.Literals() { // else all would write the same: literals tell tracers apart
			target += records.Addr(entryStep * i)
		}
		if site.Len == 2 { // a jump of two bytes goes to a label nearby
			target = site.Addr + siteStep/2
		}
		text, _, err := arch.Enabled(site, isa.Destination{Target: target, Entry: entry})
		return text, ops, err
	}
	p := poke.Patch{
		Addr: site.Addr, Len: site.Len, Old: arch.Disabled(site), OldOps: nopOps, Contended: s.Contend,
	}
	var err error
	if p.New, p.NewOps, err = calls(owner); err != nil || !s.Switch {
		return p, err
	}
	m.Attached = append(m.Attached, p.NewOps)
	p.Old, p.OldOps = p.New, p.NewOps
	p.New, p.NewOps, err = calls(owner + s.patchers())
	return p, err
}

// compile is the plan of one update, with the defect in it; back: of the same patches the
// other way round.
func (s *Setup) compile(shape poke.Shape, patches []poke.Patch, back bool) (plan []poke.Step, err error) {
	b := s.Buffer
	if s.Mutation.Overfull {
		b = sched.Dynamic
	}
	at := func(i int) records.Addr { return patches[i].Addr }
	ranges := func(yield func(poke.Range) bool) {
		for b := range sched.CutFor(s.Protocol.Batching, len(patches), at, b, s.Mutation.Filling == poke.AsQueued) {
			if !yield(b.Range) {
				return
			}
		}
	}
	emit := s.Mutation.Through(func(st poke.Step) { plan = append(plan, st) })
	shape.Patches = len(patches) // of one patcher among several
	shape.Entry = func(i int) (int, bool) {
		text := patches[i].New
		if back {
			text = patches[i].Old
		}
		return int(patches[i].Len), text.Slice(0, shape.Traits.BreakpointLen) == s.Arch.Breakpoint()
	}
	err = s.Protocol.Compile(shape, ranges, emit)
	if _, ok := errors.AsType[*poke.ImpossibleError](err); ok {
		// That is for the search to find out, with the way there.
		s.Protocol.Unfold(shape, ranges, emit)
		err = nil
	}
	return plan, err
}
