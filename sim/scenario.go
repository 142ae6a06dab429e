// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sim/timed"
)

// Scenario is a tracer that is switched with everything that a kernel sends for it,
// besides the rounds of the records.
type Scenario struct {
	Name   ledger.Scenario
	Kernel *ledger.Kernel
	Off    ledger.Switch // causes to leave out
}

// Entries are sent besides the rounds of a table's records; nil without a scenario.
func (s *Scenario) Entries(t *records.Table, enable bool) ([]ledger.Entry, error) {
	if s == nil {
		return nil, nil
	}
	entries, err := s.Kernel.Ledger(s.Name, enable, t)
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	return s.Off.Leave(entries), nil
}

// pick leaves the records that the scenario changes in the queue.
func (j *Job) pick() error {
	if j.Scenario == nil {
		return nil
	}
	which, all, err := j.Scenario.Kernel.Picks(j.Scenario.Name, j.Table)
	if err != nil || all {
		return err
	}
	picked := make(map[records.Addr]bool, len(which))
	for _, at := range which {
		picked[at] = true
	}
	j.queue = slices.DeleteFunc(j.queue, func(rec int) bool { return !picked[j.Table.Addr(rec)] })
	return nil
}

// aux is sites of the kernel's own that no record names: branches of static keys, calls that change
// with them, and those in the tracer's entry. No traced call gets to them, so that their cost is
// that of their rounds and stores.
type aux struct {
	first int32 // number of the first one
	patch []poke.Patch
}

// How far below the common entry they lie, and apart: near enough to reach it.
const (
	auxBelow = 0x10000
	auxApart = 16
)

// addAux lays out so many more of them behind the records' sites; none if n is
// below 0.
func (s *sites) addAux(j *Job, n int) error {
	if len(s.aux.patch) == 0 {
		s.aux.first = int32(len(s.code.Sites))
	}
	aligned := j.at(0) % auxApart // as a record that the kernel accepts
	for range n {
		i := len(s.aux.patch)
		at, err := j.Arch.Site(s.code.Entry-auxBelow+aligned+records.Addr(i*auxApart), j.protocol.Layout)
		if err != nil {
			return fmt.Errorf("lay out the kernel's own sites: %w", err)
		}
		text, _, err := j.Arch.Enabled(at, isa.Destination{Target: target(at, s.code.Entry), Entry: s.code.Entry})
		if err != nil {
			return fmt.Errorf("lay out the kernel's own sites: %w", err)
		}
		s.code.Sites = append(s.code.Sites, at.Addr)
		s.aux.patch = append(s.aux.patch, poke.Patch{
			Site: s.aux.first + int32(i), Addr: at.Addr,
			Old: j.Arch.Disabled(at), New: text, OldOps: nopOps, NewOps: nopOps,
		})
	}
	return nil
}

// initial is a site's text before anything has happened.
func (s *sites) initial(site int) isa.Text {
	if i := site - int(s.aux.first); len(s.aux.patch) > 0 && i >= 0 {
		return s.aux.patch[i].Old
	}
	return s.enable[site].Old
}

// entryPart is the updates of one entry: so many pokes one after the other, each by
// the protocol that changes single instructions there if that sends so many rounds,
// otherwise a store and then the rounds; or rounds alone where nothing is fetched
// afresh. Every other poke goes back, so that sites may be used again.
func (j *Job) entryPart(s *sites, e ledger.Entry) timed.Part {
	u := &poke.Update{Shape: j.shape}
	single := poke.Named(poke.Native, j.shape.Traits)
	for i := range e.Pokes {
		r := poke.Range{From: i, To: i + 1}
		if e.Cause.Syncs() {
			p := s.aux.patch[i]
			u.Patches = append(u.Patches, p)
			s.aux.patch[i].Old, s.aux.patch[i].New = p.New, p.Old
			if plan, rounds := onePoke(single, j.shape, r); rounds == e.RoundsPerPoke {
				u.Plan = append(u.Plan, plan...)
				continue
			}
			u.Plan = append(u.Plan, poke.Step{Op: poke.Write, Part: poke.Word, From: int32(r.From), To: int32(r.To)},
				poke.Step{Op: poke.Fence})
		}
		for n := range e.RoundsPerPoke {
			if e.Cause == cpus.Stop {
				u.Plan = append(u.Plan, poke.Step{Op: poke.StopMachine}, poke.Step{Op: poke.Resume})
				continue
			}
			u.Plan = append(u.Plan, poke.Step{Op: poke.Sync, Round: uint8(n + 1)})
		}
	}
	return timed.Part{Update: u, Cause: e.Cause}
}

// onePoke is the plan of one patch, and how many rounds it sends.
func onePoke(p *poke.Protocol, s poke.Shape, r poke.Range) (plan []poke.Step, rounds int) {
	var c poke.Count
	s.Patches = 1
	p.Unfold(s, func(yield func(poke.Range) bool) { yield(r) }, func(st poke.Step) {
		if st.Op != poke.Verify { // these updates do not compare all sites first
			plan = append(plan, st)
			c.Add(st)
		}
	})
	return plan, c.Rounds
}

// parts are all updates of one switch: those before the records, the records', and
// those after.
func (t *Timed) parts(u *poke.Update, enable bool) ([]timed.Part, error) {
	entries, err := t.job.Scenario.Entries(t.job.Table, enable)
	if err != nil {
		return nil, err
	}
	before, after := ledger.Split(entries)
	part := func(e ledger.Entry) timed.Part { return t.job.entryPart(t.sites, e) }
	parts := spelling.Each(before, part)
	records := timed.Part{Update: u, Cause: cpus.Sync}
	if !enable && t.job.shape.Frees() { // no site is for the tracer any more
		records.Frees = t.ops
	}
	return slices.Concat(parts, []timed.Part{records}, spelling.Each(after, part)), nil
}

// addOtherRounds adds what a scenario sends to a row that counts the records' rounds.
func (r *RunRow) addOtherRounds(j *Job, enable bool) error {
	entries, err := j.Scenario.Entries(j.Table, enable)
	if err != nil {
		return err
	}
	fences := r.fences()
	for _, e := range entries {
		n := e.Rounds()
		r.OtherRounds[e.Cause] += n
		r.Rounds += n
		r.IPIs += n * (j.Online() - 1)
		switch {
		case j.Online() == 1:
		case ledger.Firmware(e.Row) == fences:
			r.IPIsPerCPU += n
		default:
			r.OtherIPIsPerCPU += n
		}
	}
	return nil
}
