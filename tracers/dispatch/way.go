// SPDX-License-Identifier: Apache-2.0

// Package dispatch carries a call from a patched site to the tracers of its function, in
// each way that kernels have or that was proposed. The core (package tracers) has the
// attached ops, the text of sites, and the ops that must be called. A way is a call path:
// the words that CPUs read between the site and the tracers. The core's stores change these
// words while CPUs read them.
//
// # Counts
//
// A [Task] with [Task.Count] counts the loads of its calls. A load is an object that the call reads
// because another object, or the site's literal, gave its address; all fields of one object
// count as one load. Instructions are fetched and take no load, and neither do the
// immediates in them. An instruction that can be patched is an atomic word here, and
// reading it is not counted. Saved registers, traps, and read-modify-writes of words that
// other CPUs change too have counts of their own.
//
// # Attaching
//
// [Way.Attach] and [Way.Detach] may be called while CPUs call. A call may still be on its
// way to an ops that was detached: wait until no task is inside of a call before you use the ops again.
// Package poke sends the rounds that text needs; this one sends none.
//
// Sources are the kernel's, by file and version. The kinds "intermediate" and "ops-trampoline" were
// turned down in Mark Rutland's mail of 2025-07-29 in "ftrace,bpf: Use single direct ops
// for bpf trampolines".
package dispatch

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers"
)

// Way is a way from patched sites to tracers. Sites, and the functions that an ops
// names, are numbers of [Config.Sites], those of Config.Elsewhere behind them. It holds the
// core, and what CPUs read of each ops.
type Way struct {
	mu      sync.Mutex // ftrace_lock
	words   words
	core    *tracers.Core
	ips     []records.Addr // of the sites, and of functions elsewhere
	sites   int
	saves   int // registers that ftrace_caller saves
	list    list
	entries map[*tracers.Ops]*entry
	direct  map[records.Addr]*trampoline // by their addresses
	next    records.Addr                 // of the next direct trampoline

	single *tracers.Ops         // of all direct trampolines, where one ops has them
	table  atomic.Pointer[hash] // direct_functions there
	links  map[int]*trampoline  // its parts

	run func(o *tracers.Ops) func(ip records.Addr, t *Task) // how an ops' function is called

	calls   []atomic.Bool           // the sites' instructions: calls, or nops
	path    func(site int, t *Task) // from a site that calls
	returns bool                    // the path runs the function, too: it hooks its return

	// literal publishes what a site's literal names; it may be nil. A way with users has no text of
	// the function tracer's: users publishes the sites whose users have changed, and their instructions.
	literal func(site int, to tracers.Installed)
	users   func(sites []int) error
}

// Call calls the function of a site.
func (w *Way) Call(site int, t *Task) {
	if w.calls[site].Load() {
		if w.path(site, t); w.returns {
			return
		}
	}
	t.body()
}

// Config holds the parts of a way.
type Config struct {
	Sites     []records.Addr // functions that are called: one or more
	Elsewhere []records.Addr // functions that can be traced too, and are never called
}

// words is an instruction set whose sites are one word each: the target of the call.
type words struct {
	callOps bool // sites have literals
	direct  bool // direct calls are known
	near    bool // and their trampolines in reach
	single  bool // and one ops has all of them
}

func (w words) Traits() isa.Traits {
	return isa.Traits{Name: "words", CallOps: w.callOps, SingleDirectOps: w.single}
}

func (w words) Site(rec records.Addr, _ isa.Layout) (isa.Site, error) {
	return isa.Site{Addr: rec, Len: 8}, nil
}

func (w words) Disabled(isa.Site) isa.Text { return 0 }

func (w words) Enabled(_ isa.Site, d isa.Destination) (isa.Text, isa.Via, error) {
	if w.near || d.Target == d.Entry {
		return isa.Text(d.Target), isa.Direct, nil
	}
	return isa.Text(d.Entry), isa.ThroughEntry, nil
}

// Where the entry and the trampolines of single ops would be, and where direct
// trampolines are: no function has such an address.
var places = tracers.Places{Entry: 1, RegsEntry: 1, Trampolines: 2}

const directTrampolines records.Addr = 1 << 20

