// SPDX-License-Identifier: Apache-2.0

package tracers

import (
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/cpus/isa"
)

// Attach registers an ops (register_ftrace_function). Errors, in the order in
// which they are looked for:
//
//	EINVAL  the functions are not in order
//	ENOENT  it names a record that is not there or is refused (ftrace_set_filter_ip, 5.18)
//	EBUSY   it may change the instruction pointer, and a direct ops on the function cannot share it
//	EAGAIN  that one cannot share it just now
//	ENODEV  a failure has ended all tracing
//	EINVAL  it was deleted; it wants registers that no entry saves
//	EBUSY   it is attached already; it is permanent and tracing is switched off
//	EINVAL  it may change the instruction pointer of all functions
//	EBUSY   another one may change the instruction pointer of the function
//
// and the error of a site that cannot be written.
func (c *Core) Attach(o *Ops) (Report, error) {
	return c.do(func(x *change) error {
		if err := c.known(o, o.Filter); err != nil {
			return err
		}
		if err := x.askPeers(o); err != nil {
			return err
		}
		return x.startup(o, 0)
	})
}

// Detach unregisters an ops (unregister_ftrace_function): ENODEV when a failure has
// ended all tracing (the ops must not be freed then), EBUSY when it is not
// attached. If the ops may be freed, it waits until no call can reach it any more.
func (c *Core) Detach(o *Ops) (Report, error) {
	return c.do(func(x *change) error {
		if err := x.shutdown(o, 0); err != nil {
			return err
		}
		// The others on its functions have these for themselves again; what they answer does not matter
		// (cleanup_direct_functions_after_ipmodify).
		return x.peers(o, func(peer *Ops, rec int) error {
			if peer.Share != nil {
				_ = peer.Share(UnsharePeer, rec)
			}
			return nil
		})
	})
}

// StartGraph attaches the one ops of all graph tracers and enables their caller
// (register_ftrace_graph); StopGraph takes it away.
func (c *Core) StartGraph(o *Ops) (Report, error) {
	return c.do(func(x *change) error { return x.startup(o, StartFuncRet) })
}

// StopGraph is the opposite of StartGraph.
func (c *Core) StopGraph(o *Ops) (Report, error) {
	return c.do(func(x *change) error { return x.shutdown(o, StopFuncRet) })
}

// known refuses records that are not there.
func (c *Core) known(o *Ops, recs Functions) error {
	const source = "ftrace_set_filter_ip, 5.18 and later"
	if !slices.IsSorted(recs) {
		return refuse(EINVAL, o, "its functions are not in order: FunctionsOf sorts them", source)
	}
	for _, rec := range recs {
		if rec < 0 || rec >= len(c.flags) {
			return refuse(ENOENT, o, fmt.Sprintf("record %d: there are %d", rec, len(c.flags)), source)
		}
		if c.sites[rec] == (isa.Site{}) {
			_, err := c.Arch.Site(c.Records[rec], isa.Word)
			e := refuse(ENOENT, o, "not a function that can be traced", source).at(c.Records[rec])
			e.Err = err
			return e
		}
	}
	return nil
}

// startup is ftrace_startup.
func (x *change) startup(o *Ops, cmd Command) error {
	c := x.c
	if c.dead {
		return refuse(ENODEV, o, "a failure has ended all tracing", "ftrace_startup, 7.1")
	}
	if err := x.enlist(o); err != nil {
		return err
	}
	o.Flags |= OpsEnabled | OpsAdding
	if err := x.claim(o, nil, o.Filter, false); err != nil {
		return err
	}
	update, err := x.account(o, o.Filter, true)
	if err != nil {
		return err
	}
	if update {
		cmd |= UpdateCalls
	}
	if err := x.runIfNeeded(cmd, o.Filter); err != nil {
		return err
	}
	o.Flags &^= OpsAdding
	return nil
}

// runIfNeeded runs an update pass if there is anything to do
// (ftrace_startup_enable).
func (x *change) runIfNeeded(cmd Command, filter Functions) error {
	g := &x.c.global
	if g.saved != g.wanted {
		was := g.saved
		x.later(func() { g.saved = was })
		g.saved = g.wanted
		cmd |= UpdateTraceFunc
	}
	if cmd == 0 || x.c.off {
		return nil
	}
	return x.run(cmd, filter)
}

// enlist is __register_ftrace_function: the ops is on the list, and has its
// trampoline.
func (x *change) enlist(o *Ops) error {
	c := x.c
	const source = "__register_ftrace_function, 7.1"
	switch {
	case o.has(OpsDeleted):
		return refuse(EINVAL, o, "it was deleted", source)
	case o.has(OpsEnabled):
		return refuse(EBUSY, o, "it is attached already", source)
	case !c.traits.RegsEntry && o.has(OpsSaveRegs) && !o.has(OpsSaveRegsIfSupported):
		return refuse(EINVAL, o, "no entry saves all registers", source)
	case c.off && o.has(OpsPermanent):
		return refuse(EBUSY, o, "it must not be switched off, and tracing is", source)
	}
	was, g := *o, c.global
	x.later(func() {
		c.unlink(o)
		o.Flags, o.Trampoline, o.alive = was.Flags, was.Trampoline, was.alive
		c.global.wanted, c.global.op = g.wanted, g.op
	})
	c.link(o, nil)
	x.ListChanges++
	x.trampoline(o)
	if !c.off {
		c.choose()
	}
	return nil
}

