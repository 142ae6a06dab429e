// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers"
)

// Way is a way from patched sites to tracers. Sites, and the functions that an ops
// names, are numbers of [Config.Sites], those of Config.Elsewhere behind them.
type Way interface {
	// Attach lets the sites that the ops traces lead to it, Detach ends that. An ops
	// with a direct trampoline ([tracers.Ops.Direct]) needs a way that knows direct
	// calls: EOPNOTSUPP elsewhere, EBUSY where another one is on a function. Other
	// errors are those of [tracers.Core].
	Attach(o *tracers.Ops) error
	Detach(o *tracers.Ops) error
	// SetFilter and SetNotrace change which functions an attached ops traces. EINVAL:
	// it has a direct trampoline.
	SetFilter(o *tracers.Ops, functions ...int) error
	SetNotrace(o *tracers.Ops, functions ...int) error
	// Call calls the function of a site.
	Call(site int, t *Task)
	// Cost is what Call takes: computed from what is attached, without calling.
	Cost(site int) Counts
}

// Config holds the parts of a way.
type Config struct {
	Sites     []records.Addr // functions that are called: one or more
	Elsewhere []records.Addr // functions that can be traced too, and are never called
}

// words is an instruction set whose sites are one word each, what it calls.
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

// base is what all ways have: the core, and what CPUs read of each ops.
type base struct {
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

	// text publishes a site that the core writes, users sites whose users have changed;
	// either may be nil.
	text  func(site int, to tracers.Installed)
	users func(sites []int) error
}

// newBase is a core for some sites. Nothing of an invalid configuration is made.
func newBase(c Config, w words, force bool) (*base, error) {
	if len(c.Sites) == 0 {
		return nil, errors.New("dispatch: Config.Sites is empty")
	}
	ips := append(c.Sites[:len(c.Sites):len(c.Sites)], c.Elsewhere...)
	b := &base{
		words: w, ips: ips, sites: len(c.Sites), saves: ArgRegisters,
		entries: map[*tracers.Ops]*entry{}, direct: map[records.Addr]*trampoline{}, next: directTrampolines,
		run: callback,
	}
	var err error
	b.core, err = tracers.New(tracers.Config{
		Arch: w, Records: ips, Places: places, ForceList: force,
		Stores: tracers.Stores{Site: b.write, List: b.relist, Hash: b.rehash},
	})
	if err != nil {
		return nil, fmt.Errorf("dispatch: %w", err)
	}
	b.entry(b.core.NopOps)
	b.entry(b.core.ListOps).run = b.list.call
	if w.single {
		b.single, b.links = tracers.NewOps("direct_ops", nil, 0), map[int]*trampoline{}
		b.entry(b.single).run = b.lookup
	}
	return b, nil
}

// start publishes the sites as they are, and from now on as the core writes them.
func (b *base) start(text func(site int, to tracers.Installed)) {
	b.text = text
	for site := range b.sites {
		text(site, b.core.Text(site))
	}
}

// write is the core's store to a site.
func (b *base) write(q *tracers.Patch) error {
	if b.text != nil && q.Record < b.sites {
		b.text(q.Record, q.To)
	}
	return nil
}

// relist is the core's store to the list.
func (b *base) relist(o, behind *tracers.Ops, on bool) {
	at := &b.list.head
	if behind != nil {
		at = &b.entries[behind].next
	}
	e := b.entries[o]
	if !on {
		at.Store(e.next.Load()) // a walker that stands on it goes on
		return
	}
	b.rehash(o)
	e.next.Store(at.Load())
	at.Store(e)
}

// rehash is the core's store of what an ops traces.
func (b *base) rehash(o *tracers.Ops) {
	if e := b.entries[o]; e != nil && (e.direct == nil || !e.direct.all) {
		e.filter.Store(b.hashOf(o.Filter))
		e.notrace.Store(b.hashOf(o.Notrace))
	}
}

