// SPDX-License-Identifier: Apache-2.0

package tracers

import (
	"maps"
	"slices"

	"github.com/textpoke/textpoke/records"
)

// RegisterDirect makes an ops' functions call a trampoline straight from their
// sites (register_ftrace_direct, Linux 6.4 and later). Errors, in this order:
//
//	EINVAL  the ops has a function or a trampoline, is attached, or names no functions
//	EBUSY   one of the functions has a direct trampoline already
//
// then those of Attach, where the ops is asked whether it can share a function
// with one that may change the instruction pointer: EBUSY, or EAGAIN when it must
// make its trampoline anew first.
func (c *Core) RegisterDirect(o *Ops, addr records.Addr) (Report, error) {
	return c.do(func(x *change) error { return x.registerDirect(o, addr) })
}

func (x *change) registerDirect(o *Ops, addr records.Addr) error {
	const source = "register_ftrace_direct, 7.1"
	c := x.c
	switch {
	case o.Func != nil || o.Trampoline != 0:
		return refuse(EINVAL, o, "it has a function or a trampoline of its own", source)
	case !o.has(OpsInitialized):
		return refuse(EINVAL, o, "it is not initialised", source)
	case o.has(OpsEnabled):
		return refuse(EINVAL, o, "it is attached already", source)
	case len(o.Filter) == 0:
		return refuse(EINVAL, o, "it names no functions", source)
	}
	if err := c.known(o, o.Filter); err != nil {
		return err
	}
	for i, rec := range o.Filter {
		if c.direct[rec] != 0 {
			x.Compared += i + 1
			return refuse(EBUSY, o, "the function has a direct trampoline already", source).at(c.Records[rec])
		}
	}
	x.Compared += len(o.Filter)
	x.publish(o.Filter, addr) // before any site calls the trampoline
	x.direct(o, addr)
	if err := x.startup(o, 0); err != nil {
		return err
	}
	x.CallTasks++ // the old table
	return nil
}

// publish enters trampolines into direct_functions: a new table with everything
// that the old one has (d05cb470663a, 6.7: entries are copied, not moved).
func (x *change) publish(recs Functions, addr records.Addr) {
	c := x.c
	x.Hashes++
	x.HashEntries += len(c.direct) + len(recs)
	x.HashCopied += len(c.direct)
	for _, rec := range recs {
		x.enter(rec, addr)
	}
}

// enter sets a record's entry in direct_functions; 0 takes it out.
func (x *change) enter(rec int, addr records.Addr) {
	c := x.c
	was := c.direct[rec]
	set := func(a records.Addr) {
		if a == 0 {
			delete(c.direct, rec)
		} else {
			c.direct[rec] = a
		}
	}
	x.later(func() { set(was) })
	set(addr)
}

// direct makes an ops a direct one.
func (x *change) direct(o *Ops, addr records.Addr) {
	c := x.c
	flags := OpsDirect
	if c.traits.RegsEntry {
		flags |= OpsSaveRegs // only that entry jumps to a direct trampoline afterwards
	}
	x.become(o, FuncCallDirect, o.Flags|flags, c.Places.RegsEntry, addr)
}

// become changes what an ops calls.
func (x *change) become(o *Ops, f *Func, flags OpsFlags, trampoline, direct records.Addr) {
	was := *o
	x.later(func() {
		o.Func, o.Flags, o.Trampoline, o.DirectCall = was.Func, was.Flags, was.Trampoline, was.DirectCall
	})
	o.Func, o.Flags, o.Trampoline, o.DirectCall = f, flags, trampoline, direct
}

// UnregisterDirect takes a direct ops away (unregister_ftrace_direct): sites first,
// then the table. EINVAL: it is not a direct ops, or not attached.
func (c *Core) UnregisterDirect(o *Ops) (Report, error) {
	return c.do(func(x *change) error {
		if err := attachedDirect(o, "unregister_ftrace_direct, 7.1"); err != nil {
			return err
		}
		if err := x.shutdown(o, 0); err != nil {
			return err
		}
		x.forget(o, o.Filter)
		return nil
	})
}

// forget takes functions out of the table and makes the ops ready to be
// registered again (reset_direct).
func (x *change) forget(o *Ops, recs Functions) {
	for _, rec := range recs {
		x.enter(rec, 0)
	}
	x.become(o, nil, o.Flags&^(OpsDirect|OpsSaveRegs), 0, 0)
}

func attachedDirect(o *Ops, source string) error {
	if !o.has(OpsDirect) || o.Func != FuncCallDirect {
		return refuse(EINVAL, o, "it is not a direct ops", source)
	}
	if !o.has(OpsEnabled) {
		return refuse(EINVAL, o, "it is not attached", source)
	}
	return nil
}

// ModifyDirect gives all functions of a direct ops another trampoline
// (modify_ftrace_direct). A second user, tmp_ops, moves the sites to the list's
// path in a first pass; the table and the ops are changed; a second pass moves
// the sites to the new trampoline. EINVAL: it is not a direct ops, or not
// attached; then what Share answers.
func (c *Core) ModifyDirect(o *Ops, addr records.Addr) (Report, error) {
	return c.do(func(x *change) error {
		if err := attachedDirect(o, "modify_ftrace_direct, 7.1"); err != nil {
			return err
		}
		return x.modifyDirect(o, o.Filter, func(int) records.Addr { return addr })
	})
}

