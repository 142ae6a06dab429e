// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/readtrace"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sim/timeline"
)

// readTimeline ends a timeline and reads it.
func readTimeline(t testing.TB, r *timeline.Recorder, out *bytes.Buffer) *readtrace.File {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := readtrace.Read(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// named counts a track's slices of a name, instants or not.
func named(track *readtrace.Track, name string, instant bool) (n uint64) {
	for _, s := range track.Slices {
		if s.Name == name && s.Instant == instant {
			n++
		}
	}
	return n
}

// checkTimeline holds what a run's tracks show against its ledger: rounds and
// where they lead, deliveries CPU by CPU and cause by cause, traps.
func checkTimeline(t *testing.T, tracks []*readtrace.Track, c cpus.Counts, traps [2]uint64) {
	t.Helper()
	patcher, counter, lines := tracks[0], tracks[1], tracks[3:]
	if patcher.Name != "patcher" || counter.Name != "traps" || len(lines) != len(c.Taken) {
		t.Fatalf("tracks %q, %q and %d CPUs", patcher.Name, counter.Name, len(lines))
	}
	var shown [2]uint64
	for cpu, line := range lines {
		shown[0] += named(line, "trap", false)
		shown[1] += named(line, "trap without entry", false)
		for k := range cpus.NumCauses {
			cause := cpus.Cause(k)
			if got, want := named(line, cause.String(), false), c.Taken[cpu][k]; got != want {
				t.Errorf("cpu %d: %d deliveries of %s are shown, the ledger has %d", cpu, got, cause, want)
			}
		}
		for _, s := range line.Slices {
			if delivery := s.Name == cpus.Sync.String() || s.Name == cpus.Stop.String(); delivery != (len(s.Arrives) == 1) {
				t.Errorf("cpu %d: %d arrows arrive at %q", cpu, len(s.Arrives), s.Name)
			}
		}
	}
	if shown != traps || uint64(len(counter.Values)) != traps[0]+traps[1] {
		t.Errorf("traps with and without an entry: %d are shown and %d counted, there were %d", shown, len(counter.Values),
			traps)
	}
	for k := range cpus.NumCauses {
		cause := cpus.Cause(k)
		var targets uint64
		for _, s := range patcher.Slices {
			if s.Instant && s.Name == cause.String() {
				targets += uint64(len(s.Leaves))
			}
		}
		if rounds := named(patcher, cause.String(), true); rounds != c.TotalRounds(cause) || targets != c.Sent[k] {
			t.Errorf("%s: %d rounds with %d arrows are shown, the ledger has %d with %d targets", cause, rounds, targets,
				c.TotalRounds(cause), c.Sent[k])
		}
	}
}

// TestTimelineIsTheLedger: what the live machine counts is what its timeline
// shows, for every architecture, with rounds and with stop_machine; two runs in
// one file keep apart.
func TestTimelineIsTheLedger(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		t.Run(arch, func(t *testing.T) {
			var out bytes.Buffer
			rec := timeline.New(&out, nil, 0)
			type run struct {
				name   string
				counts cpus.Counts
				traps  [2]uint64 // with an entry, and without
				steps  int
			}
			var runs []run
			for _, protocol := range []string{"breakpoint", "stop-machine"} {
				c := config(t, arch, protocol, "gen:n=300", "busy=2,idle=1,isolated=1,irqsoff=1")
				c.Buffer.Slots = 64
				c.Timeline = rec
				j := newJob(t, c)
				l, err := NewLive(j)
				if err != nil {
					t.Fatal(err)
				}
				r := run{name: j.String()}
				for _, enable := range []bool{true, false} {
					row := update(t, l, enable)
					r.traps[0] += row.Traps - row.Misses
					r.traps[1] += row.Misses
					err := j.compile(len(j.queue), !enable, j.batches(len(j.queue), j.at), nil, func(poke.Step) { r.steps++ })
					if err != nil {
						t.Fatal(err)
					}
				}
				r.counts = l.Counts()
				l.Close()
				runs = append(runs, r)
			}
			f := readTimeline(t, rec, &out)
			for _, r := range runs {
				tracks := f.Under(r.name)
				checkTimeline(t, tracks, r.counts, r.traps)
				if got := len(tracks[0].Slices) - int(r.counts.TotalRounds(cpus.Sync)+r.counts.TotalRounds(cpus.Stop)); got != r.steps {
					t.Errorf("%d steps are shown, the plans have %d", got, r.steps)
				}
			}
			if last, first := runs[0], runs[1]; f.Under(last.name)[3].Slices[0].From >= f.Under(first.name)[3].Slices[0].From {
				t.Error("the second run does not come second")
			}
		})
	}
}

// TestTimelineUnderStress: with CPUs that come and go, updates that fail and a
// patcher that moves, what is shown still nests and every arrow arrives.
func TestTimelineUnderStress(t *testing.T) {
	for _, limit := range []int64{0, 100_000} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			var out bytes.Buffer
			c := config(t, "x86_64", poke.Native, "gen:n=300", "4")
			c.Buffer.Slots = 64
			c.Timeline = timeline.New(&out, c.Roles, limit)
			row, _, err := Stress(t.Context(), c, 200*time.Millisecond, AllTrouble)
			if err != nil {
				t.Fatal(err)
			}
			dropped := c.Timeline.Dropped()
			f := readTimeline(t, c.Timeline, &out)
			if limit == 0 && uint64(f.Flows()) != row.Counts.Sent[cpus.Sync]+row.Counts.Sent[cpus.Stop] {
				t.Errorf("%d arrows are shown, the ledger has %v", f.Flows(), row.Counts.Sent)
			}
			if int64(out.Len()) > limit && limit > 0 || (limit > 0) != (dropped > 0) {
				t.Errorf("%d bytes of %d, %d left out", out.Len(), limit, dropped)
			}
		})
	}
}
