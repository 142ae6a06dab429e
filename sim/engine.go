// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/poke"
)

// Engine executes the updates of one job.
type Engine interface {
	// Update enables or disables everything that the job is about, with one
	// update, and tells what it did. An update that failed and left every site
	// whole is an error, violations are not.
	Update(ctx context.Context, enable bool) (RunRow, error)
	// Counts are interrupts by CPU and cause since the engine was built.
	Counts() cpus.Counts
	// Violations are the first of the violations since then.
	Violations() []cpus.Violation
	// Close ends whatever runs. No update may be running.
	Close()
}

// EngineKind is which engine executes a job's plans.
type EngineKind uint8

// The engines.
const (
	LiveEngine     EngineKind = iota // goroutines and the wall clock
	TimedEngine                      // one event queue and virtual nanoseconds
	HardwareEngine                   // the CPUs of this machine
)

var engineNames = []string{"live", "timed", "hardware"}

func (k EngineKind) String() string { return engineNames[k] }

// ReplayNames lists the engines that can be forced to follow a counterexample: on a real
// machine the fetches cannot be chosen.
func ReplayNames() []string { return engineNames[:HardwareEngine] }

// ParseEngine reads an engine's name.
func ParseEngine(s string) (EngineKind, error) {
	return spelling.Number[EngineKind]("engine", s, engineNames)
}

// NewEngine builds the engine that a job is for.
func NewEngine(j *Job) (Engine, error) {
	switch j.Engine {
	case TimedEngine:
		return NewTimed(j)
	case HardwareEngine:
		return NewHardware(j)
	}
	return NewLive(j)
}

// machine is what every engine's machine can do beside carrying out updates.
type machine interface {
	audited
	// SetOps says what a call through an ops amounts to.
	SetOps(addr uint64, o cpus.Outcome)
	// Violations is how many there were so far, and the first of them.
	Violations() (total uint64, first []cpus.Violation)
}

// updater carries out the updates of a job on some engine. The work before and after each of them is the
// same on all engines.
type updater struct {
	job     *Job
	on      machine
	sites   *sites
	ops     uint64 // the tracer's, that enabled sites call
	tracing *tracing
	counts  cpus.Counts // of all updates so far
	audit
}

// newUpdater makes the updater of a machine that was built.
func newUpdater(j *Job, on machine, s *sites, t *tracing) updater {
	return updater{
		job: j, on: on, sites: s, ops: j.ops(s.code.Entry), tracing: t, counts: cpus.NewCounts(len(j.Roles)),
		audit: audit{on, s.code.Len, j.shape.Literals(), s.code.Path.GoesDown},
	}
}

// Violations are the first of the violations since the machine was built.
func (u *updater) Violations() []cpus.Violation {
	if u.on == nil {
		return nil
	}
	_, first := u.on.Violations()
	return first
}

// violations is how many there were.
func (u *updater) violations() uint64 {
	n, _ := u.on.Violations()
	return n
}

// Counts are interrupts by CPU and cause since the machine was built.
func (u *updater) Counts() cpus.Counts { return u.counts }

// errDied says that an update ended with its machine: nothing is left to be looked at.
var errDied = errors.New("the machine has died")

// update enables or disables all records of the job: carryOut executes the update and writes the
// machine's counts into the row. Then update holds the text and the tracers against the update.
func (u *updater) update(ctx context.Context, engine string, enable bool,
	carryOut func(patches *poke.Update, row *RunRow) error) (RunRow, error) {
	row, err := u.job.runRow(ctx, engine, enable)
	if err != nil || u.on == nil {
		return row, err
	}
	patches := u.job.patches(u.sites, enable)
	plan, err := u.job.update(patches, !enable)
	if err != nil {
		return row, err
	}
	before := u.violations()
	if err := u.tracing.begin(enable); err != nil {
		return row, err
	}
	if enable {
		u.on.SetOps(u.ops, cpus.CalledTracer)
	}
	err = carryOut(plan, &row)
	if err != nil && !errors.Is(err, errDied) {
		return row, fmt.Errorf("%s: %w", row.Direction, err)
	}
	u.counts = u.counts.Plus(row.Counts)
	row.sum(u.job.Roles)
	if err == nil {
		if err := u.tracing.end(enable); err != nil {
			return row, err
		}
		u.checkSites(patches)
		u.checkRounds(u.job, &row)
		u.checkCalls(&row)
	}
	row.Violations += u.violations() - before
	u.job.Log.Debug("update done", zap.String("direction", row.Direction), zap.Duration("elapsed", row.Elapsed),
		zap.Int("rounds", row.Rounds), zap.Uint64("violations", row.Violations))
	return row, nil
}

