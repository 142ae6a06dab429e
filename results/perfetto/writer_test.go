// SPDX-License-Identifier: Apache-2.0

package perfetto

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/internal/readtrace"
)

func read(t interface{ Fatalf(string, ...any) }, b []byte) *readtrace.File {
	f, err := readtrace.Read(b)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return f
}

func TestEverythingIsRead(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out, 0)
	run := w.Track(About{Name: "run"})
	a := w.Track(About{Name: "a", Parent: run, Rank: 2})
	b := w.Track(About{Name: "b", Parent: run, Rank: 1})
	n := w.Track(About{Name: "n", Parent: run, Counter: true, Unit: "patches"})
	first, ok := w.Flows(2)
	if !ok {
		t.Fatal("no room without a limit")
	}
	long := strings.Repeat("é", 60)
	w.Begin(a, "outer", 10, Link{})
	w.Instant(a, "send", 12, Link{First: first, Count: 2})
	w.Begin(a, "inner", 12, Link{Arrives: first})
	w.End(a, 15)
	w.End(a, 1<<40)
	w.Begin(b, "inner", 13, Link{Arrives: first + 1})
	w.End(b, 13)
	w.Begin(b, long, 14, Link{})
	w.End(b, 14)
	w.Count(n, -3, 14)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if w.Dropped() != 0 || w.Last() != 1<<40 || w.written != int64(out.Len()) {
		t.Errorf("%d left out, last at %d, %d bytes of %d", w.Dropped(), w.Last(), w.written, out.Len())
	}
	f := read(t, out.Bytes())
	got := ""
	for _, tr := range f.Under("run") {
		got += fmt.Sprintf("%s %d %v %v %v\n", tr.Name, tr.Rank, tr.Counter, tr.Slices, tr.Values)
	}
	want := "a 2 false [{outer 10 1099511627776 false 0 [] []} {send 12 12 true 1 [1 2] []} {inner 12 15 false 1 [] " +
		"[1]}] []\n" +
		"b 1 false [{inner 13 13 false 0 [] [2]} {" + long[:maxName] + " 14 14 false 0 [] []}] []\n" +
		"n 0 true [] [{14 -3}]\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestUnits: a counter says its unit, or that it is a plain count (counter_descriptor.proto: unit is field 3, unit_name
// field 6), and a file of nothing has no bytes.
func TestUnits(t *testing.T) {
	for unit, want := range map[string]string{"": "\x18\x02", "patches": "\x32\x07patches"} {
		var out bytes.Buffer
		w := NewWriter(&out, 0)
		before := out.Len()
		w.Track(About{Name: "x", Counter: true, Unit: unit})
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for other, text := range map[string]string{"": "\x18\x02", "patches": "\x32\x07patches"} {
			if got := strings.Contains(out.String()[before:], text); got != (text == want) {
				t.Errorf("unit %q: that of %q is there: %v", unit, other, got)
			}
		}
	}
	w := NewWriter(failing{}, 0)
	w.buf = w.buf[:0]
	w.flush()
	if w.err != nil {
		t.Errorf("nothing was written: %v", w.err)
	}
}

// failing refuses every write.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }

// TestLimit: whatever is asked for, and however little room there is, the file is
// whole, no longer than it may be, and says what is missing.
func TestLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1000, 6000).Draw(t, "limit")
		var out bytes.Buffer
		w := NewWriter(&out, limit)
		tracks := []Track{w.Track(About{Name: "x"}), w.Track(About{Name: "y"}), 0}
		counter := w.Track(About{Name: "n", Counter: true})
		open := make([]int, len(tracks))
		var flying []Flow
		asked, there := 0, 0
		count := func(ok bool) bool {
			asked++
			if ok {
				there++
			}
			return ok
		}
		for at := range int64(rapid.IntRange(0, 300).Draw(t, "events")) {
			i := rapid.IntRange(0, len(tracks)-1).Draw(t, "track")
			name := strings.Repeat("\xffn", rapid.IntRange(1, 80).Draw(t, "name"))
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0:
				if count(w.Begin(tracks[i], name, at, Link{})) {
					open[i]++
				}
			case 1:
				if open[i] > 0 {
					open[i]--
					w.End(tracks[i], at)
				}
			case 2:
				count(w.Instant(tracks[i], name, at, Link{}))
			case 3:
				count(w.Count(counter, at, at))
			case 4:
				n := rapid.IntRange(1, 9).Draw(t, "targets")
				first, ok := w.Flows(n)
				if !ok {
					asked++
					continue
				}
				if !count(w.Instant(tracks[0], name, at, Link{First: first, Count: n})) {
					t.Fatal("room had been set aside for it")
				}
				for k := range n {
					flying = append(flying, first+Flow(k))
				}
			}
			if len(flying) > 0 && at%2 == 0 {
				if !count(w.Begin(tracks[1], name, at, Link{Arrives: flying[0]})) {
					t.Fatal("room had been set aside for it")
				}
				w.End(tracks[1], at)
				flying = flying[1:]
			}
		}
		for _, flow := range flying {
			w.Begin(tracks[1], "late", 1000, Link{Arrives: flow})
			w.End(tracks[1], 1000)
		}
		for i, n := range open {
			for range n {
				w.End(tracks[i], 2000)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if int64(out.Len()) > limit {
			t.Errorf("%d bytes, not more than %d were wanted", out.Len(), limit)
		}
		if got := w.Dropped(); got != uint64(asked-there) {
			t.Errorf("%d left out of %d, of which %d are there", got, asked, there)
		}
		f := read(t, out.Bytes())
		if said := f.Tracks[0].Slices; len(said) != min(asked-there, 1) || len(said) > 0 &&
			said[0].Name != fmt.Sprintf("%d left out beyond %d bytes", asked-there, limit) {
			t.Errorf("%d were left out, it says %v", asked-there, said)
		}
	})
}

