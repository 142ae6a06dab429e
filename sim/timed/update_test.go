// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/cpus"
)

// TestRepeats: the same machine does the same again, to the last event.
func TestRepeats(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		c := plain(arch, "native", 3000, "busy=6,idle=1,isolated=1,irqsoff=2", plainCosts())
		c.Migrate, c.Preempt = true, true
		first, second := newRig(t, c).toggle(), newRig(t, c).toggle()
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("%s: %s", arch, diff)
		}
		c.Seed++
		if other := newRig(t, c).toggle(); cmp.Equal(first, other) {
			t.Errorf("%s: another seed made no difference", arch)
		}
	}
}

// TestFormula: where nothing is random, an update takes what adding up its
// plan's parts gives.
func TestFormula(t *testing.T) {
	k := plainCosts()
	k.Jitter, k.Calls = 0, 0
	for _, n := range []int{1, 2, 16, 300} {
		for _, slots := range []int{1, 64, 1000} {
			const sites = 200
			c := plain("x86_64", "native", sites, fmt.Sprint(n), k)
			c.Slots = slots
			batches := (sites + slots - 1) / slots
			perRound := 0.0 // from sending to seeing the last answer, and the sender's own fetching afresh
			if n > 1 {
				perRound = k.RoundSetup + float64(n-1)*k.Send + k.Delivery + k.Handler
			}
			perRound += k.Answer + k.Fence
			if n == 1 {
				perRound = k.RoundSetup + k.Fence // there is nobody to wait for
			}
			want := sites*(k.Verify+k.Publish+3*k.Store) + float64(batches)*(3*perRound+k.Reference)
			for i, out := range newRig(t, c).toggle() {
				if got := out.Update; float64(got) != want {
					t.Errorf("%d CPUs, %d slots, update %d: %d ns, the formula gives %.0f", n, slots, i, got, want)
				}
				if n > 1 {
					if got, want := slices.Max(out.Stolen), Nanos(float64(3*batches)*k.Handler); got != want {
						t.Errorf("%d CPUs, %d slots: %d ns stolen, want %d", n, slots, got, want)
					}
				}
			}
		}
	}
}

// TestDeferredIsConserved: with rounds that leave CPUs out, every CPU that is online
// is a target, left out or the sender of each; and what is left out is made up for,
// once for one or several rounds.
func TestDeferredIsConserved(t *testing.T) {
	for _, entries := range []float64{0, 10, 1e5} {
		k := plainCosts()
		k.Entries = entries
		c := plain("x86_64", "breakpoint-lazy", 40, "busy=3,idle=1,isolated=5,offline=1", k)
		c.Slots = 7
		m := newRig(t, c)
		var deferred, caughtUp, sent uint64
		rounds := 0
		for i := range 20 {
			row := m.update(i%2 == 0)
			deferred += row.LeftOut
			caughtUp += row.CaughtUp
			sent += row.Counts.Sent[cpus.Sync]
			rounds += int(row.Counts.TotalRounds(cpus.Sync))
			if err := m.Pass(t.Context(), Nanos(i+1)*1e9); err != nil {
				t.Fatal(err)
			}
		}
		if sent+deferred != uint64(rounds*8) {
			t.Errorf("%v entries/s: %d sent and %d left out of %d rounds to 8 CPUs", entries, sent, deferred, rounds)
		}
		var lives Life
		for cpu := range m.cfg.Roles {
			l := m.Life(cpu)
			lives.LeftOut += l.LeftOut
			lives.CaughtUp += l.CaughtUp
			if l.Owed > l.LeftOut || l.CaughtUp == 0 && l.Owed != l.LeftOut {
				t.Errorf("%v entries/s: CPU %d owes %d of %d rounds after catching up %d times", entries, cpu, l.Owed, l.LeftOut,
					l.CaughtUp)
			}
			if m.cfg.Roles[cpu] == cpus.Isolated && l.Taken+l.LeftOut != uint64(rounds) {
				t.Errorf("%v entries/s: CPU %d took %d and was left out of %d of %d rounds", entries, cpu, l.Taken, l.LeftOut,
					rounds)
			}
		}
		if lives.LeftOut != deferred || lives.CaughtUp < caughtUp || lives.CaughtUp > deferred {
			t.Errorf("%v entries/s: CPUs were left out %d times and made up %d times; the rows say %d and %d", entries,
				lives.LeftOut, lives.CaughtUp, deferred, caughtUp)
		}
		if entries == 0 && (sent != uint64(rounds*3) || lives.CaughtUp != 0) {
			t.Errorf("nobody enters the kernel: %d sent, %d made up for", sent, lives.CaughtUp)
		}
		if entries > 0 && lives.CaughtUp == 0 {
			t.Errorf("%v entries/s: nobody made up for anything", entries)
		}
		m.whole()
	}
}

