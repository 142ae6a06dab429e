package sim

import (
	"context"
	"slices"
	"time"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
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
	IPIsPerCPU          int       // that every online CPU but the sender takes
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

// planColumns are the columns of plan, and the first ones of run.
var planColumns = []results.Column{
	{Name: "arch", Doc: "instruction set"},
	{Name: "protocol", Doc: "how text is changed"},
	{Name: "buffer", Doc: "slots of the vector that patches are queued in"},
	{Name: "order", Doc: "order in which patches are queued"},
	{Name: "cpus", Doc: "CPUs by role"},
	{Name: "records", Doc: "patchable call sites in the table"},
	{Name: "groups", Detail: true, Doc: "runs of records that are sorted inside"},
	{Name: "patches", Doc: "records changed"},
	{Name: "flushes", Doc: "batches"},
	{Name: "flush_full", Detail: true, Doc: "batches closed because no slot was left"},
	{Name: "flush_order", Doc: "batches closed because the next address was lower"},
	{Name: "flush_final", Detail: true, Doc: "batches closed because nothing followed"},
	{Name: "rounds", Doc: "requests to all other CPUs to synchronise"},
	{Name: "ipis", Doc: "interrupts that all CPUs take together; plan counts lazy rounds as if isolated CPUs stayed in user space, run says what they took"},
	{Name: "ipis_per_cpu", Doc: "interrupts that each CPU but the sender takes, if no round leaves it out; under stress, the most that one took"},
	{Name: "stops", Doc: "times that all CPUs stand still"},
	{Name: "buffer_bytes", Doc: "size of the vector"},
	{Name: "buffer_pages", Detail: true, Doc: "size of the vector in pages of 4096 bytes"},
	{Name: "lookup_mean", Doc: "comparisons of addresses until a trap handler finds its entry, mean over all patches"},
	{Name: "lookup_max", Detail: true, Doc: "and the most"},
	{Name: "lookup", Detail: true, Doc: "index that trap handlers search"},
	{Name: "fetch", Doc: "how finely versions of text mix in a fetch"},
	{Name: "mutation", Doc: "defect put into the protocol"},
	{Name: "skipped", Doc: "records that the kernel refuses for their alignment"},
	{Name: "table", Detail: true, Doc: "table that the records are of, as asked for"},
	{Name: "filter", Detail: true, Doc: "which of them are changed; empty for all"},
	{Name: "refs", Detail: true, Doc: "kind of the handlers' reference counts"},
	{Name: "seed", Detail: true, Doc: "of every random choice"},
}

func (r *PlanRow) cells() []any {
	cells := []any{
		r.Arch.Traits().Name, r.Protocol, r.Buffer.String(), r.Order.String(), cpus.FormatRoles(r.Roles),
		r.Records, r.Groups, r.Patches,
	}
	if r.Buffered {
		cells = append(cells, r.Flushes, r.FlushFull, r.FlushOrder, r.FlushFinal)
	} else {
		cells = append(cells, results.Empty, results.Empty, results.Empty, results.Empty)
	}
	cells = append(cells, r.Rounds, r.IPIs, r.IPIsPerCPU, r.Stops)
	if r.Buffered {
		cells = append(cells, r.BufferBytes, r.BufferPages)
	} else {
		cells = append(cells, results.Empty, results.Empty)
	}
	if r.Lookup.Hits > 0 {
		cells = append(cells, r.Lookup.Mean(), r.Lookup.Max, r.Config.Lookup.String())
	} else {
		cells = append(cells, results.Empty, results.Empty, results.Empty)
	}
	return append(cells, r.Fetch.String(), orEmpty(r.Mutation), r.Skipped,
		r.Table.Name(), orEmpty(r.Filter.String()), r.Refs.String(), r.Seed)
}

func orEmpty(s string) any {
	if s == "" {
		return results.Empty
	}
	return s
}

// PlanTable is a table for rows of Count.
func PlanTable() results.Table {
	return results.Table{Name: "plan", Columns: slices.Clone(planColumns)}
}

// Cells is the row for PlanTable.
func (r PlanRow) Cells() []any { return r.cells() }

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
	CountedOnly bool                // nothing was executed: there was no calibration
	Aside       [cpus.NumCauses]int // of Rounds, those of a scenario that are not the records'

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

	HasQuiet                      bool // there are isolated CPUs
	IsolatedStolen, IsolatedQuiet timed.Nanos
}

