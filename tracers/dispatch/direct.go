// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"maps"
	"slices"

	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers"
)

// trampoline is a direct trampoline: code that a site can call itself. It takes its
// arguments in registers and has everything else as immediates.
type trampoline struct {
	at   records.Addr
	code *tracers.Func
	of   *tracers.Ops
	all  bool // its ops named no functions
}

// jump is a branch to the trampoline.
func (tr *trampoline) jump(ip records.Addr, t *Task) {
	if c := t.counts; c != nil {
		c.Called++
	}
	tr.code.Entry(ip, tr.of, &t.Task)
}

// registerDirect gives an ops' functions its trampoline. One that names none has all
// sites: nothing is looked up for it, as for other ops that trace everything.
func (b *base) registerDirect(o *tracers.Ops, e *entry) error {
	tr := &trampoline{at: b.next, code: o.Direct, of: o, all: len(o.Filter) == 0}
	if tr.all {
		o.Filter = b.named(o)
	}
	b.next++
	b.direct[tr.at] = tr
	e.direct, e.run = tr, func(_ records.Addr, t *Task) { t.late = tr } // call_direct_funcs
	err := b.addDirect(o, tr)
	if err != nil {
		b.forget(o, tr)
	}
	return err
}

func (b *base) addDirect(o *tracers.Ops, tr *trampoline) error {
	if b.single == nil {
		_, err := b.core.RegisterDirect(o, tr.at)
		return err
	}
	was, to := maps.Clone(b.links), map[int]records.Addr{}
	for _, rec := range o.Filter {
		b.links[rec], to[rec] = tr, tr.at
	}
	b.publishTable() // before any site leads there
	_, err := b.core.DirectAdd(b.single, to)
	if err != nil {
		b.links = was
		b.publishTable()
	}
	return err
}

// unregisterDirect takes it away: the table is replaced once the sites are.
func (b *base) unregisterDirect(o *tracers.Ops, e *entry) (err error) {
	if b.single == nil {
		_, err = b.core.UnregisterDirect(o)
	} else {
		of := map[int]records.Addr{}
		for _, rec := range o.Filter {
			of[rec] = e.direct.at
		}
		if _, err = b.core.DirectDel(b.single, of); err == nil {
			maps.DeleteFunc(b.links, func(_ int, tr *trampoline) bool { return tr == e.direct })
			b.publishTable()
		}
	}
	if err == nil {
		b.forget(o, e.direct)
	}
	return err
}

// forget ends a trampoline.
func (b *base) forget(o *tracers.Ops, tr *trampoline) {
	delete(b.direct, tr.at)
	if tr.all {
		o.Filter = nil
	}
}

// publishTable publishes direct_functions anew. It is complete before the old one goes.
func (b *base) publishTable() {
	recs := slices.Sorted(maps.Keys(b.links))
	ips, to := make([]records.Addr, len(recs)), make([]*trampoline, len(recs))
	for i, rec := range recs {
		ips[i], to[i] = b.ips[rec], b.links[rec]
	}
	b.table.Store(hashTo(ips, to))
}

// lookup is call_direct_funcs where one ops has all trampolines.
func (b *base) lookup(ip records.Addr, t *Task) {
	e, loads := b.table.Load().find(ip)
	if c := t.counts; c != nil {
		c.Hashes++
		c.Loads += loads
	}
	if e != nil {
		t.late = e.to
	}
}

func (b *base) lookupCost(site int) Counts { return b.table.Load().cost(b.ips[site]) }

// readable is what CPUs read of a literal's ops.
func (b *base) readable(to tracers.Installed) *entry { return b.entries[to.Literal] }

// through goes on from the ops that a site has led to; loads are those so far.
func (b *base) through(ip records.Addr, e *entry, t *Task, loads int64) {
	if c := t.counts; c != nil {
		c.Loads += loads
	}
	if e.direct != nil {
		e.direct.jump(ip, t)
		return
	}
	t.save(b.saves)
	if e.run == nil {
		return // ftrace_stub: the site was disabled on the way here
	}
	was := t.late
	t.late = nil
	e.run(ip, t)
	late := t.late
	t.late = was
	if late != nil {
		late.jump(ip, t)
	}
}

// cost is what a call takes with so many loads on the way to the ops.
func (b *base) cost(site int, loads int64) Counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	to := b.core.Text(site)
	if to.Decided == 0 {
		return Counts{}
	}
	if b.words.near && b.direct[to.Decided] != nil {
		return Counts{Called: 1}
	}
	c := Counts{Loads: loads, Saved: int64(b.saves)}
	switch e := b.readable(to); {
	case to.Literal == b.core.ListOps:
		return c.Add(b.listCost(site))
	case to.Literal == b.single:
		return c.Add(b.lookupCost(site)).Add(Counts{Called: 1})
	case e.direct != nil:
		return Counts{Loads: loads, Called: 1}
	case e.run != nil:
		c.Called = 1
	}
	return c
}
