// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/kernels/published"
)

// tallied is what one direction takes.
func tallied(t testing.TB, k *Kernel, way, direction string, n, total int) Tally {
	t.Helper()
	w, err := ParseWay(way)
	if err != nil {
		t.Fatal(err)
	}
	on, off, err := k.Attach(w, n, total)
	if err != nil {
		t.Fatal(err)
	}
	if direction == published.Detach {
		return off
	}
	return on
}

// TestFormulas: the rounds are those that two real kernels were seen to take, for
// every way, direction and number of functions. The formulas leave out that CPUs are
// woken for RCU.
func TestFormulas(t *testing.T) {
	formulas, err := published.AttachFormulas.Read("")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range formulas {
		k := mustKernel(t, f.Kernel)
		for _, n := range []int{1, 2, 32, 255, 256, 257, 512, 1000, 20000} {
			c := tallied(t, k, f.Way, f.Direction, n, 42757)
			got, want := c.AllRounds()-c.Rounds[ForWakeups], int(f.PerFunction)*n+int(f.PerBatch)*((n+255)/256)+int(f.Fixed)
			if got != want || c.Rounds[ForWakeups] > 0 && !f.Background {
				t.Errorf("%s %s %s of %d: %d rounds (%v), want %d", f.Kernel, f.Way, f.Direction, n, got, c.Rounds, want)
			}
		}
	}
	if len(formulas) != 10 {
		t.Errorf("%d formulas", len(formulas))
	}
}

// TestReadings: single readings are what the model says but for two, which are
// one above the formula of the same table.
func TestReadings(t *testing.T) {
	readings, err := published.AttachReadings.Read("")
	if err != nil {
		t.Fatal(err)
	}
	more := map[int64]int{255: 1, 1000: 1}
	for _, r := range readings {
		want := int(r.Interrupts)
		if r.Way == "tracing-multi" && r.Direction == published.Attach {
			want -= more[r.Functions]
		}
		if c := tallied(t, mustKernel(t, r.Kernel), r.Way, r.Direction, int(r.Functions), 42757); c.AllRounds() != want {
			t.Errorf("%+v: %d rounds, want %d", r, c.AllRounds(), want)
		}
	}
}

// TestOneByOne: what is worked out from few calls is what many of them take.
func TestOneByOne(t *testing.T) {
	for _, k := range Kernels() {
		for _, w := range ways {
			if w.Calls > 0 || w.In(k) != nil {
				continue
			}
			const n = 300
			on, off, err := k.Attach(w, n, 700)
			if err != nil {
				t.Fatal(err)
			}
			all, gone, err := k.attach(w, n, 700)
			if err != nil || on != all || off != gone {
				t.Errorf("%s %s: %v\n%+v\n%+v\n%+v\n%+v", k.Name(), w.Name, err, on, all, off, gone)
			}
		}
	}
}

// TestOthers: what other instruction sets take follows from their images. arm64 kicks all
// CPUs for each trampoline, twice up to 6.12 (measured: 1 on 7.2 and 7.3, 2 on 6.12 and
// 6.16); riscv64 sends a fence a record, one an update and one a trampoline (3 were
// measured for one function), and stops every CPU for each program that goes (1).
func TestOthers(t *testing.T) {
	arm, now, riscv := mustKernel(t, "arm64-6.12"), mustKernel(t, "arm64-7.2"), mustKernel(t, "riscv64-7.2")
	for _, tt := range []struct {
		k         *Kernel
		way       string
		direction string
		want      int
	}{
		{arm, "fentry", "attach", 2 * 1000},
		{now, "fentry", "attach", 1000},
		{now, "kprobe-multi", "attach", 0 + 1},          // the order
		{now, "kprobe-multi", "detach", 1},              // likewise
		{riscv, "kprobe-multi", "attach", 1000 + 1 + 1}, // and the order
		{riscv, "fentry", "attach", 1000 * (1 + 2)},
		{riscv, "global-trampoline", "attach", 12 + 1000 + 12},
	} {
		if c := tallied(t, tt.k, tt.way, tt.direction, 1000, 41845); c.AllRounds() != tt.want {
			t.Errorf("%s %s %s: %v, want %d", tt.k.Name(), tt.way, tt.direction, c.Rounds, tt.want)
		}
	}
	w, err := ParseWay("kprobe-multi")
	if err != nil || w.In(arm) == nil {
		t.Errorf("Debian's arm64 6.12 has no CONFIG_FPROBE: %v", err)
	}
	if c := tallied(t, riscv, "fentry", "detach", 1, 1); c.Rounds[ForSkips] != 1 || c.Rounds[ForRecords] != 2 {
		t.Errorf("riscv64, one detach: %v", c.Rounds)
	}
}

