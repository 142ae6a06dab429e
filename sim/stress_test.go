// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/textpoke/textpoke/cpus"
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

func TestTroubleWithout(t *testing.T) {
	got, err := AllTrouble.Without([]string{"unplug", "fail"})
	if err != nil || got != (Trouble{Migrate: true, Mask: true, Cancel: true}) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := AllTrouble.Without([]string{"rain"}); err == nil {
		t.Error("no such trouble, and no error")
	}
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
