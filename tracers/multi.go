// SPDX-License-Identifier: Apache-2.0

package tracers

import (
	"slices"

	"github.com/textpoke/textpoke/records"
)

// LinkMulti attaches a program to many functions at once: one update for those
// without a trampoline and one for the others (bpf_trampoline_multi_attach,
// aef4dfa790b2, 7.2 cycle). All functions get it or none. Errors are those of
// Link; EOPNOTSUPP where each trampoline needs an ops of its own.
func (b *BPF) LinkMulti(recs []int, p Prog) (Report, error) {
	return b.c.do(func(x *change) error {
		if !b.c.traits.SingleDirectOps {
			return refuse(EOPNOTSUPP, b.single, "each trampoline needs an ops of its own",
				"bpf_trampoline_multi_attach, aef4dfa790b2")
		}
		var all []*bpfTramp
		for _, rec := range FunctionsOf(recs...) {
			t, err := b.join(x, rec, p)
			if err != nil {
				return err
			}
			all = append(all, t)
		}
		for {
			err := b.callAll(x, all)
			if !slices.ContainsFunc(all, func(t *bpfTramp) bool { return t.again(err) }) {
				return err
			}
			x.Regenerations += len(all)
		}
	})
}

// UnlinkMulti takes a program away from many functions at once
// (bpf_trampoline_multi_detach). ENOENT: it is not attached to one of them; EOPNOTSUPP
// where each trampoline needs an ops of its own.
func (b *BPF) UnlinkMulti(recs []int, p Prog) (Report, error) {
	return b.c.do(func(x *change) error {
		const source = "bpf_trampoline_multi_detach, aef4dfa790b2"
		if !b.c.traits.SingleDirectOps {
			return refuse(EOPNOTSUPP, b.single, "each trampoline needs an ops of its own", source)
		}
		gone, stays := map[int]records.Addr{}, map[int]records.Addr{}
		var all []*bpfTramp
		for _, rec := range FunctionsOf(recs...) {
			t := b.tramps[rec]
			if t == nil || !slices.Contains(t.progs, p) {
				return &Error{Errno: ENOENT, Record: b.c.Records[rec], Why: "no such program is attached", Source: source}
			}
			if t.leave(x, p); len(t.progs) == 0 {
				gone[rec] = t.image
			} else {
				stays[rec] = t.generate(x)
			}
			all = append(all, t)
		}
		if len(gone) > 0 {
			if _, err := b.c.DirectDel(b.single, gone); err != nil {
				return err
			}
		}
		if len(stays) > 0 {
			if _, err := b.c.DirectMod(b.single, stays); err != nil {
				return err
			}
		}
		for _, t := range all {
			t.image = stays[t.rec]
			b.drop(x, t)
		}
		return nil
	})
}

// callAll generates trampolines and gets them called.
func (b *BPF) callAll(x *change, all []*bpfTramp) error {
	first, other := map[int]records.Addr{}, map[int]records.Addr{}
	for _, t := range all {
		if image := t.generate(x); t.image == 0 {
			first[t.rec] = image
		} else {
			other[t.rec] = image
		}
	}
	_, err := b.c.do(func(x *change) error {
		if len(first) > 0 {
			if err := x.directAdd(b.single, first); err != nil {
				return err
			}
		}
		if len(other) > 0 {
			_, err := b.c.DirectMod(b.single, other)
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, t := range all {
		t.image = first[t.rec] + other[t.rec]
	}
	return nil
}

// GlobalTramps is the proposal of one trampoline for many functions, told apart by
// metadata (Menglong Dong, "bpf: tracing multi-link support", v2, July 2025; not
// merged). There is one for each number of arguments, each with a direct ops.
type GlobalTramps struct {
	b     *BPF
	ops   map[int]*Ops // by number of arguments
	progs map[int][]Prog
	at    records.Addr
}

// NewGlobalTramps puts global trampolines beside BPF's own, from an address
// upwards.
func NewGlobalTramps(b *BPF, at records.Addr) *GlobalTramps {
	return &GlobalTramps{b: b, ops: map[int]*Ops{}, progs: map[int][]Prog{}, at: at}
}

// Link attaches a program to functions with some number of arguments. EEXIST: one
// of them has a trampoline of its own (v2's cover letter; v1 took it over). EBUSY:
// the program is attached already, or another direct trampoline is there.
func (g *GlobalTramps) Link(args int, p Prog, recs ...int) (Report, error) {
	const source = "bpf_gtrampoline_link_prog, RFC v2, July 2025"
	return g.b.c.do(func(x *change) error {
		o := g.ops[args]
		if o == nil {
			o = NewOps("bpf_global_caller", nil, 0)
		}
		var fresh Functions
		for _, rec := range FunctionsOf(recs...) {
			switch {
			case g.b.Has(rec):
				return refuse(EEXIST, o, "the function has a BPF trampoline of its own", source).at(g.b.c.Records[rec])
			case slices.Contains(g.progs[rec], p):
				return refuse(EBUSY, o, "the program is attached already", source).at(g.b.c.Records[rec])
			case len(g.progs[rec]) == 0:
				fresh = append(fresh, rec)
			}
		}
		for _, rec := range recs {
			was := g.progs[rec]
			x.later(func() { g.progs[rec] = was })
			g.progs[rec] = append(slices.Clone(was), p)
		}
		if len(fresh) == 0 {
			return nil // metadata alone changes
		}
		if err := g.extend(x, o, args, fresh); err != nil {
			return err
		}
		g.ops[args] = o
		return nil
	})
}

// extend adds functions to a global trampoline's ops: at first as any direct ops,
// later by resetting its filter (reset_ftrace_direct_ips).
func (g *GlobalTramps) extend(x *change, o *Ops, args int, fresh Functions) error {
	addr := g.at + records.Addr(args)*trampolineStep
	if !o.has(OpsEnabled) {
		o.Filter = fresh
		return x.registerDirect(o, addr)
	}
	for _, rec := range fresh {
		if x.c.direct[rec] != 0 {
			return refuse(EBUSY, o, "the function has a direct trampoline already",
				"reset_ftrace_direct_ips, RFC v2, July 2025").at(x.c.Records[rec])
		}
	}
	x.publish(fresh, addr)
	x.CallTasks++
	filter := o.Filter.union(fresh)
	if err := x.claim(o, o.Filter, filter, false); err != nil {
		return err
	}
	return x.rehash(o, filter, len(filter))
}
