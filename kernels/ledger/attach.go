// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers"
)

// Way is a means of attaching to many functions.
type Way struct {
	Name  string
	Calls int // of the kernel's interface; 0 for one a function

	needs string // the mechanism that it needs
	one   string // the mechanism that gives all calls one ops
	call  func(r *Replay, recs []int, j int, on bool)
}

// GlobalOps is how many ops a global trampoline has in the RFC of 2025: one for
// each number of arguments (Menglong Dong, bpf list, 2025-07-03).
const GlobalOps = 12

var ways = []Way{
	{"fentry", 0, image.DirectCalls, image.DirectShared, linkOne},
	{"global-trampoline", GlobalOps, image.DirectCalls, image.DirectShared, globalTrampoline},
	{"tracing-multi", 1, image.DirectMulti, image.DirectMulti,
		func(r *Replay, recs []int, _ int, on bool) { r.tracingMulti(on, recs) }},
	{"kprobe-multi", 1, image.MultiProbes, image.MultiStatic,
		func(r *Replay, recs []int, _ int, on bool) { r.multi(on, recs) }},
}

// WayNames lists them.
func WayNames() []string { return spelling.Each(ways, func(w Way) string { return w.Name }) }

// ParseWay finds one by its name.
func ParseWay(s string) (Way, error) {
	return spelling.Find("way", s, ways, func(w Way) string { return w.Name })
}

// In tells whether a kernel can do it, and otherwise why not.
func (w Way) In(k *Kernel) error {
	if err := k.Facts.needs(w.needs, w.one); err != nil {
		return err
	}
	if k.Facts.value(w.needs) == 0 {
		return fmt.Errorf("%s: %s", k.Name(), k.Facts.Mechanisms[w.needs].Evidence)
	}
	return nil
}

// SharedDirectOps tells whether one ops serves all direct calls.
func (k *Kernel) SharedDirectOps() bool { return k.Facts.value(image.DirectShared) > 0 }

func linkOne(r *Replay, recs []int, _ int, on bool) {
	p := tracers.Prog{Kind: tracers.FEntry, Number: -2}
	if on {
		r.did(r.bpf.Link(recs[0], p))
	} else {
		r.did(r.bpf.Unlink(recs[0], p))
	}
}

// globalTrampoline attaches a trampoline to a share of the functions, as a direct call of
// an ops of its own or of the one that all have.
func globalTrampoline(r *Replay, recs []int, j int, on bool) {
	shared := r.core.Traits().SingleDirectOps
	at := r.core.Places.Trampolines + records.Addr(j+1)<<32
	to := make(map[int]records.Addr, len(recs))
	for _, rec := range recs {
		to[rec] = at
	}
	name := "bpf_global_caller"
	if !shared {
		name = fmt.Sprint(name, " ", j)
	}
	if r.ops[name] == nil {
		r.ops[name] = tracers.NewOps(name, nil, 0)
		if !shared {
			r.ops[name].Flags |= tracers.OpsDynamic
		}
	}
	o := r.ops[name]
	switch {
	case on:
		r.work.Images++
		r.work.Allocations++
		r.price(tracers.Step{Kind: tracers.StepImage, Ops: o})
	case r.core.Release.SkipProgram:
		r.price(tracers.Step{Kind: tracers.StepSkip, Ops: o})
	}
	switch {
	case shared && on:
		r.did(r.core.DirectAdd(o, to))
	case shared:
		r.did(r.core.DirectDel(o, to))
	case on:
		r.did(r.core.SetFilter(o, recs...))
		r.did(r.core.RegisterDirect(o, at))
	default:
		r.did(r.core.UnregisterDirect(o))
	}
}

// Kind is the reason for a round of attaching.
type Kind uint8

// The kinds.
const (
	ForRecords Kind = iota // the sites themselves
	ForEntries             // the calls in the common entries
	ForOrder               // ftrace_sync_ipi: variables that the entries load
	ForImages              // BPF trampolines that are made
	ForSkips               // programs that are patched out of them
	ForOwn                 // an ops' own trampoline
	ForWakeups             // CPUs that are woken for RCU
	ForOthers              // anything else, such as function_graph's own probe

	NumKinds = int(ForOthers) + 1
)

var kindNames = [...]string{"records", "entry-call", "order", "image", "old-image", "own-entry", "wakeup", "other"}

func (k Kind) String() string { return kindNames[k] }

// kind is the reason for a line.
func (l *Line) kind() Kind {
	switch l.Part {
	case "records":
		return ForRecords
	case "entry-calls":
		return ForEntries
	case "core-sync":
		return ForOrder
	case "tracer-trampoline":
		return ForOwn
	case "rcu":
		return ForWakeups
	case "bpf-image":
		if l.Cause == cpus.PageAttributes || l.Cause == cpus.CoreSync {
			return ForImages
		}
		return ForSkips
	}
	return ForOthers
}

// Tally is what attaching to some functions takes, or detaching from them.
type Tally struct {
	Functions, Calls, Ops int
	Rounds                [NumKinds]int
	SiteStores            int // to sites and their literals
	Work
}

