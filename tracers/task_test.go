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

// TestRecursion: of tracers that call what they trace each callback runs once more, since that call may be an
// interrupt's that is not known to be one yet.
func TestRecursion(t *testing.T) {
	for _, tt := range []struct {
		tracers      int
		hits, missed uint64
	}{{1, 2, 1}, {3, 3 + 3*3, 3 * 3}} {
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
			var task Task
			if _, err := c.Enter(0).Finish(&task); err != nil {
				t.Fatal(err)
			}
			if task.Hits != tt.hits || task.Missed != tt.missed {
				t.Errorf("%+v: %+v", tt, task)
			}
			if task.bits != 0 {
				t.Errorf("%+v: bits %b are left", tt, task.bits)
			}
		})
	}
}

// TestInterruptInsideCallback: what an interrupt calls inside a callback is traced, also
// before the CPU knows that it is in one. The guards of the list and of a callback do not
// see each other.
func TestInterruptInsideCallback(t *testing.T) {
	for _, in := range []Context{IRQ, Normal} { // what the CPU believes while the interrupt's first call is made
		task, times := Task{}, 0
		bit, ok := task.Enter(ListGuard)
		if times++; !ok {
			t.Fatalf("%d: nothing was entered", in)
		}
		task.Interrupt(in, func() {
			if bit, ok := task.Enter(ListGuard); ok {
				times++
				if own, ok := task.Enter(FtraceGuard); !ok {
					t.Errorf("%d: the list's guard refuses a callback's", in)
				} else {
					task.Leave(own)
				}
				task.Leave(bit)
			}
		})
		if task.Leave(bit); times != 2 || task.Missed != 0 || task.bits != 0 {
			t.Errorf("%d: entered %d times, %+v", in, times, task)
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
