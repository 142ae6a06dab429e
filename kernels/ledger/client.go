// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/image"
)

// build makes n BPF trampolines: the protection of their pages changes each time, or the
// buffer in which one is built is freed.
func (r *Replay) build(n int) {
	r.in("bpf-image", func() {
		each := r.mech(image.DirectFlushes)
		r.flush(n*each, fmt.Sprintf("%d BPF trampolines: %s", n, r.k.Facts.Mechanisms[image.DirectFlushes].Evidence))
	})
}

// cut takes an old BPF trampoline out of use: what returns into it skips the programs
// (bpf_tramp_image_put, kernel/bpf/trampoline.c).
func (r *Replay) cut(n int) {
	r.in("bpf-image", func() {
		r.sent(
			cpus.Trampoline,
			r.k.callRow,
			n,
			r.mech(image.BatchRounds),
			Assumed,
			"old BPF trampolines are cut off, one by one",
		)
	})
}

// directly attaches a BPF program to one function, or detaches it. There may be one
// already: then a second ops stands in for the first one while it is changed
// (modify_ftrace_direct, kernel/trace/ftrace.c).
func (r *Replay) directly(symbol string, on, exit bool) {
	o := directOps
	if r.mech(image.DirectShared) == 0 {
		o = direct(symbol)
	}
	users := r.shared["fentry "+symbol]
	cuts := exit || r.mech(image.DirectCuts) > 0
	if r.mech(image.DirectCalls) == 0 {
		r.fail("direct calls: no rule holds: %s", r.k.Facts.Mechanisms[image.DirectCalls].Evidence)
		return
	}
	if on {
		r.shared["fentry "+symbol]++
		r.build(1)
		switch {
		case users > 0:
			if exit {
				r.cut(1)
			}
			r.swap()
		case r.attached(o.name):
			r.update(1, 1)
		default:
			r.attach(o, 1, 1)
		}
		if users == 0 {
			r.shared[o.name]++
		}
		return
	}
	r.shared["fentry "+symbol]--
	if cuts {
		r.cut(1)
	}
	if users > 1 {
		r.build(1)
		r.swap()
		return
	}
	if r.shared[o.name]--; r.shared[o.name] > 0 {
		r.update(1, 1)
		return
	}
	r.detach(o.name, 1, 1)
}

// direct is the ops of one function's BPF trampoline.
func direct(symbol string) *ops {
	return &ops{name: "direct call of " + symbol, dynamic: true, direct: true}
}

// boot is what is attached once the kernel has booted.
func (r *Replay) boot() {
	if r.k.Facts.value(image.DirectAtBoot) == 0 {
		return
	}
	r.ops = append(r.ops, direct("__hid_bpf_tail_call"))
	r.chosen = r.choose()
	r.entry = r.chosen
}

func (r *Replay) attached(name string) bool {
	for _, o := range r.ops {
		if o.name == name {
			return true
		}
	}
	return false
}

// swap gives one function another direct call.
func (r *Replay) swap() {
	r.made[temporary.name] = true
	r.attach(temporary, 1, 1)
	r.detach(temporary.name, 1, 1)
}

// multi is kprobe_multi on n functions: an fprobe (kernel/trace/fprobe.c).
func (r *Replay) multi(on bool, n, batches int) {
	o := aFprobe
	switch {
	case r.mech(image.MultiProbes) == 0:
		r.fail("kprobe-multi: no rule holds: %s", r.k.Facts.Mechanisms[image.MultiProbes].Evidence)
		return
	case r.mech(image.MultiGraph) > 0:
		r.graphUser(on, n, batches)
		return
	case r.mech(image.MultiStatic) > 0:
		o = multiOps
	}
	if on {
		r.attach(o, n, batches)
		return
	}
	r.detach(o.name, n, batches)
}

// tracingMulti is one BPF link to n functions (bpf_trampoline_multi_attach): only the
// records are batched.
func (r *Replay) tracingMulti(on bool, n, batches int) {
	if r.mech(image.DirectMulti) == 0 {
		r.fail("tracing-multi: no rule holds: %s", r.k.Facts.Mechanisms[image.DirectMulti].Evidence)
		return
	}
	if on {
		r.build(n)
		r.attach(directOps, n, batches)
		return
	}
	r.cut(n)
	r.detach(directOps.name, n, batches)
}

// probe is a kprobe on a record, or inside of a function.
func (r *Replay) probe(inside, on bool) {
	if !inside && r.mech(image.ProbeOnRecord) > 0 {
		users := r.shared[kprobeOps.name]
		if r.shared[kprobeOps.name]++; !on {
			r.shared[kprobeOps.name] -= 2
		}
		switch {
		case on && users == 0:
			r.attach(kprobeOps, 1, 1)
		case !on && users == 1:
			r.detach(kprobeOps.name, 1, 1)
		default:
			r.update(1, 1)
		}
		return
	}
	optimised := func() {
		if inside && r.mech(image.BatchRounds) > 0 && r.mech(image.ProbeRounds) > 0 {
			n := r.mech(image.BatchRounds)
			if !on {
				n = 2 // breakpoint, round, tail, round: arch_unoptimize_kprobe, arch/x86/kernel/kprobes/opt.c
			}
			r.sent(cpus.EntryCall, r.k.callRow, 1, n, Assumed, "the probe is optimised, where its instructions allow it, or was")
		}
	}
	r.in("breakpoint", func() {
		if !on {
			optimised()
		}
		r.sent(
			cpus.EntryCall,
			r.k.callRow,
			1,
			r.mech(image.ProbeRounds),
			r.k.Facts.code(),
			"a breakpoint is placed, or taken away",
		)
		r.sent(
			cpus.Stop,
			r.k.StopRow,
			1,
			r.mech(image.ProbeStops),
			r.k.Facts.code(),
			"every CPU stands still while a breakpoint is placed, or taken away",
		)
		if on {
			optimised()
		}
	})
}
