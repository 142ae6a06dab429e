// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"github.com/textpoke/textpoke/sched"
)

// BenchmarkHardware measures updates on this machine's own CPUs: flip of one site that the
// other CPU calls all the time, enable of a large table. ns/update is the update's own time,
// from the first verification to the last answer; the operation holds what surrounds it.
func BenchmarkHardware(b *testing.B) {
	for _, bb := range []struct {
		name, table string
		slots       int
	}{
		{"flip", "gen:n=1", 0},
		{"enable/records=45000/buffer=256", "gen:n=45000,order=sorted", 256},
		{"enable/records=45000/buffer=dynamic", "gen:n=45000,order=sorted", 0},
	} {
		b.Run(bb.name, func(b *testing.B) {
			c := config(b, "x86_64", "native", bb.table, "2")
			c.Buffer = sched.Buffer{Slots: bb.slots}
			h := newHardware(b, c)
			var elapsed, rounds, best time.Duration
			var traps uint64
			enable := true
			for b.Loop() {
				row, err := h.Update(b.Context(), enable)
				if err != nil || row.Violations > 0 {
					b.Fatal(err, h.Violations())
				}
				enable = !enable
				elapsed, rounds, traps = elapsed+row.Elapsed, rounds+row.Executed.RoundsAll, traps+row.Traps
				if best == 0 || row.Elapsed < best {
					best = row.Elapsed
				}
			}
			n := float64(b.N)
			b.ReportMetric(float64(elapsed)/n, "ns/update")
			b.ReportMetric(float64(best), "ns/best")
			b.ReportMetric(float64(rounds)/float64(elapsed), "rounds-share")
			b.ReportMetric(float64(traps)/n, "traps/update")
		})
	}
}
