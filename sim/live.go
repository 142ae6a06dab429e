package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
)

// Live is a job on the live machine: CPUs are goroutines that call the table's
// functions all the time, while a patcher changes them.
type Live struct {
	job      *Job
	log      *zap.Logger
	sites    *sites
	machine  *cpus.Machine
	patcher  *poke.Executor
	ops      uint64
	revision string
}

// NewLive builds the machine and starts its CPUs. Close must follow.
func NewLive(j *Job, revision string, log *zap.Logger) (*Live, error) {
	s, err := j.sites()
	if err != nil {
		return nil, err
	}
	table := int3.NewTable(j.Refs, len(j.Roles))
	m, err := cpus.NewMachine(cpus.Config{
		Code: &s.code, Roles: j.Roles, Handler: table, NopOps: nopOps, Seed: j.Seed,
		Initial:  func(site int) isa.Text { return s.enable[site].Old },
		Observer: observe(j),
	})
	if err != nil {
		return nil, err
	}
	l := &Live{job: j, log: log, sites: s, machine: m, ops: j.ops(s.code.Entry), revision: revision}
	if err := m.AddOps(l.ops); err != nil {
		return nil, err
	}
	l.patcher = poke.NewExecutor(m, table, j.Lookup, cpus.NewRandom(j.Seed, 0), 0)
	l.patcher.Home = cpus.Housekeeper(j.Roles)
	l.patcher.Migrate = j.Migrate
	l.patcher.AsQueued = j.mutation.Unsorted
	if j.protocol.Batching == poke.Buffered {
		l.patcher.Slots = j.Buffer.Slots
	}
	m.Start()
	return l, nil
}

// Close ends the CPUs' goroutines. No update may be running.
func (l *Live) Close() { l.machine.Stop() }

// Violations are the first of the violations since the machine was built.
func (l *Live) Violations() []cpus.Violation {
	_, first := l.machine.Violations()
	return first
}

// Update enables or disables everything that the job is about, with one update,
// and tells what it did. An update that failed and left every site whole is an
// error, violations are not.
func (l *Live) Update(ctx context.Context, enable bool) (RunRow, error) {
	row, err := l.count(ctx, enable)
	if err != nil {
		return row, err
	}
	before, err := l.read(ctx)
	if err != nil {
		return row, err
	}
	l.machine.Ledger.ForgetBursts()
	patches := make([]poke.Patch, len(l.job.queue))
	for i, rec := range l.job.queue {
		patches[i] = l.sites.patch(rec, enable)
	}
	u, err := l.plan(patches, !enable)
	if err != nil {
		return row, err
	}
	if enable {
		l.machine.SetOps(l.ops, cpus.CalledTracer)
	}
	start := time.Now()
	if err := l.patcher.Run(ctx, u); err != nil {
		return row, fmt.Errorf("%s: %w", row.Direction, err)
	}
	row.Elapsed = time.Since(start)
	if !enable { // nobody wants the tracer any more
		l.machine.SetOps(l.ops, cpus.CalledFreed)
	}
	if err := l.finish(ctx, &row, before); err != nil {
		return row, err
	}
	l.checkSites(patches)
	l.checkRounds(&row)
	row.Violations = l.violations() - before.violations
	l.log.Debug("update done", zap.String("direction", row.Direction), zap.Duration("elapsed", row.Elapsed),
		zap.Int("rounds", row.Rounds), zap.Uint64("violations", row.Violations))
	return row, nil
}

// count fills in what is known before anything runs.
func (l *Live) count(ctx context.Context, enable bool) (RunRow, error) {
	row := RunRow{Engine: "live", Revision: l.revision, Direction: "disable"}
	if enable {
		row.Direction = "enable"
	}
	var err error
	row.PlanRow, err = l.job.Count(ctx)
	return row, err
}

// plan compiles the update of some patches.
func (l *Live) plan(patches []poke.Patch, detach bool) (*poke.Update, error) {
	j := l.job
	u := &poke.Update{Patches: patches, Shape: j.shape, Settles: j.protocol.Settles(j.shape)}
	u.Shape.Patches, u.Shape.Detach = len(patches), detach
	at := func(i int) records.Addr { return patches[i].Addr }
	err := j.compile(len(patches), detach, j.batches(len(patches), at), func(s poke.Step) {
		u.Plan = append(u.Plan, s)
	})
	return u, err
}

// reading is the state of all counters at one time.
type reading struct {
	counts     cpus.Counts
	tallies    []cpus.Tally
	violations uint64
}

func (l *Live) violations() uint64 {
	n, _ := l.machine.Violations()
	return n
}

func (l *Live) read(ctx context.Context) (reading, error) {
	tallies, err := l.machine.Tallies(ctx)
	return reading{l.machine.Ledger.Read(), tallies, l.violations()}, err
}

// aftermath is how often every CPU is let run for a quantum after an update, so
// that it can break what the update promised.
const aftermath = 8

