// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// TestHotplugIsOneAtATime: a CPU is brought up or taken down while no other is, no patcher holds the lock, and nobody
// asks it anything; meanwhile no patcher gets the lock.
func TestHotplugIsOneAtATime(t *testing.T) {
	m := newRig(t, plain("x86_64", "breakpoint", 1, "3", primes())).Machine
	if !m.BringUp(2) || m.BringUp(1) || m.TakeDown(1) {
		t.Error("two at a time")
	}
	lock := poke.Access{Op: poke.Lock, Mutex: poke.HotplugLock}
	if m.Share(lock) {
		t.Error("a patcher takes the lock meanwhile")
	}
	m.EndHotplug(2)
	if !m.TakeDown(1) || m.cpus[1].online {
		t.Error("CPU 1 is not taken down")
	}
	m.EndHotplug(1)
	if m.ComeOnline(1); !m.cpus[1].online {
		t.Error("CPU 1 is not online again")
	}
	m.cpus[1].boxed = true
	if m.TakeDown(1) || !m.BringUp(2) {
		t.Error("a CPU that is asked something is taken down, or that leaves something behind")
	}
	m.EndHotplug(2)
	m.cpus[1].boxed = false
	m.Held[poke.HotplugLock] = 1
	if m.BringUp(1) || m.TakeDown(1) {
		t.Error("while a patcher holds the lock")
	}
}

// TestStoresExpose: a site is exposed from the store of its breakpoint to that of anything else, once; calls meet it only
// where they are of the sites that are called.
func TestStoresExpose(t *testing.T) {
	c := plain("x86_64", "breakpoint", 3, "2", primes())
	c.Called = 2
	m := newRig(t, c).Machine
	bp, nop := m.code.Arch.Breakpoint(), m.Peek(0)
	at := func(now Nanos, stores func()) {
		t.Helper()
		m.now = now
		stores()

	}
	at(100, func() { m.Store(0, 0, 1, bp) })
	at(150, func() { m.Store(0, 0, 1, bp) })
	at(200, func() { m.Store(2, 0, 1, bp) })
	if got := m.expose.until(300); got != 200+100 {
		t.Errorf("exposed for %d, want 300", got)
	}
	if !m.calls.heat[0].meets || len(m.calls.heat) != 2 {
		t.Errorf("%+v", m.calls.heat)
	}
	at(400, func() { m.Store(0, 0, m.code.Len, nop) })
	at(500, func() { m.Store(2, 0, 1, nop) })
	if got := m.expose.until(9000); got != 300+300 || m.expose.open != 0 {
		t.Errorf("exposed for %d in all, %d are still", got, m.expose.open)
	}
	if m.calls.heat[0].meets || m.Peek(0) != nop {
		t.Errorf("site 0 holds %x, %+v", m.Peek(0), m.calls.heat[0])
	}
	m.Publish(0, []poke.Patch{{Site: 1, Addr: m.code.Sites[1]}, {Site: 2, Addr: m.code.Sites[2]}}, false)
	if d := cmp.Diff([]int32{1}, m.calls.batch.sites); d != "" {
		t.Error(d)
	}
	if m.Clear(); len(m.calls.batch.sites) != 0 {
		t.Error("what is cleared is still met")
	}
}

// TestLiteralsLead: a literal that leads to a tracer makes its site's calls traced ones, one that leads to what was
// freed or never known makes every call an event; sites that are never called change nothing.
func TestLiteralsLead(t *testing.T) {
	c := plain("arm64", "native", 3, "2", primes())
	c.Called = 2
	r := newRig(t, c)
	for site := range 3 {
		r.Store(site, 0, 8, r.enable[site].New)
	}
	r.calls.cool(1e9, 1e9)
	for _, k := range []struct {
		state   cpus.Outcome
		traced  bool
		meets   bool
		literal uint64
	}{{cpus.CalledTracer, true, false, r.ops}, {cpus.CalledFreed, false, true, r.ops}, {cpus.CalledNobody, false, false,
		rigNop},
		{cpus.CalledWild, false, true, 0x1234}} {
		if k.literal == r.ops {
			r.SetOps(r.ops, k.state)
		}
		for site := range 3 {
			r.StoreLiteral(site, k.literal)
			if r.Literal(site) != k.literal {
				t.Errorf("site %d: %#x", site, r.Literal(site))
			}
		}
		for site := range 2 {
			if h := r.calls.heat[site]; h.enabled != k.traced || h.meets != k.meets {
				t.Errorf("%v: site %d: %+v, leads to %v", k.state, site, h, r.leads(site))
			}
		}
	}
}

// TestUnasked: a request of a grace period that its CPU has not taken is taken back, and no other.
func TestUnasked(t *testing.T) {
	m := newRig(t, plain("x86_64", "breakpoint", 1, "2", primes())).Machine
	s := &m.cpus[1]
	for _, c := range []struct {
		boxed bool
		box   cpus.Cause
		want  bool
	}{{true, cpus.Quiesce, true}, {true, cpus.Sync, false}, {false, cpus.Quiesce, false}} {
		s.boxed, s.box = c.boxed, c.box
		if _, waited := m.unask(1); waited != c.want || s.boxed != (c.boxed && !c.want) {
			t.Errorf("%+v: %v, boxed %v", c, waited, s.boxed)
		}
	}
}

// TestChoices: sites are the ones that were drawn, no CPU enters the kernel unless it is to, and versions are any of all.
func TestChoices(t *testing.T) {
	m := newRig(t, plain("x86_64", "breakpoint", 4, "2", primes())).Machine
	c := &m.steps
	for _, site := range []int32{0, 3} {
		if c.site = site; c.Choose(cpus.ChooseSite, 4) != int(site) {
			t.Errorf("not site %d", site)
		}
	}
	c.site = anySite
	seen := map[int]bool{}
	for range 500 {
		seen[c.Choose(cpus.ChooseSite, 4)] = true
		seen[10+c.Choose(cpus.ChooseVersion, 2)] = true
		seen[20+c.Choose(cpus.ChooseGrain, 2)] = true
	}
	if len(seen) != 4+2+2 {
		t.Errorf("%v", seen)
	}
	for enter, want := range map[bool]int{true: 1, false: 0} {
		if c.enter = enter; c.Choose(cpus.ChooseEnter, 2) != want || c.Choose(cpus.ChooseMask, 4) != 0 ||
			c.Choose(cpus.ChooseLinger, 3) != 0 {
			t.Errorf("enters %v", enter)
		}
	}
}
