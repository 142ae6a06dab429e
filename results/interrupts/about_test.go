// SPDX-License-Identifier: Apache-2.0

package interrupts

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestNear: cases worked out by hand.
func TestNear(t *testing.T) {
	for name, c := range map[string]struct {
		delta []int64
		want  Nearest
		ok    bool
	}{
		"a stray interrupt": {[]int64{657, 657, 0, 658}, Nearest{657, []int64{0, 0, 657, 0}, []int64{0, 0, 0, 1}}, true},
		"exact":             {[]int64{10, 7, 3}, Nearest{10, []int64{0, 3, 7}, []int64{0, 0, 0}}, true},
		"one is missing":    {[]int64{656, 657, 0, 657}, Nearest{656, []int64{0, 0, 656, 0}, []int64{0, 1, 0, 1}}, true},
		// CPU 3 may have sent a round, for three less left over of 25: too little to name it.
		"patcher's own": {[]int64{1, 573, 557, 553}, Nearest{553, []int64{553, 0, 0, 0}, []int64{1, 20, 4, 0}}, true},
		"nothing":       {[]int64{0, 0, 0}, Nearest{0, []int64{0, 0, 0}, []int64{0, 0, 0}}, true},
		"no rounds":     {[]int64{0, 0, 0, 657}, Nearest{}, false},
		"backwards":     {[]int64{5, -1, 5}, Nearest{}, false},
		"two CPUs":      {[]int64{0, 5}, Nearest{}, false},
		"too many":      {[]int64{0, 1 << 41, 1 << 41}, Nearest{}, false},
	} {
		got, ok := Near(c.delta)
		if d := cmp.Diff(c.want, got); ok != c.ok || d != "" {
			t.Errorf("%s: %v %s", name, ok, d)
		}
	}
}

// possible tries every way of sharing rounds among senders, and gives the least that is left
// over with at most so many of them, or -1.
func possible(delta []int64, rounds int64, senders int) int64 {
	var try func(i int, rest int64, left int64, senders int) int64
	try = func(i int, rest, left int64, senders int) int64 {
		if i == len(delta) {
			if rest == 0 {
				return left
			}
			return -1
		}
		best := int64(-1)
		for s := int64(0); s <= rest; s++ {
			b, used := delta[i]-rounds+s, 0
			if s > 0 {
				used = 1
			}
			if b < 0 || used > senders {
				continue
			}
			if got := try(i+1, rest-s, left+b, senders-used); got >= 0 && (best < 0 || got < best) {
				best = got
			}
		}
		return best
	}
	return try(0, rounds, 0, senders)
}

// TestNearAgainstAllWays: the answer is among all ways of sharing any number of rounds, leaves as
// little over as any with so few senders, and has no more senders than it must.
func TestNearAgainstAllWays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		delta := rapid.SliceOfN(rapid.Int64Range(0, 9), 3, 5).Draw(t, "delta")
		if rapid.Bool().Draw(t, "broadcast") { // mostly rounds
			for i := range delta {
				delta[i] = 9 + delta[i]/5
			}
			delta[0] = rapid.Int64Range(0, 3).Draw(t, "sender")
		}
		var all int64
		for _, d := range delta {
			all += d
		}
		// least[k] is the least that k senders leave over.
		least := make([]int64, len(delta)+1)
		for k := range least {
			least[k] = all
			for r := int64(0); r <= slices.Max(delta); r++ {
				if left := possible(delta, r, k); left >= 0 {
					least[k] = min(least[k], left)
				}
			}
		}
		got, ok := Near(delta)
		want := least[len(delta)]
		for k := 1; k < len(delta); k++ {
			if leftShare*least[k] <= all {
				want = least[k]
				break
			}
		}
		if ok != (2*want <= all) {
			t.Fatalf("%v: %v, and %d of %d must be left over", delta, ok, want, all)
		}
		if !ok {
			return
		}
		var left, sent int64
		for i := range delta {
			if got.Sent[i] < 0 || got.Left[i] < 0 || got.Rounds-got.Sent[i]+got.Left[i] != delta[i] {
				t.Fatalf("%v: %+v is no explanation", delta, got)
			}
			left, sent = left+got.Left[i], sent+got.Sent[i]
		}
		if sent != got.Rounds || left != want {
			t.Fatalf("%v: %+v leaves %d over, want %d", delta, got, left, want)
		}
	})
}

// TestNamed: on a machine of 128 CPUs the list is still a line.
func TestNamed(t *testing.T) {
	counts, cpus := make([]int64, 128), make([]int, 128)
	for i := range counts {
		counts[i], cpus[i] = 1, i
	}
	counts[100] = 600
	want := "600 on CPU 100, 1 on CPU 0, 1 on CPU 1, 1 on CPU 2, 124 on 124 more CPUs"
	if got := leftOver(counts, cpus); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := senders(counts, 727, cpus), "CPU 100 (600), CPU 0 (1), CPU 1 (1), CPU 2 (1), 124 more CPUs "+
		"(124)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := senders(counts[:1], 1, cpus); got != "CPU 0" {
		t.Errorf("%q", got)
	}
}