// finish reads the counters again once the CPUs have gone on for a while.
func (l *Live) finish(ctx context.Context, row *RunRow, before reading) error {
	defer l.machine.SetInFlight(nil)
	var after reading
	for range aftermath {
		var err error
		if after, err = l.read(ctx); err != nil {
			return err
		}
	}
	row.Counts = after.counts.Since(before.counts)
	row.Tallies = after.tallies
	var sum cpus.Tally
	for cpu := range row.Tallies {
		row.Tallies[cpu] = row.Tallies[cpu].Sub(before.tallies[cpu])
		sum = sum.Add(row.Tallies[cpu])
		row.Burst = max(row.Burst, row.Counts.Burst[cpu])
		if l.job.Roles[cpu] == cpus.Isolated {
			row.HasIsolated = true
			var n uint64
			for k := range cpus.NumCauses {
				n += row.Counts.Taken[cpu][k]
			}
			row.IsolatedMax = max(row.IsolatedMax, n)
		}
	}
	row.Traps, row.Misses = sum[cpus.Trap], sum[cpus.Miss]
	row.Calls, row.Lost = sum.Calls(), sum[cpus.Lost]
	row.Traced, row.Untraced = sum[cpus.Traced], sum[cpus.Untraced]+sum[cpus.Lost]
	if begun := sum[cpus.Begun]; begun != row.Calls+sum[cpus.Broken] {
		l.report(cpus.Conservation, "%d calls were begun, %d ended", begun, row.Calls+sum[cpus.Broken])
	}
	return nil
}

// checkSites holds every site against what the update was to leave there.
func (l *Live) checkSites(patches []poke.Patch) {
	for i := range patches {
		p := &patches[i]
		if got := l.machine.Peek(int(p.Site)); got != p.New {
			l.machine.Report(cpus.Violation{
				Property: cpus.BrokenSite, CPU: -1, Site: int(p.Site), Addr: p.Addr,
				Bytes: got.Format(l.sites.code.Len), Why: "the update is over and left this instead of " + p.New.Format(l.sites.code.Len),
			})
		}
		if got := l.machine.Literal(int(p.Site)); l.job.shape.Literals() && got != p.NewOps {
			l.machine.Report(cpus.Violation{
				Property: cpus.BrokenSite, CPU: -1, Site: int(p.Site), Addr: p.Addr,
				Bytes: fmt.Sprintf("%#x", got), Why: fmt.Sprintf("the update is over and left this ops in the literal instead of %#x", p.NewOps),
			})
		}
	}
}

// checkRounds holds the ledger against the plan and against itself: interrupts
// taken are targets sent, rounds sent are rounds planned, and every CPU takes or
// sends each round. Only isolated CPUs may miss some, and only lazy ones: as many
// as found them in user space, which nobody knows beforehand.
func (l *Live) checkRounds(row *RunRow) {
	c := row.Counts
	if cause, ok := c.Conserved(); !ok {
		l.report(cpus.Conservation, "cause %s: %d interrupts taken, %d sent", cause, c.TotalTaken(cause), c.Sent[cause])
	}
	want := [cpus.NumCauses]int{cpus.Sync: row.Rounds, cpus.Stop: row.Stops}
	lazy := [cpus.NumCauses]int{cpus.Sync: row.Lazy}
	for k, rounds := range want {
		cause := cpus.Cause(k)
		if got := c.TotalRounds(cause); got != uint64(rounds) {
			l.report(cpus.Conservation, "cause %s: %d rounds were sent, the plan has %d", cause, got, rounds)
		}
		for cpu, role := range l.job.Roles {
			least := rounds
			switch role {
			case cpus.Isolated:
				least -= lazy[k]
			case cpus.Offline:
				continue
			}
			taken, sent := c.Taken[cpu][k], c.Rounds[cpu][k]
			if n := int(taken + sent); n < least || n > rounds {
				l.report(cpus.Conservation, "cause %s: %s cpu %d took %d interrupts and sent %d rounds of %d, of which at most %d may leave it out",
					cause, role, cpu, taken, sent, rounds, rounds-least)
			}
		}
	}
	if row.Lazy > 0 { // the plan's is the least that there can be
		row.IPIs = int(c.TotalTaken(cpus.Sync) + c.TotalTaken(cpus.Stop))
	}
}

// report records a violation that is no single CPU's.
func (l *Live) report(p cpus.Property, format string, args ...any) {
	l.machine.Report(cpus.Violation{Property: p, CPU: -1, Site: -1, Why: fmt.Sprintf(format, args...)})
}

// Counts reads the ledger: interrupts by CPU and cause since the machine was
// built.
func (l *Live) Counts() cpus.Counts { return l.machine.Ledger.Read() }

// Stopped tells whether an error means that the caller's context ended the run,
// and not that something is wrong.
func Stopped(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