func (x *change) modifyDirect(o *Ops, recs Functions, addr func(rec int) records.Addr) error {
	c := x.c
	x.setFilter(c.tmp, recs)
	if err := x.startup(c.tmp, 0); err != nil {
		return err
	}
	// Since 6.18 a live patch on the function is asked about here too: the new
	// trampoline must be made for it (3e9a18e1c3e9).
	if err := x.claim(o, recs, recs, true); err != nil {
		return err
	}
	for _, rec := range recs {
		x.enter(rec, addr(rec))
	}
	if o.DirectCall != 0 {
		call := o.DirectCall
		x.later(func() { o.DirectCall = call })
		o.DirectCall = addr(recs[0])
	}
	return x.shutdown(c.tmp, 0)
}

// DirectAdd gives functions direct trampolines through one ops that has all of
// them (update_ftrace_direct_add, Linux 7.0). The first functions attach the ops,
// the others change its filter. Errors, in this order:
//
//	EOPNOTSUPP  the architecture's sites name their ops, which must have a trampoline each
//	EINVAL      no functions
//	EINVAL      one of the functions has a direct trampoline already
//
// then those of Attach.
func (c *Core) DirectAdd(o *Ops, to map[int]records.Addr) (Report, error) {
	return c.do(func(x *change) error { return x.directAdd(o, to) })
}

func (x *change) directAdd(o *Ops, to map[int]records.Addr) error {
	const source = "update_ftrace_direct_add, 7.1"
	c := x.c
	recs, err := c.entries(o, to, source)
	if err != nil {
		return err
	}
	if !o.has(OpsEnabled) && (o.Func != nil || o.Trampoline != 0) {
		return refuse(EINVAL, o, "it has a function or a trampoline of its own", source)
	}
	for _, rec := range recs {
		x.Compared++
		if c.direct[rec] != 0 {
			return refuse(EINVAL, o, "the function has a direct trampoline already", source).at(c.Records[rec])
		}
	}
	filter := o.Filter.union(recs)
	x.HashEntries += len(c.direct) + len(recs) + len(filter)
	x.Hashes += 2
	x.HashCopied += len(c.direct) + len(o.Filter)
	for _, rec := range recs {
		x.enter(rec, to[rec]) // published before any site calls it
	}
	x.CallTasks++ // the old table, or the new one if this fails
	if o.has(OpsEnabled) {
		if err := x.claim(o, o.Filter, filter, false); err != nil {
			return err
		}
		return x.rehash(o, filter, 0)
	}
	x.setFilter(o, filter)
	x.direct(o, 0)
	return x.startup(o, 0)
}

// DirectDel takes functions' trampolines away (update_ftrace_direct_del): text
// first, then the table. EINVAL: no functions, or one has another trampoline than
// said or none; the ops is not attached.
func (c *Core) DirectDel(o *Ops, of map[int]records.Addr) (Report, error) {
	return c.do(func(x *change) error {
		const source = "update_ftrace_direct_del, 7.1"
		recs, err := x.present(o, of, source)
		if err != nil {
			return err
		}
		for _, rec := range recs {
			if c.direct[rec] != of[rec] {
				return refuse(EINVAL, o, "the function has another trampoline", source).at(c.Records[rec])
			}
		}
		filter := o.Filter.without(recs)
		x.Hashes++
		x.HashEntries += len(c.direct) - len(recs)
		x.HashCopied += len(c.direct) - len(recs)
		x.CallTasks++
		if len(filter) == 0 {
			if err := x.shutdown(o, 0); err != nil {
				return err
			}
			x.forget(o, recs)
			x.setFilter(o, nil)
			return nil
		}
		x.HashCopied += len(filter)
		if err := x.claim(o, o.Filter, filter, false); err != nil {
			return err // never: functions that stay were asked about before
		}
		if err := x.rehash(o, filter, len(filter)); err != nil {
			return err
		}
		for _, rec := range recs {
			x.enter(rec, 0)
		}
		return nil
	})
}

// DirectMod gives functions other trampolines (update_ftrace_direct_mod), in the
// two passes of ModifyDirect, over the given functions alone. EINVAL: no functions,
// one of them has none, or the ops is not attached; then what Share answers.
func (c *Core) DirectMod(o *Ops, to map[int]records.Addr) (Report, error) {
	return c.do(func(x *change) error {
		recs, err := x.present(o, to, "update_ftrace_direct_mod, 7.1")
		if err != nil {
			return err
		}
		return x.modifyDirect(o, recs, func(rec int) records.Addr { return to[rec] })
	})
}

// entries are the functions of a request, which must be of this architecture.
func (c *Core) entries(o *Ops, of map[int]records.Addr, source string) (Functions, error) {
	if !c.traits.SingleDirectOps {
		return nil, refuse(EOPNOTSUPP, o,
			"one ops for all trampolines: sites name their ops here, and an ops names one trampoline",
			"HAVE_SINGLE_FTRACE_DIRECT_OPS, 7.0: x86_64 alone")
	}
	if len(of) == 0 {
		return nil, refuse(EINVAL, o, "no functions", source)
	}
	recs := Functions(slices.Sorted(maps.Keys(of)))
	return recs, c.known(o, recs)
}

// present are the functions of a request that must all be attached.
func (x *change) present(o *Ops, of map[int]records.Addr, source string) (Functions, error) {
	recs, err := x.c.entries(o, of, source)
	if err != nil {
		return nil, err
	}
	if err := attachedDirect(o, source); err != nil {
		return nil, err
	}
	for _, rec := range recs {
		x.Compared++
		if x.c.direct[rec] == 0 || !o.Filter.Has(rec) {
			return nil, refuse(EINVAL, o, "the function has no direct trampoline of this ops",
				source).at(x.c.Records[rec])
		}
	}
	return recs, nil
}