// hashOf is the set of some functions, nil for none.
func (b *base) hashOf(functions tracers.Functions) *hash {
	if len(functions) == 0 {
		return nil
	}
	ips := make([]records.Addr, len(functions))
	for i, rec := range functions {
		ips[i] = b.ips[rec]
	}
	return newHash(ips...)
}

func refuse(n tracers.Errno, o *tracers.Ops, why string) error {
	return &tracers.Error{Errno: n, Ops: o.Name, Why: why}
}

// Attach implements Way.
func (b *base) Attach(o *tracers.Ops) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.entries[o] != nil {
		return refuse(tracers.EBUSY, o, "it is attached already")
	}
	for _, rec := range append(slices.Clone(o.Filter), o.Notrace...) {
		if rec < 0 || rec >= len(b.ips) {
			return refuse(tracers.ENOENT, o, fmt.Sprintf("function %d: there are %d", rec, len(b.ips)))
		}
	}
	e := b.entry(o)
	err := b.register(o, e)
	if err == nil {
		if err = b.published(o); err != nil {
			err = errors.Join(err, b.unregister(o, e), b.published(o))
		}
	}
	if err != nil {
		delete(b.entries, o)
		return fmt.Errorf("attach: %w", err)
	}
	return nil
}

// Detach implements Way.
func (b *base) Detach(o *tracers.Ops) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[o]
	if e == nil {
		return refuse(tracers.EBUSY, o, "it is not attached")
	}
	if err := errors.Join(b.unregister(o, e), b.published(o)); err != nil {
		return fmt.Errorf("detach: %w", err)
	}
	delete(b.entries, o)
	return nil
}

// register attaches to the core.
func (b *base) register(o *tracers.Ops, e *entry) (err error) {
	switch {
	case o.Direct == nil:
		_, err = b.core.Attach(o)
	case b.words.direct:
		err = b.registerDirect(o, e)
	default:
		err = refuse(tracers.EOPNOTSUPP, o, "the way knows no direct trampolines")
	}
	return err
}

func (b *base) unregister(o *tracers.Ops, e *entry) (err error) {
	if o.Direct != nil {
		return b.unregisterDirect(o, e)
	}
	_, err = b.core.Detach(o)
	return err
}

// SetFilter implements Way.
func (b *base) SetFilter(o *tracers.Ops, functions ...int) error {
	return b.change(o, b.core.SetFilter, o.Filter, functions)
}

// SetNotrace implements Way.
func (b *base) SetNotrace(o *tracers.Ops, functions ...int) error {
	return b.change(o, b.core.SetNotrace, o.Notrace, functions)
}

// change changes what an ops traces, or leaves it as it was.
func (b *base) change(
	o *tracers.Ops, set func(*tracers.Ops, ...int) (tracers.Report, error), from, to []int,
) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if o.Direct != nil {
		return refuse(tracers.EINVAL, o, "its functions have direct trampolines")
	}
	before := tracers.Ops{Filter: o.Filter}
	_, err := set(o, to...)
	if err != nil || b.entries[o] == nil {
		return err
	}
	if err = errors.Join(b.published(&before), b.published(o)); err != nil {
		after := tracers.Ops{Filter: o.Filter}
		_, undone := set(o, from...)
		err = errors.Join(err, undone, b.published(&after), b.published(o))
	}
	return err
}

// published publishes the users of the sites that an ops names.
func (b *base) published(o *tracers.Ops) error {
	if b.users == nil {
		return nil
	}
	return b.users(b.named(o))
}

// named are the sites that an ops names, all where it names none.
func (b *base) named(o *tracers.Ops) (sites []int) {
	if len(o.Filter) == 0 {
		for site := range b.sites {
			sites = append(sites, site)
		}
		return sites
	}
	for _, rec := range o.Filter {
		if rec < b.sites {
			sites = append(sites, rec)
		}
	}
	return sites
}
