// SPDX-License-Identifier: Apache-2.0

package tracers

import "github.com/textpoke/textpoke/records"

// Targets are the functions that a site may call; 0 for one that does not exist.
type Targets struct {
	Direct     records.Addr // what direct_functions says of the record
	Trampoline records.Addr // of the ops that has the site for itself
	RegsEntry  records.Addr // ftrace_regs_caller, FTRACE_REGS_ADDR
	Entry      records.Addr // ftrace_caller, FTRACE_ADDR
}

// New is the function that the site is to call (ftrace_get_addr_new): the direct trampoline of an
// only user, else the only ops' own trampoline, else an entry. ok is false where the flags promise
// a target that does not exist; the kernel warns and takes the next.
func (t Targets) New(f Flags) (to records.Addr, ok bool) {
	return t.choose(f.has(Direct) && f.Count() == 1, f.has(Tramp), f.has(Regs))
}

// Current is what the site calls now (ftrace_get_addr_curr), by what the flags say
// the text has.
func (t Targets) Current(f Flags) (to records.Addr, ok bool) {
	return t.choose(f.has(DirectEn), f.has(TrampEn), f.has(RegsEn))
}

func (t Targets) choose(direct, tramp, regs bool) (records.Addr, bool) {
	ok := true
	if direct {
		if t.Direct != 0 {
			return t.Direct, true
		}
		ok = false
	}
	switch {
	case tramp && t.Trampoline != 0:
		return t.Trampoline, ok
	case tramp:
		return t.Entry, false
	case regs:
		return t.RegsEntry, ok
	}
	return t.Entry, ok
}

// TrampolineNow is the ops whose trampoline an enabled site calls
// (ftrace_find_tramp_ops_curr), nil if there is none. An ops that is being removed
// comes first, by what it traced; one that is being added has not got to its sites
// yet; one that is being modified is judged by what it traced before.
func TrampolineNow(rec int, removed *Ops, list []*Ops) *Ops {
	if removed != nil && removed.old != nil && removed.old.has(rec) {
		return removed
	}
	for _, o := range list {
		switch {
		case o.Trampoline == 0 || o.has(OpsAdding):
		case o.has(OpsModifying):
			if o.old.has(rec) {
				return o
			}
		case o.hashes().has(rec):
			return o
		}
	}
	return nil
}

// TrampolineThen is the ops whose trampoline a site is to call
// (ftrace_find_tramp_ops_new), nil if there is none.
func TrampolineThen(rec int, list []*Ops) *Ops {
	for _, o := range list {
		if o.hashes().has(rec) {
			return o
		}
	}
	return nil
}

// Unique is the only ops that traces a record (ftrace_find_unique_ops), nil if
// there are none or several.
func Unique(rec int, list []*Ops) (only *Ops) {
	for _, o := range list {
		if !o.hashes().has(rec) {
			continue
		}
		if only != nil {
			return nil
		}
		only = o
	}
	return only
}
