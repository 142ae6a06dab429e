// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
)

// Job is what follows from a Config before anything runs.
type Job struct {
	Config
	protocol *poke.Protocol
	mutation poke.Mutation
	shape    poke.Shape
	// queue is the records to be patched, in the order in which they are
	// queued. Records that the kernel would refuse are left out.
	queue   []int
	skipped int
	torn    int // sites that no store can replace at once
	// sized is the instruction set by the length of a record's site, nil where all
	// have the usual one.
	sized map[int]isa.Arch
	// unmatched are the filter's patterns that match no record.
	unmatched []string
	found     string // a warning: the table's sites have another layout than the protocol's usual one
}

// NewJob checks a Config and works out what it asks for. Errors say in one line
// what is wrong with the request.
func NewJob(c Config) (*Job, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	j := &Job{Config: c}
	traits := c.Arch.Traits()
	if j.protocol = c.Definition(); j.protocol == nil {
		return nil, fmt.Errorf("protocol %q: not one of %v", c.Protocol, poke.Names())
	}
	if c.Plan != nil {
		j.Protocol = c.Plan.Name
	}
	if t := c.Table.Arch(); t != "" && t != traits.Name {
		return nil, fmt.Errorf("records %s are of %s, not of %s", c.Table.Name(), t, traits.Name)
	}
	if err := j.settleLayout(); err != nil {
		return nil, err
	}
	if err := j.settleLengths(); err != nil {
		return nil, err
	}
	j.shape = poke.Shape{Traits: j.Arch.Traits()}
	for _, rec := range c.Filter.Match(c.Table) {
		site, err := j.archOf(rec).Site(c.Table.Addr(rec), j.protocol.Layout)
		if err != nil {
			if _, ok := errors.AsType[*isa.MisalignedError](err); !ok {
				return nil, err
			}
			j.skipped++
			continue
		}
		j.shape.Len = max(j.shape.Len, int(site.Len))
		if !c.Arch.AtomicStore(site.Addr, int(site.Len)) {
			j.torn++
		}
		j.queue = append(j.queue, rec)
	}
	if err := j.pick(); err != nil {
		return nil, err
	}
	if len(j.queue) == 0 || c.Table.HasLengths() { // as long as the longest that could be
		if site, err := j.Arch.Site(4, j.protocol.Layout); err == nil {
			j.shape.Len = int(site.Len)
		}
	}
	j.unmatched = c.Filter.Unmatched(c.Table)
	if n := len(j.unmatched); n > 0 && len(j.queue)+j.skipped == 0 {
		return nil, fmt.Errorf("%w: filter %q matches no record", j.nothing(), j.unmatched[0])
	}
	j.shape.Patches = len(j.queue)
	c.Order.Arrange(j.queue, c.Table, c.Seed)
	if c.Mutation != "" {
		var err error
		shape := j.shape
		shape.Detach = true
		if j.mutation, err = j.protocol.Mutation(c.Mutation, shape); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// Warnings say what a person should know before the protocol runs on these records.
func (j *Job) Warnings() (out []string) {
	arch := j.shape.Traits.Name
	if j.found != "" {
		out = append(out, j.found)
	}
	if n := len(j.unmatched); n == 1 {
		out = append(out, fmt.Sprintf("records %s: filter %q matches no record", j.Table.Name(), j.unmatched[0]))
	} else if n > 1 {
		names := strings.Join(j.unmatched[:min(n, 5)], ", ")
		if n > 5 {
			names += ", ..."
		}
		out = append(out, fmt.Sprintf("records %s: %d filters match no record: %s", j.Table.Name(), n, names))
	}
	if j.skipped > 0 {
		out = append(out, fmt.Sprintf("records %s: %s refuses %d of %d for their alignment; they are left out",
			j.Table.Name(), arch, j.skipped, j.skipped+len(j.queue)))
	}
	if j.protocol.OneStore && j.torn > 0 {
		out = append(
			out,
			fmt.Sprintf(
				"protocol %s relies on one store replacing a whole site, and on %s that is not so for %d of %d sites: CPUs may "+
					"fetch mixtures",
				j.Protocol,
				arch,
				j.torn,
				len(j.queue),
			),
		)
	}
	return out
}

// nothing is why there is nothing to execute: counting may begin with no record,
// a machine may not.
func (j *Job) nothing() error {
	if j.Scenario != nil && j.skipped == 0 && len(j.unmatched) == 0 {
		return fmt.Errorf(
			"scenario %s changes no record that is chosen: engines change records; plan and kernel predict tell what it sends",
			j.Scenario.Name,
		)
	}
	return fmt.Errorf(
		"records %s: nothing to patch: the filter leaves no record that %s can patch (%d refused for their alignment)",
		j.Table.Name(),
		j.shape.Traits.Name,
		j.skipped,
	)
}

// slots is what the vector that patches are published in has room for, 0 for as many as there are.
func (j *Job) slots() int {
	if j.protocol.Batching != poke.Buffered {
		return 0
	}
	return j.Buffer.Slots
}

// at is the address of the i-th record of the queue.
func (j *Job) at(i int) records.Addr { return j.Table.Addr(j.queue[i]) }

// batches cuts n patches whose addresses at gives.
func (j *Job) batches(n int, at func(i int) records.Addr) iter.Seq[sched.Batch] {
	b := j.Buffer
	if j.mutation.Overfull {
		b = sched.Dynamic
	}
	return sched.CutFor(j.protocol.Batching, n, at, b, j.mutation.Filling == poke.AsQueued)
}

// compile emits the plan of an update of batches, with the defect in it.
// entry, where sites are not all alike, tells of each patch what poke.Shape wants.
func (j *Job) compile(patches int, detach bool, batches iter.Seq[sched.Batch], entry func(int) (int, bool),
	emit poke.Emit) error {
	s := j.shape
	s.Patches, s.Detach, s.Entry = patches, detach, entry
	ranges := func(yield func(poke.Range) bool) {
		for b := range batches {
			if !yield(b.Range) {
				return
			}
		}
	}
	return j.protocol.Compile(s, ranges, j.mutation.Through(emit))
}

// check finds out whether the protocol can work at all, without a plan.
func (j *Job) check() error {
	return j.compile(0, false, func(func(sched.Batch) bool) {}, nil, func(poke.Step) {})
}

// StatedPath is what CPUs do, where the protocol's file says so.
func (j *Job) StatedPath() string {
	path, err := j.protocol.Path(j.shape)
	if err != nil || !j.protocol.StatesPath() {
		return ""
	}
	return j.mutation.OnPath(path).String()
}

// Plan is the steps of the update that enables everything.
func (j *Job) Plan() ([]poke.Step, error) {
	var plan []poke.Step
	err := j.compile(len(j.queue), false, j.batches(len(j.queue), j.at), j.entries(),
		func(s poke.Step) { plan = append(plan, s) })
	return plan, err
}

// lookupBatch is the input of an index for a batch of the queue. Buffers are reused: it is valid
// until the next call.
func (j *Job) lookupBatch(r poke.Range, buf *int3.Batch) int3.Batch {
	slots := j.queue[r.From:r.To]
	place := func(rec int) (p int3.Place) {
		p.Addr = j.Table.Addr(rec)
		if j.Lookup == int3.Groups {
			g := j.Table.Groups()
			p.Group = int32(sort.Search(len(g), func(i int) bool { return g[i].Last > rec }))
		}
		return p
	}
	compare := func(a, b int) int { return j.Lookup.Compare(place(a), place(b)) }
	if j.mutation.Filling != poke.AsQueued && !slices.IsSortedFunc(slots, compare) {
		slots = slices.Clone(slots)
		slices.SortStableFunc(slots, compare)
	}
	buf.Addrs, buf.Starts = buf.Addrs[:0], buf.Starts[:0]
	for i, rec := range slots {
		at := place(rec)
		buf.Addrs = append(buf.Addrs, at.Addr)
		if i > 0 && at.Group != place(slots[i-1]).Group {
			buf.Starts = append(buf.Starts, i)
		}
	}
	return *buf
}

// Where things lie that no table records. The two ops differ in both halves, so
// that half of one and half of the other is neither.
const (
	entryBelow = 0x1000                // ftrace_caller, below the first record of the core kernel
	nopOps     = 0xffff_8000_8234_5678 // ftrace_nop_ops
	tracerOps  = 0xffff_ffff_c0a0_1040 // the ops of the one tracer
)

// entry is where ftrace_caller lies.
func (j *Job) entry() records.Addr {
	low := ^records.Addr(0)
	core := false
	for i := range j.Table.Len() {
		switch inCore := j.Table.Module(i) == ""; {
		case inCore && !core:
			low, core = j.Table.Addr(i), true
		case inCore == core:
			low = min(low, j.Table.Addr(i))
		}
	}
	return (low - entryBelow) &^ 0xfff
}

// ops is what an enabled site calls: through its literal, or by itself.
func (j *Job) ops(entry records.Addr) uint64 {
	if j.shape.Literals() {
		return tracerOps
	}
	return uint64(entry)
}

// sites is the machine's text: every record that can be patched, in table
// order, and for each the patch that enables it.
type sites struct {
	code    cpus.Code
	records []int        // record of each site
	site    []int32      // site of each record, -1 for none
	enable  []poke.Patch // by site
	aux     aux
}

// sites lays the text out.
func (j *Job) sites() (*sites, error) {
	if len(j.queue) == 0 {
		return nil, j.nothing()
	}
	s := &sites{site: make([]int32, j.Table.Len())}
	s.code = cpus.Code{
		Arch: j.Arch, Traits: j.shape.Traits, Layout: j.protocol.Layout, Fetch: j.Fetch,
		Len: j.shape.Len, Entry: j.entry(),
	}
	path, err := j.protocol.Path(j.shape)
	if err != nil {
		return nil, err
	}
	s.code.Path = j.mutation.OnPath(path)
	plts := j.plts()
	group := 0
	for rec := range j.Table.Len() {
		for rec >= j.Table.Groups()[group].Last {
			group++
		}
		s.site[rec] = -1
		arch := j.archOf(rec)
		at, err := arch.Site(j.Table.Addr(rec), j.protocol.Layout)
		if err != nil {
			continue // counted in skipped, or outside the filter
		}
		text, _, err := arch.Enabled(at, isa.Destination{Target: target(at, s.code.Entry), Entry: s.code.Entry,
			PLT: plts[j.Table.Module(rec)]})
		if err != nil {
			return nil, fmt.Errorf("record %s: %w", j.Table.Describe(rec), err)
		}
		site := int32(len(s.records))
		s.site[rec] = site
		s.records = append(s.records, rec)
		s.code.Sites = append(s.code.Sites, at.Addr)
		s.enable = append(s.enable, poke.Patch{
			Site: site, Group: int32(group), Addr: at.Addr, Len: at.Len,
			Old: arch.Disabled(at), New: text, OldOps: nopOps, NewOps: j.ops(s.code.Entry),
		})
	}
	if err := j.Table.CheckSites(j.shape.Len); err != nil {
		return nil, err
	}
	return s, nil
}

// plts places a PLT slot for ftrace_caller behind each module's last record, as
// the module loader reserves one (FTRACE_PLT_IDX, arch/arm64/kernel/module.c).
func (j *Job) plts() map[string]records.Addr {
	plts := map[string]records.Addr{}
	for i := range j.Table.Len() {
		if m := j.Table.Module(i); m != "" {
			plts[m] = max(plts[m], (j.Table.Addr(i)+0x100)&^0xf)
		}
	}
	return plts
}

// patch is the change of one record.
func (s *sites) patch(rec int, enable bool) poke.Patch {
	p := s.enable[s.site[rec]]
	if !enable {
		p.Old, p.New = p.New, p.Old
		p.OldOps, p.NewOps = p.NewOps, p.OldOps
	}
	return p
}

// patches are the changes of everything that the job is about.
func (j *Job) patches(s *sites, enable bool) []poke.Patch {
	return spelling.Each(j.queue, func(rec int) poke.Patch { return s.patch(rec, enable) })
}

// update compiles the update of some patches.
func (j *Job) update(patches []poke.Patch, detach bool) (*poke.Update, error) {
	u := &poke.Update{Patches: patches, Shape: j.shape, Settles: j.protocol.Settles(j.shape)}
	u.Shape.Patches, u.Shape.Detach = len(patches), detach
	at := func(i int) records.Addr { return patches[i].Addr }
	var entry func(int) (int, bool)
	if j.Table.HasLengths() {
		entry = func(i int) (int, bool) { return int(patches[i].Len), false }
	}
	u.Shape.Entry = entry
	err := j.compile(len(patches), detach, j.batches(len(patches), at), entry, func(s poke.Step) {
		u.Plan = append(u.Plan, s)
	})
	return u, err
}
