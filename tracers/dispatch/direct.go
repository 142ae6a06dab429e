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
func (w *Way) registerDirect(o *tracers.Ops, e *entry) error {
	tr := &trampoline{at: w.next, code: o.Direct, of: o, all: len(o.Filter) == 0}
	if tr.all {
		o.Filter = w.named(o)
	}
	w.next++
	w.direct[tr.at] = tr
	e.direct, e.run = tr, func(_ records.Addr, t *Task) { t.late = tr } // call_direct_funcs
	err := w.addDirect(o, tr)
	if err != nil {
		w.forget(o, tr)
	}
	return err
}

func (w *Way) addDirect(o *tracers.Ops, tr *trampoline) error {
	if w.single == nil {
		_, err := w.core.RegisterDirect(o, tr.at)
		return err
	}
	was, to := maps.Clone(w.links), map[int]records.Addr{}
	for _, rec := range o.Filter {
		w.links[rec], to[rec] = tr, tr.at
	}
	w.publishTable() // before any site leads there
	_, err := w.core.DirectAdd(w.single, to)
	if err != nil {
		w.links = was
		w.publishTable()
	}
	return err
}

// unregisterDirect takes it away: the table is replaced once the sites are.
func (w *Way) unregisterDirect(o *tracers.Ops, e *entry) (err error) {
	if w.single == nil {
		_, err = w.core.UnregisterDirect(o)
	} else {
		of := map[int]records.Addr{}
		for _, rec := range o.Filter {
			of[rec] = e.direct.at
		}
		if _, err = w.core.DirectDel(w.single, of); err == nil {
			maps.DeleteFunc(w.links, func(_ int, tr *trampoline) bool { return tr == e.direct })
			w.publishTable()
		}
	}
	if err == nil {
		w.forget(o, e.direct)
	}
	return err
}

// forget ends a trampoline.
func (w *Way) forget(o *tracers.Ops, tr *trampoline) {
	delete(w.direct, tr.at)
	if tr.all {
		o.Filter = nil
	}
}

// publishTable publishes direct_functions anew. It is complete before the old one goes.
func (w *Way) publishTable() {
	recs := slices.Sorted(maps.Keys(w.links))
	ips, to := make([]records.Addr, len(recs)), make([]*trampoline, len(recs))
	for i, rec := range recs {
		ips[i], to[i] = w.ips[rec], w.links[rec]
	}
	w.table.Store(hashTo(ips, to))
}

// lookup is call_direct_funcs where one ops has all trampolines.
func (w *Way) lookup(ip records.Addr, t *Task) {
	e, loads := w.table.Load().find(ip)
	if c := t.counts; c != nil {
		c.Hashes++
		c.Loads += loads
	}
	if e != nil {
		t.late = e.to
	}
}

// readable is what CPUs read of a literal's ops.
func (w *Way) readable(to tracers.Installed) *entry { return w.entries[to.Literal] }

// through goes on from the ops that a site has led to; loads are those so far.
func (w *Way) through(ip records.Addr, e *entry, t *Task, loads int64) {
	if c := t.counts; c != nil {
		c.Loads += loads
	}
	if e.direct != nil {
		e.direct.jump(ip, t)
		return
	}
	t.save(w.saves)
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
