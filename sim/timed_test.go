package sim

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim/timed"
	"github.com/textpoke/textpoke/sim/timeline"
)

// plainCosts are round numbers that add up to times which are easy to tell apart.
func plainCosts() calibration.Costs {
	return calibration.Costs{
		RoundSetup: 500, Send: 50, Delivery: 1000, Jitter: 200, IdleWake: 2000, Handler: 800, Answer: 100, StopWake: 5000,
		Verify: 30, Publish: 40, Store: 600, StoreLiteral: 400, Fence: 50,
		TrapEntry: 200, TrapExit: 200, Comparison: 5, Reference: 10, LineTransfer: 100,
		UserEntry: 100, UserExit: 100, CatchUp: 100, MaskedStretch: 10_000, FetchLag: 2000, GracePeriod: 1e6,
		Switch: 1500, TickInterval: 4e6, Away: 1e6, Migration: 5000,
		Calls: 1e6, Skew: 1, Tracer: 100, Entries: 1000, KernelStretch: 2000,
	}
}

// timedConfig is a combination for the timed engine.
func timedConfig(t testing.TB, arch, protocol, table, roles string, costs calibration.Costs) Config {
	c := config(t, arch, protocol, table, roles)
	c.Calibration = &calibration.Calibration{Name: "test", Arch: arch, CPUs: len(c.Roles), Costs: costs}
	c.Calls, c.Entries = -1, -1
	return c
}

func newTimedFor(t testing.TB, c Config, calls timed.Thinning) *Timed {
	t.Helper()
	m, err := newTimed(newJob(t, c), "test", zap.NewNop(), calls)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// toggle enables and disables everything.
func toggle(t testing.TB, m *Timed) (rows [2]RunRow) {
	t.Helper()
	for i, enable := range []bool{true, false} {
		row, err := m.Update(t.Context(), enable)
		if err != nil {
			t.Fatal(err)
		}
		row.Modelled.EventRate = 0 // of the wall clock
		rows[i] = row
	}
	return rows
}

// TestTimedAgrees: every protocol on every architecture, with every kind of CPU, does
// on the timed engine what its plan says, breaks nothing that it does not break
// elsewhere, and leaves every site as it should be.
func TestTimedAgrees(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range poke.Names() {
			for _, buffer := range []sched.Buffer{{Slots: 7}, sched.Dynamic} {
				t.Run(fmt.Sprintf("%s/%s/%s", arch, protocol, buffer), func(t *testing.T) {
					c := timedConfig(t, arch, protocol, "gen:n=40,groups=3,order=grouped", "busy=3,idle=1,isolated=2,irqsoff=2,offline=1", plainCosts())
					c.Buffer, c.Migrate = buffer, true
					j, err := NewJob(c)
					if err != nil {
						t.Fatal(err)
					}
					if j.check() != nil {
						t.Skip("cannot work there")
					}
					m := newTimedFor(t, c, timed.HotOnly)
					for _, row := range toggle(t, m) {
						count, err := j.Count(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						if row.Rounds != count.Rounds || row.Stops != count.Stops || row.Lazy == 0 && row.IPIs != count.IPIs {
							t.Errorf("%s: %d rounds, %d stops, %d interrupts; the plan has %d, %d, %d",
								row.Direction, row.Rounds, row.Stops, row.IPIs, count.Rounds, count.Stops, count.IPIs)
						}
						if row.Lost > 0 {
							t.Errorf("%s: %d calls lost", row.Direction, row.Lost)
						}
					}
					if torn := j.torn > 0 && j.protocol.OneStore; !torn {
						for _, v := range m.Violations() {
							t.Error(v)
						}
					}
				})
			}
		}
	}
}

// TestTimedRepeats: the same machine does the same again, to the last event.
func TestTimedRepeats(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		c := timedConfig(t, arch, "native", "gen:n=3000,groups=3,order=sorted", "busy=6,idle=1,isolated=1,irqsoff=2", plainCosts())
		c.Migrate, c.Preempt = true, true
		first, second := toggle(t, newTimedFor(t, c, timed.HotOnly)), toggle(t, newTimedFor(t, c, timed.HotOnly))
		for i := range first {
			if diff := cmp.Diff(first[i].Modelled, second[i].Modelled); diff != "" {
				t.Errorf("%s: %s", arch, diff)
			}
			if diff := cmp.Diff(first[i].Counts, second[i].Counts); diff != "" {
				t.Errorf("%s: %s", arch, diff)
			}
			if diff := cmp.Diff(first[i].Tallies, second[i].Tallies); diff != "" {
				t.Errorf("%s: %s", arch, diff)
			}
		}
		c.Seed++
		if other := toggle(t, newTimedFor(t, c, timed.HotOnly)); cmp.Equal(first[0].Tallies, other[0].Tallies) && cmp.Equal(*first[0].Modelled, *other[0].Modelled) {
			t.Errorf("%s: another seed made no difference", arch)
		}
	}
}

