// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"testing"
)

// BenchmarkAttach attaches to n functions and detaches them, through an ops each and
// through one, every record's patch planned and made where all calls are carried out.
func BenchmarkAttach(b *testing.B) {
	k, err := Named("x86_64-6.12")
	if err != nil {
		b.Fatal(err)
	}
	for _, way := range WayNames() {
		w, err := ParseWay(way)
		if err != nil {
			b.Fatal(err)
		}
		for _, n := range []int{1000, 20000, 50000} {
			if w.In(k) != nil {
				continue
			}
			b.Run(fmt.Sprintf("%s/n=%d", way, n), func(b *testing.B) {
				for b.Loop() {
					if _, _, err := k.Attach(w, n, n); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/function")
			})
		}
	}
}
