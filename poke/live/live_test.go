// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package live

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/cpus/x86_64"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
)

// site0 is where the tests' first site lies: its call straddles two cache lines.
const site0 records.Addr = 0xffffffff8110003d

// patches are those that let sites call a tracer below them.
func patches(t testing.TB, n int, step records.Addr) (*cpus.Code, []poke.Patch) {
	t.Helper()
	code := &cpus.Code{Arch: x86_64.Arch, Traits: x86_64.Arch.Traits(), Len: x86_64.SiteLen, Entry: site0 - 0x103d}
	var list []poke.Patch
	for i := range n {
		a := site0 + records.Addr(i)*step
		call, _, err := x86_64.Arch.Enabled(isa.Site{Addr: a, Len: 5}, isa.Destination{Target: code.Entry, Entry: code.Entry})
		if err != nil {
			t.Fatal(err)
		}
		code.Sites = append(code.Sites, a)
		list = append(list, poke.Patch{Site: int32(i), Addr: a, Len: 5, Old: x86_64.Nop5, New: call})
	}
	return code, list
}

func reversed(list []poke.Patch) []poke.Patch {
	list = slices.Clone(list)
	for i := range list {
		list[i].Old, list[i].New = list[i].New, list[i].Old
	}
	return list
}

// update carries a protocol out, in batches of some slots.
func update(t testing.TB, g *Ground, protocol string, list []poke.Patch, slots int) poke.Count {
	t.Helper()
	traits := x86_64.Arch.Traits()
	p := poke.Named(protocol, traits)
	var plan []poke.Step
	var count poke.Count
	ranges := func(yield func(poke.Range) bool) {
		for i := 0; i < len(list); i += slots {
			if !yield(poke.Range{From: i, To: min(i+slots, len(list))}) {
				return
			}
		}
	}
	err := p.Compile(poke.Shape{Traits: traits, Len: x86_64.SiteLen, Patches: len(list)}, ranges, func(s poke.Step) {
		plan = append(plan, s)
		count.Add(s)
	})
	if err != nil {
		t.Fatal(err)
	}
	u := &poke.Update{Patches: list, Plan: plan, Settles: true}
	if err := (&poke.Driver{Code: g.m.text.code}).Run(t.Context(), g, u); err != nil {
		t.Fatal(err)
	}
	return count
}

// TestFlips switches sites on and off under a thread that calls them: every call does
// one of what it may, every breakpoint is found, and counts are those of the plan.
func TestFlips(t *testing.T) {
	for _, protocol := range []string{"native", "stop-machine", "per-site"} {
		t.Run(protocol, func(t *testing.T) {
			code, list := patches(t, 20, 0x140)
			m, err := Open(Config{Code: code, Initial: func(i int) isa.Text { return list[i].Old }, Threads: 2, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := m.Close(); err != nil {
					t.Error(err)
				}
			}()
			if _, err := Open(Config{Code: code, Initial: func(i int) isa.Text { return 0 }, Threads: 1}); !errors.Is(err, ErrOpen) {
				t.Errorf("a second machine: %v", err)
			}
			all := make([]int32, len(list))
			for i := range all {
				all[i] = int32(i)
			}
			sites := m.List(all)
			var end atomic.Bool
			var wait sync.WaitGroup
			for _, thread := range m.Threads() {
				wait.Go(func() {
					for !end.Load() {
						thread.Stretch(1000, sites)
					}
				})
			}
			g := m.Ground(0, poke.Sorted, -1)
			var want poke.Count
			for range 3 {
				for _, thread := range m.Threads() { // each calls something between two updates
					for begun := thread.Counts().Begun; thread.Counts().Begun == begun; {
						runtime.Gosched()
					}
				}
				for _, l := range [][]poke.Patch{list, reversed(list)} {
					c := update(t, g, protocol, l, 32)
					want.Rounds += c.Rounds
					want.Stops += c.Stops
					want.Writes += c.Writes
				}
			}
			end.Store(true)
			wait.Wait()
			c := m.Counts()
			if c.Begun != c.Traced+c.Untraced || c.Traps != c.Hits || c.Lost+c.Stale != 0 || c.Begun == 0 {
				t.Errorf("%+v", c)
			}
			if g.Rounds != want.Rounds || g.Stops != want.Stops || g.Stores != want.Writes {
				t.Errorf("%d rounds, %d stops, %d stores; want %+v", g.Rounds, g.Stops, g.Stores, want)
			}
			for i := range m.Threads() {
				if g.Answers[i] != want.Rounds || g.Halts[i] != want.Stops {
					t.Errorf("thread %d answered %d rounds, stood still %d times; want %+v", i, g.Answers[i], g.Halts[i], want)
				}
			}
			for i := range list {
				if got := m.Peek(i); got != list[i].Old {
					t.Errorf("site %d holds %s", i, got.Format(5))
				}
			}
			t.Logf("%+v, %d rounds", c, g.Rounds)
		})
	}
}

// TestComparisons: the handler's search compares as often as that of an int3.Vector does, which
// plan counts, for every address of batches of every size up to 70.
func TestComparisons(t *testing.T) {
	const most = 70
	code, list := patches(t, most, 0x140)
	m, err := Open(Config{Code: code, Initial: func(i int) isa.Text { return list[i].Old }, Threads: 1})
	if err != nil {
		t.Skip(err)
	}
	defer m.Close()
	thread, g := m.Threads()[0], m.Ground(0, poke.Sorted, -1)
	for i := range list {
		g.Store(i, 0, 1, x86_64.Arch.Breakpoint())
	}
	for n := 1; n <= most; n++ {
		g.Publish(0, list[:n], false)
		index := int3.Build(int3.Vector, int3.Batch{Addrs: code.Sites[:n]})
		for i := range n {
			before := thread.Counts()
			thread.Call(i, 1)
			did := thread.Counts().Sub(before)
			var want cpus.Probe
			index.Find(code.Sites[i], &want)
			if did.Hits != 1 || did.Traced != 1 || did.Comparisons != uint64(want.Comparisons) {
				t.Errorf("address %d of %d: %+v, want %d comparisons", i, n, did, want.Comparisons)
			}
		}
		g.Unpublish()
		g.Clear()
	}
}