// TestTimedFormula: where nothing is random, an update takes what adding up its
// plan's parts gives.
func TestTimedFormula(t *testing.T) {
	k := plainCosts()
	k.Jitter, k.Calls = 0, 0
	for _, n := range []int{1, 2, 16, 300} {
		for _, slots := range []int{1, 64, 1000} {
			const sites = 200
			c := timedConfig(t, "x86_64", "native", fmt.Sprintf("gen:n=%d,groups=1,order=sorted", sites), fmt.Sprint(n), k)
			c.Buffer = sched.Buffer{Slots: slots}
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
			for _, row := range toggle(t, newTimedFor(t, c, timed.HotOnly)) {
				if got := row.Modelled.Update; float64(got) != want {
					t.Errorf("%d CPUs, %d slots, %s: %d ns, the formula gives %.0f", n, slots, row.Direction, got, want)
				}
				if n > 1 {
					if got, want := row.Modelled.StolenMax, timed.Nanos(float64(3*batches)*k.Handler); got != want {
						t.Errorf("%d CPUs, %d slots: %d ns stolen, want %d", n, slots, got, want)
					}
				}
			}
		}
	}
}

// TestTimedTimeline: what the timeline of a run in virtual time shows is what its
// ledger says.
func TestTimedTimeline(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range []string{"breakpoint", "stop-machine"} {
			c := timedConfig(t, arch, protocol, "gen:n=200,groups=2,order=sorted", "busy=4,idle=1,isolated=1,irqsoff=1", plainCosts())
			c.Buffer.Slots = 64
			var out bytes.Buffer
			c.Timeline = timeline.New(&out, nil, 0)
			m := newTimedFor(t, c, timed.HotOnly)
			rows := toggle(t, m)
			f := readTimeline(t, c.Timeline, &out)
			checkTimeline(t, f.Under(m.job.String()), m.Counts(), [2]uint64{
				rows[0].Traps + rows[1].Traps - rows[0].Misses - rows[1].Misses, rows[0].Misses + rows[1].Misses,
			})
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
		c := timedConfig(t, "x86_64", "breakpoint-lazy", "gen:n=40,groups=1,order=sorted", "busy=3,idle=1,isolated=5,offline=1", k)
		c.Buffer.Slots = 7
		m := newTimedFor(t, c, timed.HotOnly)
		var deferred, caughtUp, sent uint64
		rounds := 0
		for i := range 20 {
			row, err := m.Update(t.Context(), i%2 == 0)
			if err != nil {
				t.Fatal(err)
			}
			deferred += row.Modelled.Deferred
			caughtUp += row.Modelled.CatchUps
			sent += row.Counts.Sent[cpus.Sync]
			rounds += row.Rounds
			if err := m.Pass(t.Context(), timed.Nanos(i+1)*1e9); err != nil {
				t.Fatal(err)
			}
		}
		if sent+deferred != uint64(rounds*8) {
			t.Errorf("%v entries/s: %d sent and %d left out of %d rounds to 8 CPUs", entries, sent, deferred, rounds)
		}
		var lives timed.Life
		for cpu := range c.Roles {
			l := m.Life(cpu)
			lives.LeftOut += l.LeftOut
			lives.CaughtUp += l.CaughtUp
			if l.Owed > l.LeftOut || l.CaughtUp == 0 && l.Owed != l.LeftOut {
				t.Errorf("%v entries/s: CPU %d owes %d of %d rounds after catching up %d times", entries, cpu, l.Owed, l.LeftOut, l.CaughtUp)
			}
			if c.Roles[cpu] == cpus.Isolated && l.Taken+l.LeftOut != uint64(rounds) {
				t.Errorf("%v entries/s: CPU %d took %d and was left out of %d of %d rounds", entries, cpu, l.Taken, l.LeftOut, rounds)
			}
		}
		if lives.LeftOut != deferred || lives.CaughtUp < caughtUp || lives.CaughtUp > deferred {
			t.Errorf("%v entries/s: CPUs were left out %d times and made up %d times; the rows say %d and %d", entries, lives.LeftOut, lives.CaughtUp, deferred, caughtUp)
		}
		if entries == 0 && (sent != uint64(rounds*3) || lives.CaughtUp != 0) {
			t.Errorf("nobody enters the kernel: %d sent, %d made up for", sent, lives.CaughtUp)
		}
		if entries > 0 && lives.CaughtUp == 0 {
			t.Errorf("%v entries/s: nobody made up for anything", entries)
		}
		for _, v := range m.Violations() {
			t.Error(v)
		}
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
		c := timedConfig(t, "x86_64", "breakpoint-lazy", "gen:n=2,order=sorted", "busy=1,isolated=20", k)
		m := newTimedFor(t, c, timed.HotOnly)
		taken, rounds := 0.0, 0.0
		updates := 400
		if *long {
			updates = 10_000
		}
		for i := range updates {
			row, err := m.Update(t.Context(), i%2 == 0)
			if err != nil {
				t.Fatal(err)
			}
			taken += float64(row.IPIs)
			rounds += float64(row.Rounds * 20)
			if err := m.Pass(t.Context(), timed.Nanos(i+1)*1e9); err != nil {
				t.Fatal(err)
			}
		}
		stays := entries * 5000 / 1e9
		want := stays / (1 + stays)
		// The three rounds of one update follow each other too fast to be independent.
		if sigma := math.Sqrt(want * (1 - want) / float64(updates*20)); math.Abs(taken/rounds-want) > 4*sigma {
			t.Errorf("%v entries/s: %.4f of the rounds found a CPU in the kernel, want %.4f within %.4f", entries, taken/rounds, want, 4*sigma)
		}
	}
}