var runColumns = append(append(slices.Clone(planColumns), []results.Column{
	{Name: "engine", Detail: true, Doc: "what executed the plan"},
	{Name: "calibration", Doc: "what times rest on; empty where they are measured"},
	{Name: "revision", Detail: true, Doc: "of the program"},
	{Name: "direction", Doc: "enable, disable, or mixed under stress"},
	{Name: "traps", Doc: "times that a CPU ran into a breakpoint"},
	{Name: "trap_misses", Detail: true, Doc: "traps that found no entry"},
	{Name: "calls", Doc: "calls of traced functions that CPUs made meanwhile"},
	{Name: "traced_calls", Detail: true, Doc: "of these, calls that reached a tracer"},
	{Name: "untraced_calls", Detail: true, Doc: "and calls that reached none"},
	{Name: "lost_calls", Doc: "calls that missed a tracer they had been promised"},
	{Name: "violations", Doc: "properties violated"},
	{Name: "ipis_isolated_max", Doc: "most interrupts that an isolated CPU took"},
	{Name: "burst_max", Doc: "most interrupts that a CPU took in one millisecond"},
	{Name: "elapsed_ns", Doc: "from the first verification to the last answer, by the wall clock"},
	{Name: "update_ns", Doc: "from the first verification to the last answer, modelled"},
	{Name: "grace_ns", Doc: "waiting for a grace period after that, modelled"},
	{Name: "stolen_mean_ns", Doc: "time taken from a CPU by interrupts, traps and catching up, modelled"},
	{Name: "stolen_max_ns", Doc: "from the CPU that lost most, modelled"},
	{Name: "exposure_ns", Doc: "mean time that a patched site held a breakpoint, modelled"},
	{Name: "stolen_isolated_max_ns", Detail: true, Doc: "from the isolated CPU that lost most, modelled"},
	{Name: "quiet_isolated_ns", Detail: true, Doc: "longest time without an interrupt, of the isolated CPU where it is shortest, modelled"},
	{Name: "events", Detail: true, Doc: "events of the timed engine"},
	{Name: "events_per_s", Detail: true, Doc: "of them, in a second of the wall clock; empty unless --rate"},
	{Name: "requests", Doc: "clients' requests answered"},
	{Name: "updates", Doc: "updates that carried them out"},
	{Name: "failed_updates", Detail: true, Doc: "updates that failed and left every site whole"},
	{Name: "plugs", Doc: "times that a CPU was unplugged or plugged in"},
}...), tracerColumns...)

// runRow is what is known of an update before anything runs.
func (j *Job) runRow(ctx context.Context, engine, revision string, enable bool) (RunRow, error) {
	row := RunRow{Engine: engine, Revision: revision, Direction: "disable"}
	if enable {
		row.Direction = "enable"
	}
	var err error
	if row.PlanRow, err = j.Count(ctx); err != nil {
		return row, err
	}
	return row, row.addAside(j, enable)
}

// sum sums up what the CPUs' counts and tallies say.
func (r *RunRow) sum(roles []cpus.Role) {
	var sum cpus.Tally
	for cpu, role := range roles {
		sum = sum.Add(r.Tallies[cpu])
		r.Burst = max(r.Burst, r.Counts.Burst[cpu])
		if role == cpus.Isolated {
			r.HasIsolated = true
			var n uint64
			for k := range cpus.NumCauses {
				n += r.Counts.Taken[cpu][k]
			}
			r.IsolatedMax = max(r.IsolatedMax, n)
		}
	}
	r.Traps, r.Misses = sum[cpus.Trap], sum[cpus.Miss]
	r.Calls, r.Lost = sum.Calls(), sum[cpus.Lost]
	r.Traced, r.Untraced = sum[cpus.Traced], sum[cpus.Untraced]+sum[cpus.Lost]
}