// listen begins a run on the job's timeline, if it has one, and is who is told what
// happens: the timeline and the job's own listener.
func listen(j *Job) *cpus.Listener {
	if j.Timeline == nil {
		return j.Listener
	}
	j.Timeline.Machine(j.Roles)
	j.Timeline.Run(j.String(), 0)
	return cpus.Tee(j.Timeline.Listener(), j.Listener)
}

// audited is an engine's machine, as far as the audit after an update reads it.
type audited interface {
	Peek(site int) isa.Text
	Literal(site int) uint64
	Report(cpus.Violation)
}

// audit holds what an update has left against what it was to do.
type audit struct {
	machine  audited
	len      int // patchable bytes of a site
	literals bool
	goes     bool // CPUs go offline
}

// checkSites holds every site against what the update was to leave there.
func (a audit) checkSites(patches []poke.Patch) {
	for i := range patches {
		p := &patches[i]
		if got := a.machine.Peek(int(p.Site)); got != p.New {
			a.machine.Report(cpus.Violation{
				Property: cpus.BrokenSite, CPU: -1, Site: int(p.Site), Addr: p.Addr,
				Bytes: got.Format(a.len), Why: "the update is over and left this instead of " + p.New.Format(a.len),
			})
		}
		if got := a.machine.Literal(int(p.Site)); a.literals && got != p.NewOps {
			a.machine.Report(cpus.Violation{
				Property: cpus.BrokenSite, CPU: -1, Site: int(p.Site), Addr: p.Addr,
				Bytes: fmt.Sprintf("%#x",
					got), Why: fmt.Sprintf("the update is over and left this ops in the literal instead of %#x", p.NewOps),
			})
		}
	}
}

// checkRounds holds the ledger against the plan and against itself: interrupts
// taken are targets sent, rounds sent are rounds planned, and every CPU takes or
// sends each round. Isolated CPUs may miss lazy ones, those that find them in user space, in
// a number that is not known beforehand; busy ones may miss any where CPUs go offline.
func (a audit) checkRounds(j *Job, row *RunRow) {
	c := row.Counts
	a.checkConserved(c)
	want, lazy := row.planned()
	for k, rounds := range want {
		cause := cpus.Cause(k)
		if got := c.TotalRounds(cause); got != uint64(rounds) {
			a.unconserved("cause %s: %d rounds were sent, the plan has %d", cause, got, rounds)
		}
		for cpu, role := range j.Roles {
			least := rounds
			switch {
			case role == cpus.Isolated:
				least -= lazy[k]
			case role == cpus.Busy && a.goes:
				least = 0
			case role == cpus.Offline:
				continue
			}
			taken, sent := c.Taken[cpu][k], c.Rounds[cpu][k]
			if n := int(taken + sent); n < least || n > rounds {
				a.unconserved("cause %s: %s cpu %d took %d interrupts and sent %d rounds of %d; at most %d of these may leave it out",
					cause, role, cpu, taken, sent, rounds, rounds-least)
			}
		}
	}
	if row.Lazy > 0 || a.goes { // the plan's is the least that there can be
		row.IPIs = 0
		for k := range cpus.NumCauses {
			row.IPIs += int(c.TotalTaken(cpus.Cause(k)))
		}
	}
}

// checkDeferred holds what lazy rounds left out against what they sent: every CPU that
// is online is a target, left out, or the sender.
func (a audit) checkDeferred(j *Job, row *RunRow) {
	var rounds, sent uint64
	for k := range cpus.NumCauses {
		rounds += row.Counts.TotalRounds(cpus.Cause(k))
		sent += row.Counts.Sent[k]
	}
	if want := rounds * uint64(j.Online()-1); sent+row.Modelled.Deferred != want {
		a.unconserved("%d targets and %d left out of %d rounds to %d CPUs: want %d", sent,
			row.Modelled.Deferred, rounds, j.Online()-1, want)
	}
}

// checkCalls holds the calls that were begun against those that ended.
func (a audit) checkCalls(row *RunRow) {
	var sum cpus.Tally
	for _, t := range row.Tallies {
		sum = sum.Add(t)
	}
	if begun := sum[cpus.Begun]; begun != row.Calls+sum[cpus.Broken] {
		a.unconserved("%d calls were begun, %d ended", begun, row.Calls+sum[cpus.Broken])
	}
}

// unconserved records counts that differ and must not: a violation that is no single CPU's.
func (a audit) unconserved(format string, args ...any) {
	a.machine.Report(cpus.Violation{Property: cpus.Conservation, CPU: -1, Site: -1, Why: fmt.Sprintf(format, args...)})
}

// checkConserved holds the interrupts taken against those sent.
func (a audit) checkConserved(c cpus.Counts) {
	if cause, ok := c.Conserved(); !ok {
		a.unconserved("cause %s: %d interrupts taken, %d sent", cause, c.TotalTaken(cause), c.Sent[cause])
	}
}
