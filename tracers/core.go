// SPDX-License-Identifier: Apache-2.0

package tracers

import (
	"errors"
	"fmt"
	"iter"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

// Installed is the text of a site and its literal.
type Installed struct {
	Decided records.Addr // what it was meant to call; 0 while it is a nop
	Via     isa.Via      // how it gets there
	Text    isa.Text
	Literal *Ops // what the literal before the function names; nil where there is none
}

// Calls is the address in the instruction: the one that was decided, or the entry where
// that one is out of reach. 0 for a nop.
func (i Installed) Calls(entry records.Addr) records.Addr {
	if i.Decided != 0 && i.Via != isa.Direct {
		return entry
	}
	return i.Decided
}

// Places is where the tracer's own code lies.
type Places struct {
	Entry       records.Addr // ftrace_caller
	RegsEntry   records.Addr // ftrace_regs_caller; the same as Entry where there is only one
	Trampolines records.Addr // where trampolines of single ops are made, upwards
}

// trampolineStep is how far trampolines of single ops lie from one another: a
// page each (create_trampoline, arch/x86/kernel/ftrace.c).
const trampolineStep = 4096

// Arch is the part of an instruction set that a Core needs; every [isa.Arch] has it.
type Arch interface {
	Traits() isa.Traits
	Site(rec records.Addr, layout isa.Layout) (isa.Site, error)
	Disabled(s isa.Site) isa.Text
	Enabled(s isa.Site, d isa.Destination) (isa.Text, isa.Via, error)
}

// Stores are told of everything that CPUs read on their way to a tracer, in the order
// in which the kernel stores it, also when a change is taken back. Any may be nil.
type Stores struct {
	// Site stores a patch into the text, after the site was found to hold Patch.From.
	// It fails the change with the error that it returns, usually an Errno.
	Site func(*Patch) error
	// List puts an ops behind another one on the list, nil for its head, or takes it out.
	List func(o, behind *Ops, on bool)
	// Hash replaces the functions that an ops traces while it is attached.
	Hash func(o *Ops)
	// Entry changes what ftrace_caller calls, or the ops that it passes.
	Entry func(f *Func, o *Ops)
}

// Release says how a kernel differs from Linux 7.1, whose value is zero.
type Release struct {
	// EntryAgain patches the calls in the common entries though they are right
	// (update_ftrace_func, to Linux 6.1).
	EntryAgain bool
	// SkipProgram patches a BPF program that goes out of its trampoline
	// (bpf_trampoline_skip_prog, from Linux 7.2.10 or 7.2.11 on). Before, a trampoline that
	// calls the original function is cut off when it goes (bpf_tramp_image_put).
	SkipProgram bool
	// Used is true where the kernel's own ops were attached before: their trampolines are
	// there, and are aimed.
	Used bool
}

// Config is what a Core is made of. Arch and Records must be given; the zero value of
// everything else is its default.
type Config struct {
	Arch    Arch
	Records []records.Addr // in the order in which the kernel walks them
	Places  Places         // zero: an entry below the lowest record, trampolines above the highest
	Release Release

	// ForceList lets ftrace_caller call only the list function
	// (FTRACE_FORCE_LIST_FUNC, include/linux/ftrace.h).
	ForceList bool

	// Jump runs the direct trampoline at an address for the function at ip; nil does
	// nothing.
	Jump func(to, ip records.Addr, t *Task)

	Stores Stores
}

// Core is the function tracer's state.
type Core struct {
	Config
	traits  isa.Traits
	sites   []isa.Site
	flags   []Flags
	text    []Installed
	users   [][]*Ops // of each record: attached ops that trace it, the last one counted last; never changed in place
	refused []int    // records that the architecture refuses

	list struct { // of attached ops, newest first (ftrace_ops_list)
		first *Ops
		n     int
	}
	NopOps, ListOps *Ops // what literals name that name no client: ftrace_nop_ops, ftrace_list_ops

	global global
	tramps map[records.Addr]*tramp
	next   records.Addr // the next trampoline

	direct map[int]records.Addr // direct_functions: the direct trampoline of each record
	tmp    *Ops                 // tmp_ops, the reference that modifying a direct call holds

	removed, modifying *Ops // whose old hashes decide what sites call now
	off                bool // kernel.ftrace_enabled=0
	dead               bool // ftrace_disabled
	change             *change
	frames             []*Frame
	leaving            []*departure
	epoch              int
}

// tramp is a trampoline made for one ops: it loads the ops from behind itself
// and calls a function that is patched into it.
type tramp struct {
	ops  *Ops
	aims *Func
	gone bool
}

// New makes a tracer with no clients. Records whose site or literal is misaligned
// are refused, as the kernel leaves them out (see isa.Arch.Site).
func New(c Config) (*Core, error) {
	if len(c.Records) == 0 || c.Arch == nil {
		return nil, errors.New("tracers: Config needs an Arch, and a record or more")
	}
	k := &Core{
		Config: c, traits: c.Arch.Traits(), tramps: map[records.Addr]*tramp{}, direct: map[int]records.Addr{},
		sites: make([]isa.Site, len(c.Records)), flags: make([]Flags, len(c.Records)),
		text: make([]Installed, len(c.Records)), users: make([][]*Ops, len(c.Records)),
	}
	k.NopOps = &Ops{Name: "ftrace_nop_ops", Func: FuncStub, Flags: OpsStub | OpsInitialized}
	k.ListOps = &Ops{Name: "ftrace_list_ops", Func: FuncList, Flags: OpsStub | OpsInitialized}
	k.tmp = NewOps("tmp_ops", FuncStub, OpsStub)
	if k.Places == (Places{}) {
		k.Places = k.placesAround()
	}
	k.next = k.Places.Trampolines
	for i, at := range c.Records {
		site, err := c.Arch.Site(at, isa.Word)
		if err != nil {
			if _, ok := errors.AsType[*isa.MisalignedError](err); !ok {
				return nil, fmt.Errorf("record %s: %w", at, err)
			}
			k.flags[i] = Disabled
			k.refused = append(k.refused, i)
			continue
		}
		k.sites[i] = site
		k.text[i] = k.nop(i)
	}
	k.global = global{wanted: FuncStub, saved: FuncStub, patched: FuncStub}
	return k, nil
}

// placesAround puts the entry below the records and trampolines above them.
func (c *Core) placesAround() Places {
	low, high := c.Records[0], c.Records[0]
	for _, a := range c.Records {
		low, high = min(low, a), max(high, a)
	}
	p := Places{Entry: (low - 0x1000) &^ 0xfff, Trampolines: (high + 0x1_0000) &^ 0xfff}
	if low < 0x2000 { // no room below: above
		p.Entry, p.Trampolines = p.Trampolines, p.Trampolines+trampolineStep
	}
	p.RegsEntry = p.Entry
	if c.traits.RegsEntry {
		p.RegsEntry = p.Entry + 0x100
	}
	return p
}

// nop is the text of a site without tracers.
func (c *Core) nop(rec int) Installed {
	i := Installed{Text: c.Arch.Disabled(c.sites[rec])}
	if c.traits.CallOps {
		i.Literal = c.NopOps
	}
	return i
}

// Traits are the architecture's.
func (c *Core) Traits() isa.Traits { return c.traits }

// Flags are a record's flags and count.
func (c *Core) Flags(rec int) Flags { return c.flags[rec] }

// Users are the attached ops that trace a record, the last one counted last. The
// caller must not change the slice.
func (c *Core) Users(rec int) []*Ops { return c.users[rec] }

// Text is what a record's site holds.
func (c *Core) Text(rec int) Installed { return c.text[rec] }

// Dead tells whether a failure has ended all tracing: a change could not be taken back.
func (c *Core) Dead() bool { return c.dead }

// List goes through the attached ops, newest first, as the list function does.
func (c *Core) List() iter.Seq[*Ops] {
	return func(yield func(*Ops) bool) {
		for o := c.list.first; o != nil; o = o.next {
			if !yield(o) {
				return
			}
		}
	}
}

// link puts an ops behind another one, nil for the head of the list, where
// add_ftrace_ops puts all.
func (c *Core) link(o, behind *Ops) {
	next := &c.list.first
	if behind != nil {
		next = &behind.next
	}
	o.next, o.prev, *next = *next, behind, o
	if o.next != nil {
		o.next.prev = o
	}
	c.list.n++
	o.alive = attached
	if c.Stores.List != nil {
		c.Stores.List(o, behind, true)
	}
}

// unlink takes an ops out of the list and says behind whom it was.
func (c *Core) unlink(o *Ops) (behind *Ops) {
	next := &c.list.first
	if behind = o.prev; behind != nil {
		next = &behind.next
	}
	if *next = o.next; o.next != nil {
		o.next.prev = behind
	}
	o.next, o.prev = nil, nil
	c.list.n--
	o.alive = leaving
	if c.Stores.List != nil {
		c.Stores.List(o, behind, false)
	}
	return behind
}

// rehashed tells CPUs that an attached ops traces other functions.
func (c *Core) rehashed(o *Ops) {
	if c.Stores.Hash != nil {
		c.Stores.Hash(o)
	}
}

// pair tells CPUs what ftrace_caller calls and passes.
func (c *Core) pair(f *Func, passed *Ops) {
	c.global.patched, c.global.passed = f, passed
	if c.Stores.Entry != nil {
		c.Stores.Entry(f, passed)
	}
}

// global is the one function of all sites that do not name their ops: the wanted one, and the
// one that is patched into ftrace_caller.
type global struct {
	wanted  *Func // ftrace_trace_function
	op      *Ops  // set_function_trace_op: for the wanted function; nil is the end of the list
	saved   *Func // saved_ftrace_func: the one of the last update pass
	patched *Func // that ftrace_caller calls (save_func of update_ftrace_func)
	passed  *Ops  // function_trace_op: that ftrace_caller passes
}

// Global is what ftrace_caller calls where sites have no literal, and the ops
// that it passes; nil is the list's end.
func (c *Core) Global() (*Func, *Ops) { return c.global.patched, c.global.passed }

// choose works out the traced function (update_ftrace_function), after every change of the list.
func (c *Core) choose() {
	g, only := &c.global, c.list.first
	f := FuncList
	g.op = nil
	switch {
	case only == nil:
		f = FuncStub
	case c.list.n == 1:
		g.op = only
		if !only.has(OpsDynamic|OpsRCU) && !c.ForceList {
			f = only.Effective()
		}
	}
	g.wanted = f
}

// retarget points ftrace_caller at a function (update_ftrace_func); a site's
// literal leaves it nothing to do.
func (c *Core) retarget(f *Func) (changed bool) {
	if c.global.patched == f && !c.Release.EntryAgain {
		return false
	}
	c.pair(f, c.global.passed)
	return !c.traits.CallOps
}
