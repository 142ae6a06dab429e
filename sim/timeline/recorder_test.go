// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/readtrace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func roles(t testing.TB, spec string) []cpus.Role {
	t.Helper()
	r, err := cpus.ParseRoles(spec)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func read(t interface{ Fatal(...any) }, b []byte) *readtrace.File {
	f, err := readtrace.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// show draws a group of tracks: a line each, nested slices indented by dots.
func show(f *readtrace.File, group string) string {
	var b strings.Builder
	for _, t := range f.Under(group) {
		fmt.Fprintf(&b, "%d %s:", t.Rank, t.Name)
		for _, s := range t.Slices {
			fmt.Fprintf(&b, " %s%s@%d-%d", strings.Repeat(".", s.Depth), s.Name, s.From, s.Until)
			if len(s.Leaves)+len(s.Arrives) > 0 {
				fmt.Fprintf(&b, "%v%v", s.Leaves, s.Arrives)
			}
		}
		for _, v := range t.Values {
			fmt.Fprintf(&b, " %d=%d", v.At, v.Value)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// TestPicture: what one batch looks like, told in the order in which things end.
func TestPicture(t *testing.T) {
	var out bytes.Buffer
	r := New(&out, roles(t, "busy=2,isolated=1"), 0)
	r.Run("first", 100)
	r.Batch(5, 2)
	r.Step(0, "Publish", 0, 5)
	r.Trap(1, 8, 9, true)
	r.Round(1, 0, cpus.Sync, 2, 11)
	r.Interrupt(1, 2, cpus.Sync, 13, 14)
	r.Trap(1, 11, 12, false)
	r.Interrupt(77, 0, cpus.Stop, 15, 16) // of no round: it has no arrow
	r.Interrupt(1, 1, cpus.Sync, 14, 18)
	r.Step(0, "Sync 1", 10, 20)
	r.Batch(20, 0)
	r.Machine(roles(t, "1"))
	r.Run("second", 0)
	r.Step(0, "Verify", 0, 7)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	f := read(t, out.Bytes())
	want := `1 patcher: Publish@100-105 Sync 1@110-120 .sync@111-111[1 2][]
2 traps: 108=1 111=2
3 batch fill: 105=2 120=0
4 CPU 0 (busy): busy@100-100 Publish@100-105 Sync 1@110-120 .stop@115-116
5 CPU 1 (busy): busy@100-100 trap@108-109 trap without entry@111-112 sync@114-118[][2]
6 CPU 2 (isolated): isolated@100-100 sync@113-114[][1]
`
	if got := show(f, "first"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	want = `1 patcher: Verify@1120-1127
2 traps:
3 batch fill:
4 CPU 0 (busy): busy@1120-1120 Verify@1120-1127
`
	if got := show(f, "second"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestWhateverIsTold: an engine that keeps no order gets a file that is whole all
// the same, with everything in it.
func TestWhateverIsTold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var out bytes.Buffer
		limit := rapid.SampledFrom([]int64{0, 0, 2000, 5000}).Draw(t, "limit")
		r := New(&out, make([]cpus.Role, 3), limit)
		time := rapid.Int64Range(0, 60)
		cpu := rapid.IntRange(0, 2)
		if limit == 0 {
			cpu = rapid.IntRange(0, 4) // more than there were said to be
		}
		traps, told, targets := 0, 0, 0
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			from := time.Draw(t, "from")
			until := from + time.Draw(t, "length")
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0:
				r.Step(cpu.Draw(t, "cpu"), "step", from, until)
			case 1:
				n := rapid.IntRange(0, 4).Draw(t, "targets")
				targets += n
				told++
				r.Round(uint64(told), 0, cpus.Stop, n, from)
				for range n {
					r.Interrupt(uint64(told), cpu.Draw(t, "cpu"), cpus.Stop, time.Draw(t, "at"), until)
				}
			case 2:
				r.Trap(cpu.Draw(t, "cpu"), from, until, true)
				traps++
			case 3:
				r.Batch(from, 3)
			case 4:
				r.flush(r.base + from)
			case 5:
				r.Run("again", from)
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		f := read(t, out.Bytes())
		for _, track := range f.Tracks {
			for _, s := range track.Slices {
				if s.Name == "trap" {
					traps--
				}
			}
		}
		switch dropped := r.Dropped(); {
		case limit > 0 && int64(out.Len()) > limit:
			t.Fatalf("%d bytes", out.Len())
		case limit == 0 && (dropped > 0 || traps != 0 || f.Flows() != targets):
			t.Fatalf("%d traps are missing, %d arrows of %d, %d left out", traps, f.Flows(), targets, dropped)
		case traps > 0 && dropped == 0:
			t.Fatalf("%d traps are missing, nothing is said to be", traps)
		}
	})
}

// TestNobody: a Recorder that is not there records nothing.
func TestNobody(t *testing.T) {
	var r *Recorder
	r.Machine(nil)
	r.Run("", 0)
	r.Step(0, "", 0, 0)
	r.Round(0, 0, 0, 0, 0)
	r.Interrupt(0, 0, 0, 0, 0)
	r.Trap(0, 0, 0, false)
	r.Batch(0, 0)
	if r.Dropped() != 0 || r.Close() != nil {
		t.Error("it does something")
	}
}

// TestManyAtOnce: CPUs tell at the same time; nothing is lost.
func TestManyAtOnce(t *testing.T) {
	const n, each = 8, 500
	var out bytes.Buffer
	r := New(&out, make([]cpus.Role, n), 0)
	r.Run("run", 0)
	var wait sync.WaitGroup
	for id := range uint64(each) {
		r.Round(id, 0, cpus.Sync, n, int64(id))
	}
	for cpu := range n {
		wait.Go(func() {
			for i := range int64(each) {
				r.Interrupt(uint64(i), cpu, cpus.Sync, i*10, i*10+5)
				r.Trap(cpu, i*10+6, i*10+7, true)
				if cpu == 0 {
					r.Step(0, "step", i*10, i*10+9)
				}
			}
		})
	}
	wait.Wait()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	f := read(t, out.Bytes())
	if f.Flows() != n*each {
		t.Errorf("%d arrows", f.Flows())
	}
	for _, track := range f.Under("run") {
		if k := len(track.Values); track.Name == "traps" && (k != n*each || track.Values[k-1].Value != n*each) {
			t.Errorf("%d traps are counted", k)
		}
	}
}

func BenchmarkRecorder(b *testing.B) {
	r := New(io.Discard, make([]cpus.Role, 8), 0)
	b.ReportAllocs()
	at := int64(0)
	for b.Loop() { // a step with a round to seven CPUs: nine slices and an instant
		r.Round(uint64(at), 0, cpus.Sync, 7, at)
		for cpu := 1; cpu < 8; cpu++ {
			r.Interrupt(uint64(at), cpu, cpus.Sync, at+1, at+2)
		}
		at += 10
		r.Step(0, "Sync 1", at-10, at)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(10*b.N), "ns/event")
}

// TestCutShort: a run that ends in the middle of a round leaves no arrow without an
// end: what was not delivered says so.
func TestCutShort(t *testing.T) {
	var out bytes.Buffer
	r := New(&out, []cpus.Role{cpus.Busy, cpus.Busy, cpus.Busy}, 0)
	for range 2 {
		r.Run("cut", 0)
		r.Round(7, 0, cpus.Sync, 2, 100)
		r.Interrupt(7, 1, cpus.Sync, 150, 200)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := readtrace.Read(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, track := range f.Tracks {
		for _, s := range track.Slices {
			if s.Name == undelivered {
				n++
			}
		}
	}
	if n != 2 {
		t.Errorf("%d arrows were given up, want 2", n)
	}
}
