// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
)

// kernel is the vector of patches as the kernel keeps it, and what was flushed
// out of it.
type kernel struct {
	vec      []records.Addr
	max      int // TP_VEC_MAX, 0: no end
	unsorted bool
	flushed  []Batch
	applied  []records.Addr
}

// queue is smp_text_poke_batch_add.
func (k *kernel) queue(a records.Addr) {
	full := k.max > 0 && len(k.vec) == k.max
	disorder := !k.unsorted && len(k.vec) > 0 && k.vec[len(k.vec)-1] > a
	if full {
		k.flush(Full)
	} else if disorder {
		k.flush(Order)
	}
	k.vec = append(k.vec, a)
}

// flush is smp_text_poke_batch_finish.
func (k *kernel) flush(why Flush) {
	if len(k.vec) == 0 {
		return
	}
	from := len(k.applied)
	k.applied = append(k.applied, k.vec...)
	k.flushed = append(k.flushed, Batch{poke.Range{From: from, To: len(k.applied)}, why})
	k.vec = k.vec[:0]
}

// kernelCut is Cut's slow twin.
func kernelCut(addrs []records.Addr, b Buffer, unsorted bool) []Batch {
	k := kernel{max: b.Slots, unsorted: unsorted}
	for _, a := range addrs {
		k.queue(a)
	}
	k.flush(Final)
	return k.flushed
}

func TestCutIsTheKernels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		addrs := drawAddrs(t)
		b := Buffer{rapid.IntRange(0, 300).Draw(t, "slots, 0 dynamic")}
		unsorted := rapid.Bool().Draw(t, "unsorted")
		got := slices.Collect(Cut(len(addrs), in(addrs), b, unsorted))
		if want := kernelCut(addrs, b, unsorted); !slices.Equal(got, want) {
			t.Fatalf("%v, the kernel cuts %v", got, want)
		}
		checkTiling(t, got, len(addrs))
		checkCauses(t, got, addrs, b, unsorted)
	})
}

// drawAddrs draws runs that ascend, descend or stand still, of any length, so
// that full vectors and both kinds of order meet.
func drawAddrs(t *rapid.T) []records.Addr {
	var addrs []records.Addr
	for range rapid.IntRange(0, 5).Draw(t, "runs") {
		at := rapid.Uint64Range(1<<20, 1<<20+4000).Draw(t, "from")
		step := rapid.Int64Range(-2, 3).Draw(t, "step")
		for range rapid.IntRange(1, 400).Draw(t, "length") {
			addrs = append(addrs, records.Addr(at))
			at += uint64(step)
		}
	}
	return append(addrs, rapid.SliceOfN(rapid.Custom(func(t *rapid.T) records.Addr {
		return records.Addr(rapid.Uint64Range(0, 5).Draw(t, "at"))
	}), 0, 30).Draw(t, "random")...)
}

// checkTiling: batches cover [0,n) one after the other, none is empty, and the
// last one alone is final.
func checkTiling(t *rapid.T, batches []Batch, n int) {
	next := 0
	for i, b := range batches {
		if b.From != next || b.To <= b.From {
			t.Fatalf("batch %d is %v, want one from %d", i, b, next)
		}
		if (b.Flush == Final) != (i == len(batches)-1) {
			t.Fatalf("batch %d of %d is flushed by %v", i, len(batches), b.Flush)
		}
		next = b.To
	}
	if next != n {
		t.Fatalf("batches end at %d of %d", next, n)
	}
}

// checkCauses: no batch holds more than its buffer or is out of order, and each
// ended because it had to.
func checkCauses(t *rapid.T, batches []Batch, addrs []records.Addr, b Buffer, unsorted bool) {
	for _, x := range batches {
		if size := x.To - x.From; b != Dynamic && (size > b.Slots || x.Flush == Full && size != b.Slots) {
			t.Fatalf("%v with %d slots", x, b.Slots)
		}
		if !unsorted && !slices.IsSorted(addrs[x.From:x.To]) {
			t.Fatalf("%v is out of order", x)
		}
		if x.Flush == Order && (unsorted || addrs[x.To-1] <= addrs[x.To]) {
			t.Fatalf("%v, and the next address is in order", x)
		}
	}
}

