// SPDX-License-Identifier: Apache-2.0

package interrupts

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The four toggles of 2019. The prose of the mail says 151 for the second one;
// its own figures say 115. In the last one the patcher migrated from CPU 2 to
// CPU 0, or back.
func TestExplain2019(t *testing.T) {
	want := []Explanation{
		{Consistent: true, Known: true, Rounds: 120, Sent: []int64{0, 0, 0, 0, 120, 0, 0, 0}, Senders: 1},
		{Consistent: true, Known: true, Rounds: 115, Sent: []int64{0, 0, 0, 0, 115, 0, 0, 0}, Senders: 1},
		{Consistent: true, Known: true, Rounds: 657, Sent: []int64{0, 0, 657, 0, 0, 0, 0, 0}, Senders: 1},
		{Consistent: true, Known: true, Rounds: 661, Sent: []int64{30, 0, 631, 0, 0, 0, 0, 0}, Senders: 2},
	}
	var got []Explanation
	for _, d := range mailDeltas(t) {
		got = append(got, d[0].Explain())
		if diff := cmp.Diff(d[0].Explain(), Explain(d[0].Delta)); diff != "" {
			t.Errorf("the two Explains differ:\n%s", diff)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestExplainReasons(t *testing.T) {
	most := int64(math.MaxInt64)
	for _, c := range []struct {
		delta      []int64
		consistent bool
		known      bool
		reason     string
	}{
		{nil, false, false, "there are no CPUs"},
		{[]int64{0}, true, false, "a single CPU shows nothing"},
		{[]int64{4}, false, false, "a single CPU has no other that interrupts it: the 4 came"},
		{[]int64{-1}, false, false, "CPU 0 counted backwards: -1"},
		{[]int64{0, 0}, true, true, ""},
		{[]int64{5, 0}, true, true, "with two CPUs any two counts fit"},
		{[]int64{0, 0, 0}, true, true, ""},
		{[]int64{5, 5, 5, -5}, false, false, "CPU 3 counted backwards: -5"},
		{[]int64{5, 5, 1}, false, false,
			"the sum over 3 CPUs is no multiple of 2, as whole rounds would make it: 1 left over"},
		{[]int64{6, 0, 0}, false, false, "CPU 0 received 6, more than the 3 rounds"},
		{[]int64{most, most, 0}, true, true, ""},
		{[]int64{most, most, 2}, false, false, "the deltas are too large"},
		{[]int64{most, most}, false, false, "the deltas are too large"},
	} {
		e := Explain(c.delta)
		if e.Consistent != c.consistent || e.Known != c.known || !strings.HasPrefix(e.Reason, c.reason) ||
			(c.reason == "") != (e.Reason == "") {
			t.Errorf("Explain(%v) = %+v, want %+v", c.delta, e, c)
		}
	}
	d := RowDelta{CPUs: []int{0, 2, 5}, Before: []int64{9, 9, 9}, After: []int64{9, 9, 2}, Delta: []int64{0, 0, -7}}
	if e := d.Explain(); e.Reason != "CPU 5 counted backwards: -7" {
		t.Errorf("an offline CPU shifted the numbers: %q", e.Reason)
	}
	d = RowDelta{Before: []int64{1}, After: []int64{1}, Delta: []int64{0}}
	if e := d.Explain(); e.Consistent || !strings.Contains(e.Reason, "whole machine") {
		t.Errorf("a row for the whole machine: %+v", e)
	}
}

// Whoever sends broadcasts in whatever order, the deltas tell rounds and senders
// exactly, and a single stray or lost interrupt is noticed from three CPUs on.
func TestExplainRecoversBroadcasts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cpus := rapid.IntRange(2, 12).Draw(t, "cpus")
		senders := rapid.SliceOf(rapid.IntRange(0, cpus-1)).Draw(t, "senders")
		delta, sent := make([]int64, cpus), make([]int64, cpus)
		for _, s := range senders {
			sent[s]++
			for c := range delta {
				if c != s {
					delta[c]++
				}
			}
		}
		e := Explain(delta)
		if !e.Consistent || !e.Known || e.Rounds != int64(len(senders)) || !cmp.Equal(e.Sent, sent) {
			t.Fatalf("%v sent gave %v: %+v", sent, delta, e)
		}
		victim := rapid.IntRange(0, cpus-1).Draw(t, "victim")
		delta[victim] += rapid.SampledFrom([]int64{-1, 1}).Draw(t, "by")
		// Two CPUs cannot notice: each counts what the other sent, one more or less.
		want := cpus == 2 && delta[victim] >= 0
		if e := Explain(delta); e.Consistent != want || (e.Reason == "" && e.Rounds > 0) {
			t.Fatalf("%v is off by one at CPU %d: %+v", delta, victim, e)
		}
	})
}

