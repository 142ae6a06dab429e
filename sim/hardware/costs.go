// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package hardware

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/internal/threads"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/kernels/microbench"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/poke/live"
	"github.com/textpoke/textpoke/records"
)

// bench is a machine on which costs are measured.
type bench struct {
	*live.Machine
	on      [2]int // CPUs: the patcher's, the caller's
	code    *cpus.Code
	patches []poke.Patch
}

const (
	// benchSites lie benchApart bytes from each other, as a kernel's do on average (42,757 of
	// Linux 6.12 in 13 MB of text): more than the first caches hold.
	benchSites, benchApart = 4096, 320
	trapsAPass             = 200
)

// Allowed is how many CPUs this process may use.
func Allowed() (int, error) {
	list, err := threads.Allowed()
	return len(list), err
}

// Benches measure the patcher's steps at a site and the cost of a breakpoint, in user space,
// on a machine of their own until done is called.
func Benches() (list []microbench.Bench, done func(), err error) {
	b, err := newBench()
	if err != nil {
		return nil, nil, err
	}
	return b.list(), func() { _ = b.Close() }, nil
}

func newBench() (*bench, error) {
	allowed, err := threads.Allowed()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	if len(allowed) < 2 {
		return nil, fmt.Errorf("%w: this process may use one CPU, and another is to execute the sites", ErrNone)
	}
	b := &bench{on: [2]int(allowed), code: &cpus.Code{Arch: live.Arch, Traits: live.Arch.Traits(), Entry: 0xffffffff81000000}}
	for i := range benchSites {
		at, err := live.Arch.Site(b.code.Entry+0x1000+records.Addr(benchApart*i), isa.Pair)
		call, _, wrong := live.Arch.Enabled(at, isa.Destination{Target: b.code.Entry, Entry: b.code.Entry})
		if err := cmp.Or(err, wrong); err != nil {
			return nil, err
		}
		b.code.Sites, b.code.Len = append(b.code.Sites, at.Addr), int(at.Len)
		b.patches = append(b.patches, poke.Patch{Site: int32(i), Addr: at.Addr, Old: live.Arch.Disabled(at), New: call})
	}
	b.code.Complete()
	b.Machine, err = live.Open(live.Config{Code: b.code, Threads: 1,
		Initial: func(i int) isa.Text { return b.patches[i].Old }})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	return b, nil
}

// list are the measurements.
func (b *bench) list() []microbench.Bench {
	const trap = "half of int3, SIGTRAP, its handler and back, in user space: a signal and not a trap gate"
	half := func() float64 { return b.trap() / 2 }
	return []microbench.Bench{
		{Quantity: "verify", Text: "comparing a site with the text that it must hold, in user space",
			Basis: calibration.Measured,
			Run:   func() float64 { return b.step(poke.Step{Op: poke.Verify, To: benchSites}, b.patches) }},
		{Quantity: "publish", Text: "building the sorted vector that handlers search, by patch, in user space",
			Basis: calibration.Measured, Run: b.publish},
		{Quantity: "store", Text: "a plan's store of one byte to text that another CPU executes, in user space: " +
			"its other mapping is there, and a kernel makes one each time", Basis: calibration.Measured, Run: b.store},
		{Quantity: "fence", Text: "a return by IRET, which serializes", Basis: calibration.Measured, Run: b.fence},
		{Quantity: "trap_entry", Text: trap, Basis: calibration.Derived, Run: half},
		{Quantity: "trap_exit", Text: trap, Basis: calibration.Derived, Run: half},
	}
}

// each is what f takes for each of n, in nanoseconds.
func each(n int, f func()) float64 {
	start := time.Now()
	f()
	return float64(time.Since(start)) / float64(n)
}

// trap is what a call of a site with a breakpoint takes more than one without.
func (b *bench) trap() float64 {
	thread, g := b.Threads()[0], b.Ground(0, poke.Sorted, -1)
	plain := each(trapsAPass, func() { thread.Call(0, trapsAPass) })
	g.Publish(0, b.patches, true)
	g.Store(0, 0, 1, live.Arch.Breakpoint())
	trapped := each(trapsAPass, func() { thread.Call(0, trapsAPass) })
	g.Store(0, 0, 1, b.patches[0].Old)
	g.Unpublish()
	g.Clear()
	b.Recycle()
	return trapped - plain
}

// store writes each site's first byte unchanged, while another CPU calls the sites. That CPU has
// their lines each time, so a store takes three times as long as to lines of its own CPU.
func (b *bench) store() (ns float64) {
	same, all := slices.Clone(b.patches), make([]int32, benchSites)
	for i := range same {
		same[i].New, all[i] = same[i].Old, int32(i)
	}
	sites := b.List(all)
	unpin, err := threads.Pin(b.on[0])
	if err != nil {
		return 0
	}
	defer unpin()
	var end atomic.Bool
	var caller sync.WaitGroup
	calls := make(chan error)
	caller.Go(func() {
		unpin, err := threads.Pin(b.on[1])
		calls <- err
		if err != nil {
			return
		}
		defer unpin()
		for !end.Load() {
			b.Threads()[0].Stretch(stretch, sites)
		}
	})
	if <-calls == nil {
		ns = b.step(poke.Step{Op: poke.Write, Part: poke.Head, To: benchSites}, same)
	}
	end.Store(true)
	caller.Wait()
	return ns
}

// step is what a step of a plan takes at one site.
func (b *bench) step(st poke.Step, patches []poke.Patch) float64 {
	g := b.Ground(0, poke.Sorted, -1)
	p := &poke.Patcher{Code: b.code, Patches: patches, Plan: []poke.Step{st}}
	return each(benchSites, func() {
		for status := poke.Ran; status != poke.Ended; {
			status, _ = g.Step(context.Background(), p)
		}
	})
}

func (b *bench) publish() float64 {
	g := b.Ground(0, poke.Sorted, -1)
	defer b.Recycle()
	return each(benchSites, func() {
		g.Publish(0, b.patches, false)
		g.Unpublish()
		g.Clear()
	})
}

func (b *bench) fence() float64 {
	g := b.Ground(0, poke.Sorted, -1)
	return each(100, func() {
		for range 100 {
			g.SyncSelf()
		}
	})
}
