// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	_ "embed"
	"slices"
	"time"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim/timed"
)

// PlanRow is what counting tells about one combination.
type PlanRow struct {
	*Config
	Records, Groups, Patches, Skipped int

	// Buffered: patches are queued in a vector; only then is there anything
	// to flush, and a buffer that takes memory.
	Buffered                                   bool
	Flushes, FlushFull, FlushOrder, FlushFinal int
	BufferBytes, BufferPages                   int

	Rounds, Stops, IPIs int
	Lazy                int       // rounds that leave out CPUs in user space
	IPIsPerCPU          int       // that every online CPU but the sender takes, of one kind; see perCPU
	OtherIPIsPerCPU     int       // and of the other kind
	Lookup              int3.Cost // of looking each patch up once; no hits where nothing traps
}

func (r *PlanRow) flush(f sched.Flush) {
	r.Flushes++
	switch f {
	case sched.Full:
		r.FlushFull++
	case sched.Order:
		r.FlushOrder++
	default:
		r.FlushFinal++
	}
}

// perCPU notes the interrupts of each CPU but the sender, by rounds and by wakings of stoppers.
// Where the firmware counts remote fences as rounds, the two stand in rows that must not be added:
// one of the firmware's, one of /proc/interrupts.
func (r *PlanRow) perCPU(rounds, stops int) {
	switch {
	case !r.Arch.Traits().FirmwareRounds:
		r.IPIsPerCPU, r.OtherIPIsPerCPU = rounds+stops, 0
	case rounds > 0:
		r.IPIsPerCPU, r.OtherIPIsPerCPU = rounds, stops
	default:
		r.IPIsPerCPU, r.OtherIPIsPerCPU = stops, 0
	}
}

// fences tells whether IPIsPerCPU are remote fences by firmware.
func (r *PlanRow) fences() bool { return r.Arch.Traits().FirmwareRounds && r.Rounds > 0 }

// RunRow is what one update on an engine did.
type RunRow struct {
	PlanRow
	Engine, Revision string
	Direction        string // enable, disable, or mixed under stress

	Traps, Misses, Calls, Lost, Violations uint64
	Traced, Untraced                       uint64 // Calls are these together; lost ones are untraced
	IsolatedMax                            uint64 // most interrupts that an isolated CPU took
	HasIsolated                            bool
	Burst                                  int64 // most interrupts that a CPU took in a millisecond
	Elapsed                                time.Duration

	Dispatched  *DispatchCounts     // only with tracers
	Stress      *StressCounts       // only under stress
	Modelled    *Modelled           // only of the timed engine
	Executed    *Executed           // only of the hardware engine
	CountedOnly bool                // nothing was executed: there was no calibration
	OtherRounds [cpus.NumCauses]int // of Rounds, those of a scenario that are not the records'

	Counts  cpus.Counts   // by CPU and cause
	Tallies []cpus.Tally  // by CPU
	Stolen  []timed.Nanos // by CPU; nil where it is not modelled
}

// Modelled is what an update would take on the calibration's machine.
type Modelled struct {
	Calibration string
	Update      timed.Nanos // from the first verification to the last answer
	Grace       timed.Nanos // and in grace periods
	StolenMean  float64     // time taken from a CPU, in nanoseconds
	StolenMax   timed.Nanos
	Exposure    timed.Nanos // mean time that a patched site held a breakpoint
	Events      uint64
	EventRate   float64 // events a second of the wall clock
	Rate        bool    // it is to be printed, though it is another one every time
	reach       *reach  // nil where no range is known

	HasQuiet                      bool // there are isolated CPUs
	IsolatedStolen, IsolatedQuiet timed.Nanos
	Deferred                      uint64 // interrupts that lazy rounds saved
	CatchUps                      uint64 // times that CPUs made up for them, since the last row
}

// runRow is what is known of an update before anything runs.
func (j *Job) runRow(ctx context.Context, engine string, enable bool) (RunRow, error) {
	row := RunRow{Engine: engine, Revision: j.Revision, Direction: "disable"}
	if enable {
		row.Direction = "enable"
	}
	var err error
	if row.PlanRow, err = j.Count(ctx); err != nil {
		return row, err
	}
	return row, row.addOtherRounds(j, enable)
}

// planned is how many rounds the row's plan sends, by cause, and how many of these
// leave out CPUs in user space.
func (r *RunRow) planned() (rounds, lazy [cpus.NumCauses]int) {
	rounds = r.OtherRounds
	for _, others := range r.OtherRounds {
		rounds[cpus.Sync] -= others
	}
	rounds[cpus.Sync] += r.Rounds
	rounds[cpus.Stop] += r.Stops
	lazy[cpus.Sync] = r.Lazy
	return rounds, lazy
}

