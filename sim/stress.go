// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sched/coordinator"
)

// Trouble is what a stress run puts in the way of its clients.
type Trouble struct {
	Migrate bool // the patcher changes CPUs
	Unplug  bool // CPUs go and come
	Mask    bool // every third busy CPU masks its interrupts half of the time
	Fail    bool // stores fail
	Cancel  bool // updates are cancelled
}

// AllTrouble is everything.
var AllTrouble = Trouble{true, true, true, true, true}

// TroubleNames lists the kinds.
func TroubleNames() []string { return []string{"migrate", "unplug", "mask", "fail", "cancel"} }

// Without leaves kinds out.
func (t Trouble) Without(names []string) (Trouble, error) {
	flags := []*bool{&t.Migrate, &t.Unplug, &t.Mask, &t.Fail, &t.Cancel}
	for _, n := range names {
		i := slices.Index(TroubleNames(), n)
		if i < 0 {
			return t, fmt.Errorf("trouble %q: not one of %s", n, strings.Join(TroubleNames(), ", "))
		}
		*flags[i] = false
	}
	return t, nil
}

// mask gives every third busy CPU stretches with interrupts masked.
func (t Trouble) mask(roles []cpus.Role) []cpus.Role {
	if !t.Mask {
		return roles
	}
	roles = slices.Clone(roles)
	busy := 0
	for i, r := range roles {
		if r == cpus.Busy {
			if busy++; busy%3 == 0 {
				roles[i] = cpus.IrqsOff
			}
		}
	}
	return roles
}

// StressCounts is what only a stress run counts.
type StressCounts struct {
	Requests, Updates, Failed, Plugs uint64
}

// stressClients is how many clients a stress run has: tracers, jump labels,
// probes, and one more.
const stressClients = 4

// stress is one stress run.
type stress struct {
	*Live
	trouble Trouble
	rng     *rand.Rand // the patcher's, for failures and cancels
	plugs   atomic.Uint64
}

// Stress lets several clients enable and disable random sets of records until
// ctx ends or d is over, with trouble. Then everything is held against what the
// clients were told. Violations are in the row; an error is something that the
// run itself did not expect.
func Stress(ctx context.Context, c Config, d time.Duration, trouble Trouble) (RunRow, []cpus.Violation, error) {
	c.Roles = trouble.mask(c.Roles)
	c.Migrate = trouble.Migrate
	j, err := NewJob(c)
	if err != nil {
		return RunRow{}, nil, err
	}
	l, err := NewLive(j)
	if err != nil {
		return RunRow{}, nil, err
	}
	defer l.Close()
	row, err := newStress(l, trouble).run(ctx, d)
	return row, l.Violations(), err
}

func newStress(l *Live, trouble Trouble) *stress {
	l.Attach()
	return &stress{Live: l, trouble: trouble, rng: rand.New(rand.NewPCG(l.job.Seed, 1<<32))}
}

func (s *stress) run(ctx context.Context, d time.Duration) (RunRow, error) {
	row := RunRow{PlanRow: s.job.planRow(), Engine: "live", Revision: s.job.Revision, Direction: "mixed"}
	row.Buffered = false // every update fills the buffer in its own way
	before, err := s.read(ctx)
	if err != nil {
		return row, err
	}
	violations := s.violations()
	s.Machine.Ledger.ForgetBursts()
	start := time.Now()
	coord, err := coordinator.New(context.WithoutCancel(ctx), coordinator.Config{Records: s.job.Table.Len(),
		Apply: s.apply})
	if err != nil {
		return row, err
	}
	timed, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	group, timed := errgroup.WithContext(timed)
	for i := range stressClients {
		group.Go(func() error { return s.client(timed, coord, i) })
	}
	if s.trouble.Unplug {
		group.Go(func() error { return s.unplugger(timed) })
	}
	err = group.Wait()
	if cerr := coord.Close(context.WithoutCancel(ctx)); err == nil {
		err = cerr
	}
	row.Elapsed = time.Since(start)
	if err != nil && !Stopped(err) {
		return row, err
	}
	stats := coord.Stats()
	row.Stress = &StressCounts{stats.Requests, stats.Updates, stats.Failed, s.plugs.Load()}
	if err := s.finish(context.WithoutCancel(ctx), &row, before); err != nil {
		return row, err
	}
	row.sum(s.job.Roles)
	s.checkCalls(&row)
	s.CheckAll(coord.Snapshot().Live) // what is left in the text is held against what clients were told,
	s.checkConserved(row.Counts)      // and the ledger against itself
	row.counted()
	row.Violations = s.violations() - violations
	return row, nil
}

