// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sched/coordinator"
)

// TestStress lets clients, failures, cancels, migration, masks and hotplug at
// every sound protocol.
func TestStress(t *testing.T) {
	d := 100 * time.Millisecond
	if *long {
		d = 20 * time.Second
	}
	sound(t, func(arch, protocol string) {
		t.Run(arch+"/"+protocol, func(t *testing.T) {
			c := config(t, arch, protocol, "gen:n=400,groups=3,modules=0.2", "busy=4,idle=1,isolated=1,offline=1")
			c.Buffer = sched.Buffer{Slots: 32}
			row, first, err := Stress(t.Context(), c, d, AllTrouble)
			for longer := 2 * d; err == nil && (row.Stress.Updates == 0 || row.Calls == 0) && longer < time.Minute; longer *= 2 {
				row, first, err = Stress(t.Context(), c, longer, AllTrouble) // a busy machine has not got to an update
			}
			if err != nil {
				t.Fatal(err)
			}
			if row.Violations != 0 {
				t.Errorf("%d violations, first %v", row.Violations, first[0])
			}
			// At least half of the seven CPUs are online at any time, and lazy
			// rounds may leave out the isolated one.
			targets := 4 - 1
			if protocol == "breakpoint-lazy" {
				targets--
			}
			if least := (row.Rounds + row.Stops) * targets; row.IPIs < least {
				t.Errorf("%d interrupts in %d rounds and %d stops, want %d or more", row.IPIs, row.Rounds, row.Stops, least)
			}
			if row.Stress.Updates == 0 || row.Calls == 0 {
				t.Errorf("nothing happened: %+v", *row.Stress)
			}
		})
	})
}

// TestStressFindsViolations: the checks at the end can fail.
func TestStressFindsViolations(t *testing.T) {
	c := config(t, "x86_64", "breakpoint", "gen:n=200", "6")
	c.Mutation = "late-publish"
	row, first, err := Stress(t.Context(), c, time.Second, Trouble{})
	if err != nil {
		t.Fatal(err)
	}
	if row.Violations == 0 || first[0].Property != cpus.UnhandledBreakpoint {
		t.Errorf("%d violations, %v", row.Violations, first)
	}
}

// TestStressEndsEarly with its context, and leaves nothing running.
func TestStressEndsEarly(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	c := config(t, "arm64", "native", "gen:n=200", "4")
	if _, _, err := Stress(ctx, c, time.Hour, AllTrouble); err != nil {
		t.Error(err)
	}
}

