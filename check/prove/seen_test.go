// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
)

// seen are the attributes that can be seen of a state of the explorer's machine: all but
// which part a site has in the update, how far a step has got with it, whether it counts
// as enabled, and the place in the program.
var seen = []attr{opsStates, published, reference, text, literal, settled, entry, waiting, does, asked, stand, home,
	space, window}

// eyes see the explorer's states as a certificate's machine has them.
type eyes struct {
	*rules
	model *explore.Model
	texts []map[isa.Text]number // by site: numbers of what it can hold
}

// newEyes finds what stores make of each site: the view's site has the same stores, with
// its own bytes.
func newEyes(r *rules, model *explore.Model) *eyes {
	e := &eyes{rules: r, model: model}
	for s := range r.sites {
		here := &poke.Patcher{Code: model.Code, Patches: []poke.Patch{e.patch(s)}, Plan: r.program.plans.own}
		view := &poke.Patcher{Code: r.code, Patches: r.patches, Plan: r.program.plans.own}
		known := map[isa.Text]number{model.Initial[s]: 0}
		for again := true; again; {
			again = false
			for t, x := range known {
				for _, id := range r.stores {
					_, off, n, bytes, code := here.StoreAt(id)
					to := t.Splice(off, n, bytes)
					if _, ok := known[to]; !ok && code {
						_, off, n, bytes, _ = view.StoreAt(id)
						known[to], again = r.machine.texts.index(r.machine.texts.list[x].Splice(off, n, bytes)), true
					}
				}
			}
		}
		e.texts = append(e.texts, known)
	}
	return e
}

// patch is that of a site.
func (e *eyes) patch(site int) poke.Patch {
	list := e.model.Programs[0].Patches
	return list[slices.IndexFunc(list, func(p poke.Patch) bool { return int(p.Site) == site })]
}

// see is a state of the explorer's machine, but for what cannot be seen.
func (e *eyes) see(is *explore.Moment) (w whole) {
	w = whole{}
	p, sits, sh := &is.Patchers[0], is.Sits(0), is.Shared
	e.seePatcher(&w, is, p)
	for s := range e.sites {
		v := &w.site[s]
		v[text], v[literal] = e.texts[s][sh.Peek(s)], e.machine.literals.index(sh.Literal(s))
		versions, now := sh.Window(s, 0, nil)
		switch {
		case now.Seq() > versions[0].Seq:
			v[settled] = settledToCome
		case now.Seq() > 0:
			v[settled] = settledNow
		}
		v[entry], v[waiting] = e.entryOf(is, s), e.waits.index(e.waiting(p, s))
	}
	for c := range e.cpus {
		e.seeCPU(&w, is, c)
		if sits && e.home() == c {
			w.cpu[c][home] = 1
		}
	}
	return w
}

// home is the patcher's CPU: the first one that may house it.
func (e *eyes) home() int { return slices.IndexFunc(e.model.Roles, cpus.Role.RunsPatcher) }

// seePatcher is the patcher's part. A release that waits in the store buffer counts as
// made, which lets more go wrong: in a certificate it never waits.
func (e *eyes) seePatcher(w *whole, is *explore.Moment, p *poke.Patcher) {
	released := slices.ContainsFunc(p.Progress(nil).Buffered, func(id poke.StoreID) bool {
		return p.Plan[id.At].Op == poke.Release
	})
	w.patcher[opsStates] = number(slices.IndexFunc(e.ops.list, func(states cpus.OpsStates) bool {
		to := is.CallOps(e.site().NewOps)
		if released {
			to = cpus.CalledFreed
		}
		return is.CallOps(e.site().OldOps) == e.table.Call(states, e.site().OldOps) &&
			to == e.table.Call(states, e.site().NewOps)
	}))
	if findable(is, e.model) {
		w.patcher[published] = 1
	}
	refs := is.References(0)
	for c := range e.cpus {
		if held := e.code.Path.Holds(is.CPUs[c].Phase); held && (e.refs == int3.SharedRef || e.refs == int3.PerCPU && c == 0) {
			refs--
		}
	}
	w.patcher[reference] = number(refs)
}

// findable tells whether handlers find a batch.
func findable(is *explore.Moment, m *explore.Model) bool {
	_, found := is.Find(m.Code.Sites[0], &cpus.Probe{})
	return found != cpus.TornDown
}

func (e *eyes) entryOf(is *explore.Moment, site int) number {
	if !findable(is, e.model) {
		return noEntry
	}
	act, found := is.Find(e.model.Code.Sites[site], &cpus.Probe{})
	switch patch := e.patch(site); {
	case found != cpus.Hit:
		return noEntry
	case act == e.model.Code.Act(site, patch.New):
		return actsNew
	case act == e.model.Code.Act(site, patch.Old):
		return actsOld
	}
	panic(fmt.Sprintf("an entry of site %d that is neither old nor new: %v", site, act))
}

// waiting are a site's stores that are not visible yet.
func (e *eyes) waiting(p *poke.Patcher, site int) (w stores) {
	own := &poke.Patcher{Code: e.model.Code, Patches: []poke.Patch{e.patch(site)}, Plan: e.program.plans.own}
	for _, id := range p.Progress(nil).Buffered {
		if p.Plan[id.At].Op != poke.Write || int(p.Patches[id.Patch].Site) != site {
			continue
		}
		is := storeOf(p, id)
		n := 1 + slices.IndexFunc(e.machine.stores, func(s poke.StoreID) bool { return storeOf(own, s) == is })
		if n == 0 {
			panic("a store that the certificate does not have")
		}
		if is.code {
			w.text = number(n)
		} else {
			w.literal = number(n)
		}
	}
	return w
}

// seeCPU is a CPU's part.
func (e *eyes) seeCPU(w *whole, is *explore.Moment, c int) {
	cpu, v := is.CPUs[c], &w.cpu[c]
	s := int(cpu.Site)
	switch _, now := is.Window(s, 0, nil); {
	case cpu.Promise.Seq() == 0:
	case cpu.Promise == now:
		cpu.Promise = promisedNow
	default:
		cpu.Promise = promisedOnce
	}
	if x, ok := e.texts[s][cpu.Text]; ok {
		cpu.Text = e.machine.texts.list[x]
	}
	for t, x := range e.texts[s] {
		if cpu.Act == e.model.Code.Act(s, t) {
			cpu.Act = e.code.Act(0, e.machine.texts.list[x])
			break
		}
	}
	cpu.ID, cpu.Taken.Ticket, cpu.Quiesce = 0, 0, 0
	v[does] = e.machine.cpu(cpu)
	if e.about(v[does]) {
		w.at[c] = number(s)
	}
	cause, waits, owed := is.Asked(c)
	switch {
	case waits:
		v[asked] = askedFor[cause]
	case owed > 0:
		v[asked] = owesAnswer
	}
	if is.Stopping() && !(is.Sits(0) && e.home() == c) {
		v[stand] = toStand
		if !is.Resumed(c) {
			v[stand] = stands
		}
	}
	v[space] = number(is.Spaces[c])
	for s := range e.sites {
		list, _ := is.Window(s, is.CPUs[c].Synced, nil)
		x := e.onlyText(e.texts[s][list[len(list)-1].Text])
		for _, version := range slices.Backward(list[:len(list)-1]) {
			x = e.pushed(x, e.texts[s][version.Text])
		}
		w.windows[c][s] = x
	}
}
