// SPDX-License-Identifier: Apache-2.0

package tracers

import (
	"maps"
	"slices"

	"github.com/textpoke/textpoke/records"
)

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
		return x.rehash(o, hashes{filter, nil}, 0)
	}
	x.setHashes(o, hashes{filter, nil})
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
			x.setHashes(o, hashes{})
			return nil
		}
		x.HashCopied += len(filter)
		if err := x.claim(o, o.Filter, filter, false); err != nil {
			return err // never: functions that stay were asked about before
		}
		if err := x.rehash(o, hashes{filter, nil}, len(filter)); err != nil {
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