// RunTable is a table for rows of an engine.
func RunTable() results.Table {
	return results.Table{Name: "run", Columns: slices.Clone(runColumns)}
}

// Cells is the row for RunTable.
func (r RunRow) Cells() []any {
	cells := append(r.PlanRow.cells(), r.Engine, r.calibration(), orEmpty(r.Revision), r.Direction)
	cells = append(cells, r.counted()...)
	cells = append(cells, r.modelled()...)
	if s := r.Stress; s != nil {
		cells = append(cells, s.Requests, s.Updates, s.Failed, s.Plugs)
	} else {
		cells = append(cells, empty(4)...)
	}
	return append(cells, r.dispatched()...)
}

func (r *RunRow) calibration() any {
	if r.Modelled == nil {
		return results.Empty
	}
	return r.Modelled.Calibration
}

// empty is so many cells that do not apply.
func empty(n int) []any {
	cells := make([]any, n)
	for i := range cells {
		cells[i] = results.Empty
	}
	return cells
}

// counted is what was counted while the plan was executed.
func (r *RunRow) counted() []any {
	if r.CountedOnly {
		return empty(10)
	}
	cells := []any{r.Traps, r.Misses, r.Calls, r.Traced, r.Untraced, r.Lost, r.Violations}
	if r.HasIsolated {
		cells = append(cells, r.IsolatedMax)
	} else {
		cells = append(cells, results.Empty)
	}
	cells = append(cells, r.Burst)
	if r.Modelled != nil { // the wall clock has no part in it
		return append(cells, results.Empty)
	}
	return append(cells, r.Elapsed.Nanoseconds())
}

// modelled is what the timed engine says.
func (r *RunRow) modelled() []any {
	m := r.Modelled
	if m == nil {
		return empty(9)
	}
	cells := []any{int64(m.Update), int64(m.Grace), m.StolenMean, int64(m.StolenMax), int64(m.Exposure)}
	if m.HasQuiet {
		cells = append(cells, int64(m.IsolatedStolen), int64(m.IsolatedQuiet))
	} else {
		cells = append(cells, empty(2)...)
	}
	cells = append(cells, m.Events)
	if m.Rate {
		return append(cells, m.EventRate)
	}
	return append(cells, results.Empty)
}

// CPUTable is a table with a row for each run, CPU and cause.
func CPUTable() results.Table {
	return results.Table{Name: "cpus", Columns: []results.Column{
		{Name: "run", Doc: "row of run.csv, from 0"},
		{Name: "cpu", Doc: "number of the CPU"},
		{Name: "role", Doc: "what it does when nobody interrupts it"},
		{Name: "cause", Doc: "why it was interrupted"},
		{Name: "ipis", Doc: "interrupts taken"},
		{Name: "sent_rounds", Doc: "rounds sent"},
		{Name: "traps", Doc: "breakpoints run into; the CPU's, repeated for each cause"},
		{Name: "stolen_ns", Doc: "time taken from the CPU; the CPU's, repeated for each cause; empty where it is not modelled"},
	}}
}

// AddCPUs adds the rows of one run to a CPUTable.
func (r *RunRow) AddCPUs(t *results.Table, run int) error {
	if r.CountedOnly {
		return nil
	}
	for cpu, role := range r.Roles {
		for k := range cpus.NumCauses {
			if cause := cpus.Cause(k); cause > cpus.Stop && r.Counts.Sent[k] == 0 {
				continue // nobody did anything else
			}
			var stolen any = results.Empty
			if r.Stolen != nil {
				stolen = int64(r.Stolen[cpu])
			}
			err := t.Add(run, cpu, role.String(), cpus.Cause(k).String(),
				r.Counts.Taken[cpu][k], r.Counts.Rounds[cpu][k], r.Tallies[cpu][cpus.Trap], stolen)
			if err != nil {
				return err
			}
		}
	}
	return nil
}
