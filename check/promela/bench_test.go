// SPDX-License-Identifier: Apache-2.0

package promela

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/textpoke/textpoke/check/explore"
)

// BenchmarkSpin puts one question to Spin and to the checker, one core each, in
// one run, and prints how many states each looks at and how fast:
//
//	go test ./check/promela -run '^$' -bench Spin -benchtime 10x
//
// Each is asked as often as the benchmark says; the fastest time counts, with the
// start of pan's process in it.
func BenchmarkSpin(b *testing.B) {
	needSpin(b)
	for _, ncpus := range []int{3, 4} {
		// A hash table that suits the number of states: pan would mostly clear memory otherwise.
		room := []string{"-n", "-m20000", "-w20"}
		if ncpus == 4 {
			room[2] = "-w22"
		}
		b.Run(fmt.Sprintf("cpus=%d", ncpus), func(b *testing.B) {
			m := model(b, setup(b, "x86_64", "breakpoint", "", ncpus, 2))
			whole := benchPan(b, m, "pan, every interleaving", room, "-DNOREDUCE")
			reduced := benchPan(b, m, "pan, partial orders", room)
			plain := benchCheck(b, m, "checker, every interleaving", explore.Reductions{})
			all := benchCheck(b, m, "checker, all reductions", everything)
			b.ReportMetric(plain.speed()/whole.speed(), "checker/pan-speed")
			b.ReportMetric(reduced.states/all.states, "pan/checker-states")
			b.ReportMetric(reduced.took.Seconds()/all.took.Seconds(), "pan/checker-time")
		})
	}
}

// run is one search's work.
type run struct {
	states float64
	took   time.Duration
}

func (r run) speed() float64 { return r.states / r.took.Seconds() }

// fastest asks a question as often as the benchmark says.
func fastest(b *testing.B, name string, ask func() float64) (r run) {
	for i := range b.N {
		start := time.Now()
		r.states = ask()
		if took := time.Since(start); i == 0 || took < r.took {
			r.took = took
		}
	}
	b.Logf("%-28s %9.0f states %10v %6.2f M states/s", name, r.states, r.took.Round(time.Microsecond), r.speed()/1e6)
	return r
}

var stored = regexp.MustCompile(`(?m)^ *([0-9.e+]+) states, stored`)

func benchPan(b *testing.B, m *explore.Model, name string, room []string, flags ...string) run {
	dir := build(b, exported(b, m), append([]string{"gcc", "-O2"}, flags...)...)
	return fastest(b, name, func() float64 {
		out := command(b, dir, "./pan", room...)
		if found := broken(b, out); len(found) > 0 {
			b.Fatalf("pan finds %q", found)
		}
		n, err := strconv.ParseFloat(stored.FindStringSubmatch(out)[1], 64)
		if err != nil {
			b.Fatal(err)
		}
		return n
	})
}

func benchCheck(b *testing.B, m *explore.Model, name string, reduce explore.Reductions) run {
	return fastest(b, name, func() float64 {
		r, err := explore.Explore(context.Background(), m, explore.Options{Reduce: reduce, Workers: 1})
		if err != nil || r.Verdict != explore.Safe {
			b.Fatal(r, err)
		}
		return float64(r.States)
	})
}
