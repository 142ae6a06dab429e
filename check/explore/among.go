// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"errors"
	"math/bits"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// Among is the model restricted to some of its sites. The patcher changes other sites too;
// of what it does there this model keeps the steps that are not about a site: an ops is
// attached because another site comes to call it, and kept because another site still calls
// it. CPUs call the other sites, whose text never changes here. The model is prepared.
//
// Left out are rounds, batches and waits for handlers that are about other sites alone, and
// traps at other sites. Each of them makes CPUs fetch afresh or delays them, so leaving them
// out hides no violation.
func (m *Model) Among(kept ...int) (*Model, error) {
	n, err := m.narrow(kept)
	if err != nil {
		return nil, err
	}
	return n.m, nil
}

// Differs names an update that this model's patcher has and another one's has not; "" where
// there is none. Both models are restricted to the same sites; see Among.
func (m *Model) Differs(o *Model) string {
	p, q := &m.Programs[0], o.Programs[0]
	known := len(q.Plan)
	for _, u := range p.Menu {
		c := u
		c.From, c.To = 0, 0
		if q.offer(c, p.Plan[u.From:u.To]); len(q.Plan) > known {
			return p.title(&u)
		}
	}
	return ""
}

// Publishes is how many entries the largest batch has that a program publishes.
func (m *Model) Publishes() (n int) {
	for _, p := range m.Programs {
		for _, s := range p.Plan {
			if s.Op == poke.Publish {
				n = max(n, int(s.To-s.From))
			}
		}
	}
	return n
}

// narrowing leads from a model of one patcher to that of some of its sites.
type narrowing struct {
	wide, m *Model
	gone    []int // the sites that the wider changes and the other does not

	at    []int   // by step of the wider plan: the step of the other, or the one that comes next there
	same  []bool  // whether it is the step
	patch []int32 // by patch of the wider: that of the other, -1 for none
	batch []uint8 // by batch of the wider, from 1: likewise, 0 for none
}

func (m *Model) narrow(kept []int) (*narrowing, error) {
	if len(m.Programs) != 1 || m.Workload() != Endless {
		return nil, errors.New("sites among others are those of one patcher that goes on for ever")
	}
	n := &narrowing{wide: m}
	o := m.copied()
	o.among, o.Programs = true, []Program{n.program(&m.Programs[0], kept)}
	n.m = o
	if err := o.Prepare(); err != nil {
		return nil, err
	}
	n.batch = make([]uint8, len(m.flat)+1)
	for at, b := range m.batches[0] {
		if b != nil && n.same[at] {
			n.batch[b.number] = uint8(o.batches[0][n.at[at]].number)
		}
	}
	return n, nil
}

// program leaves out of a program what is about other sites than those that are kept.
func (n *narrowing) program(p *Program, kept []int) (out Program) {
	for i := range p.Patches {
		site := int(p.Patches[i].Site)
		k := slices.Index(kept, site)
		if k < 0 && !slices.Contains(n.gone, site) {
			n.gone = append(n.gone, site)
		}
		if k >= 0 && len(out.Patches) < len(kept) { // the first are one for each site
			out.Patches = append(out.Patches, p.Patches[i])
		}
		k = slices.IndexFunc(out.Patches, func(q poke.Patch) bool { return int(q.Site) == site })
		n.patch = append(n.patch, int32(k))
	}
	n.at, n.same = make([]int, len(p.Plan)+1), make([]bool, len(p.Plan)+1)
	out.Menu = poke.Menu{}
	for _, u := range p.Menu {
		steps, at, same := n.update(p.Plan[u.From:u.To])
		c := poke.Choice{Sites: n.sites(u.Sites), Undo: u.Undo, When: n.guard(u.When)}
		from := out.offer(c, steps)
		for k := range at {
			n.at[u.From+k], n.same[u.From+k] = from+at[k], same[k]
		}
	}
	n.at[len(p.Plan)], n.same[len(p.Plan)] = len(out.Plan), true
	return out
}

