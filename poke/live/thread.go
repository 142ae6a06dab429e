// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package live

import (
	"fmt"
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

//go:noescape
func stretch(b *block, calls int64, list *uint64)

func spin(rounds int64)

//go:noescape
func callOnce(b *block, at uintptr) (called uint64)

//go:noescape
func callSite(b *block, at uintptr, calls int64)

// Thread is what calls sites: one goroutine at a time may, which is then locked to its
// thread of the operating system.
type Thread struct {
	m *Machine
	b *block
}

// Allowed are the CPUs of this machine that the process may use.
func Allowed() (list []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("CPUs that this process may use: %w", err)
	}
	for cpu := 0; len(list) < set.Count(); cpu++ {
		if set.IsSet(cpu) {
			list = append(list, cpu)
		}
	}
	return list, nil
}

// Pin locks the calling goroutine to its thread, and that to one CPU of the machine; a negative
// number leaves it where it is. unpin undoes it.
func Pin(cpu int) (unpin func(), err error) {
	runtime.LockOSThread()
	if cpu < 0 {
		return runtime.UnlockOSThread, nil
	}
	var was, set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &was); err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	return func() {
		if unix.SchedSetaffinity(0, &was) == nil {
			runtime.UnlockOSThread() // else the thread ends with its goroutine
		}
	}, nil
}

// Stretch calls sites of a list at random, so many times, or fewer when it is stopped.
// Nothing can preempt the goroutine meanwhile: some thousand calls are some ten
// microseconds.
func (t *Thread) Stretch(calls int, list *List) {
	runtime.LockOSThread()
	stretch(t.b, int64(calls), &list.words[0])
	runtime.UnlockOSThread()
}

// Practise is Stretch of a thread that is halted, run by the goroutine that halted it. The calls
// count as the thread's.
func (t *Thread) Practise(calls int, list *List) {
	t.Continue()
	t.Stretch(calls, list)
	t.Halt()
}

// Call calls one site so many times.
func (t *Thread) Call(site, calls int) {
	runtime.LockOSThread()
	callSite(t.b, t.m.text.rx.at+uintptr(t.m.text.offsets[site]), int64(calls))
	runtime.UnlockOSThread()
}

// Halt ends a Stretch under way before its next call, and those to come, until
// Continue.
func (t *Thread) Halt() { atomic.StoreUint64(&t.b.stop, 1) }

// Continue lets Stretch call again.
func (t *Thread) Continue() { atomic.StoreUint64(&t.b.stop, 0) }

// Between tells whether the thread is at none of its sites.
func (t *Thread) Between() bool { return atomic.LoadUint64(&t.b.in) == 0 }

// Counts is what the thread has done.
func (t *Thread) Counts() Counts { return t.b.counts() }

// Kind is what a Finding is of.
type Kind uint8

// The kinds.
const (
	Fault  Kind = iota // executed what the CPU refuses
	Landed             // called where nothing should ever go
	Missed             // met a breakpoint without an entry
	Broken             // did not do what had been promised
)

// Found is the first finding of a kind, with addresses of the records; false for none.
func (t *Thread) Found(k Kind) (f Finding, any bool) {
	p := [...]*Finding{&t.b.fault, &t.b.landed, &t.b.missed, &t.b.broken}[k]
	if atomic.LoadUint64(&p.Site) == 0 {
		return f, false
	}
	f = *p
	f.Site = uint64(t.m.text.record(f.Site))
	if f.PC != 0 {
		f.PC = uint64(t.m.text.record(f.PC))
	}
	return f, true
}

// ForgetFound forgets what was found. The thread must stand between two calls.
func (t *Thread) ForgetFound() {
	t.b.fault, t.b.landed, t.b.missed, t.b.broken = Finding{}, Finding{}, Finding{}, Finding{}
}

// Spin is in user code for a moment, and calls no site.
func Spin(rounds int) { spin(int64(rounds)) }

// List is sites to be called.
type List struct{ words []uint64 }

// List makes a list of sites, of which there is at least one.
func (m *Machine) List(sites []int32) *List { return &List{m.text.list(sites)} }