// delist is __unregister_ftrace_function.
func (x *change) delist(o *Ops) {
	c := x.c
	g := c.global
	behind := c.unlink(o)
	x.later(func() {
		c.link(o, behind)
		c.global.wanted, c.global.op = g.wanted, g.op
	})
	x.ListChanges++
	if !c.off {
		c.choose()
	}
}

// trampoline makes an ops its own trampoline, or points the one it has at its
// function again (arch_ftrace_update_trampoline). A direct ops brings its own.
func (x *change) trampoline(o *Ops) {
	c := x.c
	switch {
	case !c.traits.OpsTrampolines:
	case o.Trampoline == 0:
		o.Trampoline = c.next
		c.next += trampolineStep
		o.Flags |= OpsAllocTramp
		c.tramps[o.Trampoline] = &tramp{ops: o, aims: o.Effective()}
		if c.Release.Used && !o.has(OpsDynamic) {
			x.step(StepAim, o)
			return
		}
		x.step(StepTrampoline, o)
	case o.has(OpsAllocTramp):
		c.tramps[o.Trampoline].aims = o.Effective()
		x.step(StepAim, o)
	}
}

// shutdown is ftrace_shutdown.
func (x *change) shutdown(o *Ops, cmd Command) error {
	c := x.c
	if c.dead {
		return refuse(ENODEV, o, "a failure has ended all tracing", "ftrace_shutdown, 7.1")
	}
	if !o.has(OpsEnabled) {
		return refuse(EBUSY, o, "it is not attached", "__unregister_ftrace_function, 7.1")
	}
	x.delist(o)
	if err := x.claim(o, o.Filter, nil, false); err != nil {
		return err // disabling never fails: all functions are refused on attaching
	}
	update, err := x.account(o, o.Filter, false)
	if err != nil {
		return err
	}
	if update {
		cmd |= UpdateCalls
	}
	if c.list.n == 0 {
		x.Walked += len(c.flags) // whether any record has a flag left
	}
	was := o.Flags
	x.later(func() { o.Flags = was })
	o.Flags = o.Flags&^OpsEnabled | OpsRemoving
	h := o.Filter
	c.removed, o.old = o, &h
	err = x.runIfNeeded(cmd, o.Filter)
	c.removed, o.old = nil, nil
	o.Flags &^= OpsRemoving
	if err != nil {
		return err
	}
	x.depart(o)
	return nil
}

// SetFilter changes which functions an ops traces, attached or not; none means
// all (ftrace_set_filter_ips with reset). Errors are those of Attach about
// records and the instruction pointer.
func (c *Core) SetFilter(o *Ops, functions ...int) (Report, error) {
	to := FunctionsOf(functions...)
	return c.do(func(x *change) error {
		if err := c.known(o, to); err != nil {
			return err
		}
		if err := x.claim(o, o.Filter, to, false); err != nil {
			return err
		}
		return x.rehash(o, to, len(to))
	})
}

// rehash swaps what an ops traces: the old set is counted out, the new one in, and one
// pass switches what differs (ftrace_hash_move, ftrace_ops_update_code).
func (x *change) rehash(o *Ops, to Functions, entries int) error {
	c := x.c
	from := o.Filter
	x.Hashes++
	x.HashEntries += entries
	x.CallRCU++
	if !o.has(OpsEnabled) {
		x.setFilter(o, to)
		return nil
	}
	if c.dead {
		return refuse(ENODEV, o, "a failure has ended all tracing", "ftrace_set_hash, 7.1")
	}
	if _, err := x.account(o, from, false); err != nil {
		return err
	}
	x.setFilter(o, to)
	if _, err := x.account(o, to, true); err != nil {
		return err
	}
	if c.off {
		return nil
	}
	var recs []int
	if len(from) > 0 && len(to) > 0 {
		recs = from.union(to)
	}
	o.Flags |= OpsModifying
	c.modifying, o.old = o, &from
	err := x.run(UpdateCalls, recs)
	c.modifying, o.old = nil, nil
	o.Flags &^= OpsModifying
	return err
}

// Switch is kernel.ftrace_enabled: off makes every site a nop and keeps the
// counts. EBUSY: an ops that is attached must not be switched off. ENODEV: a
// failure has ended all tracing.
func (c *Core) Switch(on bool) (Report, error) {
	return c.do(func(x *change) error {
		const source = "ftrace_enable_sysctl, 7.1"
		if c.dead {
			return &Error{Errno: ENODEV, Why: "a failure has ended all tracing", Source: source}
		}
		if on == !c.off {
			return nil
		}
		was, g := c.off, c.global
		x.later(func() { c.off, c.global.wanted, c.global.op = was, g.wanted, g.op })
		if on {
			c.off = false
			c.choose()
			return x.runIfNeeded(UpdateCalls, nil)
		}
		for o := range c.List() {
			if o.has(OpsPermanent) {
				return refuse(EBUSY, o, "it must not be switched off", source)
			}
		}
		c.global.wanted, c.global.op = FuncStub, nil
		err := x.runIfNeeded(DisableCalls, nil)
		c.off = true
		return err
	})
}