// TestRoomOfArrows: where there is just room for the arrows, everything they need
// fits, at its largest: new and long names, late times.
func TestRoomOfArrows(t *testing.T) {
	for _, n := range []int{1, 30, 3000} {
		begin := func(limit int64) (*Writer, *bytes.Buffer, []Track, Flow, bool) {
			var out bytes.Buffer
			w := NewWriter(&out, limit)
			tracks := []Track{w.Track(About{Name: "x"}), w.Track(About{Name: "y"})}
			first, ok := w.Flows(n)
			return w, &out, tracks, first, ok
		}
		limit := int64(sort.Search(1<<20, func(limit int) bool {
			_, _, _, _, ok := begin(int64(limit) + 1)
			return ok
		})) + 1
		w, out, tracks, first, _ := begin(limit)
		for w.Count(0, 0, 0) || w.Instant(tracks[0], "x", 0, Link{}) { // whatever else there is room for
		}
		before := w.Dropped()
		name := func(i int) string { return fmt.Sprintf("%064d", i) }
		if !w.Instant(tracks[0], name(n), math.MaxInt64, Link{First: first, Count: n}) {
			t.Fatalf("%d arrows: no room for where they leave", n)
		}
		for i := range n {
			if !w.Begin(tracks[1], name(i), math.MaxInt64, Link{Arrives: first + Flow(i)}) {
				t.Fatalf("%d arrows: no room for the arrival of number %d", n, i)
			}
			w.End(tracks[1], math.MaxInt64)
		}
		if err := w.Close(); err != nil || w.Dropped() != before || int64(out.Len()) > limit {
			t.Errorf("%d arrows: %v, %d left out, %d bytes of %d", n, err, w.Dropped()-before, out.Len(), limit)
		}
		read(t, out.Bytes())
	}
}

type fullDisk struct{ room int }

var errFull = errors.New("disk full")

func (f *fullDisk) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestFullDisk(t *testing.T) {
	w := NewWriter(&fullDisk{room: 100_000}, 0)
	track := w.Track(About{Name: "x"})
	for i := range int64(20_000) {
		w.Begin(track, "slice", i, Link{})
		w.End(track, i)
	}
	if err := w.Close(); !errors.Is(err, errFull) {
		t.Error(err)
	}
}

// TestEventsCostNoMemory: nothing is allocated for an event whose name is known.
func TestEventsCostNoMemory(t *testing.T) {
	w := NewWriter(io.Discard, 0)
	track := w.Track(About{Name: "x"})
	w.Begin(track, "slice", 0, Link{})
	w.End(track, 0)
	if n := testing.AllocsPerRun(1000, func() {
		w.Begin(track, "slice", 1, Link{})
		w.End(track, 2)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkEvent writes slices: two events each.
func BenchmarkEvent(b *testing.B) {
	w := NewWriter(io.Discard, 0)
	track := w.Track(About{Name: "x"})
	b.ReportAllocs()
	at := int64(1e9)
	for b.Loop() {
		w.Begin(track, "slice", at, Link{})
		w.End(track, at+500)
		at += 1000
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/event")
	b.ReportMetric(float64(w.written)/float64(2*b.N), "bytes/event")
}