// TestLazyRoundsFindInTheKernel: the share of rounds that find an isolated CPU in the
// kernel is the share of its time that it is there, stays/(1+stays), whatever the
// rounds before them found.
func TestLazyRoundsFindInTheKernel(t *testing.T) {
	for _, entries := range []float64{1e4, 1e5, 1e6} {
		k := plainCosts()
		k.Entries, k.KernelStretch = entries, 5000
		// What else would keep a CPU in the kernel, or interrupt it when it has left.
		k.Handler, k.UserEntry, k.CatchUp, k.RoundSetup, k.Send, k.Delivery, k.Jitter = 0, 0, 0, 0, 0, 0, 0
		k.TrapEntry, k.TrapExit, k.Comparison, k.Reference = 0, 0, 0, 0
		c := plain("x86_64", "breakpoint-lazy", 2, "busy=1,isolated=20", k)
		m := newRig(t, c)
		taken, rounds := 0.0, 0.0
		updates := 400
		if *long {
			updates = 10_000
		}
		for i := range updates {
			row := m.update(i%2 == 0)
			taken += float64(row.Counts.TotalTaken(cpus.Sync))
			rounds += float64(row.Counts.TotalRounds(cpus.Sync) * 20)
			if err := m.Pass(t.Context(), Nanos(i+1)*1e9); err != nil {
				t.Fatal(err)
			}
		}
		stays := entries * 5000 / 1e9
		want := stays / (1 + stays)
		// The three rounds of one update follow each other too fast to be independent.
		if sigma := math.Sqrt(want * (1 - want) / float64(updates*20)); math.Abs(taken/rounds-want) > 4*sigma {
			t.Errorf("%v entries/s: %.4f of the rounds found a CPU in the kernel, want %.4f within %.4f", entries, taken/rounds,
				want, 4*sigma)
		}
	}
}

// TestOutOfTime: what would happen in a thousand years never does, and an update
// that would take as long is refused; time does not run backwards for that.
func TestOutOfTime(t *testing.T) {
	k := plainCosts()
	k.Entries = 1e-300
	c := plain("x86_64", "breakpoint-lazy", 40, "busy=3,isolated=3", k)
	m := newRig(t, c)
	for i, out := range m.toggle() {
		if out.Update <= 0 || out.CaughtUp > 0 {
			t.Errorf("update %d: %d ns, made up for %d times", i, out.Update, out.CaughtUp)
		}
	}
	if now := m.Now(); now < 0 || now > 1e9 {
		t.Errorf("it is %d ns", now)
	}
	for _, calls := range []float64{0, 1} { // with and without the queue
		k = plainCosts()
		k.Verify, k.Calls = 24*3600*1e9, calls // a day
		c = plain("x86_64", "native", 40000, "1", k)
		out, err := newRig(t, c).try(true)
		if err == nil || !strings.Contains(err.Error(), "the virtual time is 36 years") {
			t.Errorf("a hundred years: %v, %+v", err, out)
		}
	}
}

// TestExposureOfWhatIsLeft: a breakpoint that a plan leaves behind is exposed until
// the update is over.
func TestExposureOfWhatIsLeft(t *testing.T) {
	const sites = 40
	k := plainCosts()
	k.Calls = 0
	c := plain("x86_64", "native", sites, "4", k)
	c.plan = parsed(t, "    Publish\n    Write breakpoint\n    Sync 1\n    Unpublish\n    WaitHandlers\n")
	row := newRig(t, c).update(true)
	// Site i from i stores after the first one on.
	want := row.Update - Nanos(sites*(k.Verify+k.Publish)+k.Store*(sites-1)/2)
	if row.Exposure != want {
		t.Errorf("exposed for %d ns, want %d of %d", row.Exposure, want, row.Update)
	}
}
