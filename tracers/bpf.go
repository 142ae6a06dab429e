// SPDX-License-Identifier: Apache-2.0

package tracers

import (
	"errors"
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/records"
)

// ProgKind is where a BPF program runs in a function.
type ProgKind uint8

// The kinds of programs (BPF_TRAMP_*).
const (
	FEntry ProgKind = iota
	FExit
	FModRet
)

// MaxTrampLinks is how many programs a trampoline can have: BPF_MAX_TRAMP_LINKS
// (include/linux/bpf.h, 6.12). In 7.2.13 it is 36 on x86_64 and 37 on arm64.
const MaxTrampLinks = 38

// Prog is one attached program; programs with the same number are the same.
type Prog struct {
	Kind   ProgKind
	Number int
}

// BPF is the trampolines of BPF programs (kernel/bpf/trampoline.c, Linux 7.1): a
// function's programs share one, which is generated anew whenever they change.
type BPF struct {
	c      *Core
	tramps map[int]*bpfTramp
	single *Ops // of all trampolines, where one ops has them (7.0)
	next   records.Addr
}

// bpfTramp is the trampoline of a function.
type bpfTramp struct {
	b     *BPF
	rec   int
	ops   *Ops
	progs []Prog
	image records.Addr // what the site calls; 0 before the first program
	share bool         // a live patch is on the function (BPF_TRAMP_F_SHARE_IPMODIFY)
	orig  bool         // the image calls the original function (BPF_TRAMP_F_CALL_ORIG)
	stack bool         // and takes its address from the stack, as a live patch needs it (BPF_TRAMP_F_ORIG_STACK)
}

// NewBPF puts BPF trampolines on a tracer; images lie from an address upwards, a
// page each.
func NewBPF(c *Core, images records.Addr) *BPF {
	b := &BPF{c: c, tramps: map[int]*bpfTramp{}, next: images, single: NewOps("direct_ops", nil, 0)}
	b.single.Share = b.share
	return b
}

// Has tells whether a function has a trampoline.
func (b *BPF) Has(rec int) bool { return b.tramps[rec] != nil }

// Link attaches a program to a function (bpf_trampoline_link_prog). E2BIG: there
// are MaxTrampLinks. EBUSY: this one is attached already. Then what direct calls
// are refused with. When a live patch asks for another kind of image the
// trampoline is generated again, and no caller sees the EAGAIN.
func (b *BPF) Link(rec int, p Prog) (Report, error) {
	return b.c.do(func(x *change) error {
		t, err := b.join(x, rec, p)
		if err != nil {
			return err
		}
		return t.update(x)
	})
}

// join puts a program into a function's trampoline, which is still to be
// generated.
func (b *BPF) join(x *change, rec int, p Prog) (*bpfTramp, error) {
	const source = "__bpf_trampoline_link_prog, 7.1"
	t := b.tramps[rec]
	if t == nil {
		t = &bpfTramp{b: b, rec: rec, ops: b.single}
		if !b.c.traits.SingleDirectOps {
			t.ops = NewOps(fmt.Sprintf("trampoline of record %d", rec), nil, OpsDynamic, rec)
			x.HashEntries++ // its filter
			x.Hashes++
			t.ops.Share = b.share
		}
		b.tramps[rec] = t
		x.later(func() { delete(b.tramps, rec) })
	}
	t.remember(x)
	switch {
	case len(t.progs) >= MaxTrampLinks:
		return nil, refuse(E2BIG, t.ops, fmt.Sprintf("the trampoline has %d programs", MaxTrampLinks), source)
	case slices.Contains(t.progs, p):
		return nil, refuse(EBUSY, t.ops, "the program is attached already", source)
	}
	t.progs = append(slices.Clone(t.progs), p)
	return t, nil
}

// Unlink takes a program away (bpf_trampoline_unlink_prog); the last one takes the
// trampoline along. ENOENT: it is not attached.
func (b *BPF) Unlink(rec int, p Prog) (Report, error) {
	return b.c.do(func(x *change) error {
		t := b.tramps[rec]
		if t == nil || !slices.Contains(t.progs, p) {
			return &Error{Errno: ENOENT, Why: "no such program is attached", Source: "bpf_trampoline_unlink_prog, 7.1"}
		}
		t.leave(x, p)
		if err := t.update(x); err != nil {
			return err
		}
		b.drop(x, t)
		return nil
	})
}

