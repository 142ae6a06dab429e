// SPDX-License-Identifier: Apache-2.0

package tracers

import (
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/records"
)

// Flags are a record's state and, in the low bits, how many ops want it called
// (struct dyn_ftrace.flags, include/linux/ftrace.h, Linux 6.6 and later). Pairs
// are the wanted state and, with En, that of the text.
type Flags uint64

// The flags of a record.
const (
	Enabled   Flags = 1 << 31 // the text holds a call
	Regs      Flags = 1 << 30 // the entry that saves all registers
	RegsEn    Flags = 1 << 29
	Tramp     Flags = 1 << 28 // the only ops' own trampoline
	TrampEn   Flags = 1 << 27
	IPModify  Flags = 1 << 26 // an ops that may change the instruction pointer is attached; at most one
	Disabled  Flags = 1 << 25 // not to be touched: module not ready, weak function
	Direct    Flags = 1 << 24 // a direct ops is attached
	DirectEn  Flags = 1 << 23
	CallOps   Flags = 1 << 22 // the site's literal names the only ops
	CallOpsEn Flags = 1 << 21
	Touched   Flags = 1 << 20 // was enabled once (6.5)
	Modified  Flags = 1 << 19 // was direct or ipmodify once
)

// RefMax is the most references that a record can count, FTRACE_REF_MAX: 2^19-1
// since Linux 6.6 (2^23-1 in 5.15 to 6.1, 2^25-1 in 5.0).
const RefMax = 1<<19 - 1

// noClear are the flags that outlive the last reference
// (FTRACE_NOCLEAR_FLAGS).
const noClear = Disabled | Touched | Modified

var flagNames = []named[Flags]{
	{Enabled, "ENABLED"}, {Regs, "REGS"}, {RegsEn, "REGS_EN"}, {Tramp, "TRAMP"}, {TrampEn, "TRAMP_EN"},
	{IPModify, "IPMODIFY"}, {Disabled, "DISABLED"}, {Direct, "DIRECT"}, {DirectEn, "DIRECT_EN"},
	{CallOps, "CALL_OPS"}, {CallOpsEn, "CALL_OPS_EN"}, {Touched, "TOUCHED"}, {Modified, "MODIFIED"},
}

// Count is how many ops want the record called.
func (f Flags) Count() int { return int(f & RefMax) }

// has tells whether any of the bits is set.
func (f Flags) has(bits Flags) bool { return f&bits != 0 }

// with sets or clears bits.
func (f Flags) with(bits Flags, on bool) Flags {
	if on {
		return f | bits
	}
	return f &^ bits
}

// String is the count and the flags that are set: "2 ENABLED REGS REGS_EN".
func (f Flags) String() string {
	return strings.Join(append([]string{strconv.Itoa(f.Count())}, namesOf(f, flagNames)...), " ")
}

// named is a bit with its name.
type named[F Flags | OpsFlags] struct {
	flag F
	name string
}

// namesOf are the names of the bits that are set.
func namesOf[F Flags | OpsFlags](f F, all []named[F]) []string {
	set := spelling.Where(all, func(n named[F]) bool { return f&n.flag != 0 })
	return spelling.Each(set, func(n named[F]) string { return n.name })
}

// Decision is what an update does to a record (FTRACE_UPDATE_*).
type Decision uint8

// The decisions.
const (
	Ignore Decision = iota
	MakeCall
	ModifyCall
	MakeNop
)

var decisionNames = [...]string{"ignore", "make call", "modify call", "make nop"}

func (d Decision) String() string { return decisionNames[d] }

// Decide returns the update of a record with these flags, and its flags afterwards.
// enable is false where everything is switched off at once, for every ops
// (kernel.ftrace_enabled=0). It is ftrace_check_record (kernel/trace/ftrace.c,
// Linux 7.1).
func Decide(f Flags, enable bool) (Decision, Flags) {
	if f.has(Disabled) && !f.has(Enabled) {
		return Ignore, f // skip_record
	}
	if !enable || f.Count() == 0 {
		if !f.has(Enabled) {
			return Ignore, f
		}
		if f.Count() == 0 {
			return MakeNop, f & noClear
		}
		return MakeNop, f &^ (Enabled | TrampEn | RegsEn | DirectEn | CallOpsEn)
	}
	differs := differing(f)
	if f.has(Enabled) && differs == 0 {
		return Ignore, f
	}
	to := f | Enabled | Touched
	if f.has(Direct | IPModify) {
		to |= Modified
	}
	for _, p := range pairs {
		if differs.has(p.want) {
			to = to.with(p.have, p.wanted(f))
		}
	}
	if f.has(Enabled) {
		return ModifyCall, to
	}
	return MakeCall, to
}

// pairs are the ways that a site can be called in other than the plain one.
// Direct and CallOps go for an only user.
var pairs = []pair{
	{Regs, RegsEn, false}, {Tramp, TrampEn, false}, {Direct, DirectEn, true}, {CallOps, CallOpsEn, true},
}

