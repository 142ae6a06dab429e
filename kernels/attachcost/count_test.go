// SPDX-License-Identifier: Apache-2.0

package attachcost

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/kernels/published"
)

func kernelNamed(t testing.TB, name string) *Kernel {
	t.Helper()
	all, err := Kernels()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range all {
		if k.Name == name {
			return k
		}
	}
	t.Fatalf("no kernel %s", name)
	return nil
}

// counted is what one direction takes.
func counted(t testing.TB, k *Kernel, way, direction string, n, total int64) Counts {
	t.Helper()
	w, err := ParseWay(way)
	if err != nil {
		t.Fatal(err)
	}
	f := Attach
	if direction == published.Detach {
		f = Detach
	}
	c, err := f(k, w, n, total)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestFormulas: the rounds are those that two real kernels were seen to take, for
// every way, direction and number of functions.
func TestFormulas(t *testing.T) {
	formulas, err := published.AttachFormulas.Read("")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range formulas {
		k := kernelNamed(t, f.Kernel)
		for _, n := range []int64{1, 2, 32, 255, 256, 257, 512, 1000, 20000} {
			c := counted(t, k, f.Way, f.Direction, n, 42757)
			if want := f.PerFunction*n + f.PerBatch*((n+255)/256) + f.Fixed; c.AllRounds() != want {
				t.Errorf("%s %s %s of %d: %d rounds (%v), want %d", f.Kernel, f.Way, f.Direction, n, c.AllRounds(),
					c.Rounds, want)
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
	more := map[int64]int64{255: 1, 1000: 1}
	for _, r := range readings {
		want := r.Interrupts
		if r.Way == "tracing-multi" && r.Direction == published.Attach {
			want -= more[r.Functions]
		}
		if c := counted(t, kernelNamed(t, r.Kernel), r.Way, r.Direction, r.Functions, 42757); c.AllRounds() != want {
			t.Errorf("%+v: %d rounds, want %d", r, c.AllRounds(), want)
		}
	}
}

// TestOthers: what is the same on other instruction sets is not measured, but
// follows from their records: none on arm64, one a record and one an update on
// riscv64.
func TestOthers(t *testing.T) {
	arm, riscv := kernelNamed(t, "arm64-6.12"), kernelNamed(t, "riscv64-7.2")
	for _, tt := range []struct {
		k         *Kernel
		way       string
		direction string
		want      int64
	}{
		{arm, "kprobe-multi", "attach", 0},
		{arm, "kprobe-multi", "detach", 1},              // the order
		{arm, "fentry", "attach", 1000},                 // an image each
		{riscv, "kprobe-multi", "attach", 1000 + 1 + 1}, // and the order
		{riscv, "fentry", "attach", 1000 * (1 + 2)},
		{riscv, "global-trampoline", "attach", 12 + 1000 + 12},
	} {
		if c := counted(t, tt.k, tt.way, tt.direction, 1000, 41845); c.AllRounds() != tt.want {
			t.Errorf("%s %s %s: %v, want %d", tt.k.Name, tt.way, tt.direction, c.Rounds, tt.want)
		}
	}
}

// TestQuadratic holds what grows with the square against its closed form.
func TestQuadratic(t *testing.T) {
	old, now := kernelNamed(t, "x86_64-6.12"), kernelNamed(t, "x86_64-7.2")
	const n, total = 20000, 42757
	if c := counted(t, old, "fentry", "attach", n, total); c.Copied != n*(n+1)/2+n {
		t.Errorf("%d entries, want the tables' n(n+1)/2 and the filters' n", c.Copied)
	}
	if c := counted(t, old, "fentry", "detach", n, total); c.Copied != 0 || c.Waits != n {
		t.Errorf("%d entries, %d waits", c.Copied, c.Waits)
	}
	if c := counted(t, now, "fentry", "attach", n, total); c.Copied != n*(n+1) || c.Ops != 1 || c.Calls != n {
		t.Errorf("%+v", c)
	}
	if c := counted(t, now, "fentry", "detach", n, total); c.Copied != n*(n-1) || c.Waits != 0 {
		t.Errorf("%+v", c)
	}
	if c := counted(t, now, "tracing-multi", "attach", n, total); c.Copied != 2*n {
		t.Errorf("%+v", c)
	}
	// 12 equal parts of 1000: 1000 + 2000 + ... + 12000, and the filters.
	if c := counted(t, old, "global-trampoline", "attach", 12000, total); c.Copied != 78000+12000 || c.Ops != 12 ||
		c.Images != 12 {
		t.Errorf("%+v", c)
	}
}

// slow is the kernel's bookkeeping done, with records, filters and a table of
// direct calls that are really there.
type slow struct {
	records []int
	direct  map[int]bool
	Counts
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

func (s *slow) copied(of map[int]bool) map[int]bool {
	out := map[int]bool{}
	s.Allocations += 2
	for r := range of {
		out[r] = true
		s.Copied++
		s.Allocations++
	}
	return out
}

// oneByOne attaches to n functions and detaches from them, with an ops each or
// with one that is shared.
func oneByOne(n, total int, shared bool, replace int) (on, off Counts) {
	s := &slow{records: make([]int, total), direct: map[int]bool{}}
	filter := map[int]bool{}
	update := func() {
		for range replace {
			s.walkAll()
		}
	}
	for i := range n {
		s.Allocations++ // the image
		old := filter
		if shared {
			filter = s.copied(filter)
			filter[i] = true
		} else {
			filter, old = map[int]bool{i: true}, nil
			s.Allocations++ // the ops
		}
		s.Copied++ // the filter's new entry
		s.direct = s.copied(s.direct)
		s.direct[i] = true
		s.Copied++
		s.Allocations++
		if shared {
			s.Allocations++
		}
		s.walkAll()
		s.walkHash(old)
		s.walkHash(filter)
		update()
	}
	on, s.Counts = s.Counts, Counts{}
	for i := range n {
		s.walkAll()
		if shared {
			s.walkHash(filter)
			filter = without(s, filter, i)
			s.walkHash(filter)
			s.direct = without(s, s.direct, i)
		} else {
			s.walkHash(map[int]bool{i: true})
			delete(s.direct, i)
		}
		if i == n-1 {
			s.walkAll()
		}
		update()
	}
	return on, s.Counts
}

func without(s *slow, from map[int]bool, i int) map[int]bool {
	rest := map[int]bool{}
	for r := range from {
		if r != i {
			rest[r] = true
		}
	}
	return s.copied(rest)
}

// TestSlow: walks, copies and allocations are those of a bookkeeping that does
// them.
func TestSlow(t *testing.T) {
	w, err := ParseWay("fentry")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(1, 60).Draw(t, "records")
		n := rapid.IntRange(1, total).Draw(t, "functions")
		k := &Kernel{Name: "k", DirectEntries: 1, Replace: int64(rapid.IntRange(1, 2).Draw(t, "walks")),
			SharedDirectOps: rapid.Bool().Draw(t, "shared")}
		if k.SharedDirectOps {
			k.DirectEntries = 2
		}
		wantOn, wantOff := oneByOne(n, total, k.SharedDirectOps, int(k.Replace))
		on, err := Attach(k, w, int64(n), int64(total))
		if err != nil {
			t.Fatal(err)
		}
		off, err := Detach(k, w, int64(n), int64(total))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range [][2]Counts{{on, wantOn}, {off, wantOff}} {
			if got, want := c[0], c[1]; got.Walked != want.Walked || got.Copied != want.Copied ||
				got.Allocations != want.Allocations {
				t.Errorf("walked %d, copied %d, allocations %d; want %d, %d, %d", got.Walked, got.Copied,
					got.Allocations, want.Walked, want.Copied, want.Allocations)
			}
		}
	})
}

// TestWrong: what cannot be is refused.
func TestWrong(t *testing.T) {
	w, _ := ParseWay("tracing-multi")
	if _, err := Attach(kernelNamed(t, "x86_64-6.12"), w, 1, 1); err == nil {
		t.Error("one ops for all trampolines before there was any")
	}
	for _, n := range []int64{0, 11} {
		if _, err := Attach(kernelNamed(t, "x86_64-7.2"), w, n, 10); err == nil {
			t.Errorf("%d of 10", n)
		}
	}
	if _, err := Detach(nil, w, 1, 1); err == nil {
		t.Error("no kernel")
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
	m, c := NewMachine(k, Assumed), &Counts{Images: 1000, SiteStores: 50}
	whole := Whole(m.Waterfall(c, true))
	s := m.Spread(c, true, 1)
	rest := whole - 1000*Assumed.Image
	if s.Likely != whole || s.On() != "image" || s.Low < rest+1000*5e3 || s.High > rest+1000*200e3 ||
		s.Low > rest+1000*8e3 || s.High < rest+1000*100e3 {
		t.Errorf("%+v of %g", s, whole)
	}
	if d := m.Spread(c, false, 1); d.Low != d.High || d.Hangs != nil {
		t.Errorf("without images: %+v", d)
	}
}
