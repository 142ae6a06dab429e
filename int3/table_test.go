// SPDX-License-Identifier: Apache-2.0

package int3

import (
	"fmt"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

var _ cpus.Handler = (*Table)(nil)

// variants are both ways to count references.
var variants = []Refs{PerCPU, SharedRef}

// act is what slot i of batch number n is to be acted as.
func act(n, i int) isa.Insn {
	return isa.Insn{Kind: isa.Call, Len: 5, Target: records.Addr(n<<20 | i)}
}

// addr is the address of slot i of batch number n; no two batches share one.
func addr(n, i int) records.Addr { return records.Addr(0x1000_0000 + n<<20 + i<<4) }

// publish publishes batch number n, of so many addresses.
func publish(t *Table, k Lookup, n, size int) {
	var b Batch
	var acts []isa.Insn
	for i := range size {
		b.Addrs = append(b.Addrs, addr(n, i))
		acts = append(acts, act(n, i))
	}
	t.Publish(Build(k, b), acts)
}

// wantAct looks an address up that has to be found.
func wantAct(n, i int, find func(records.Addr, *cpus.Probe) (isa.Insn, cpus.Found)) error {
	var p cpus.Probe
	got, found := find(addr(n, i), &p)
	if found != cpus.Hit || got != act(n, i) {
		return fmt.Errorf("batch %d, slot %d: %+v, found %v, want %+v", n, i, got, found, act(n, i))
	}
	return nil
}

// TestTableLife takes a table through two batches.
func TestTableLife(t *testing.T) {
	for _, r := range variants {
		t.Run(r.String(), func(t *testing.T) {
			tab := NewTable(r, 3)
			closed := func(when string) {
				t.Helper()
				for cpu := range 3 {
					if tab.Enter(cpu) {
						t.Errorf("%s: CPU %d got in", when, cpu)
					}
				}
			}
			closed("before the first Publish")
			for n := range 2 {
				publish(tab, BTree, n, 4)
				if tab.Drained() {
					t.Error("drained while it is published")
				}
				for cpu := range 3 {
					if !tab.Enter(cpu) {
						t.Errorf("batch %d: CPU %d did not get in", n, cpu)
					}
					for i := range 4 {
						if err := wantAct(n, i, tab.Find); err != nil {
							t.Error(err)
						}
					}
					tab.Leave(cpu)
				}
				tab.Unpublish()
				closed("after Unpublish")
				if !tab.Drained() {
					t.Error("not drained, and nobody is in")
				}
				tab.Clear()
				closed("after Clear")
			}
		})
	}
}

// TestDrainedWhenTheLastLeaves has handlers in when the patcher takes its
// references back, and lets them leave one by one, in any order.
func TestDrainedWhenTheLastLeaves(t *testing.T) {
	for _, r := range variants {
		t.Run(r.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				const online = 4
				tab := NewTable(r, online)
				publish(tab, Vector, 0, 2)
				in := rapid.SliceOfN(rapid.IntRange(0, online-1), 0, 10).Draw(t, "in")
				for _, cpu := range in {
					if !tab.Enter(cpu) {
						t.Fatalf("CPU %d did not get in", cpu)
					}
				}
				if len(in) > 0 { // some leave before, and may come again
					tab.Leave(in[0])
					tab.Enter(in[0])
				}
				tab.Unpublish()
				leave := in
				if len(in) > 0 {
					leave = rapid.Permutation(in).Draw(t, "leave")
				}
				for i, cpu := range leave {
					if tab.Drained() {
						t.Fatalf("drained while %v are in", leave[i:])
					}
					if err := wantAct(0, i%2, tab.Find); err != nil {
						t.Fatal(err)
					}
					tab.Leave(cpu)
				}
				if !tab.Drained() {
					t.Fatalf("not drained after all of %v have left", in)
				}
			})
		})
	}
}

