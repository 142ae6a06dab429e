// SPDX-License-Identifier: Apache-2.0

package tracers

import (
	"slices"
	"testing"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

// TestContexts: the kernel's numbers (include/linux/trace_recursion.h), and the context
// of a task inside interrupts.
func TestContexts(t *testing.T) {
	if NMI != 0 || IRQ != 1 || SoftIRQ != 2 || Normal != 3 || transition != 4 || FtraceGuard != 0 || ListGuard != 5 {
		t.Error("not the kernel's numbers")
	}
	var task Task
	var seen []Context
	task.Interrupt(SoftIRQ, func() {
		seen = append(seen, task.Context())
		task.Interrupt(NMI, func() { seen = append(seen, task.Context()) })
		seen = append(seen, task.Context())
	})
	if seen = append(seen, task.Context()); !slices.Equal(seen, []Context{SoftIRQ, NMI, SoftIRQ, Normal}) {
		t.Error(seen)
	}
}

// TestRecursion: tracers that call what they trace. With the guard of the kernel the
// callback runs once more, since that call may be an interrupt's that is not known to be
// one yet; without the transition bit once; without any guard until the stack ends.
func TestRecursion(t *testing.T) {
	for _, tt := range []struct {
		how                      Recursion
		tracers                  int
		hits, missed, overflowed uint64
	}{
		{TransitionBit, 1, 2, 1, 0},
		{ContextBits, 1, 1, 1, 0},
		{Unguarded, 1, maxDepth, 0, 1},
		{TransitionBit, 3, 3 + 3*3, 3 * 3, 0},
		{ContextBits, 3, 3, 3, 0},
	} {
		onArches(t, func(t *testing.T, a isa.Arch) {
			c := newCore(t, a, 1)
			c.ForceList = true
			for range tt.tracers {
				must(t)(c.Attach(NewOps("calls", &Func{Entry: func(_ records.Addr, _ *Ops, task *Task) {
					task.Hits++
					if _, err := c.Enter(0).Finish(task); err != nil {
						t.Error(err)
					}
				}}, OpsDynamic|OpsRecursion)))
			}
			task := Task{Recursion: tt.how}
			if _, err := c.Enter(0).Finish(&task); err != nil {
				t.Fatal(err)
			}
			if task.Hits != tt.hits || task.Missed != tt.missed || task.Overflowed != tt.overflowed {
				t.Errorf("%+v: %+v", tt, task)
			}
			if task.bits != 0 || task.depth != 0 {
				t.Errorf("%+v: bits %b and depth %d are left", tt, task.bits, task.depth)
			}
		})
	}
}

// TestInterruptInsideCallback: what an interrupt calls inside a callback is traced, once
// the CPU knows that it is in one, and with the transition bit before that too. The
// guards of the list and of a callback do not see each other.
func TestInterruptInsideCallback(t *testing.T) {
	for _, tt := range []struct {
		how   Recursion
		in    Context // what the CPU believes while the interrupt's first call is made
		times int
	}{
		{TransitionBit, IRQ, 2}, {ContextBits, IRQ, 2}, {TransitionBit, Normal, 2}, {ContextBits, Normal, 1},
	} {
		task, times := Task{Recursion: tt.how}, 0
		bit, ok := task.Enter(ListGuard)
		if times++; !ok {
			t.Fatalf("%+v: nothing was entered", tt)
		}
		task.Interrupt(tt.in, func() {
			if bit, ok := task.Enter(ListGuard); ok {
				times++
				if own, ok := task.Enter(FtraceGuard); !ok {
					t.Errorf("%+v: the list's guard refuses a callback's", tt)
				} else {
					task.Leave(own)
				}
				task.Leave(bit)
			}
		})
		if task.Leave(bit); times != tt.times || task.Missed != uint64(2-tt.times) || task.bits != 0 {
			t.Errorf("%+v: entered %d times, %+v", tt, times, task)
		}
	}
}

// TestGuardedAlone: an ops that needs the guard is guarded also where it is alone, and one
// that does not calls itself on.
func TestGuardedAlone(t *testing.T) {
	onArches(t, func(t *testing.T, a isa.Arch) {
		for flags, want := range map[OpsFlags]int{OpsRecursion: 2, 0: 9} {
			c, depth := newCore(t, a, 1), 0
			must(t)(c.Attach(NewOps("calls", &Func{Entry: func(_ records.Addr, _ *Ops, task *Task) {
				if depth++; depth < 9 {
					if _, err := c.Enter(0).Finish(task); err != nil {
						t.Error(err)
					}
				}
			}}, flags)))
			if _, err := c.Call(0); err != nil || depth != want {
				t.Errorf("%s: called %d times, want %d; %v", flags, depth, want, err)
			}
		}
	})
}