// leave takes a program out of a trampoline, which is still to be generated
// (bpf_trampoline_remove_prog).
func (t *bpfTramp) leave(x *change, p Prog) {
	t.remember(x)
	t.progs = slices.DeleteFunc(slices.Clone(t.progs), func(q Prog) bool { return q == p })
	if t.b.c.Release.SkipProgram {
		x.step(StepSkip, t.ops)
	}
}

// drop forgets a trampoline without programs.
func (b *BPF) drop(x *change, t *bpfTramp) {
	if len(t.progs) == 0 {
		delete(b.tramps, t.rec)
		x.later(func() { b.tramps[t.rec] = t })
	}
}

// remember says how the trampoline is taken back.
func (t *bpfTramp) remember(x *change) {
	was := *t
	x.later(func() { *t = was })
}

// update generates the trampoline for its programs and gets it called
// (bpf_trampoline_update).
func (t *bpfTramp) update(x *change) error {
	cut := t.image != 0 && t.orig && !t.b.c.Release.SkipProgram
	if err := t.replace(x); err != nil {
		return err
	}
	if cut {
		x.step(StepSkip, t.ops)
	}
	return nil
}

// replace gets a new image called, or none where no program is left.
func (t *bpfTramp) replace(x *change) (err error) {
	if len(t.progs) == 0 {
		if c := t.b.c; c.traits.SingleDirectOps {
			_, err = c.DirectDel(t.ops, map[int]records.Addr{t.rec: t.image})
		} else {
			_, err = c.UnregisterDirect(t.ops)
		}
		t.image = 0
		return err
	}
	for {
		image := t.generate(x)
		err := t.call(image)
		if t.again(err) {
			x.Regenerations++
			continue
		}
		if err == nil {
			t.image = image
		}
		return err
	}
}

// generate makes a new image for the trampoline's programs.
func (t *bpfTramp) generate(x *change) (image records.Addr) {
	t.orig = slices.ContainsFunc(t.progs, func(p Prog) bool { return p.Kind != FEntry })
	t.stack = t.orig && t.share
	image = t.b.next
	t.b.next += trampolineStep
	x.step(StepImage, t.ops)
	return image
}

// again tells whether a refusal means that another kind of image is wanted.
func (t *bpfTramp) again(err error) bool {
	var e *Error
	return t.orig && t.share && !t.stack && errors.As(err, &e) && e.Errno == EAGAIN
}

// call makes the site call an image: the first (register_fentry) or another one
// (modify_fentry).
func (t *bpfTramp) call(image records.Addr) (err error) {
	c := t.b.c
	switch one := map[int]records.Addr{t.rec: image}; {
	case c.traits.SingleDirectOps && t.image == 0:
		_, err = c.DirectAdd(t.ops, one)
	case c.traits.SingleDirectOps:
		_, err = c.DirectMod(t.ops, one)
	case t.image == 0:
		_, err = c.RegisterDirect(t.ops, image)
	default:
		_, err = c.ModifyDirect(t.ops, image)
	}
	return err
}

// share answers for a function's trampoline (bpf_tramp_ftrace_ops_func). One that
// calls the original function must take its address from the stack, where a live
// patch has changed it.
func (b *BPF) share(ask Share, rec int) error {
	t, x := b.tramps[rec], b.c.change
	if t == nil {
		return nil
	}
	switch ask {
	case ShareSelf:
		if t.orig && !t.stack {
			t.share = true
			return refuse(EAGAIN, t.ops, "the trampoline must be generated again for a live patch",
				"bpf_tramp_ftrace_ops_func, 7.1").at(b.c.Records[rec])
		}
	case SharePeer:
		t.remember(x)
		if t.share = true; t.orig && !t.stack {
			x.Regenerations++
			return t.update(x)
		}
	case UnsharePeer:
		t.remember(x)
		if t.share = false; t.stack {
			x.Regenerations++
			return t.update(x)
		}
	}
	return nil
}
