// SPDX-License-Identifier: Apache-2.0

package attachcost

import (
	"fmt"
	"math"
	"testing"
)

// BenchmarkAttach attaches to n functions through so many ops by the core of the
// function tracer, every record's patch planned and made, and counts the kernel's
// work; then it detaches them. It reports both per function. The exponent is that
// of time against the number of functions, from the smallest size with as many ops
// (with n ops: with an ops a function) to this one; 1 is linear.
func BenchmarkAttach(b *testing.B) {
	first := map[string][2]float64{}
	for _, n := range []int64{1000, 20000, 50000} {
		for _, ops := range []int64{1, 12, n} {
			name := fmt.Sprint(ops)
			if ops == n {
				name = "n"
			}
			b.Run(fmt.Sprintf("n=%d/ops=%s", n, name), func(b *testing.B) {
				k := *kernelNamed(b, "x86_64-6.12")
				w := Way{Name: "direct", Direct: true, Calls: ops, Images: -1}
				for b.Loop() {
					run(b, newCore(b, &k, int(n)), &k, w, n)
					if _, err := Attach(&k, w, n, n); err != nil {
						b.Fatal(err)
					}
				}
				ns := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
				b.ReportMetric(ns/float64(n), "ns/function")
				if was, ok := first[name]; ok && was[0] < float64(n) {
					b.ReportMetric(math.Log(ns/was[1])/math.Log(float64(n)/was[0]), "exponent")
				}
				if _, ok := first[name]; !ok {
					first[name] = [2]float64{float64(n), ns}
				}
			})
		}
	}
}