// counted has a row of many updates say what their counts do.
func (r *RunRow) counted() {
	c := r.Counts
	r.Rounds, r.Stops = int(c.TotalRounds(cpus.Sync)), int(c.TotalRounds(cpus.Stop))
	r.IPIs = int(c.TotalTaken(cpus.Sync) + c.TotalTaken(cpus.Stop))
	most := PlanRow{Config: r.Config}
	for _, taken := range c.Taken {
		most.perCPU(int(taken[cpus.Sync]), int(taken[cpus.Stop]))
		r.IPIsPerCPU = max(r.IPIsPerCPU, most.IPIsPerCPU)
		r.OtherIPIsPerCPU = max(r.OtherIPIsPerCPU, most.OtherIPIsPerCPU)
	}
}

// apply carries changes out with one update, which may go wrong.
func (s *stress) apply(ctx context.Context, changes []coordinator.Change) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.disturb(cancel, len(changes))
	return s.Apply(ctx, changes)
}

// disturb makes one update in four fail at some store and one in four get
// cancelled there.
func (s *stress) disturb(cancel func(), patches int) {
	s.patcher.Fault = nil
	left := s.rng.IntN(3 * patches) // a plan has one to three stores a patch
	switch what := s.rng.IntN(4); {
	case what == 0 && s.trouble.Fail:
		s.patcher.Fault = func(st poke.Step, _ int32) error {
			if left--; left == 0 && !st.Undo {
				return poke.ErrInjected
			}
			return nil
		}
	case what == 1 && s.trouble.Cancel:
		s.patcher.Fault = func(poke.Step, int32) error {
			if left--; left == 0 {
				cancel()
			}
			return nil
		}
	}
}

// client enables and disables random sets, one after the other.
func (s *stress) client(ctx context.Context, coord *coordinator.Coordinator, id int) error {
	rng := rand.New(rand.NewPCG(s.job.Seed, uint64(id)+2))
	for ctx.Err() == nil {
		r := coordinator.Request{Client: fmt.Sprintf("client%d", id), Enable: rng.IntN(2) == 0, Records: s.someRecords(rng)}
		err := coord.Do(ctx, r)
		var failed *poke.Error
		switch {
		case errors.As(err, &failed) && failed.State == poke.AllOld &&
			(errors.Is(err, poke.ErrInjected) || errors.Is(err, context.Canceled)):
			// As asked for.
		case err != nil && ctx.Err() == nil:
			return fmt.Errorf("%s: %w", r.Client, err)
		}
	}
	return nil
}

// someRecords is a set of records: a run, or scattered ones.
func (s *stress) someRecords(rng *rand.Rand) []int {
	all := s.sites.records
	n := 1 + rng.IntN(min(len(all), 1<<rng.IntN(13)))
	out := make([]int, n)
	from := rng.IntN(len(all) - n + 1)
	scattered := rng.IntN(2) == 0
	for i := range out {
		if out[i] = all[from+i]; scattered {
			out[i] = all[rng.IntN(len(all))]
		}
	}
	return out
}

// unplugEvery is the mean time between two CPUs going or coming.
const unplugEvery = 2 * time.Millisecond

// unplugger takes CPUs out and puts them back. At its end all are back.
func (s *stress) unplugger(ctx context.Context) error {
	rng := rand.New(rand.NewPCG(s.job.Seed, 1))
	out := map[int]bool{}
	defer func() {
		for cpu := range out {
			if err := s.Machine.Plug(context.WithoutCancel(ctx), cpu); err != nil {
				s.job.Log.Error("plug", zap.Error(err))
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Duration(rng.Int64N(int64(2 * unplugEvery)))):
		}
		cpu := rng.IntN(s.Machine.CPUs())
		var err error
		switch {
		case s.Machine.Online(cpu) && s.Machine.OnlineCPUs() <= (s.Machine.CPUs()+1)/2:
			continue // rounds need somebody to go to
		case !s.Machine.Online(cpu):
			if err = s.Machine.Plug(ctx, cpu); err == nil {
				delete(out, cpu)
			}
		default:
			if err = s.Machine.Unplug(ctx, cpu); err == nil {
				out[cpu] = true
			}
		}
		switch {
		case err == nil:
			s.plugs.Add(1)
		case !errors.Is(err, cpus.ErrLastOne) && ctx.Err() == nil:
			return err
		}
	}
}
