// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package hardware

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/internal/threads"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/poke/live"
)

func benched(t *testing.T) *bench {
	t.Helper()
	machineOf(t, 1) // which skips where there is none
	b, err := newBench()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// as says that every site holds one of a patch's texts.
func (b *bench) as(t *testing.T, what string, enabled bool) {
	t.Helper()
	for i, p := range b.patches {
		want := p.Old
		if enabled {
			want = p.New
		}
		if got := b.Peek(i); got != want {
			t.Fatalf("%s: site %d holds %s, want %s", what, i, got.Format(5), want.Format(5))
		}
	}
}

// TestBenches: what is measured, how, and that it takes time.
func TestBenches(t *testing.T) {
	machineOf(t, 1)
	list, done, err := Benches()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Benches(); !errors.Is(err, ErrNone) || !errors.Is(err, live.ErrOpen) ||
		err.Error() != ErrNone.Error()+": "+live.ErrOpen.Error() {
		t.Errorf("a second machine: %v", err)
	}
	const trap = "half of int3, SIGTRAP, its handler and back, in user space: a signal and not a trap gate"
	want := [][3]string{
		{"verify", "measured", "comparing a site with the text that it must hold, in user space"},
		{"publish", "measured", "building the sorted vector that handlers search, by patch, in user space"},
		{"store", "measured", "a plan's store of one byte to text that another CPU executes, in user space: its other mapping " +
			"is there, and a kernel makes one each time"},
		{"fence", "measured", "a return by IRET, which serializes"},
		{"trap_entry", "derived", trap},
		{"trap_exit", "derived", trap},
	}
	var got [][3]string
	for _, m := range list {
		got = append(got, [3]string{m.Quantity, string(m.Basis), m.Text})
		took := m.Run()
		for n := 0; !(took > 0) && n < 1000; n++ { // calls with traps are held against calls without, which something disturbed
			took = m.Run()
		}
		if !(took > 0) {
			t.Errorf("%s takes %g ns", m.Quantity, took)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	done()
	_ = benched(t) // there is room for another one
}

// TestEach: a time is divided by how often something was done in it.
func TestEach(t *testing.T) {
	did := 0
	if ns := each(4, func() { did++; time.Sleep(4 * time.Millisecond) }); did != 1 || ns < 1e6 {
		t.Errorf("%d times, of %g ns each", did, ns)
	}
}

// TestTrapBench: as many calls go without a breakpoint as come upon one, which each find it, and nothing is left: text,
// batch or references.
func TestTrapBench(t *testing.T) {
	b := benched(t)
	thread, g := b.Threads()[0], b.Ground(0, poke.Sorted, -1)
	for n := uint64(1); n <= 3; n++ {
		b.trap()
		want := live.Counts{Begun: 2 * trapsAPass * n, Traps: trapsAPass * n, Hits: trapsAPass * n, Comparisons: b.Counts().Comparisons,
			Untraced: 2 * trapsAPass * n}
		if d := cmp.Diff(want, b.Counts()); d != "" || want.Comparisons < trapsAPass*n || !g.Drained() {
			t.Errorf("%d: %s, drained %v", n, d, g.Drained())
		}
		b.as(t, "trap", false)
	}
	before := b.Counts()
	g.Store(0, 0, 1, live.Arch.Breakpoint())
	thread.Call(0, 1)
	if got := b.Counts().Sub(before); got.Unhandled != 1 || got.Hits != 0 {
		t.Errorf("a breakpoint that nobody published: %+v", got)
	}
}

// TestStepBench: a step is done at every site.
func TestStepBench(t *testing.T) {
	b := benched(t)
	if ns := b.step(poke.Step{Op: poke.Write, Part: poke.Head, To: benchSites / 2}, b.patches); !(ns > 0) {
		t.Errorf("%g ns", ns)
	}
	for i, p := range b.patches {
		want := p.Old.Bytes(1)[0]
		if i < benchSites/2 {
			want = p.New.Bytes(1)[0]
		}
		if got := b.Peek(i).Bytes(1)[0]; got != want {
			t.Fatalf("site %d begins with %#x, want %#x", i, got, want)
		}
	}
}

// TestStoreBench: sites are as they were, and were called meanwhile; the caller is gone then, and the calling thread may
// use the CPUs that it had. A CPU that cannot be had costs nothing.
func TestStoreBench(t *testing.T) {
	b := benched(t)
	unpin, err := threads.Pin(b.on[1])
	if err != nil {
		t.Skip("skipped: ", err)
	}
	defer unpin()
	for n := 0; n < 1000 && b.Counts().Begun == 0; n++ { // the caller may come too late for the first
		if ns := b.store(); !(ns > 0) {
			t.Errorf("%g ns", ns)
		}
	}
	if b.Counts().Begun == 0 || b.Counts().Traps != 0 {
		t.Errorf("%+v", b.Counts())
	}
	begun := b.Counts().Begun
	for range 1000 {
		if now := b.Counts().Begun; now != begun || !b.Threads()[0].Between() {
			t.Fatalf("%d calls after the end", now-begun)
		}
		time.Sleep(time.Microsecond)
	}
	b.as(t, "store", false)
	if on, err := threads.Allowed(); err != nil || len(on) != 1 || on[0] != b.on[1] {
		t.Errorf("the thread may use %v, %v", on, err)
	}
	for i := range b.on {
		was := b.on[i]
		b.on[i] = 1000
		if ns := b.store(); ns != 0 || b.Counts().Begun != begun {
			t.Errorf("a store of no CPU takes %g ns, with %d calls", ns, b.Counts().Begun-begun)
		}
		b.on[i] = was
	}
}

// TestPublishBench: a batch that was published for a time is gone.
func TestPublishBench(t *testing.T) {
	b := benched(t)
	g := b.Ground(0, poke.Sorted, -1)
	if ns := b.publish(); !(ns > 0) || !g.Drained() {
		t.Errorf("%g ns, drained %v", ns, g.Drained())
	}
	g.Store(0, 0, 1, live.Arch.Breakpoint())
	b.Threads()[0].Call(0, 1)
	if got := b.Counts(); got.Unhandled != 1 || got.Hits != 0 {
		t.Errorf("a breakpoint that nobody published: %+v", got)
	}
	if ns := b.fence(); !(ns > 0) {
		t.Errorf("a fence takes %g ns", ns)
	}
}

// TestBenchesForget: what handlers may have been reading, 64 KiB each time, is let go of when a measurement is over.
func TestBenchesForget(t *testing.T) {
	b := benched(t)
	held := func() uint64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	for what, do := range map[string]func() float64{"publish": b.publish, "trap": b.trap} {
		do()
		before := held()
		for range 100 {
			do()
		}
		if after := held(); after > before+50*8*2*benchSites {
			t.Errorf("%s: %d bytes are held, and were %d", what, after, before)
		}
	}
}