// sum sums up what the CPUs' counts and tallies say.
func (r *RunRow) sum(roles []cpus.Role) {
	var sum cpus.Tally
	for cpu, role := range roles {
		sum = sum.Add(r.Tallies[cpu])
		r.Burst = max(r.Burst, r.Counts.Burst[cpu])
		if role == cpus.Isolated {
			r.HasIsolated = true
			r.IsolatedMax = max(r.IsolatedMax, spelling.Sum(r.Counts.Taken[cpu][:]))
		}
	}
	r.Traps, r.Misses = sum[cpus.Trap], sum[cpus.Miss]
	r.Calls, r.Lost = sum.Calls(), sum[cpus.Lost]
	r.Traced, r.Untraced = sum[cpus.Traced], sum[cpus.Untraced]+sum[cpus.Lost]
}

// CPURow is what one cause of interrupts did to one CPU in one run.
type CPURow struct {
	*RunRow
	Run, CPU int
	Cause    cpus.Cause
}

func (r CPURow) stolen() any {
	if r.Stolen == nil {
		return results.Empty
	}
	return int64(r.Stolen[r.CPU])
}

// CPUs are the rows of a run's CPUs. Causes besides rounds and stops are left out where they
// interrupted no CPU.
func (r *RunRow) CPUs(run int) (rows []CPURow) {
	if r.CountedOnly {
		return nil
	}
	for cpu := range r.Roles {
		for k := range cpus.NumCauses {
			if cause := cpus.Cause(k); cause <= cpus.Stop || r.Counts.Sent[k] > 0 {
				rows = append(rows, CPURow{r, run, cpu, cause})
			}
		}
	}
	return rows
}

// declared are the columns of the package's tables.
//
//go:embed columns.txt
var declared string

// PlanColumns are the columns of plan, and the first ones of run.
var PlanColumns = results.Declare(declared, "plan", map[string]func(*PlanRow) any{
	"cpus":  func(r *PlanRow) any { return cpus.FormatRoles(r.Roles) },
	"fetch": func(r *PlanRow) any { return results.If(r.Engine != HardwareEngine, r.Fetch.String()) },
})

// RunColumns are the columns of run. Which ones a row fills depends on its engine.
var RunColumns = slices.Concat(
	results.Of(PlanColumns, func(r *RunRow) *PlanRow { return &r.PlanRow }),
	results.Declare(declared, "run", map[string]func(*RunRow) any{
		"calls_per_s":   func(r *RunRow) any { return r.costs().Calls },
		"entries_per_s": func(r *RunRow) any { return r.costs().Entries },
	}),
	countedColumns.When(func(r *RunRow) bool { return !r.CountedOnly }),
	modelledColumns.When(isModelled),
	executedColumns,
	results.Of(stressColumns, func(r *RunRow) *StressCounts { return r.Stress }),
	tracerColumns.When(func(r *RunRow) bool { return r.Tracers != nil }),
)

func isModelled(r *RunRow) bool { return r.Modelled != nil }

// countedColumns are what is counted while a plan is executed.
var countedColumns = results.Declare(declared, "counted", map[string]func(*RunRow) any{
	"burst_max":  func(r *RunRow) any { return results.If(r.Engine != HardwareEngine.String(), r.Burst) },
	"elapsed_ns": func(r *RunRow) any { return results.If(!isModelled(r), r.Elapsed.Nanoseconds()) },
})

// modelledColumns are what the timed engine says of a calibration's machine.
var modelledColumns = slices.Concat(
	results.Declare[*RunRow](declared, "modelled", nil),
	results.Of(RangeColumns, func(r *RunRow) *Ranges { return r.Modelled.Ranges() }),
	results.Declare[*RunRow](declared, "modelled beside", nil),
)

// RangeColumns are how far these times may be off.
var RangeColumns = results.Declare[*Ranges](declared, "range", nil)

// stressColumns are what only a stress run counts.
var stressColumns = results.Declare[*StressCounts](declared, "stress", nil)

// CountedColumns are the columns of plan: what run measures of isolated CPUs, it counts.
var CountedColumns = slices.Concat(PlanColumns, results.Declare(declared, "plan beside", map[string]func(*PlanRow) any{
	"ipis_isolated_max": func(r *PlanRow) any { return r.IPIsPerCPU - r.Lazy },
}))

// CPUColumns are the columns of a table with a row for each run, CPU and cause.
var CPUColumns = results.Declare(declared, "cpu", map[string]func(CPURow) any{
	"role":        func(r CPURow) any { return r.Roles[r.CPU].String() },
	"ipis":        func(r CPURow) any { return r.Counts.Taken[r.CPU][r.Cause] },
	"sent_rounds": func(r CPURow) any { return r.Counts.Rounds[r.CPU][r.Cause] },
	"traps":       func(r CPURow) any { return r.Tallies[r.CPU][cpus.Trap] },
	"stolen_ns":   CPURow.stolen,
})
