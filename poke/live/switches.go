// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package live

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
)

// Where the sites of Switches lie: each in an aligned sixteen bytes, so that none crosses a
// cache line, and what enabled ones call a page below them.
const (
	switchesAt    records.Addr = 0xffffffff81001000
	switchesApart              = 16
	switchesEntry              = switchesAt - 0x1000
)

// Switches are call sites of this process that are switched on and off while threads call
// them. Methods are for any goroutine.
//
// A flag costs less. Nanoseconds on an AMD EPYC (virtual); "on" adds one to a variable:
//
//	                off    on   switched
//	bool            0.4    2.5  what one goroutine alone may do
//	atomic.Bool     0.4    2.5        6
//	func() bool     1.8    2.6  likewise
//	Switches        5.5    6.7  100,000 while two threads call
//
//	go test ./poke/live -run XXX -bench 'Costs|BenchmarkSwitches'
//
// A branch on an atomic.Bool is what a program wants that has a few switches in its own source. Switches are for
// programs that make code themselves, such as compilers and interpreters: their call sites have the nops and the calls
// where the code is, and one update changes many of them, all or none.
//
// The protocol breakpoint of package poke changes sites, all of an update in one batch. It is
// proved for CPUs that mix the bytes of old and new text as they like, any number of them, of sites
// and of updates:
//
//	textpoke prove --arch x86_64 --protocol breakpoint --fetch weak
//
// and on three things that no proof covers: that membarrier's sync-core command makes
// every thread of this process execute a serializing instruction (membarrier(2), Linux
// 4.16), that a store of one byte is seen whole, and that a CPU which executes the first
// byte of a breakpoint does not look at what lies behind it.
//
// It cannot change code that a compiler has made, or that of another process: it only writes sites
// that Define lays out. It is no boundary of security. A library for crashes that blocks or replaces
// SIGTRAP's handler takes the breakpoints' handler away. A debugger gets every breakpoint first: while
// one is attached, Define and changes are refused with ErrTraced.
type Switches struct {
	machine *Machine
	ground  *Ground
	driver  poke.Driver
	proto   *poke.Protocol
	off, on []isa.Text // by site

	at     []uintptr // by site, where threads call it
	closed atomic.Bool

	mu      sync.Mutex // held by who changes something below
	update  poke.Update
	enabled []bool
	free    []*Thread
}

// ErrClosed is what Switches say that are closed.
var ErrClosed = errors.New("the switches are closed")

// maxSites are as many as a call reaches.
const maxSites = reach/switchesApart - 1024

// Define lays so many sites out, all off, for up to so many threads at a time. Close must
// follow. Errors are of this system, or ErrOpen: there is one machine in a process.
func Define(sites, threads int) (*Switches, error) {
	if sites < 1 || sites > maxSites || threads < 1 {
		return nil, fmt.Errorf("%d sites and %d threads: want 1 to %d sites, and one thread or more", sites, threads, maxSites)
	}
	code := &cpus.Code{Arch: Arch, Traits: Arch.Traits(), Entry: switchesEntry}
	s := &Switches{proto: poke.Named("breakpoint", code.Traits), enabled: make([]bool, sites)}
	for i := range sites {
		at, err := Arch.Site(switchesAt+records.Addr(i*switchesApart), isa.Pair)
		if err != nil {
			return nil, fmt.Errorf("site %d: %w", i, err)
		}
		call, _, err := Arch.Enabled(at, isa.Destination{Target: code.Entry, Entry: code.Entry})
		if err != nil {
			return nil, fmt.Errorf("site %d: %w", i, err)
		}
		code.Sites, code.Len = append(code.Sites, at.Addr), int(at.Len)
		s.off, s.on = append(s.off, Arch.Disabled(at)), append(s.on, call)
	}
	code.Complete()
	m, err := Open(Config{Code: code, Initial: func(i int) isa.Text { return s.off[i] }, Threads: threads})
	if err != nil {
		return nil, err
	}
	s.machine, s.driver = m, poke.Driver{Code: code}
	for _, offset := range m.text.offsets {
		s.at = append(s.at, m.text.rx.at+uintptr(offset))
	}
	s.ground = m.Ground(0, poke.Sorted, -1)
	s.free = slices.Clone(m.Threads())
	return s, nil
}

// Close takes everything away, when an update that is under way is over. No thread may be in a call
// of a site; for later ones every site is off. A second one does nothing.
func (s *Switches) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed.Store(true)
	return s.machine.Close()
}

// Register makes the calling goroutine one that may call sites. One goroutine at a time may use the
// Caller. A server whose goroutines come and go keeps as many as it has of them at a time, and
// hands them on.
func (s *Switches) Register() (*Caller, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.free)
	if s.closed.Load() {
		return nil, ErrClosed
	}
	if n == 0 {
		return nil, fmt.Errorf("%d threads are registered, and there is no room for another", len(s.machine.threads))
	}
	t := s.free[n-1]
	s.free = s.free[:n-1]
	return &Caller{t, s}, nil
}

