// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
)

// project makes o, a world of the narrower model, what w is to the sites that are kept. A
// CPU that is at another site stands between two calls; one that is asked for something
// about other sites is not asked.
func (n *narrowing) project(w, o *world) {
	o.state = w.state
	p := &w.patcher[0]
	elsewhere := !n.same[p.At] && p.At < len(p.Plan) && p.Plan[p.At].Op == poke.Sync // a round about other sites
	o.patcher[0].Resume(n.progress(p))
	if elsewhere {
		o.left[0] = 0
	}
	for i := range n.m.Roles {
		if elsewhere {
			o.box[i] = [MaxPatchers]request{}
		}
		c := &o.cpu[i]
		*c = w.cpu[i]
		n.projectCPU(c, !o.Pending(i, c.Masked > 0 || c.Back == cpus.Stopped), elsewhere)
	}
	n.projectBatch(w, o)
	n.projectSites(w, o)
	o.outdate()
	if o.logged > 0 {
		o.forget()
	}
}

// progress is how far the patcher has got. Behind the last patch of a step that is kept
// comes the next step.
func (n *narrowing) progress(p *poke.Patcher) poke.Progress {
	g := p.Progress(nil)
	at, same := n.at[g.At], n.same[g.At]
	var kept []poke.StoreID
	for _, b := range g.Buffered {
		to := poke.StoreID{At: int32(n.at[b.At]), Patch: n.patch[b.Patch]}
		if !n.same[b.At] {
			continue
		}
		if st := n.m.Programs[0].Plan[to.At]; st.Op != poke.Write {
			to.Patch = st.From
		} else if to.Patch < 0 {
			continue
		}
		kept = append(kept, to)
	}
	g.Buffered = kept
	if g.At = at; !same || p.Between() {
		g.Done, g.Stage = 0, 0
		return g
	}
	st := p.Plan[p.At]
	if st.Op != poke.Verify && st.Op != poke.Write && st.Op != poke.Settle {
		return g
	}
	done := int32(0)
	for i := st.From; i < st.From+g.Done; i++ {
		if n.patch[i] >= 0 {
			done++
		}
	}
	if n.patch[st.From+g.Done] < 0 {
		g.Stage = 0
	}
	if g.Done = done; done == n.m.Programs[0].Plan[at].To-n.m.Programs[0].Plan[at].From {
		g.At, g.Done, g.Stage = at+1, 0, 0
	}
	return g
}

// projectCPU: an interrupt in which there is nothing to take any more is over, and the
// CPU may look again.
func (n *narrowing) projectCPU(c *cpus.CPU, empty, elsewhere bool) {
	asked := c.Phase == cpus.Syncing || c.Phase == cpus.Answering
	_, quiet := c.Asked()
	stop := c.Owes() && !quiet
	if c.Phase == cpus.Interrupted && empty && !stop || elsewhere && asked {
		c.Phase = c.Back
		c.Repoll()
	}
	site, about := n.wide.codec.Site(n.wide.codec.Pack(c))
	if !about || !slices.Contains(n.gone, site) {
		return
	}
	c.Promise, c.Site = 0, 0
	switch {
	case c.Phase == cpus.Interrupted, c.Phase == cpus.Syncing, c.Phase == cpus.Answering:
		c.Back = cpus.Boundary
	default:
		if c.Owes() || !c.AtBorder() {
			c.Repoll()
		}
		c.Phase = cpus.Boundary
	}
}

// projectBatch: a batch of other sites is none, and handlers there hold nothing.
func (n *narrowing) projectBatch(w, o *world) {
	o.published = n.batch[w.published]
	none := w.published != 0 && o.published == 0
	count := func(r *int8, first, last int) {
		held, kept := int8(0), int8(0)
		for i := first; i < last && n.m.Refs != int3.NoRef; i++ {
			if n.m.Code.Path.Holds(w.cpu[i].Phase) {
				held++
			}
			if n.m.Code.Path.Holds(o.cpu[i].Phase) {
				kept++
			}
		}
		if *r -= held; none {
			*r = 0
		}
		*r += kept
	}
	if n.m.Refs != int3.PerCPU {
		count(o.ref(0), 0, len(n.m.Roles))
		return
	}
	for i := range n.m.Roles {
		count(o.ref(i), i, i+1)
	}
}

// projectSites: the others are what they were at first, and texts and changes have numbers of
// their own.
func (n *narrowing) projectSites(w, o *world) {
	for i := o.logged - 1; i >= 0; i-- {
		if slices.Contains(n.gone, int(o.log[i].site)) {
			o.cut(i, 1)
		}
	}
	for i := range o.log[:o.logged] {
		s := &o.log[i]
		s.text = n.m.textIndex(int(s.site), n.wide.texts[s.site][s.text])
	}
	for site := range n.m.Code.Sites {
		if slices.Contains(n.gone, site) {
			o.settled[site], o.begun[site] = cpus.PromiseOf(0, 1), 0
			o.base[site], o.literal[site] = n.m.textIndex(site, n.m.Initial[site]), n.m.Literals[site]
			continue
		}
		o.base[site] = n.m.textIndex(site, n.wide.texts[site][w.base[site]])
		if list := n.wide.changes[site]; len(n.m.changes[site]) > 1 {
			o.begun[site] = uint8(n.m.changeIndex(site, list[w.begun[site]]))
		}
	}
}