// AllRounds is the sum over kinds.
func (t *Tally) AllRounds() int { return spelling.Sum(t.Rounds[:]) }

// fields are the numbers of a tally.
func (t *Tally) fields() []*int {
	out := []*int{&t.Functions, &t.Calls, &t.Ops, &t.SiteStores, &t.Images, &t.Patches, &t.Walked, &t.Copied,
		&t.Allocations, &t.ListChanges, &t.Waits}
	for i := range t.Rounds {
		out = append(out, &t.Rounds[i])
	}
	return out
}

// oneByOne is how many calls are carried out one by one at the most. From settled calls
// on, every number is a polynomial of the second degree in the number of calls of one
// function each: with each attached function, a call copies and walks by the same amount
// more. TestOneByOne compares that with replays of every call.
const (
	oneByOne = 64
	settled  = 8
)

// Attach is the price of attaching to the first n functions of total records, in the order in
// which the kernel walks them, while no other ops is attached; and of detaching from them,
// the first ones first.
func (k *Kernel) Attach(w Way, n, total int) (on, off Tally, err error) {
	if err := w.In(k); err != nil {
		return Tally{}, Tally{}, err
	}
	if n < 1 || n > total {
		return Tally{}, Tally{}, fmt.Errorf("%d functions of %d records", n, total)
	}
	if w.Calls > 0 || n <= oneByOne {
		return k.attach(w, n, total)
	}
	var ons, offs [3]Tally
	for i := range ons {
		if ons[i], offs[i], err = k.attach(w, settled+i, total); err != nil {
			return Tally{}, Tally{}, err
		}
	}
	return extended(ons, n-settled), extended(offs, n-settled), nil
}

// extended is the value of the polynomials of the second degree through three tallies, so
// many calls behind the first.
func extended(through [3]Tally, u int) (t Tally) {
	a, b, c := through[0].fields(), through[1].fields(), through[2].fields()
	for i, to := range t.fields() {
		*to = *a[i] + u*(*b[i]-*a[i]) + u*(u-1)/2*(*c[i]-2**b[i]+*a[i])
	}
	return t
}

// attach carries all calls out.
func (k *Kernel) attach(w Way, n, total int) (on, off Tally, err error) {
	bare := *k
	bare.state = nil
	r, err := bare.NewReplay(nil)
	if err != nil {
		return Tally{}, Tally{}, err
	}
	r.total = total
	r.tracer()
	calls := w.Calls
	if calls == 0 || calls > n {
		calls = n
	}
	all := spelling.Numbers(n)
	for _, t := range []*Tally{&on, &off} {
		for j := range calls {
			w.call(r, all[j*n/calls:(j+1)*n/calls:(j+1)*n/calls], j, t == &on)
		}
		t.Functions, t.Calls, t.Ops, t.Work = n, calls, calls, r.work
		if k.Facts.value(w.one) > 0 {
			t.Ops = 1
		} else if t == &on {
			t.Allocations += calls
		}
		t.SiteStores = t.Patches * k.storesPerRecord()
		lines, err := r.Take()
		if err != nil {
			return Tally{}, Tally{}, err
		}
		for i := range lines {
			t.Rounds[lines[i].kind()] += lines[i].Rounds()
		}
	}
	off.Images = on.Images
	return on, off, nil
}

// storesPerRecord is how often the plan of the kernel's protocol stores to a site.
func (k *Kernel) storesPerRecord() int {
	arch, err := cpus.ParseArch(k.Arch)
	if err != nil {
		panic(err) // a kernel is made of one that is known
	}
	p := poke.Named(k.Protocol, arch.Traits())
	site, err := arch.Site(0x1004, p.Layout) // where each architecture accepts a record
	if err != nil {
		panic(err)
	}
	var count poke.Count
	one := func(yield func(poke.Range) bool) { yield(poke.Range{From: 0, To: 1}) }
	if err := p.Compile(poke.Shape{Traits: arch.Traits(), Len: int(site.Len), Patches: 1}, one, count.Add); err != nil {
		panic(err)
	}
	return count.Writes
}

// Work is what a kernel does besides sending interrupts when somebody attaches or detaches.
type Work struct {
	Images      int // BPF trampolines generated
	Patches     int // sites changed
	Walked      int // records looked at, each time one is
	Copied      int // entries of hashes made
	Allocations int // of memory, entries included
	ListChanges int // of the list of ops
	Waits       int // until every task has scheduled (synchronize_rcu_tasks), one after the other
}

// hashParts is what a hash takes beside its entries: struct ftrace_hash and its
// buckets (alloc_ftrace_hash, kernel/trace/ftrace.c).
const hashParts = 2

// add adds the work of a change.
func (w *Work) add(rep *tracers.Report) {
	images := rep.Count(tracers.StepImage)
	w.Images += images
	w.Patches += rep.Patches()
	w.Walked += rep.Walked
	w.Copied += rep.HashEntries
	w.Allocations += images + rep.Count(tracers.StepTrampoline) + rep.HashEntries + hashParts*rep.Hashes
	w.ListChanges += rep.ListChanges
	w.Waits += rep.Count(tracers.StepTasks)
}
