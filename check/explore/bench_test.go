// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"fmt"
	"testing"
)

// BenchmarkExplore is how fast states are explored, on all cores together and on
// one, and how many bytes one of them takes: the set of fingerprints and the queue
// at their largest, over all states. The theoretical limit is a cache miss for
// each transition, of which there are 2.6 a state here.
func BenchmarkExplore(b *testing.B) {
	for _, c := range []struct {
		cpus, sites, workers int
		reduce               Reductions
	}{
		{3, 2, 0, Reductions{}}, {3, 2, 1, Reductions{}}, {4, 2, 0, Reductions{}}, {4, 2, 1, Reductions{}},
		{6, 3, 0, all}, {6, 3, 1, all}, {8, 4, 0, single}, {8, 4, 1, single},
	} {
		cores := "all"
		if c.workers > 0 {
			cores = fmt.Sprint(c.workers)
		}
		b.Run(fmt.Sprintf("breakpoint/cpus=%d/sites=%d/reduce=%s/cores=%s", c.cpus, c.sites, c.reduce, cores),
			func(b *testing.B) {
				s := setup(b, "x86_64", "breakpoint", "", c.cpus, c.sites)
				m, err := s.Model()
				if err != nil {
					b.Fatal(err)
				}
				var states, memory uint64
				for b.Loop() {
					r, err := Explore(context.Background(), m, Options{Workers: c.workers, Reduce: c.reduce})
					if err != nil || r.Verdict != Safe {
						b.Fatal(r, err)
					}
					states += r.States
					memory = r.Memory / r.States
				}
				b.ReportMetric(float64(states)/b.Elapsed().Seconds(), "states/s")
				b.ReportMetric(float64(memory), "bytes/state")
				b.ReportMetric(0, "ns/op")
			})
	}
}

// BenchmarkEndless is how long it takes to explore everything there is of the endless
// workload on 2 CPUs with 2 sites: all protocols, sound and with every defect, on every
// architecture, in every fetch model.
func BenchmarkEndless(b *testing.B) {
	for _, reduce := range []Reductions{all, {}} {
		b.Run("reduce="+reduce.String(), func(b *testing.B) {
			var questions, states uint64
			for b.Loop() {
				questions, states = 0, 0
				eachSetup(b, 2, 2, func(name string, s Setup) {
					s.Workload = Endless
					r := explore(b, s, Options{Reduce: reduce})
					if r.Verdict == Incomplete {
						b.Errorf("%s: %s", name, r.Cut)
					}
					questions++
					states += r.States
				})
			}
			b.ReportMetric(float64(questions), "questions")
			b.ReportMetric(float64(states), "states")
		})
	}
}