// Caller is a goroutine that calls sites.
type Caller struct {
	t *Thread
	s *Switches
}

// Unregister ends that, once: a later call of a site panics.
func (c *Caller) Unregister() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.t != nil {
		c.s.free = append(c.s.free, c.t)
	}
	c.t = nil
}

// Call calls a site, and tells whether it is on. When Enable has returned it is, for every
// call that begins, until Disable is called, and the other way round. It panics, as an
// index does, where there is no such site; where another goroutine is seen to call as
// the same Caller; and where the site's bytes, which Check compares, let the call end in a fault.
func (c *Caller) Call(site int) bool {
	for !c.s.closed.Load() {
		switch callOnce(c.t.b, c.s.at[site]) {
		case calledNobody:
			return false
		case calledTracer:
			return true
		case calledTwice:
			panic("live: two goroutines call as one Caller")
		case calledNever: // an update is being taken back
			runtime.Gosched()
		default:
			holds := c.s.machine.Peek(site).Format(c.s.driver.Code.Len)
			panic(fmt.Sprintf("live: the call of site %d, which holds %s, ended in a fault", site, holds))
		}
	}
	return false
}

// Enable switches sites on, all or none, and Disable off: when they return, every call that
// begins does what was asked for. Sites that are so already are left alone. An error is
// that of a number that no site has, of ctx, or a *poke.Error, and leaves every site as it
// was, unless that says otherwise (poke.Stuck).
func (s *Switches) Enable(ctx context.Context, sites ...int) error { return s.change(ctx, true, sites) }

// Disable is the other way round.
func (s *Switches) Disable(ctx context.Context, sites ...int) error {
	return s.change(ctx, false, sites)
}

func (s *Switches) change(ctx context.Context, on bool, sites []int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return ErrClosed
	}
	patches := s.update.Patches[:0]
	for _, i := range sites {
		if i < 0 || i >= len(s.enabled) {
			return fmt.Errorf("site %d: there are %d", i, len(s.enabled))
		}
		if s.enabled[i] != on {
			patches = append(patches, s.patch(i, on))
		}
	}
	slices.SortFunc(patches, func(a, b poke.Patch) int { return int(a.Site - b.Site) })
	patches = slices.CompactFunc(patches, func(a, b poke.Patch) bool { return a.Site == b.Site })
	s.update.Patches = patches
	if len(patches) == 0 {
		return nil
	}
	if err := traced(); err != nil {
		return err
	}
	if err := s.plan(len(patches)); err != nil {
		return err
	}
	if err := s.driver.Run(ctx, s.ground, &s.update); err != nil {
		return err
	}
	// Its last step has waited until no handler looks at what it had published.
	s.machine.Recycle()
	s.ground.Times = s.ground.Times[:0]
	for i := range patches {
		s.enabled[patches[i].Site] = on
	}
	return nil
}

// plan makes the update's plan, which follows from the number of its patches.
func (s *Switches) plan(patches int) error {
	u, code := &s.update, s.driver.Code
	if u.Shape.Patches == patches {
		return nil
	}
	u.Shape, u.Plan = poke.Shape{Traits: code.Traits, Len: code.Len, Patches: patches}, u.Plan[:0]
	u.Settles = s.proto.Settles(u.Shape)
	whole := func(yield func(poke.Range) bool) { yield(poke.Range{To: patches}) }
	err := s.proto.Compile(u.Shape, whole, func(st poke.Step) { u.Plan = append(u.Plan, st) })
	if err != nil {
		u.Shape.Patches = 0
	}
	return err
}

// patch is the change of a site.
func (s *Switches) patch(site int, on bool) poke.Patch {
	p := poke.Patch{Site: int32(site), Addr: s.driver.Code.Sites[site], Old: s.off[site], New: s.on[site]}
	if !on {
		p.Old, p.New = p.New, p.Old
	}
	return p
}

// Enabled are the sites that are on after the last update, ascending.
func (s *Switches) Enabled() (sites []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, on := range s.enabled {
		if on {
			sites = append(sites, i)
		}
	}
	return sites
}

// Check looks whether the bytes of every site are what they must be.
func (s *Switches) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return ErrClosed
	}
	for i, on := range s.enabled {
		want := s.off[i]
		if on {
			want = s.on[i]
		}
		if got := s.machine.Peek(i); got != want {
			n := s.driver.Code.Len
			return &poke.MismatchError{Addr: s.driver.Code.Sites[i], Want: want.Format(n), Got: got.Format(n)}
		}
	}
	return nil
}