// TestEnterWhileOthersDrain: with one counter for all, a handler still gets in
// through the reference of another that has not left; with one for each CPU it
// does not.
func TestEnterWhileOthersDrain(t *testing.T) {
	for _, c := range []struct {
		refs Refs
		in   bool
	}{{PerCPU, false}, {SharedRef, true}} {
		tab := NewTable(c.refs, 2)
		publish(tab, Vector, 0, 1)
		tab.Enter(0)
		tab.Unpublish()
		if tab.Enter(1) != c.in {
			t.Errorf("%v: CPU 1 got in: %t, want %t", c.refs, !c.in, c.in)
			continue
		}
		if c.in {
			tab.Leave(1)
		}
		tab.Leave(0)
		if !tab.Drained() {
			t.Errorf("%v: not drained", c.refs)
		}
	}
}

// TestFindAfterClear: a patcher that does not wait takes the index away under a
// handler, which then misses.
func TestFindAfterClear(t *testing.T) {
	for _, r := range variants {
		tab := NewTable(r, 2)
		publish(tab, BTree, 0, 3)
		if !tab.Enter(1) {
			t.Fatal("did not get in")
		}
		tab.Unpublish()
		tab.Clear()
		var p cpus.Probe
		for i := range 3 {
			if got, found := tab.Find(addr(0, i), &p); found != cpus.TornDown || got != (isa.Insn{}) {
				t.Errorf("%v: slot %d: %+v, found %v after Clear", r, i, got, found)
			}
		}
		if p.Comparisons != 0 {
			t.Errorf("%v: %d comparisons with nothing", r, p.Comparisons)
		}
		tab.Leave(1)
		if !tab.Drained() {
			t.Errorf("%v: not drained", r)
		}
	}
}

// TestFindMissesOtherBatches: only what is published is found.
func TestFindMissesOtherBatches(t *testing.T) {
	for _, k := range kinds() {
		tab := NewTable(PerCPU, 1)
		for n := range 3 {
			publish(tab, k, n, 5)
			var p cpus.Probe
			for other := range 3 {
				for i := range 5 {
					if got, found := tab.Find(addr(other, i), &p); (found == cpus.Hit) != (other == n) {
						t.Errorf("%v: batch %d: slot %d of batch %d: %+v, found %v", k, n, i, other, got, found)
					}
				}
			}
			tab.Unpublish()
			tab.Clear()
		}
	}
}

func TestTableDoesNotAllocate(t *testing.T) {
	for _, r := range variants {
		for _, k := range kinds() {
			tab := NewTable(r, 2)
			publish(tab, k, 0, 500)
			var p cpus.Probe
			i, found := 0, 0
			allocs := testing.AllocsPerRun(1000, func() {
				if !tab.Enter(1) {
					return
				}
				if _, what := tab.Find(addr(0, i%500), &p); what == cpus.Hit {
					found++
				}
				tab.Leave(1)
				i++
			})
			if allocs != 0 || found != 1001 { // one run warms up
				t.Errorf("%v, %v: %v allocations a trap, %d of 1001 found", r, k, allocs, found)
			}
		}
	}
}

// TestCountersDoNotShareLines: that is what one for each CPU is for.
func TestCountersDoNotShareLines(t *testing.T) {
	refs := NewTable(PerCPU, 5).refs
	if apart := uintptr(unsafe.Pointer(refs.at(1))) - uintptr(unsafe.Pointer(refs.at(0))); apart != 64 {
		t.Errorf("two counters are %d bytes apart, want 64", apart)
	}
	if n := refs.len(); n != 5 {
		t.Errorf("%d counters for 5 CPUs", n)
	}
	if n := NewTable(SharedRef, 5).refs.len(); n != 1 {
		t.Errorf("%d shared counters", n)
	}
	if n := NewSerialTable(PerCPU, 5).refs.len(); n != 5 {
		t.Errorf("%d counters for 5 CPUs in a row", n)
	}
}
