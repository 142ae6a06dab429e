// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"fmt"
	"slices"
	"testing"
)

// BenchmarkRunnerStep is a CPU's step on a running machine as its goroutine makes
// it, with nobody listening, and with a listener. Off must cost what Step does.
func BenchmarkRunnerStep(b *testing.B) {
	l := Tee(&Listener{})
	for _, on := range []bool{false, true} {
		b.Run(fmt.Sprintf("listener=%v", on), func(b *testing.B) {
			f := newFixture(b, "x86_64", benchSites, busy(1), noHandler{}, Weak)
			r := f.runners[0]
			if on {
				r.watch = &watch{Listener: l}
			}
			r.chooser.busy = &f.inFlight
			b.ReportAllocs()
			for b.Loop() {
				r.step()
			}
		})
	}
}

// TestTee: every listener hears everything, in order, and needs only the functions
// that it wants.
func TestTee(t *testing.T) {
	var heard []string
	note := func(who string) *Listener {
		say := func(what string, args ...any) { heard = append(heard, who+" "+what+fmt.Sprint(args...)) }
		return &Listener{
			Round: func(id uint64, from int, c Cause, targets int, at int64) { say("round", id, from, c, targets, at) },
			Interrupt: func(id uint64, cpu int, c Cause, from, until int64) {
				say("interrupt", id, cpu, c, from, until)
			},
			Trap:  func(cpu int, from, until int64, hit bool) { say("trap", cpu, from, until, hit) },
			Step:  func(cpu int, name string, from, until int64) { say("step", cpu, name, from, until) },
			Batch: func(at int64, fill int) { say("batch", at, fill) },
		}
	}
	if Tee() != nil || Tee(nil, nil) != nil {
		t.Error("nobody listens, and is told")
	}
	l := Tee(note("a"), nil, &Listener{}, note("b"))
	l.Round(1, 2, Sync, 3, 4)
	l.Interrupt(5, 6, Stop, 7, 8)
	l.Trap(9, 10, 11, true)
	l.Step(12, "Verify", 13, 14)
	l.Batch(15, 16)
	var want []string
	for _, what := range []string{"round" + fmt.Sprint(1, 2, Sync, 3, 4), "interrupt" + fmt.Sprint(5, 6, Stop, 7, 8),
		"trap" + fmt.Sprint(9, 10, 11, true), "step" + fmt.Sprint(12, "Verify", 13, 14), "batch" + fmt.Sprint(15, 16)} {
		want = append(want, "a "+what, "b "+what)
	}
	if !slices.Equal(heard, want) {
		t.Errorf("heard\n%q, want\n%q", heard, want)
	}
}
