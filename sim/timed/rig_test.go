// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"flag"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
)

var long = flag.Bool("long", false, "run slow tests")

// plainCosts are round numbers that add up to times which are easy to tell apart.
func plainCosts() calibration.Costs {
	return calibration.Costs{
		RoundSetup: 500, Send: 50, Delivery: 1000, Jitter: 200, IdleWake: 2000, Handler: 800, Answer: 100, StopWake: 5000,
		Verify: 30, Publish: 40, Store: 600, StoreLiteral: 400, Fence: 50,
		TrapEntry: 200, TrapExit: 200, Comparison: 5, Reference: 10, LineTransfer: 100,
		UserEntry: 100, UserExit: 100, CatchUp: 100, MaskedStretch: 10_000, FetchLag: 2000, GracePeriod: 1e6,
		Switch: 1500, TickInterval: 4e6, Away: 1e6, Migration: 5000,
		Calls: 1e6, Skew: 1, Tracer: 100, Entries: 1000, KernelStretch: 2000,
	}
}

// Where things lie on a rig.
const (
	rigEntry  records.Addr = 0xffff_ffff_80ff_0000
	rigSite   records.Addr = 0xffff_ffff_8100_0004
	rigStep                = 64
	rigNop    uint64       = 0xffff_8000_8234_5678
	rigTracer uint64       = 0xffff_ffff_c0a0_1040
)

// rig is a machine with sites that a protocol enables and disables all together.
type rig struct {
	*Machine
	t        testing.TB
	protocol *poke.Protocol
	mutation poke.Mutation
	shape    poke.Shape
	slots    int
	ops      uint64
	enable   []poke.Patch
}

// rigged is what a rig is built from: Config with the sites, the protocol and its
// defect by name.
type rigged struct {
	Config
	arch, protocol, mutation, roles string
	plan                            *poke.Protocol // in place of protocol
	sites                           int
}

// plain is a rig with everything at its default.
func plain(arch, protocol string, sites int, roles string, k calibration.Costs) rigged {
	return rigged{
		Config: Config{Costs: &k, Seed: 1, Slots: 256, OutOfTurn: UsuallyOutOfTurn},
		arch:   arch, protocol: protocol, sites: sites, roles: roles,
	}
}

func newRig(t testing.TB, c rigged) *rig {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	arch, err := cpus.ParseArch(c.arch)
	must(err)
	r := &rig{t: t, protocol: c.plan, slots: c.Slots}
	traits := arch.Traits()
	if r.protocol == nil {
		r.protocol = poke.Named(c.protocol, traits)
	}
	code := &cpus.Code{Arch: arch, Traits: traits, Layout: r.protocol.Layout, Entry: rigEntry}
	for i := range c.sites {
		site, err := arch.Site(rigSite+records.Addr(rigStep*i), code.Layout)
		must(err)
		text, _, err := arch.Enabled(site, isa.Destination{Target: rigEntry, Entry: rigEntry})
		must(err)
		code.Sites, code.Len = append(code.Sites, site.Addr), int(site.Len)
		r.enable = append(r.enable, poke.Patch{
			Site: int32(i), Addr: site.Addr, Old: arch.Disabled(site), New: text, OldOps: rigNop,
		})
	}
	r.shape = poke.Shape{Traits: traits, Len: code.Len, Patches: c.sites, Detach: true}
	if r.ops = uint64(rigEntry); r.shape.Literals() {
		r.ops = rigTracer
	}
	for i := range r.enable {
		r.enable[i].NewOps = r.ops
	}
	if c.mutation != "" {
		r.mutation, err = r.protocol.Mutation(c.mutation, r.shape)
		must(err)
	}
	path, err := r.protocol.Path(r.shape)
	must(err)
	code.Path = r.mutation.OnPath(path)
	c.Code, c.NopOps, c.Filling = code, rigNop, r.mutation.Filling
	c.Initial = func(i int) isa.Text { return r.enable[i].Old }
	c.Roles, err = cpus.ParseRoles(c.roles)
	must(err)
	if r.protocol.Batching != poke.Buffered {
		c.Slots = 0
	}
	r.Machine, err = New(c.Config)
	must(err)
	must(r.AddOps(r.ops))
	return r
}

// update enables or disables all sites.
func (r *rig) update(enable bool) Outcome {
	r.t.Helper()
	out, err := r.try(enable)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// try is update where that may fail.
func (r *rig) try(enable bool) (Outcome, error) {
	part, err := r.part(enable)
	if err != nil {
		return Outcome{}, err
	}
	return r.Update(r.t.Context(), part)
}

// part is an update of all sites.
func (r *rig) part(enable bool) (Part, error) {
	patches := append([]poke.Patch(nil), r.enable...)
	part := Part{Update: &poke.Update{Patches: patches, Settles: r.protocol.Settles(r.shape)}}
	if enable {
		r.SetOps(r.ops, cpus.CalledTracer)
	} else {
		part.Frees = r.ops
		for i := range patches {
			p := &patches[i]
			p.Old, p.New, p.OldOps, p.NewOps = p.New, p.Old, p.NewOps, p.OldOps
		}
	}
	part.Shape = r.shape
	part.Shape.Detach = !enable
	buffer := sched.Buffer{Slots: r.slots}
	if r.mutation.Overfull {
		buffer = sched.Dynamic
	}
	ranges := func(yield func(poke.Range) bool) {
		at := func(i int) records.Addr { return patches[i].Addr }
		for b := range sched.CutFor(r.protocol.Batching, len(patches), at, buffer, r.mutation.Filling == poke.AsQueued) {
			if !yield(b.Range) {
				return
			}
		}
	}
	emit := func(st poke.Step) { part.Plan = append(part.Plan, st) }
	return part, r.protocol.Compile(part.Shape, ranges, r.mutation.Through(emit))
}

// toggle enables and disables all sites.
func (r *rig) toggle() [2]Outcome { return [2]Outcome{r.update(true), r.update(false)} }

// whole says what was violated, if anything was.
func (r *rig) whole() {
	r.t.Helper()
	_, first := r.Violations()
	for _, v := range first {
		r.t.Error(v)
	}
}

// found is how often properties were violated.
func (r *rig) found() map[cpus.Property]int {
	_, first := r.Violations()
	found := map[cpus.Property]int{}
	for _, v := range first {
		found[v.Property]++
	}
	return found
}

// parsed is a protocol from the text of a plan file.
func parsed(t testing.TB, steps string) *poke.Protocol {
	t.Helper()
	p, err := poke.ParseProtocol("test.plan", []byte("name: test\nbatching: whole\n\nevery batch:\n"+steps))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sum is what all CPUs did together.
func (o *Outcome) sum() (sum cpus.Tally) {
	for _, t := range o.Tallies {
		sum = sum.Add(t)
	}
	return sum
}