// TestMask: every third busy CPU masks its interrupts, and nobody's list changes.
func TestMask(t *testing.T) {
	roles, err := cpus.ParseRoles("busy=2,idle=1,busy=5,isolated=1")
	if err != nil {
		t.Fatal(err)
	}
	for trouble, want := range map[Trouble]string{{}: "busy=2,idle=1,busy=5,isolated=1",
		{Mask: true}: "busy=2,idle=1,irqsoff=1,busy=2,irqsoff=1,busy=1,isolated=1"} {
		if got := cpus.FormatRoles(trouble.mask(roles)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := cpus.FormatRoles(roles); got != "busy=2,idle=1,busy=5,isolated=1" {
		t.Errorf("the list has become %s", got)
	}
}

// TestDisturb: by what the run's own random numbers say, one update in four fails at some store, though not on its
// way back, and one in four is cancelled there; all of them if that is no trouble.
func TestDisturb(t *testing.T) {
	const patches = 5
	l := newLive(t, newJob(t, config(t, "x86_64", "native", "gen:n=4", "2")))
	for _, trouble := range []Trouble{{}, {Fail: true}, {Cancel: true}, {Fail: true, Cancel: true}} {
		s := newStress(l, trouble)
		numbers := rand.New(rand.NewPCG(l.job.Seed, 1<<32))
		for range 100 {
			cancelled := 0
			s.disturb(func() { cancelled++ }, patches)
			at, what := numbers.IntN(3*patches), numbers.IntN(4)
			fails, ends := what == 0 && trouble.Fail, what == 1 && trouble.Cancel
			if (l.patcher.Fault != nil) != (fails || ends) {
				t.Fatalf("%+v: number %d, fault %v", trouble, what, l.patcher.Fault != nil)
			}
			for n := 1; l.patcher.Fault != nil && n <= 3*patches; n++ {
				err := l.patcher.Fault(poke.Step{}, 0)
				if (err != nil) != (fails && n == at) || ends && cancelled != map[bool]int{true: 1}[at > 0 && n >= at] {
					t.Errorf("%+v, at %d: store %d: %v, cancelled %d times", trouble, at, n, err, cancelled)
				}
			}
			if s.disturb(func() {}, 1); l.patcher.Fault != nil && trouble.Fail && !trouble.Cancel {
				for range 3 {
					if err := l.patcher.Fault(poke.Step{Undo: true}, 0); err != nil {
						t.Errorf("%v on the way back", err)
					}
				}
			}
			numbers.IntN(3)
			numbers.IntN(4)
		}
	}
}

// TestUpdatesGoWrong: some updates of a run fail, where failures are its trouble, and none where nothing is.
func TestUpdatesGoWrong(t *testing.T) {
	l := newLive(t, newJob(t, config(t, "x86_64", "native", "gen:n=4", "2")))
	for _, trouble := range []Trouble{{}, {Fail: true}} {
		s, failed, on := newStress(l, trouble), 0, false
		for range 40 {
			var wrong *poke.Error
			switch err := s.apply(t.Context(), []coordinator.Change{{Record: 1, Enable: !on}}); {
			case err == nil:
				on = !on
			case errors.As(err, &wrong) && errors.Is(err, poke.ErrInjected) && wrong.State == poke.AllOld:
				failed++
			default:
				t.Error(err)
			}
		}
		update := []coordinator.Change{{Record: 1, Enable: false}}
		if s.trouble = (Trouble{}); on && s.apply(t.Context(), update) != nil {
			t.Error("the last update failed")
		}
		if (failed > 0) != trouble.Fail {
			t.Errorf("%+v: %d of 40 updates failed", trouble, failed)
		}
	}
	if v := l.Violations(); len(v) > 0 {
		t.Errorf("%v", v)
	}
}

// TestClientGivesUp: a client goes on after an update that failed as it was to, with every site as it was, and ends
// with any other error, which names it.
func TestClientGivesUp(t *testing.T) {
	s := newStress(newLive(t, newJob(t, config(t, "x86_64", "native", "gen:n=4", "2"))), Trouble{})
	other := errors.New("no memory")
	for _, tt := range []struct {
		err   error
		goes  bool
		where string
	}{
		{&poke.Error{State: poke.AllOld, Err: poke.ErrInjected}, true, "injected"},
		{&poke.Error{State: poke.AllOld, Err: context.Canceled}, true, "cancelled"},
		{&poke.Error{State: poke.AllOld, Err: other}, false, "another error"},
		{&poke.Error{State: poke.Stuck, Err: poke.ErrInjected}, false, "stuck"},
		{poke.ErrInjected, false, "without a state"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		updates := 0
		coord := coordinate(t, 4, func(context.Context, []coordinator.Change) error {
			if updates++; updates == 3 {
				cancel()
				return nil
			}
			return tt.err
		})
		err := s.client(ctx, coord, 7)
		cancel()
		if tt.goes != (err == nil) || tt.goes && updates < 3 || !tt.goes && (updates != 1 || !errors.Is(err, tt.err) ||
			!strings.HasPrefix(err.Error(), "client7: ")) {
			t.Errorf("%s: %v after %d updates", tt.where, err, updates)
		}
		if err := coord.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestSomeRecords: a client asks for some of the records that can be patched, from one to all of them, in a run or
// not.
func TestSomeRecords(t *testing.T) {
	l := newLive(t, newJob(t, config(t, "arm64", "native", "gen:n=12,misaligned=0.3", "2")))
	s, rng := newStress(l, Trouble{}), rand.New(rand.NewPCG(1, 1))
	all, runs, least, most := l.sites.records, 0, len(l.sites.records), 0
	for range 500 {
		some := s.someRecords(rng)
		from, run := slices.Index(all, some[0]), true
		for i, rec := range some {
			if !l.Patchable(rec) {
				t.Fatalf("record %d cannot be patched", rec)
			}
			run = run && from+i < len(all) && all[from+i] == rec
		}
		if run && len(some) > 1 {
			runs++
		}
		least, most = min(least, len(some)), max(most, len(some))
	}
	if least != 1 || most != len(all) || runs < 100 || runs > 300 {
		t.Errorf("%d to %d of %d records, %d runs", least, most, len(all), runs)
	}
	for rec := range l.job.Table.Len() {
		if aligned := l.job.Table.Addr(rec)%8 == 4; l.Patchable(rec) != aligned {
			t.Errorf("record %d at %#x: %v", rec, l.job.Table.Addr(rec), l.Patchable(rec))
		}
	}
}

// TestCountsOfManyUpdates: their row says what was counted, and of the CPUs the most that one of them took.
func TestCountsOfManyUpdates(t *testing.T) {
	for arch, want := range map[string][5]int{"x86_64": {5, 3, 29, 12, 0}, "riscv64": {5, 3, 29, 8, 5}} {
		c := config(t, arch, "native", "gen:n=4", "3")
		r := RunRow{Counts: cpus.NewCounts(3)}
		r.Config = &c
		r.Counts.Rounds[0][cpus.Sync], r.Counts.Rounds[1][cpus.Sync], r.Counts.Rounds[2][cpus.Stop] = 3, 2, 3
		r.Counts.Taken[0], r.Counts.Taken[1], r.Counts.Taken[2] = taken(7, 5), taken(3, 2), taken(8, 4)
		r.counted()
		if got := [5]int{r.Rounds, r.Stops, r.IPIs, r.IPIsPerCPU, r.OtherIPIsPerCPU}; got != want {
			t.Errorf("%s: %v, want %v", arch, got, want)
		}
	}
}

// taken is a CPU's interrupts by rounds and by stops.
func taken(rounds, stops uint64) (by [cpus.NumCauses]uint64) {
	by[cpus.Sync], by[cpus.Stop] = rounds, stops
	return by
}

func TestTroubleWithout(t *testing.T) {
	got, err := AllTrouble.Without([]string{"unplug", "fail"})
	if err != nil || got != (Trouble{Migrate: true, Mask: true, Cancel: true}) {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = AllTrouble.Without([]string{"rain"})
	says(t, "rain", err, `trouble "rain": not one of migrate, unplug, mask, fail, cancel`)
}

// TestManyClientsPayOnce: k clients that ask while an update is being held up
// share the next one, and it costs the rounds that one client's would.
func TestManyClientsPayOnce(t *testing.T) {
	for _, k := range []int{1, 8, 64} {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			l := newLive(t, newJob(t, config(t, "x86_64", "native", "gen:n=512,order=sorted", "4")))
			s := newStress(l, Trouble{})
			gate := make(chan struct{})
			entered := make(chan struct{}, k+1)
			first := true
			apply := func(ctx context.Context, cs []coordinator.Change) error {
				if first {
					first = false
					entered <- struct{}{}
					<-gate
				}
				return s.apply(ctx, cs)
			}
			coord := coordinate(t, l.job.Table.Len(), apply)
			holder, err := coord.Submit(t.Context(), coordinator.Request{Client: "holder", Enable: true, Records: []int{0}})
			if err != nil {
				t.Fatal(err)
			}
			<-entered
			// Every client wants the same 256 records: one batch, three rounds.
			want := make([]int, 256)
			for i := range want {
				want[i] = 100 + i
			}
			var tickets []*coordinator.Ticket
			for i := range k {
				ticket, err := coord.Submit(t.Context(), coordinator.Request{Client: fmt.Sprint(i), Enable: true, Records: want})
				if err != nil {
					t.Fatal(err)
				}
				tickets = append(tickets, ticket)
			}
			close(gate)
			for _, ticket := range append(tickets, holder) {
				<-ticket.Done()
				if err := ticket.Err(); err != nil {
					t.Error(err)
				}
			}
			if err := coord.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := l.Counts().TotalRounds(cpus.Sync); got != 3+3 {
				t.Errorf("%d clients: %d rounds, want 3 for the first update and 3 for the merged one", k, got)
			}
			if got := coord.Stats().Updates; got != 2 {
				t.Errorf("%d clients: %d updates, want 2", k, got)
			}
		})
	}
}

// TestConcurrentClientsSeeTheirChanges: when a client is told that its change is
// live, it is.
func TestConcurrentClientsSeeTheirChanges(t *testing.T) {
	l := newLive(t, newJob(t, config(t, "riscv64", "breakpoint", "gen:n=300", "4")))
	s := newStress(l, Trouble{})
	coord := coordinate(t, 300, s.apply)
	var group sync.WaitGroup
	for id := range 4 {
		group.Go(func() {
			mine := []int{id, 4 + id, 100 + id} // nobody else's
			for i := range 30 {
				enable := i%2 == 0
				if err := coord.Do(t.Context(), coordinator.Request{Client: fmt.Sprint(id), Enable: enable,
					Records: mine}); err != nil {
					t.Error(err)
					return
				}
				for _, rec := range mine {
					p := l.sites.patch(rec, enable)
					if got := l.machine.Peek(int(p.Site)); got != p.New {
						t.Errorf("client %d was told that record %d is live, it is not", id, rec)
					}
				}
			}
		})
	}
	group.Wait()
	if err := coord.Close(t.Context()); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if v := l.Violations(); len(v) > 0 {
		t.Errorf("%v", v[0])
	}
}

// coordinate is a coordinator of so many records.
func coordinate(t *testing.T, records int, apply func(context.Context,
	[]coordinator.Change) error) *coordinator.Coordinator {
	t.Helper()
	c, err := coordinator.New(t.Context(), coordinator.Config{Records: records, Apply: apply})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestUnplugger: CPUs go and come, each time is counted, half of them are always there, the last one that patchers may
// run on stays, and at the end all are back.
func TestUnplugger(t *testing.T) {
	for roles, least := range map[string]int{"5": 3, "busy=1,isolated=3": 2} {
		s := newStress(newLive(t, newJob(t, config(t, "x86_64", "native", "gen:n=4", roles))), Trouble{Unplug: true})
		ctx, cancel := context.WithCancel(t.Context())
		seen := make(chan int, 1)
		go func() {
			defer cancel()
			changes, before := 0, s.Machine.OnlineCPUs()
			for changes < 8 && ctx.Err() == nil {
				now := s.Machine.OnlineCPUs()
				if now != before {
					changes++
				}
				if before = now; now < least || !s.Machine.Online(0) && least == 2 {
					t.Errorf("%s: %d CPUs are online", roles, now)
				}
				time.Sleep(50 * time.Microsecond)
			}
			seen <- changes
		}()
		err := s.unplugger(ctx)
		cancel()
		if n := uint64(<-seen); err != nil || s.plugs.Load() < n || s.Machine.OnlineCPUs() != s.Machine.CPUs() {
			t.Errorf("%s: %d changes were seen and %d counted; %d CPUs are back: %v", roles, n, s.plugs.Load(),
				s.Machine.OnlineCPUs(), err)
		}
	}
}
