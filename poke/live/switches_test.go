// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package live

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/textpoke/textpoke/poke"
)

func define(t testing.TB, sites, threads int) *Switches {
	t.Helper()
	s, err := Define(sites, threads)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// callers registers n goroutines, each of which does something over and over, the i-th time
// with i. They end when stop is called, and with the test.
func callers(t testing.TB, s *Switches, n int, do func(c *Caller, i int)) (stop func()) {
	t.Helper()
	var end atomic.Bool
	var wait sync.WaitGroup
	stop = func() {
		end.Store(true)
		wait.Wait()
	}
	t.Cleanup(stop)
	for range n {
		c, err := s.Register()
		if err != nil {
			t.Fatal(err)
		}
		wait.Go(func() {
			defer c.Unregister()
			for i := 0; !end.Load(); i++ {
				do(c, i)
			}
		})
	}
	return stop
}

// FuzzSwitches switches what it is told while threads call everything: each byte is a site
// and a direction. After every update every site holds what it must, and every call that
// lies between two changes of its site does what the last one said.
func FuzzSwitches(f *testing.F) {
	f.Add([]byte{0, 1, 2, 0x80, 0xff, 3, 0x83, 7, 7, 0x87, 0x82, 0xc1})
	f.Fuzz(func(t *testing.T, ops []byte) {
		const sites = 8
		s := define(t, sites, 2)
		var told [sites]atomic.Uint64 // twice how often it was changed, and 1 for on; odd multiples while it is
		stop := callers(t, s, 2, func(c *Caller, i int) {
			site := i % sites
			before := told[site].Load()
			on := c.Call(site)
			if told[site].Load() == before && before&2 == 0 && on != (before&1 != 0) && !t.Failed() {
				t.Errorf("site %d is on: %v, the last update said %v", site, on, !on)
			}
			if i%1000 == 0 {
				runtime.Gosched()
			}
		})
		ctx, cancelled := t.Context(), canceled()
		for _, op := range ops[:min(len(ops), 40)] {
			site, on := int(op&7), op&0x80 == 0
			change, with := s.Enable, ctx
			if !on {
				change = s.Disable
			}
			if op&0x40 != 0 { // which must change nothing
				with = cancelled
			}
			was := told[site].Load()
			told[site].Store(was + 2) // it changes
			err := change(with, site, (site+int(op>>3&7))%sites&^7|site)
			now := was &^ 1
			if on && err == nil || err != nil && was&1 != 0 {
				now |= 1
			}
			told[site].Store(now + 4)
			var failed *poke.Error
			if err != nil && (!errors.As(err, &failed) || failed.State != poke.AllOld || with == ctx) {
				t.Fatal(err)
			}
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
		}
		stop()
	})
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// TestSwitchesRefuse: what there is not is named, and nothing changes.
func TestSwitchesRefuse(t *testing.T) {
	s := define(t, 3, 1)
	for _, site := range []int{-1, 3} {
		if err := s.Enable(t.Context(), 0, site); err == nil {
			t.Errorf("site %d was enabled", site)
		}
	}
	c, err := s.Register()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Register(); err == nil {
		t.Error("a second thread was registered")
	}
	if c.Call(0) {
		t.Error("site 0 is on")
	}
	if err := s.Enable(t.Context(), 0, 0, 2); err != nil || !c.Call(0) || c.Call(1) || !c.Call(2) {
		t.Error("not what was asked for: ", err)
	}
	if on := s.Enabled(); !slices.Equal(on, []int{0, 2}) {
		t.Errorf("on are %v", on)
	}
	if n := testing.AllocsPerRun(100, func() { c.Call(0); c.Call(1) }); n != 0 {
		t.Errorf("%v allocations a call", n)
	}
	c.Unregister()
	if _, err := s.Register(); err != nil {
		t.Error(err)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestCallerOfTwo: a Caller that is in a call is none for another goroutine.
func TestCallerOfTwo(t *testing.T) {
	s := define(t, 1, 1)
	c, err := s.Register()
	if err != nil {
		t.Fatal(err)
	}
	c.t.b.in = 1 // as a call that another goroutine is in has it
	defer func() {
		c.t.b.in = 0
		if got := recover(); got == nil || !strings.Contains(fmt.Sprint(got), "two goroutines") || c.t.Counts().Begun != 0 {
			t.Errorf("%v, %+v", got, c.t.Counts())
		}
	}()
	c.Call(0)
}

// TestNoCallWhileThreadsStand: what is taken back is written while no call can begin.
func TestNoCallWhileThreadsStand(t *testing.T) {
	s := define(t, 1, 1)
	c, err := s.Register()
	if err != nil {
		t.Fatal(err)
	}
	at := s.machine.text.rx.at + uintptr(s.machine.text.offsets[0])
	c.t.Halt()
	if called := callOnce(c.t.b, at); called != calledNever || c.t.Counts().Begun != 0 || !c.t.Between() {
		t.Errorf("called %d, %+v", called, c.t.Counts())
	}
	c.t.Continue()
	if called := callOnce(c.t.b, at); called != calledNobody || c.t.Counts().Begun != 1 {
		t.Errorf("called %d, %+v", called, c.t.Counts())
	}
}

// TestBrokenSite: a call that ends in a fault is no answer, and says what stands there.
func TestBrokenSite(t *testing.T) {
	s := define(t, 2, 1)
	c, err := s.Register()
	if err != nil {
		t.Fatal(err)
	}
	text := s.machine.text
	copy(text.rw.bytes(int(text.offsets[1]), 2), []byte{0x0f, 0x0b}) // ud2
	defer func() {
		got := fmt.Sprint(recover())
		if !strings.Contains(got, "site 1, which holds 0f 0b") {
			t.Error(got)
		}
		if err := s.Check(); err == nil || c.Call(0) {
			t.Errorf("check says %v, or site 0 is on", err)
		}
	}()
	c.Call(1)
}

// BenchmarkSwitches flips one site of a hundred that two threads call all the time.
func BenchmarkSwitches(b *testing.B) {
	s := define(b, 100, 2)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	callers(b, s, 2, func(c *Caller, _ int) {
		for i := range 100 {
			c.Call(i)
		}
	})
	on := true
	for b.Loop() {
		change := s.Enable
		if !on {
			change = s.Disable
		}
		if err := change(b.Context(), 7); err != nil {
			b.Fatal(err)
		}
		on = !on
	}
}

// What BenchmarkCosts asks, where the compiler cannot know it.
var (
	costBool     bool
	costAtomic   atomic.Bool
	costFunction = func() bool { return false }
	costSum      int
)

// BenchmarkCosts is what the documentation of Switches compares: how a program asks whether something is on.
func BenchmarkCosts(b *testing.B) {
	s := define(b, 1, 1)
	c, err := s.Register()
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"off", "on"} {
		if name == "on" {
			costBool, costFunction = true, func() bool { return true }
			costAtomic.Store(true)
			if err := s.Enable(b.Context(), 0); err != nil {
				b.Fatal(err)
			}
		}
		b.Run("bool/"+name, func(b *testing.B) {
			for range b.N {
				if costBool {
					costSum++
				}
			}
		})
		b.Run("atomic/"+name, func(b *testing.B) {
			for range b.N {
				if costAtomic.Load() {
					costSum++
				}
			}
		})
		b.Run("function/"+name, func(b *testing.B) {
			for range b.N {
				if costFunction() {
					costSum++
				}
			}
		})
		b.Run("switches/"+name, func(b *testing.B) {
			for range b.N {
				if c.Call(0) {
					costSum++
				}
			}
		})
	}
	b.Run("atomic/switched", func(b *testing.B) {
		for i := range b.N {
			costAtomic.Store(i&1 == 0)
		}
	})
}

// BenchmarkCall is a call of a site that is off.
func BenchmarkCall(b *testing.B) {
	s := define(b, 1, 1)
	c, err := s.Register()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("one", func(b *testing.B) {
		for b.Loop() {
			c.Call(0)
		}
	})
	b.Run("loop", func(b *testing.B) { // nothing but the call, as the hardware engine measures it
		const calls = 1000
		for b.Loop() {
			c.t.Call(0, calls)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/calls, "ns/call")
	})
}