// offer adds an update to the menu, unless it is there already, and says where its steps
// are.
func (p *Program) offer(c poke.Choice, steps []poke.Step) (from int) {
	for _, d := range p.Menu {
		from = d.From
		same := slices.Equal(p.Plan[d.From:d.To], steps)
		if d.From, d.To = 0, 0; same && d == c {
			return from
		}
	}
	c.From, c.To = len(p.Plan), len(p.Plan)+len(steps)
	p.Plan, p.Menu = append(p.Plan, steps...), append(p.Menu, c)
	return c.From
}

// idle is a step that does nothing: every update ends with it, so that none is over
// before what is left out of its end.
var idle = poke.Step{Op: poke.Verify}

// update leaves out of an update what is about other sites, and the fences behind it: what
// those push out becomes visible at any time by itself. at and same are as in narrowing.
func (n *narrowing) update(plan []poke.Step) (steps []poke.Step, at []int, same []bool) {
	elsewhere := false
	for _, st := range plan {
		is, ok := n.step(st)
		if st.Op != poke.Fence {
			elsewhere = !ok
		}
		at, same = append(at, len(steps)), append(same, !elsewhere)
		if !elsewhere {
			steps = append(steps, is)
		}
	}
	return append(steps, idle), at, same
}

// step is what a step is about the sites that are kept; false where it is about others.
// A tracer's life is about no site.
func (n *narrowing) step(st poke.Step) (poke.Step, bool) {
	if st.From == st.To {
		return st, st != idle
	}
	from, to := n.patchRange(st)
	switch st.Op {
	case poke.Verify, poke.Write, poke.Settle, poke.Publish, poke.Unpublish, poke.WaitHandlers, poke.Clear, poke.Sync:
		if from == to {
			return st, false
		}
	default:
		if from == to {
			from, to = 0, 1
		}
	}
	st.From, st.To = from, to
	return st, true
}

// patchRange are the patches of those that a step is about.
func (n *narrowing) patchRange(st poke.Step) (from, to int32) {
	for i := st.From; i < st.To; i++ {
		if k := n.patch[i]; k >= 0 {
			if from == to {
				from, to = k, k
			}
			from, to = min(from, k), max(to, k+1)
		}
	}
	return from, to
}

// sites are those that are kept of a patcher's sites.
func (n *narrowing) sites(set uint64) (out uint64) {
	for ; set != 0; set &= set - 1 {
		if k := n.patch[bits.TrailingZeros64(set)]; k >= 0 {
			out |= 1 << k
		}
	}
	return out
}

// guard is what is known of the sites that are kept: what one of several holds is for
// others to hold.
func (n *narrowing) guard(g poke.Guard) poke.Guard {
	return poke.Guard{Old: n.sites(g.Old), New: n.sites(g.New)}
}

// enabledElsewhere appends what may happen to a CPU for a site that is not in the model: it
// fetches afresh, or looks for interrupts once more, having been interrupted or called.
func (w *world) enabledElsewhere(list []action, i int) []action {
	c := &w.cpu[i]
	if !c.AtBorder() && c.Phase != cpus.Stopped {
		return list
	}
	list = append(list, action{kind: afresh, who: uint8(i)})
	if c.AtBorder() && c.Polled() && !w.leased(i) {
		list = append(list, action{kind: attend, who: uint8(i)})
	}
	return list
}

// leadsNowhere tells whether the update that a patcher has just chosen, of a site among
// others, leads to an ops that nobody has attached: it is for other sites that the ops is
// there already, and they do not call it yet.
func (w *world) leadsNowhere(i int) bool {
	p := &w.patcher[i]
	u := &p.Menu[w.m.Programs[i].update(p.At)]
	for _, st := range p.Plan[u.From:u.To] {
		if st.Op == poke.Attach {
			return false
		}
	}
	if u.Sites == 0 {
		return false
	}
	if p.HoldsOps() { // its release has yet to be seen
		return true
	}
	switch w.m.table.Call(w.ops, p.Patches[bits.TrailingZeros64(u.Sites)].Ops(u.Undo)) {
	case cpus.CalledTracer, cpus.CalledNobody:
		return false
	}
	return true
}