// TestCutBorders is a vector of one page around its end.
func TestCutBorders(t *testing.T) {
	for _, c := range []struct {
		n    int
		want []Batch
	}{
		{0, nil},
		{1, []Batch{{poke.Range{From: 0, To: 1}, Final}}},
		{255, []Batch{{poke.Range{From: 0, To: 255}, Final}}},
		{256, []Batch{{poke.Range{From: 0, To: 256}, Final}}},
		{257, []Batch{{poke.Range{From: 0, To: 256}, Full}, {poke.Range{From: 256, To: 257}, Final}}},
		{512, []Batch{{poke.Range{From: 0, To: 256}, Full}, {poke.Range{From: 256, To: 512}, Final}}},
		{513, []Batch{{poke.Range{From: 0, To: 256}, Full}, {poke.Range{From: 256, To: 512}, Full},
			{poke.Range{From: 512, To: 513}, Final}}},
	} {
		if got := slices.Collect(Cut(c.n, in(every(c.n, 16)), Buffer{256}, false)); !slices.Equal(got, c.want) {
			t.Errorf("%d ascending: %v, want %v", c.n, got, c.want)
		}
	}
}

func TestCutCauses(t *testing.T) {
	full := func(from, to int) Batch { return Batch{poke.Range{From: from, To: to}, Full} }
	order := func(from, to int) Batch { return Batch{poke.Range{From: from, To: to}, Order} }
	final := func(from, to int) Batch { return Batch{poke.Range{From: from, To: to}, Final} }
	for _, c := range []struct {
		what     string
		addrs    []records.Addr
		slots    int
		unsorted bool
		want     []Batch
	}{
		{"lower than the last", []records.Addr{1, 5, 3, 4}, 9, false, []Batch{order(0, 2), final(2, 4)}},
		{"the last address counts, not the first", []records.Addr{3, 9, 5}, 9, false, []Batch{order(0, 2), final(2, 3)}},
		{"a flush forgets the order", []records.Addr{9, 1, 2, 3}, 9, false, []Batch{order(0, 1), final(1, 4)}},
		{"full and out of order at once is full", []records.Addr{1, 2, 0, 1}, 2, false, []Batch{full(0, 2), final(2, 4)}},
		{"full does not look at order behind it", []records.Addr{5, 6, 7, 1, 0}, 3, false, []Batch{full(0, 3), order(3, 4),
			final(4, 5)}},
		{"equal addresses are in order", []records.Addr{4, 4, 4, 4}, 9, false, []Batch{final(0, 4)}},
		{"equal addresses fill", []records.Addr{4, 4, 4}, 2, false, []Batch{full(0, 2), final(2, 3)}},
		{"unsorted leaves order out", []records.Addr{9, 5, 7, 1}, 9, true, []Batch{final(0, 4)}},
		{"unsorted still fills", []records.Addr{9, 5, 7, 1}, 3, true, []Batch{full(0, 3), final(3, 4)}},
		{"dynamic never fills", []records.Addr{1, 2, 3, 2}, 0, false, []Batch{order(0, 3), final(3, 4)}},
		{"one slot", []records.Addr{3, 2, 1}, 1, false, []Batch{full(0, 1), full(1, 2), final(2, 3)}},
	} {
		got := slices.Collect(Cut(len(c.addrs), in(c.addrs), Buffer{c.slots}, c.unsorted))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

// TestCutFormulas: n ascending addresses are ceil(n/slots) flushes, n descending
// ones n.
func TestCutFormulas(t *testing.T) {
	for _, n := range []int{1, 2, 127, 128, 129, 1000, 4096, 45_000} {
		up, down := every(n, 16), every(n, 16)
		slices.Reverse(down)
		for _, slots := range []int{1, 2, 7, 128, 170, 256, 300, 100_000} {
			b := Buffer{slots}
			if got, want := count(up, b), (n+slots-1)/slots; got != want {
				t.Errorf("%d ascending, %d slots: %d flushes, want %d", n, slots, got, want)
			}
			if got := count(down, b); got != n {
				t.Errorf("%d descending, %d slots: %d flushes, want %d", n, slots, got, n)
			}
		}
		if got := count(up, Dynamic); got != 1 {
			t.Errorf("%d ascending, dynamic: %d flushes, want 1", n, got)
		}
		if got := count(down, Dynamic); got != n {
			t.Errorf("%d descending, dynamic: %d flushes, want %d", n, got, n)
		}
	}
}

// count is how many batches come out.
func count(addrs []records.Addr, b Buffer) int {
	n := 0
	for range Cut(len(addrs), in(addrs), b, false) {
		n++
	}
	return n
}

// TestCutStops: whoever has seen enough gets no more, wherever he stops.
func TestCutStops(t *testing.T) {
	addrs := every(10, 16)
	for stop := 1; stop <= 4; stop++ {
		seen := 0
		for range Cut(len(addrs), in(addrs), Buffer{3}, false) {
			if seen++; seen == stop {
				break
			}
		}
		if seen != stop {
			t.Errorf("%d batches, want %d", seen, stop)
		}
	}
}

func TestCutFor(t *testing.T) {
	addrs := []records.Addr{5, 1, 2, 9, 9, 3}
	one := func(i int, why Flush) Batch { return Batch{poke.Range{From: i, To: i + 1}, why} }
	for _, c := range []struct {
		how  poke.Batching
		want []Batch
	}{
		{poke.Buffered, kernelCut(addrs, Buffer{2}, false)},
		{poke.Whole, []Batch{{poke.Range{From: 0, To: 6}, Final}}},
		{poke.Single, []Batch{one(0, Full), one(1, Full), one(2, Full), one(3, Full), one(4, Full), one(5, Final)}},
	} {
		if got := slices.Collect(CutFor(c.how, len(addrs), in(addrs), Buffer{2}, false)); !slices.Equal(got, c.want) {
			t.Errorf("batching %v: %v, want %v", c.how, got, c.want)
		}
	}
	got := slices.Collect(CutFor(poke.Buffered, len(addrs), in(addrs), Buffer{2}, true))
	if want := kernelCut(addrs, Buffer{2}, true); !slices.Equal(got, want) {
		t.Errorf("unsorted: %v, want %v", got, want)
	}
}

func TestFlushNames(t *testing.T) {
	for f, want := range []string{"full", "order", "final"} {
		if got := Flush(f).String(); got != want {
			t.Errorf("flush %d is called %q, want %q", f, got, want)
		}
	}
}

// BenchmarkCut reports how many records are cut in a second.
func BenchmarkCut(b *testing.B) {
	tab := table(b, "gen:n=1000000,groups=1000,order=grouped")
	for _, buf := range []Buffer{{256}, Dynamic} {
		b.Run("buffer="+buf.String(), func(b *testing.B) {
			b.ReportAllocs()
			batches := 0
			for b.Loop() {
				for range Cut(tab.Len(), tab.Addr, buf, false) {
					batches++
				}
			}
			if batches == 0 {
				b.Fatal("nothing was cut")
			}
			b.ReportMetric(float64(tab.Len())*float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// TestBatches: as many as there are runs of so many that ascend; each that descends is one.
func TestBatches(t *testing.T) {
	for n := range 700 {
		for _, slots := range []int{1, 170, 256} {
			want := 0
			for left := n; left > 0; left -= slots {
				want++
			}
			if got := Batches(n, Ascending, Buffer{slots}); got != want {
				t.Fatalf("%d in %d slots: %d batches, want %d", n, slots, got, want)
			}
		}
	}
	down := func(i int) records.Addr { return records.Addr(1000 - i) }
	if got := Batches(10, down, Buffer{256}); got != 10 {
		t.Errorf("descending: %d batches", got)
	}
	if Ascending(3) <= Ascending(2) {
		t.Error("3 does not come behind 2")
	}
	if got := Batches(1000, Ascending, Dynamic); got != 1 {
		t.Errorf("dynamic: %d batches", got)
	}
}