// newWay is a core for some sites, whose path is still to be set. Nothing of an invalid
// configuration is made.
func newWay(c Config, words words, force bool) (*Way, error) {
	if len(c.Sites) == 0 {
		return nil, errors.New("dispatch: Config.Sites is empty")
	}
	ips := append(c.Sites[:len(c.Sites):len(c.Sites)], c.Elsewhere...)
	w := &Way{
		words: words, ips: ips, sites: len(c.Sites), saves: ArgRegisters, calls: make([]atomic.Bool, len(c.Sites)),
		entries: map[*tracers.Ops]*entry{}, direct: map[records.Addr]*trampoline{}, next: directTrampolines,
		run: callback,
	}
	var err error
	w.core, err = tracers.New(tracers.Config{
		Arch: words, Records: ips, Places: places, ForceList: force,
		Stores: tracers.Stores{Site: w.write, List: w.relist, Hash: w.rehash},
	})
	if err != nil {
		return nil, fmt.Errorf("dispatch: %w", err)
	}
	w.entry(w.core.NopOps)
	w.entry(w.core.ListOps).run = w.list.call
	if words.single {
		w.single, w.links = tracers.NewOps("direct_ops", nil, 0), map[int]*trampoline{}
		w.entry(w.single).run = w.lookup
	}
	return w, nil
}

// name publishes the ops of the literals, and from now on the core's stores to them.
func (w *Way) name(literal func(site int, to tracers.Installed)) {
	w.literal = literal
	for site := range w.sites {
		literal(site, w.core.Text(site))
	}
}

// write is the core's store to a site: the literal before the instruction.
func (w *Way) write(q *tracers.Patch) error {
	if q.Record >= w.sites || w.users != nil {
		return nil
	}
	if w.literal != nil {
		w.literal(q.Record, q.To)
	}
	w.calls[q.Record].Store(q.To.Decided != 0)
	return nil
}

// relist is the core's store to the list.
func (w *Way) relist(o, behind *tracers.Ops, on bool) {
	at := &w.list.head
	if behind != nil {
		at = &w.entries[behind].next
	}
	e := w.entries[o]
	if !on {
		at.Store(e.next.Load()) // a walker that stands on it goes on
		return
	}
	w.rehash(o)
	e.next.Store(at.Load())
	at.Store(e)
}

// rehash is the core's store of an ops' functions.
func (w *Way) rehash(o *tracers.Ops) {
	if e := w.entries[o]; e != nil && (e.direct == nil || !e.direct.all) {
		e.filter.Store(w.hashOf(o.Filter))
	}
}

// hashOf is the set of some functions, nil for none.
func (w *Way) hashOf(functions tracers.Functions) *hash {
	if len(functions) == 0 {
		return nil
	}
	return newHash(spelling.Each(functions, func(rec int) records.Addr { return w.ips[rec] })...)
}

func refuse(n tracers.Errno, o *tracers.Ops, why string) error {
	return &tracers.Error{Errno: n, Ops: o.Name, Why: why}
}

// Attach lets the sites that the ops traces lead to it. An ops with a direct trampoline
// ([tracers.Ops.Direct]) needs a way that knows direct calls: EOPNOTSUPP elsewhere, EBUSY where
// another one is on a function. Other errors are those of [tracers.Core].
func (w *Way) Attach(o *tracers.Ops) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.entries[o] != nil {
		return refuse(tracers.EBUSY, o, "it is attached already")
	}
	for _, rec := range o.Filter {
		if rec < 0 || rec >= len(w.ips) {
			return refuse(tracers.ENOENT, o, fmt.Sprintf("function %d: there are %d", rec, len(w.ips)))
		}
	}
	e := w.entry(o)
	err := w.register(o, e)
	if err == nil {
		if err = w.published(o); err != nil {
			err = errors.Join(err, w.unregister(o, e), w.published(o))
		}
	}
	if err != nil {
		delete(w.entries, o)
		return fmt.Errorf("attach: %w", err)
	}
	return nil
}

// Detach ends that.
func (w *Way) Detach(o *tracers.Ops) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.entries[o]
	if e == nil {
		return refuse(tracers.EBUSY, o, "it is not attached")
	}
	if err := errors.Join(w.unregister(o, e), w.published(o)); err != nil {
		return fmt.Errorf("detach: %w", err)
	}
	delete(w.entries, o)
	return nil
}

// register attaches to the core.
func (w *Way) register(o *tracers.Ops, e *entry) (err error) {
	switch {
	case o.Direct == nil:
		_, err = w.core.Attach(o)
	case w.words.direct:
		err = w.registerDirect(o, e)
	default:
		err = refuse(tracers.EOPNOTSUPP, o, "the way knows no direct trampolines")
	}
	return err
}

func (w *Way) unregister(o *tracers.Ops, e *entry) (err error) {
	if o.Direct != nil {
		return w.unregisterDirect(o, e)
	}
	_, err = w.core.Detach(o)
	return err
}

// published publishes the users of the sites that an ops names.
func (w *Way) published(o *tracers.Ops) error {
	if w.users == nil {
		return nil
	}
	return w.users(w.named(o))
}

// named are the sites that an ops names, all where it names none.
func (w *Way) named(o *tracers.Ops) []int {
	if len(o.Filter) == 0 {
		return spelling.Numbers(w.sites)
	}
	return spelling.Where(o.Filter, func(rec int) bool { return rec < w.sites })
}