// TestQuadratic holds what grows with the square against its closed form.
func TestQuadratic(t *testing.T) {
	old, now := mustKernel(t, "x86_64-6.12"), mustKernel(t, "x86_64-7.2")
	const n, total = 20000, 42757
	if c := tallied(t, old, "fentry", "attach", n, total); c.Copied != n*(n+1)/2+n {
		t.Errorf("%d entries, want the tables' n(n+1)/2 and the filters' n", c.Copied)
	}
	if c := tallied(t, old, "fentry", "detach", n, total); c.Copied != 0 || c.Waits != n {
		t.Errorf("%d entries, %d waits", c.Copied, c.Waits)
	}
	if c := tallied(t, now, "fentry", "attach", n, total); c.Copied != n*(n+1) || c.Ops != 1 || c.Calls != n {
		t.Errorf("%+v", c)
	}
	if c := tallied(t, now, "fentry", "detach", n, total); c.Copied != n*(n-1) || c.Waits != 0 {
		t.Errorf("%+v", c)
	}
	if c := tallied(t, now, "tracing-multi", "attach", n, total); c.Copied != 2*n {
		t.Errorf("%+v", c)
	}
	// 12 equal parts of 1000: 1000 + 2000 + ... + 12000, and the filters.
	if c := tallied(t, old, "global-trampoline", "attach", 12000, total); c.Copied != 78000+12000 || c.Ops != 12 ||
		c.Images != 12 {
		t.Errorf("%+v", c)
	}
}

// slow is the kernel's bookkeeping done, with records, filters and a table of
// direct calls that are really there.
type slow struct {
	records []int
	direct  map[int]bool
	Work
}

func (s *slow) walkAll() {
	for range s.records {
		s.Walked++
	}
}

// walkHash looks at records until all entries were found (__ftrace_hash_rec_update).
func (s *slow) walkHash(filter map[int]bool) {
	found := 0
	if len(filter) == 0 {
		return
	}
	for r := range s.records {
		s.Walked++
		if filter[r] {
			if found++; found == len(filter) {
				return
			}
		}
	}
}

// hash makes a hash with these entries, and one more if it is not below 0.
func (s *slow) hash(of map[int]bool, more int) map[int]bool {
	out := map[int]bool{}
	s.Allocations += 2
	for r := range of {
		out[r] = true
	}
	if more >= 0 {
		out[more] = true
	}
	s.Copied += len(out)
	s.Allocations += len(out)
	return out
}

// without is a hash with all of these but one.
func (s *slow) without(from map[int]bool, i int) map[int]bool {
	rest := map[int]bool{}
	for r := range from {
		if r != i {
			rest[r] = true
		}
	}
	return s.hash(rest, -1)
}

// slowly attaches to n functions one by one and detaches from them, with an ops each or
// with one that is shared.
func slowly(n, total int, shared bool, replace int) (on, off Work) {
	s := &slow{records: make([]int, total), direct: map[int]bool{}}
	filter := map[int]bool{}
	update := func() {
		for range replace {
			s.walkAll()
		}
	}
	for i := range n {
		s.Allocations++ // the image
		var old map[int]bool
		if shared {
			if old = filter; i > 0 {
				s.Allocations += 2 // what the filter is moved into (__ftrace_hash_move)
			}
			filter = s.hash(filter, i)
		} else {
			filter = s.hash(nil, i)
			s.Allocations++ // the ops
		}
		s.direct = s.hash(s.direct, i)
		s.walkAll()
		s.walkHash(old)
		s.walkHash(filter)
		update()
	}
	on, s.Work = s.Work, Work{}
	for i := range n {
		s.walkAll()
		if shared {
			s.walkHash(filter)
			if s.direct = s.without(s.direct, i); i < n-1 {
				filter = s.without(filter, i)
				s.walkHash(filter)
			}
		} else {
			s.walkHash(map[int]bool{i: true})
			delete(s.direct, i)
		}
		if i == n-1 {
			s.walkAll()
		}
		update()
	}
	return on, s.Work
}

// TestSlow: walks, copies and allocations are those of a bookkeeping that does
// them.
func TestSlow(t *testing.T) {
	w, err := ParseWay("fentry")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		total := rapid.IntRange(1, 120).Draw(rt, "records")
		n := rapid.IntRange(1, total).Draw(rt, "functions")
		k := mustKernel(t, rapid.SampledFrom([]string{"x86_64-6.12", "x86_64-7.2", "arm64-6.12"}).Draw(rt, "kernel"))
		replace := 1
		if k.Arch == "x86_64" {
			replace = 2
		}
		wantOn, wantOff := slowly(n, total, k.Facts.value(image.DirectShared) > 0, replace)
		on, off, err := k.Attach(w, n, total)
		if err != nil {
			rt.Fatal(err)
		}
		for _, c := range []struct {
			got  Tally
			want Work
		}{{on, wantOn}, {off, wantOff}} {
			if c.got.Walked != c.want.Walked || c.got.Copied != c.want.Copied || c.got.Allocations != c.want.Allocations {
				rt.Errorf("%s: walked %d, copied %d, allocations %d; want %d, %d, %d", k.Name(), c.got.Walked, c.got.Copied,
					c.got.Allocations, c.want.Walked, c.want.Copied, c.want.Allocations)
			}
		}
	})
}

