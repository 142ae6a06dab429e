// SPDX-License-Identifier: Apache-2.0

package tracers

import (
	"slices"

	"github.com/textpoke/textpoke/records"
)

// each goes through the records that hashes choose, in table order, and leaves
// out those that are disabled (__ftrace_hash_rec_update). It counts what the
// kernel's loop walks over: all records, or up to the last one that the filter
// names.
func (x *change) each(h hashes, f func(rec int)) {
	c := x.c
	if len(h.filter) == 0 {
		x.Walked += len(c.flags)
		x.touched = slices.Grow(x.touched, len(c.flags))
		for rec := range c.flags {
			if !c.flags[rec].has(Disabled) && h.has(rec) {
				f(rec)
			}
		}
		return
	}
	last := -1
	for _, rec := range h.filter {
		if !c.flags[rec].has(Disabled) && h.has(rec) {
			last = rec
			f(rec)
		}
	}
	x.Walked += last + 1
	if len(h.notrace) > 0 || last < 0 { // the kernel's count of matches never gets there
		x.Walked += len(c.flags) - last - 1
	}
}

// account counts the functions that an ops wants, or no longer wants, and says
// whether any site has to change for it.
func (x *change) account(o *Ops, h hashes, inc bool) (update bool, err error) {
	c := x.c
	x.each(h, func(rec int) {
		if err != nil {
			return
		}
		x.touch(rec)
		if inc && c.flags[rec].Count() == RefMax {
			err = refuse(EINVAL, o, "the record's count is at its maximum",
				"__ftrace_hash_rec_update, 7.1 (warns and goes on uncounted)").at(c.Records[rec])
			return
		}
		if inc {
			c.users[rec] = append(c.users[rec], o) // behind what an undo may put back
			c.flags[rec] = c.included(rec, o)
		} else {
			c.users[rec] = without(c.users[rec], o)
			c.flags[rec] = c.excluded(rec, o)
		}
		d, _ := Decide(c.flags[rec], true)
		update = update || d != Ignore
	})
	return update, err
}

// without is users but for one, in a slice that an undo's may share.
func without(users []*Ops, o *Ops) []*Ops {
	switch i := slices.Index(users, o); i {
	case -1:
		return users
	case 0:
		return users[1:]
	default:
		return slices.Concat(users[:i], users[i+1:])
	}
}

// included is a record's flags once an ops more counts on it.
func (c *Core) included(rec int, o *Ops) Flags {
	f := c.flags[rec] + 1
	if o.has(OpsDirect) {
		f |= Direct
	}
	f = f.with(Tramp, f.Count() == 1 && o.Trampoline != 0)
	if o.has(OpsSaveRegs) {
		f |= Regs
	}
	return c.callOps(f, o)
}

// excluded is a record's flags once an ops less counts on it.
func (c *Core) excluded(rec int, o *Ops) Flags {
	f := c.flags[rec] - 1
	if o.has(OpsDirect) {
		f &^= Direct
	}
	others := c.users[rec]
	if f.Count() > 0 && f.has(Regs) && o.has(OpsSaveRegs) {
		// While a filter changes, the ops is still in the list with its old one and finds itself:
		// the flag stays though no ops needs it any more.
		f = f.with(Regs, o.alive == attached || slices.ContainsFunc(others,
			func(u *Ops) bool { return u.has(OpsSaveRegs) }))
	}
	f = f.with(Tramp, f.Count() == 1 && slices.ContainsFunc(others, func(u *Ops) bool { return u.Trampoline != 0 }))
	return c.callOps(f, o)
}

// callOps decides whether the literal may name the only ops: it is asked of the
// ops that comes or goes, also where it is the one that goes and another stays.
// So the kernel does, and a guarded ops that stays alone is then called without
// its guard.
func (c *Core) callOps(f Flags, o *Ops) Flags {
	return f.with(CallOps, c.traits.CallOps && f.Count() == 1 && o.Effective() == o.Func)
}

// targets are what a record may be made to call, with the ops that has it for
// itself.
func (c *Core) targets(rec int, own *Ops) Targets {
	t := Targets{Direct: c.direct[rec], Entry: c.Places.Entry, RegsEntry: c.Places.RegsEntry}
	if own != nil {
		t.Trampoline = own.Trampoline
	}
	return t
}

// now is what a record's site calls by its flags.
func (c *Core) now(rec int) (records.Addr, bool) {
	candidates := c.users[rec]
	if m := c.modifying; m != nil && !slices.Contains(candidates, m) {
		candidates = append(slices.Clip(candidates), m)
	}
	return c.targets(rec, TrampolineNow(rec, c.removed, candidates)).Current(c.flags[rec])
}

// then is what a record's site is to call by its flags.
func (c *Core) then(rec int) (records.Addr, bool) {
	return c.targets(rec, TrampolineThen(rec, c.users[rec])).New(c.flags[rec])
}