// TestTimedOutOfTime: what would happen in a thousand years never does, and an update
// that would take as long is refused; time does not run backwards for that.
func TestTimedOutOfTime(t *testing.T) {
	k := plainCosts()
	k.Entries = 1e-300
	c := timedConfig(t, "x86_64", "breakpoint-lazy", "gen:n=40,groups=1,order=sorted", "busy=3,isolated=3", k)
	m := newTimedFor(t, c, timed.HotOnly)
	for _, row := range toggle(t, m) {
		if row.Modelled.Update <= 0 || row.Modelled.CatchUps > 0 {
			t.Errorf("%s: %d ns, made up for %d times", row.Direction, row.Modelled.Update, row.Modelled.CatchUps)
		}
	}
	if now := m.machine.Now(); now < 0 || now > 1e9 {
		t.Errorf("it is %d ns", now)
	}
	for _, calls := range []float64{0, 1} { // with and without the queue
		k = plainCosts()
		k.Verify, k.Calls = 24*3600*1e9, calls // a day
		c = timedConfig(t, "x86_64", "native", "gen:n=40000,groups=1,order=sorted", "1", k)
		row, err := newTimedFor(t, c, timed.HotOnly).Update(t.Context(), true)
		if err == nil || !containsText(err.Error(), "the virtual time is 36 years") {
			t.Errorf("a hundred years: %v, %+v", err, row.Modelled)
		}
	}
}

// TestExposureOfWhatIsLeft: a breakpoint that a plan leaves behind is exposed until
// the update is over.
func TestExposureOfWhatIsLeft(t *testing.T) {
	const sites = 40
	plan, err := poke.ParseProtocol("left.plan", []byte(`name:     left
summary:  leaves its breakpoints
batching: whole

every batch:
    Publish
    Write breakpoint
    Sync 1
    Unpublish
    WaitHandlers
`))
	if err != nil {
		t.Fatal(err)
	}
	k := plainCosts()
	k.Calls = 0
	c := timedConfig(t, "x86_64", "native", fmt.Sprintf("gen:n=%d,groups=1,order=sorted", sites), "4", k)
	c.Plan = plan
	row, err := newTimedFor(t, c, timed.HotOnly).Update(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	// Site i from i stores after the first one on.
	want := row.Modelled.Update - timed.Nanos(sites*(k.Verify+k.Publish)+k.Store*(sites-1)/2)
	if row.Modelled.Exposure != want {
		t.Errorf("exposed for %d ns, want %d of %d", row.Modelled.Exposure, want, row.Modelled.Update)
	}
}