// TestWrong: what cannot be is refused.
func TestWrong(t *testing.T) {
	w, _ := ParseWay("tracing-multi")
	if _, _, err := mustKernel(t, "x86_64-6.12").Attach(w, 1, 1); err == nil {
		t.Error("one ops for all trampolines before there was any")
	}
	for _, n := range []int{0, 11} {
		if _, _, err := mustKernel(t, "x86_64-7.2").Attach(w, n, 10); err == nil {
			t.Errorf("%d of 10", n)
		}
	}
	if _, err := ParseWay("fenty"); err == nil || err.Error() == "" {
		t.Error("fenty")
	}
}

// TestSpread: over intervals that move one part alone, the ends are that part's: an image
// takes 5 to 200 us, and 1000 of them are all that changes.
func TestSpread(t *testing.T) {
	k := &calibration.Calibration{CPUs: 2}
	for i := range calibration.Quantities {
		q := &calibration.Quantities[i]
		k.Entries = append(k.Entries, calibration.Entry{Quantity: q, Value: 100, Basis: calibration.Published})
		*q.Of(&k.Costs) = 100
	}
	m, c := NewMachine(k, AssumedExtra), &Tally{SiteStores: 50, Work: Work{Images: 1000}}
	whole := Whole(m.Waterfall(c, true))
	s := m.Spread(c, true, 1)
	rest := whole - 1000*AssumedExtra.Image
	if s.Likely != whole || s.On() != "image" || s.Low < rest+1000*5e3 || s.High > rest+1000*200e3 ||
		s.Low > rest+1000*8e3 || s.High < rest+1000*100e3 {
		t.Errorf("%+v of %g", s, whole)
	}
	if d := m.Spread(c, false, 1); d.Low != d.High || d.Hangs != nil {
		t.Errorf("without images: %+v", d)
	}
}

// TestWaterfall: each part is its count times its cost; a machine of one CPU sends nothing, so that a round takes what
// its preparation does.
func TestWaterfall(t *testing.T) {
	c := &calibration.Calibration{CPUs: 1, Costs: calibration.Costs{RoundSetup: 1000, Store: 7, Verify: 11, Publish: 13,
		GracePeriod: 17}}
	m := NewMachine(c, Extra{Walk: 19, Entry: 23, Allocate: 29, Image: 31})
	tally := &Tally{Functions: 2, SiteStores: 3, Rounds: [NumKinds]int{ForRecords: 5, ForEntries: 70, ForOrder: 110,
		ForImages: 13000, ForSkips: 17000, ForOwn: 190, ForWakeups: 2300, ForOthers: 2900},
		Work: Work{Images: 37, Patches: 1, Walked: 41, Copied: 43, Allocations: 47, ListChanges: 1, Waits: 53}}
	want := []Part{{"stores to sites", 3, 3*7 + 2*(11+13)}, {"rounds for sites", 5, 5 * 1000},
		{"entry calls", 370, 370*1000 + 70*7}, {"trampolines made", 37, 37 * 31},
		{"trampoline rounds", 30000, 30000*1000 + 17000*7}, {"records walked", 41, 41 * 19}, {"hash entries", 43, 43 * 23},
		{"allocations", 47, 47 * 29}, {"grace periods", 53, 53 * 17}, {"other rounds", 5200, 5200 * 1000}}
	if got := m.Waterfall(tally, true); !slices.Equal(got, want) {
		t.Errorf("attach:\n%v\nwant\n%v", got, want)
	}
	want[3] = Part{Name: "trampolines made"}
	got := m.Waterfall(tally, false)
	if !slices.Equal(got, want) {
		t.Errorf("detach:\n%v\nwant\n%v", got, want)
	}
	sum := 0.0
	for _, p := range want {
		sum += p.NS
	}
	if Whole(got) != sum {
		t.Errorf("%g ns, want %g", Whole(got), sum)
	}
	for i, e := range (Extra{Walk: 0.25, Entry: 101, Allocate: 30, Image: 5e3}).entries() {
		want := []string{"walk 0.25 0.25..20", "entry 101 3..101", "allocate 30 10..300", "image 5000 5000..200000"}[i]
		if got := fmt.Sprintf("%s %g %g..%g", e.Quantity.Name, e.Value, e.Low, e.High); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
