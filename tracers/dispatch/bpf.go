// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers"
	"github.com/textpoke/textpoke/tracers/metadata"
)

// bpfArgs is how many arguments functions have.
const bpfArgs = 2

// image is the code of a trampoline.
type image struct{ entry, modify, exit []*tracers.Ops }

// imageOf is an image of a function's programs, nil for none: the newest is the first,
// hlist_add_head in __bpf_trampoline_link_prog.
func (w *Way) imageOf(site int) *image {
	users := w.core.Users(site)
	if len(users) == 0 {
		return nil
	}
	m := &image{}
	for _, o := range slices.Backward(users) {
		f := o.Func
		if f == nil {
			continue
		}
		if f.Entry != nil {
			m.entry = append(m.entry, o)
		}
		if f.Modify != nil {
			m.modify = append(m.modify, o)
		}
		if f.Exit != nil {
			m.exit = append(m.exit, o)
		}
	}
	return m
}

// run calls the programs and the function, and says how many programs that were.
func (m *image) run(ip records.Addr, t *Task) int64 {
	for _, o := range m.entry {
		o.Func.Entry(ip, o, &t.Task)
	}
	called, skip := int64(len(m.entry)+len(m.exit)), false
	for _, o := range m.modify {
		called++
		if skip = o.Func.Modify(ip, o, &t.Task) != 0; skip {
			break
		}
	}
	if !skip {
		t.body()
	}
	if len(m.modify)+len(m.exit) > 0 {
		t.save(1)
	}
	for _, o := range m.exit {
		o.Func.Exit(ip, o, &t.Task)
	}
	t.count(Counts{Called: called})
	return called
}

// newPrograms is a way of BPF programs, at first without any. publish stores a function's, nil for
// none, before its site calls; call finds them, and runs them or the function alone.
func newPrograms(c Config, publish func(site int, ip records.Addr, m *image) error,
	call func(site int, ip records.Addr, t *Task)) (*Way, error) {
	w, err := newWay(c, words{}, false)
	if err != nil {
		return nil, err
	}
	w.returns, w.path = true, func(site int, t *Task) { call(site, w.ips[site], t) }
	w.users = func(sites []int) error {
		for _, site := range sites {
			m := w.imageOf(site)
			if m == nil {
				w.calls[site].Store(false)
			}
			if err := publish(site, w.ips[site], m); err != nil {
				return err
			}
			w.calls[site].Store(m != nil)
		}
		return nil
	}
	return w, nil
}

// newBPF is a trampoline generated for each function, with the programs in it:
//
//	site -> trampoline: fentry ... fmod_ret ... function ... fexit
//
// No load: the site calls the trampoline, and that has each program's address as an immediate. It
// saves the function's arguments, and for fexit and fmod_ret the result. Attaching or detaching a
// program means another image: kernel/bpf/trampoline.c. The cost of entering a program
// (__bpf_prog_enter) is left out. The function's body is the Task's, and is not run where a
// program of fmod_ret answered otherwise than 0. A trampoline has tracers.MaxTrampLinks programs at
// most: E2BIG.
func newBPF(c Config) (*Way, error) {
	images := make([]atomic.Pointer[image], len(c.Sites)) // what the sites' instructions call
	return newPrograms(c, func(site int, ip records.Addr, m *image) error {
		if m != nil && len(m.entry)+len(m.modify)+len(m.exit) > tracers.MaxTrampLinks {
			return &tracers.Error{
				Errno: tracers.E2BIG, Record: ip,
				Why:    fmt.Sprintf("a trampoline has %d programs at most", tracers.MaxTrampLinks),
				Source: "__bpf_trampoline_link_prog, 7.1",
			}
		}
		images[site].Store(m)
		return nil
	}, func(site int, ip records.Addr, t *Task) {
		m := images[site].Load()
		if m == nil { // it went meanwhile
			t.body()
			return
		}
		t.save(bpfArgs)
		m.run(ip, t)
	})
}

// newGlobalTrampoline is one trampoline for all functions with the same number of
// arguments, that looks the function's programs up: Menglong Dong, "bpf: tracing multi-link
// support", v1 2025-05-28.
//
//	site -> trampoline[arguments] -> table ... -> record -> link -> program
//	                                                         \-> next link ...
//
// The table's loads, that of the record among them (metadata.Cost), and one for every
// program of its three lists. No image is generated for a function: attaching changes the
// table and a site.
func newGlobalTrampoline(c Config, table metadata.Counted) (*Way, error) {
	return newPrograms(c, func(_ int, ip records.Addr, m *image) error {
		if m == nil {
			table.Remove(function(ip))
			return nil
		}
		return table.Set(&metadata.Record{Func: function(ip), Args: bpfArgs, Image: m})
	}, func(_ int, ip records.Addr, t *Task) {
		t.save(bpfArgs)
		record := table.Lookup(function(ip))
		if record == nil { // it went meanwhile
			t.body()
			return
		}
		programs := record.Image.(*image).run(ip, t)
		if t.counts != nil {
			t.count(Counts{Loads: int64(table.Cost(function(ip)).Loads) + programs, Hashes: 1, Walked: programs})
		}
	})
}

// function is the key of the metadata: the site's address, down to where a number fits before it.
func function(ip records.Addr) records.Addr { return ip &^ 3 }

// maxPadded is how long a text may be whose padding is to hold numbers: four bytes a
// word of it are taken here.
const maxPadded = 256 << 20

// padding is the table in the functions' padding, for functions at these sites.
func padding(c Config) (metadata.Counted, error) {
	sites := c.Sites
	if len(sites) == 0 {
		return nil, nil // the way says so
	}
	text := metadata.Text{Start: function(slices.Min(sites)) - 64, End: function(slices.Max(sites)) + 64}
	if n := text.End - text.Start; n > maxPadded {
		return nil, fmt.Errorf("padding: the sites lie %d MiB apart, and no more than %d can be held",
			n>>20, maxPadded>>20)
	}
	return metadata.NewPadding(text)
}

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