func TestPatches(t *testing.T) {
	for _, c := range []struct {
		rounds   int64
		other    Range
		min, max int64
		exact    bool
		rest     int64
	}{
		{657, Range{}, 55809, 56064, true, 0},
		{661, Range{}, 56065, 56320, false, 1},
		{661, Range{1, 1}, 56065, 56320, true, 0},
		{659, Range{}, 55809, 56064, false, 2},
		{659, Range{0, 1}, 55809, 56064, false, 2},
		{660, Range{0, 2}, 56065, 56320, true, 0},
		{660, Range{0, 3}, 55809, 56320, true, 0},
		{660, Range{40, 52}, 51713, 52736, true, 0},
		{0, Range{}, 0, 0, true, 0},
		{3, Range{}, 1, 256, true, 0},
		{3, Range{0, 9}, 0, 256, true, 0},
		{2, Range{}, 0, 0, false, 2},
		{2, Range{2, 2}, 0, 0, true, 0},
		{2, Range{3, 9}, 0, 0, false, 2},
	} {
		i, err := Patches(c.rounds, 3, 256, c.other)
		if err != nil || i.Min != c.min || i.Max != c.max || i.Exact != c.exact || i.Rest != c.rest ||
			i.Exact != (i.Reason == "") {
			t.Errorf("Patches(%d, 256, %v) = %+v, %v; want %+v", c.rounds, c.other, i, err, c)
		}
	}
	for _, c := range []struct {
		rounds int64
		slots  int
		other  Range
	}{{-1, 256, Range{}}, {3, 0, Range{}}, {3, -1, Range{}}, {3, 1, Range{2, 1}}, {3, 1, Range{-1, 1}}, {math.MaxInt64, 4,
		Range{}}} {
		if i, err := Patches(c.rounds, 3, c.slots, c.other); err == nil {
			t.Errorf("Patches(%v) = %+v, want an error", c, i)
		}
	}
}

// The interval always holds the number of patches that made the rounds, and is
// the same as what trying every number of other rounds gives.
func TestPatchesHoldsTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(1, 300).Draw(t, "slots")
		patches := rapid.Int64Range(0, 5000).Draw(t, "patches")
		others := rapid.Int64Range(0, 60).Draw(t, "others")
		known := Range{
			max(0, others-rapid.Int64Range(0, 9).Draw(t, "less")),
			others + rapid.Int64Range(0, 9).Draw(t, "more"),
		}
		batches := (patches + int64(slots) - 1) / int64(slots)
		rounds := 3*batches + others
		got, err := Patches(rounds, 3, slots, known)
		if err != nil || !got.Exact || patches < got.Min || patches > got.Max {
			t.Fatalf("%d patches, %d rounds: %+v, %v", patches, rounds, got, err)
		}
		want := Interval{Min: math.MaxInt64}
		for o := known.Lo; o <= known.Hi; o++ {
			if b := (rounds - o) / 3; o <= rounds && (rounds-o)%3 == 0 {
				want.Min = min(want.Min, max(0, (b-1)*int64(slots)+1))
				want.Max = max(want.Max, b*int64(slots))
				if b == 0 {
					want.Min = 0
				}
			}
		}
		if got.Min != want.Min || got.Max != want.Max {
			t.Fatalf("%d rounds, %d slots, others %v: %+v, trying all gives %+v", rounds, slots, known, got, want)
		}
	})
}