type pair struct {
	want, have Flags
	only       bool
}

// wanted tells whether the text is to have it.
func (p pair) wanted(f Flags) bool { return f.has(p.want) && (!p.only || f.Count() == 1) }

// differing are the flags whose wish and text differ.
func differing(f Flags) (d Flags) {
	for _, p := range pairs {
		if p.wanted(f) != f.has(p.have) {
			d |= p.want
		}
	}
	return d
}

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

// Current is the target that the site calls now (ftrace_get_addr_curr), by the flags of
// the text.
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
// comes first, by its old functions; one that is being added has not got to its sites
// yet; one that is being modified counts with its old functions.
func TrampolineNow(rec int, removed *Ops, list []*Ops) *Ops {
	if removed != nil && removed.old != nil && removed.old.choose(rec) {
		return removed
	}
	for _, o := range list {
		switch {
		case o.Trampoline == 0 || o.has(OpsAdding):
		case o.has(OpsModifying):
			if o.old.choose(rec) {
				return o
			}
		case o.Filter.choose(rec):
			return o
		}
	}
	return nil
}

// TrampolineThen is the ops whose trampoline a site is to call
// (ftrace_find_tramp_ops_new), nil if there is none.
func TrampolineThen(rec int, list []*Ops) *Ops {
	return spelling.First(list, func(o *Ops) bool { return o.Filter.choose(rec) })
}

// Unique is the only ops that traces a record (ftrace_find_unique_ops), nil if
// there are none or several.
func Unique(rec int, list []*Ops) (only *Ops) {
	for _, o := range list {
		if !o.Filter.choose(rec) {
			continue
		}
		if only != nil {
			return nil
		}
		only = o
	}
	return only
}

// Share is the command to a direct ops that is to live with one that may change the instruction
// pointer (enum ftrace_ops_cmd, include/linux/ftrace.h).
type Share uint8

// The questions.
const (
	ShareSelf   Share = iota // it comes second: FTRACE_OPS_CMD_ENABLE_SHARE_IPMODIFY_SELF
	SharePeer                // it was first: FTRACE_OPS_CMD_ENABLE_SHARE_IPMODIFY_PEER
	UnsharePeer              // the other one has gone: FTRACE_OPS_CMD_DISABLE_SHARE_IPMODIFY_PEER
)

// claim marks the functions whose instruction pointer an ops may change, and asks
// a direct ops whether it can share one (__ftrace_hash_update_ipmodify). anew
// asks again about what it has already: its trampoline is another one.
func (x *change) claim(o *Ops, from, to Functions, anew bool) error {
	const source = "__ftrace_hash_update_ipmodify, 7.1"
	if !o.has(OpsEnabled) || !o.has(OpsIPModify|OpsDirect) || o.has(OpsIPModify) && o.has(OpsDirect) {
		return nil
	}
	if len(to) == 0 && len(from) == 0 || len(to) == 0 && o.alive == attached {
		return refuse(EINVAL, o, "all functions at once", source)
	}
	c := x.c
	x.Walked += len(c.flags)
	for _, rec := range from.without(to) {
		if o.has(OpsIPModify) {
			x.touch(rec)
			c.flags[rec] &^= IPModify
		}
	}
	for _, rec := range to {
		switch {
		case !anew && from.Has(rec) || c.flags[rec].has(Disabled):
		case !c.flags[rec].has(IPModify):
			if o.has(OpsIPModify) {
				x.touch(rec)
				c.flags[rec] |= IPModify
			}
		case o.has(OpsIPModify):
			return refuse(EBUSY, o, "another ops may change the function's instruction pointer",
				source).at(c.Records[rec])
		case o.Share == nil:
			return refuse(EBUSY, o,
				"another ops may change the function's instruction pointer, and this one cannot share it",
				source).at(c.Records[rec])
		default:
			if err := o.Share(ShareSelf, rec); err != nil {
				return err
			}
		}
	}
	return nil
}

// askPeers asks direct ops on the same functions to share them
// (prepare_direct_functions_for_ipmodify).
func (x *change) askPeers(o *Ops) error {
	return x.peers(o, func(peer *Ops, rec int) error {
		if peer.Share == nil {
			return refuse(EBUSY, o,
				"the direct ops "+peer.Name+
					" on the function cannot share it with one that may change the instruction pointer",
				"prepare_direct_functions_for_ipmodify, 7.1").at(x.c.Records[rec])
		}
		return peer.Share(SharePeer, rec)
	})
}

// peers goes through the direct ops on the functions of one that may change the
// instruction pointer.
func (x *change) peers(o *Ops, f func(peer *Ops, rec int) error) error {
	if !o.has(OpsIPModify) {
		return nil
	}
	for _, rec := range o.Filter {
		for _, u := range x.c.users[rec] {
			if u.has(OpsDirect) {
				if err := f(u, rec); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}
