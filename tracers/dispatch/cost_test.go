// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"strings"

	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers"
	"github.com/textpoke/textpoke/tracers/metadata"
)

// cost is what a call of a site takes, computed from what is attached and without calling: what
// calls count is held against it. BPF programs let the function go on.
func (k Kind) cost(w *Way, site int) Counts {
	switch name := k.Name; {
	case strings.HasPrefix(name, "fprobe"):
		return fprobeCost(w, site, FprobeCosts{}.with(name == "fprobe-2022"))
	case strings.HasPrefix(name, "kprobe"):
		return kprobeCost(w, site, name == "kprobe")
	case name == "bpf":
		return w.imageOf(site).cost()
	case strings.HasPrefix(name, "global-trampoline"):
		return w.lookedUp(site, tableOf(k))
	case w.core.Text(site).Decided == 0:
		return Counts{}
	case name == "list":
		return w.listCost(site).Add(Counts{Saved: int64(w.saves)})
	case name == "global":
		return w.globalCost(site)
	}
	loads := map[string][2]int64{"intermediate": {3, 3}, "ops-trampoline": {1, 1}, "site-trampoline": {2, 1}}[k.Name]
	if loads == [2]int64{} {
		return w.literalCost(site, 2)
	}
	c := w.literalCost(site, loads[0])
	if c.Called == 1 && c.Saved == 0 {
		c.Loads = loads[1] // to a direct trampoline
	}
	return c
}

// with is all costs, or none.
func (f FprobeCosts) with(all bool) FprobeCosts { return FprobeCosts{all, all, all, all} }

func (m *image) cost() Counts {
	if m == nil {
		return Counts{}
	}
	results := len(m.modify) + len(m.exit)
	return Counts{Called: int64(len(m.entry) + results), Saved: int64(bpfArgs + min(results, 1))}
}

// tableOf is the kind of table that a global trampoline looks functions up in.
func tableOf(k Kind) metadata.TableKind {
	switch {
	case strings.HasSuffix(k.Name, "resizable"):
		return metadata.ResizableHash
	case strings.HasSuffix(k.Name, "padding"):
		return metadata.FunctionPadding
	}
	return metadata.Fixed256
}

// lookedUp is a call through a global trampoline, with a table of the same functions.
func (w *Way) lookedUp(site int, kind metadata.TableKind) Counts {
	table, err := metadata.New(kind, metadata.Text{Start: function(w.ips[0]) - 64, End: function(w.ips[0]) + 1<<20})
	if err != nil {
		panic(err)
	}
	for at := range w.sites {
		if len(w.core.Users(at)) > 0 {
			if err := table.Set(&metadata.Record{Func: function(w.ips[at])}); err != nil {
				panic(err)
			}
		}
	}
	c := w.imageOf(site).cost()
	if c != (Counts{}) {
		c.Loads, c.Hashes, c.Walked = int64(table.(metadata.Counted).Cost(function(w.ips[site])).Loads)+c.Called, 1, c.Called
	}
	return c
}

// literalCost is a call with so many loads on the way to the ops.
func (w *Way) literalCost(site int, loads int64) Counts {
	to := w.core.Text(site)
	if to.Decided == 0 {
		return Counts{}
	}
	if w.words.near && w.direct[to.Decided] != nil {
		return Counts{Called: 1}
	}
	c := Counts{Loads: loads, Saved: int64(w.saves)}
	switch e := w.readable(to); {
	case to.Literal == w.core.ListOps:
		return c.Add(w.listCost(site))
	case to.Literal == w.single:
		return c.Add(w.table.Load().cost(w.ips[site])).Add(Counts{Called: 1})
	case e.direct != nil:
		return Counts{Loads: loads, Called: 1}
	case e.run != nil:
		c.Called = 1
	}
	return c
}

func (w *Way) globalCost(site int) Counts {
	c := Counts{Loads: 1, Saved: int64(w.saves)}
	switch fn, o := w.core.Global(); {
	case fn == tracers.FuncList:
		return c.Add(w.listCost(site))
	case w.entries[o].run != nil:
		c.Called = 1
	}
	return c
}

// listCost is a walk over the attached ops.
func (w *Way) listCost(site int) Counts {
	c := Counts{Loads: 1}
	for o := range w.core.List() {
		e := w.entries[o]
		one, traced := e.cost(w.ips[site])
		if c = c.Add(one); traced && e.run != nil {
			c.Called++
			if o == w.single {
				c = c.Add(w.table.Load().cost(w.ips[site]))
			}
		}
	}
	return c
}

// cost is the loads of asking an ops, and its answer.
func (e *entry) cost(ip records.Addr) (c Counts, traced bool) {
	c, traced = Counts{Loads: 1, Walked: 1}, true
	if h := e.filter.Load(); h != nil {
		c, traced = c.Add(h.cost(ip)), h.contains(ip)
	}
	return c, traced
}

// contains tells whether an address is in the hash.
func (h *hash) contains(ip records.Addr) bool {
	e, _ := h.find(ip)
	return e != nil
}

// cost is what find takes, from the addresses alone.
func (h *hash) cost(ip records.Addr) Counts {
	chain, at := int64(0), int64(-1)
	for e := h.buckets[h.key(ip)]; e != nil; e = e.next {
		chain++
		if e.ip == ip && at < 0 {
			at = chain
		}
	}
	if at < 0 {
		at = chain
	}
	return Counts{Hashes: 1, Loads: 2 + at}
}

func fprobeCost(w *Way, site int, f FprobeCosts) Counts {
	c, saved := Counts{}, int64(0)
	switch {
	case w.core.Text(site).Decided == 0:
	case f.ListFunc:
		c = w.listCost(site).Add(Counts{Saved: int64(w.saves)})
	default:
		c = w.literalCost(site, 2)
	}
	for _, o := range w.core.Users(site) {
		c.Loads++
		if o.Func.Entry == nil {
			c.Called--
		}
		if o.Func.Exit != nil {
			c.Called++
		}
		switch {
		case !f.hooks(o):
			continue
		case f.Freelist:
			c.Loads, c.Atomics = c.Loads+3, c.Atomics+2
		default:
			c.Loads += 2
		}
		saved = ReturnRegisters
	}
	c.Saved += saved
	return c
}

func kprobeCost(w *Way, site int, boosted bool) Counts {
	n := int64(len(w.core.Users(site)))
	if n == 0 {
		return Counts{}
	}
	// A bucket has its later sites first.
	c := Counts{Loads: 1 + n, Hashes: 1, Walked: n, Called: n, Saved: AllRegisters, Traps: 1}
	for i := site; i < w.sites; i++ {
		if len(w.core.Users(i)) > 0 && kprobeKey(w.ips[i]) == kprobeKey(w.ips[site]) {
			c.Loads++
		}
	}
	if !boosted {
		c.Traps, c.Saved = 2, 2*AllRegisters
	}
	return c
}
