package cpus

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkRunnerStep is a CPU's step on a running machine as its goroutine makes
// it, with nobody looking, and observed. Off must cost what Step does.
func BenchmarkRunnerStep(b *testing.B) {
	o := &Observer{
		Begun: time.Now(), Round: func(uint64, int, Cause, int, int64) {},
		Interrupt: func(uint64, int, Cause, int64, int64) {}, Trap: func(int, int64, int64, bool) {},
	}
	for _, on := range []bool{false, true} {
		b.Run(fmt.Sprintf("observed=%v", on), func(b *testing.B) {
			f := newFixture(b, "x86_64", benchSites, busy(1), noHandler{}, Weak)
			r := f.runners[0]
			if on {
				r.watch = &watch{Observer: o}
			}
			r.chooser.busy = &f.inFlight
			b.ReportAllocs()
			for b.Loop() {
				r.step()
			}
		})
	}
}
