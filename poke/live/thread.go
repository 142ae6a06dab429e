// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package live

import (
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/textpoke/textpoke/records"
)

//go:noescape
func stretch(b *block, calls int64, list *uint64)

//go:noescape
func callSite(b *block, at uintptr, calls int64)

// Thread is what calls sites: one goroutine at a time may, which is then locked to its
// thread of the operating system.
type Thread struct {
	m *Machine
	b *block
}

// Pin locks the calling goroutine to its thread, and that to one CPU of the machine;
// a negative number leaves it where it is. What undoes it is returned.
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

// Fault is the first fault that the thread ran into, with addresses of the records.
func (t *Thread) Fault() (f Fault, site records.Addr, any bool) {
	if atomic.LoadUint64(&t.b.fault.Signal) == 0 {
		return f, 0, false
	}
	return t.b.fault, t.m.text.record(t.b.fault.Site), true
}

// Broken is the first site that did not do what had been promised, if one has.
func (t *Thread) Broken() (records.Addr, bool) {
	at := atomic.LoadUint64(&t.b.brokenAt)
	return t.m.text.record(at), at != 0
}

// List is sites to be called.
type List struct{ words []uint64 }

// List makes a list of sites, of which there is at least one.
func (m *Machine) List(sites []int32) *List { return &List{m.text.list(sites)} }
