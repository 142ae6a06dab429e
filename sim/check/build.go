package check

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

// Setup is a protocol to be checked: one patcher attaches an ops, enables all
// sites, disables them again, and releases the ops.
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
	Lookup     int3.Kind
	Refs       int3.Refs
	Early      bool // traced code runs on the way in from user space
}

// Where things lie. The two ops differ in both halves, so that half of one and
// half of the other is neither.
const (
	entryAt   records.Addr = 0xffff_ffff_80ff_0000 // ftrace_caller
	firstSite records.Addr = 0xffff_ffff_8100_0004
	siteStep               = 64
	nopOps    uint64       = 0xffff_8000_8234_5678 // ftrace_nop_ops
	tracerOps uint64       = 0xffff_ffff_c0a0_1040 // the ops of the one tracer
)

// Model lays the machine out and compiles the program. Errors say what is wrong
// with the request.
func (s *Setup) Model() (*Model, error) {
	m := &Model{
		Code: &cpus.Code{
			Arch: s.Arch, Traits: s.Arch.Traits(), Layout: s.Protocol.Layout, Fetch: s.Fetch,
			Entry: entryAt, NoRecheck: s.Mutation.NoRecheck, Stretch: 1, Early: s.Early,
		},
		Roles: s.Roles, NopOps: nopOps, Lookup: s.Lookup, Refs: s.Refs, AsQueued: s.Mutation.Unsorted, Preempt: s.Preempt, SameSites: true,
	}
	if s.Protocol.Batching == poke.Buffered {
		m.Slots = s.Buffer.Slots
	}
	patches, err := s.layOut(m)
	if err != nil {
		return nil, err
	}
	shape := poke.Shape{Traits: m.Code.Traits, Len: m.Code.Len, Patches: s.Sites}
	m.Code.Defer = s.Protocol.Lazy(shape)
	enable, err := s.compile(shape, patches)
	if err != nil {
		return nil, err
	}
	shape.Detach = true
	disable, err := s.compile(shape, patches)
	if err != nil {
		return nil, err
	}
	m.Programs = []Program{{patches, poke.Toggle(enable, disable, s.Sites, s.Protocol.Settles(shape))}}
	return m, m.Prepare()
}

// Shape is the shape of the updates, for those who ask what the protocol offers.
func (s *Setup) Shape() (poke.Shape, error) {
	site, err := s.Arch.Site(firstSite, s.Protocol.Layout)
	return poke.Shape{Traits: s.Arch.Traits(), Len: int(site.Len), Patches: s.Sites, Detach: true}, err
}

// layOut places the sites, disabled, and makes the patches that enable them.
func (s *Setup) layOut(m *Model) ([]poke.Patch, error) {
	if s.Sites < 1 || s.Sites > MaxSites {
		return nil, fmt.Errorf("%d sites: every interleaving can be explored of 1 to %d", s.Sites, MaxSites)
	}
	var patches []poke.Patch
	for i := range s.Sites {
		site, err := s.Arch.Site(firstSite+records.Addr(siteStep*i), s.Protocol.Layout)
		if err != nil {
			return nil, err
		}
		on, _, err := s.Arch.Enabled(site, isa.Destination{Target: entryAt, Entry: entryAt})
		if err != nil {
			return nil, err
		}
		off := s.Arch.Disabled(site)
		m.Code.Len = int(site.Len)
		m.Code.Sites = append(m.Code.Sites, site.Addr)
		m.Initial, m.Literals = append(m.Initial, off), append(m.Literals, nopOps)
		patches = append(patches, poke.Patch{Site: int32(i), Addr: site.Addr, Old: off, New: on, OldOps: nopOps, NewOps: uint64(entryAt)})
	}
	if m.Code.Literals() {
		for i := range patches {
			patches[i].NewOps = tracerOps
		}
	}
	if s.Descending {
		slices.Reverse(patches)
	}
	return patches, nil
}

// compile is the plan of one update, with the defect in it.
func (s *Setup) compile(shape poke.Shape, patches []poke.Patch) (plan []poke.Step, err error) {
	b := s.Buffer
	if s.Mutation.Overfull {
		b = sched.Dynamic
	}
	at := func(i int) records.Addr { return patches[i].Addr }
	ranges := func(yield func(poke.Range) bool) {
		for b := range sched.CutFor(s.Protocol.Batching, len(patches), at, b, s.Mutation.Unsorted) {
			if !yield(b.Range) {
				return
			}
		}
	}
	emit := s.Mutation.Through(func(st poke.Step) { plan = append(plan, st) })
	err = s.Protocol.Compile(shape, ranges, emit)
	var hangs *poke.ImpossibleError
	if errors.As(err, &hangs) {
		// That is for the search to find out, with the way there.
		s.Protocol.Unfold(shape, ranges, emit)
		err = nil
	}
	return plan, err
}
