// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"testing"
)

// BenchmarkQueue is what a point costs that takes no time: to put it into a queue of this
// machine, to take it from there, to put its row there, and to fetch that.
func BenchmarkQueue(b *testing.B) {
	s := alone(b)
	c := newTeam()
	c.Jobs = 2
	q := connect(b, s.ClientURL(), Options{})
	dismiss := startWorker(b, connect(b, s.ClientURL(), Options{Name: "w"}), c)
	b.ResetTimer()
	r := submit(b, q, b.N)
	if _, err := collect(b.Context(), r); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	if err := r.Finish(b.Context()); err != nil {
		b.Error(err)
	}
	dismiss()
}
