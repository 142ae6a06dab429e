// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/results"
)

// PlanColumns are the columns of plan, and the first ones of run.
var PlanColumns = slices.Concat(
	results.Columns[*PlanRow]{
		{Name: "arch", Doc: "instruction set", Cell: func(r *PlanRow) any { return r.Arch.Traits().Name }},
		{Name: "protocol", Doc: "how text is changed", Cell: func(r *PlanRow) any { return r.Protocol }},
		{Name: "buffer", Cell: func(r *PlanRow) any { return r.Buffer.String() },
			Doc: "slots of the vector that patches are queued in"},
		{Name: "order", Doc: "order in which patches are queued",
			Cell: func(r *PlanRow) any { return r.Order.String() }},
		{Name: "cpus", Doc: "CPUs by role", Cell: func(r *PlanRow) any { return cpus.FormatRoles(r.Roles) }},
		{Name: "records", Kind: results.Integer,
			Doc: "patchable call sites in the table", Cell: func(r *PlanRow) any { return r.Records }},
		{Name: "groups", Kind: results.Integer, Detail: true, Cell: func(r *PlanRow) any { return r.Groups },
			Doc: "runs of records that are sorted inside"},
		{Name: "patches", Kind: results.Integer,
			Doc: "records changed", Cell: func(r *PlanRow) any { return r.Patches }},
	},
	results.Columns[*PlanRow]{
		{Name: "flushes", Kind: results.Integer, Doc: "batches", Cell: func(r *PlanRow) any { return r.Flushes }},
		{Name: "flush_full", Kind: results.Integer, Detail: true, Cell: func(r *PlanRow) any { return r.FlushFull },
			Doc: "batches closed because no slot was left"},
		{Name: "flush_order", Kind: results.Integer, Cell: func(r *PlanRow) any { return r.FlushOrder },
			Doc: "batches closed because the next address was lower"},
		{Name: "flush_final", Kind: results.Integer, Detail: true, Cell: func(r *PlanRow) any { return r.FlushFinal },
			Doc: "batches closed because nothing followed"},
	}.When(isBuffered),
	results.Columns[*PlanRow]{
		{Name: "rounds", Kind: results.Integer, Lead: true, Cell: func(r *PlanRow) any { return r.Rounds },
			Doc: "requests to all other CPUs to synchronise"},
		{Name: "ipis", Kind: results.Integer, Cell: func(r *PlanRow) any { return r.IPIs },
			Doc: "interrupts that all CPUs take together; " +
				"plan counts lazy rounds as if isolated CPUs stayed in user space, run says what they took"},
		{Name: "ipis_per_cpu", Kind: results.Integer, Lead: true, Cell: func(r *PlanRow) any { return r.IPIsPerCPU },
			Doc: "interrupts that each CPU but the sender takes, if no round leaves it out; " +
				"under stress, the most that one took; " +
				"where the firmware counts rounds (riscv64), these alone if there are any"},
		{Name: "stops", Kind: results.Integer,
			Detail: true, Doc: "times that all CPUs stand still", Cell: func(r *PlanRow) any { return r.Stops }},
	},
	results.Columns[*PlanRow]{
		{Name: "buffer_bytes", Kind: results.Integer,
			Doc: "size of the vector", Cell: func(r *PlanRow) any { return r.BufferBytes }},
		{Name: "buffer_pages", Kind: results.Integer,
			Detail: true, Cell: func(r *PlanRow) any { return r.BufferPages },
			Doc: "size of the vector in pages of 4096 bytes"},
	}.When(isBuffered),
	results.Columns[*PlanRow]{
		{Name: "lookup_mean", Kind: results.Number,
			Detail: true, Cell: func(r *PlanRow) any { return r.Lookup.Mean() },
			Doc: "comparisons of addresses until a trap handler finds its entry, mean over all patches"},
		{Name: "lookup_max", Kind: results.Integer,
			Detail: true, Doc: "and the most", Cell: func(r *PlanRow) any { return r.Lookup.Max }},
		{Name: "lookup", Detail: true, Cell: func(r *PlanRow) any { return r.Config.Lookup.String() },
			Doc: "index that trap handlers search"},
	}.When(func(r *PlanRow) bool { return r.Lookup.Hits > 0 }),
	results.Columns[*PlanRow]{
		{Name: "fetch", Detail: true, Doc: "how finely versions of text mix in a fetch; empty on the hardware engine",
			Cell: func(r *PlanRow) any { return emptyUnless(r.Engine != HardwareEngine, r.Fetch.String()) }},
		{Name: "mutation", Doc: "defect put into the protocol",
			Cell: func(r *PlanRow) any { return results.OrEmpty(r.Mutation) }},
		{Name: "skipped", Kind: results.Integer,
			Detail: true, Doc: "records that the kernel refuses for their alignment",
			Cell: func(r *PlanRow) any { return r.Skipped }},
		{Name: "table", Detail: true, Cell: func(r *PlanRow) any { return r.Table.Name() },
			Doc: "table that the records are of, as asked for"},
		{Name: "filter", Detail: true, Cell: func(r *PlanRow) any { return results.OrEmpty(r.Filter.String()) },
			Doc: "which of them are changed; empty for all"},
		{Name: "refs", Detail: true, Cell: func(r *PlanRow) any { return r.Refs.String() },
			Doc: "kind of the handlers' reference counts"},
		{Name: "seed", Kind: results.Integer,
			Detail: true, Doc: "of every random choice", Cell: func(r *PlanRow) any { return r.Seed }},
	},
	results.Columns[*PlanRow]{
		{Name: "other_ipis_per_cpu", Kind: results.Integer,
			Detail: true, Cell: func(r *PlanRow) any { return r.OtherIPIsPerCPU },
			Doc: "where the firmware counts rounds (riscv64): what each CPU but the sender takes of the other kind, " +
				"interrupts of /proc/interrupts beside fences or fences beside interrupts"},
	}.When(func(r *PlanRow) bool { return r.Arch.Traits().FirmwareRounds }),
	results.Columns[*PlanRow]{
		{Name: "layout", Detail: true, Cell: func(r *PlanRow) any { return r.Arch.Traits().Layout },
			Doc: "how the kernel lays sites out: with literals that name their ops, or without"},
	},
)

func isBuffered(r *PlanRow) bool { return r.Buffered }

// RunColumns are the columns of run. Which ones a row fills depends on its engine.
var RunColumns = slices.Concat(
	results.Of(PlanColumns, func(r *RunRow) *PlanRow { return &r.PlanRow }),
	results.Columns[*RunRow]{
		{Name: "engine", Detail: true, Doc: "what executed the plan", Cell: func(r *RunRow) any { return r.Engine }},
	},
	results.Columns[*RunRow]{
		{Name: "calibration", Cell: func(r *RunRow) any { return r.Modelled.Calibration },
			Doc: "what times rest on; empty where they are measured"},
		{Name: "calls_per_s", Kind: results.Number, Cell: func(r *RunRow) any { return r.costs().Calls },
			Doc: "calls of traced functions on each busy CPU, modelled"},
		{Name: "entries_per_s", Kind: results.Number,
			Detail: true, Cell: func(r *RunRow) any { return r.costs().Entries },
			Doc: "entries into the kernel of each isolated CPU, modelled"},
	}.When(isModelled),
	results.Columns[*RunRow]{
		{Name: "scenario", Cell: func(r *RunRow) any { return string(r.Scenario.Name) },
			Doc: "tracer that is switched with all that the kernel sends for it; empty for the records' rounds alone"},
		{Name: "kernel", Detail: true, Doc: "whose ledger that is",
			Cell: func(r *RunRow) any { return r.Scenario.Kernel.Name() }},
	}.When(func(r *RunRow) bool { return r.Scenario != nil }),
	results.Columns[*RunRow]{
		{Name: "revision", Detail: true, Doc: "of the program",
			Cell: func(r *RunRow) any { return results.OrEmpty(r.Revision) }},
		{Name: "direction", Doc: "enable, disable, or mixed under stress",
			Cell: func(r *RunRow) any { return r.Direction }},
	},
	countedColumns.When(func(r *RunRow) bool { return !r.CountedOnly }),
	modelledColumns.When(isModelled),
	executedColumns,
	results.Of(stressColumns, func(r *RunRow) *StressCounts { return r.Stress }).
		When(func(r *RunRow) bool { return r.Stress != nil }),
	tracerColumns.When(func(r *RunRow) bool { return r.Tracers != nil }),
)

func isModelled(r *RunRow) bool { return r.Modelled != nil }

// countedColumns are what is counted while a plan is executed.
var countedColumns = results.Columns[*RunRow]{
	{Name: "traps", Kind: results.Integer,
		Doc: "times that a CPU ran into a breakpoint", Cell: func(r *RunRow) any { return r.Traps }},
	{Name: "trap_misses", Kind: results.Integer, Detail: true, Doc: "traps that found no entry",
		Cell: func(r *RunRow) any { return r.Misses }},
	{Name: "calls", Kind: results.Integer, Doc: "calls of traced functions that CPUs made meanwhile",
		Cell: func(r *RunRow) any { return r.Calls }},
	{Name: "traced_calls", Kind: results.Integer, Detail: true, Doc: "of these, calls that reached a tracer",
		Cell: func(r *RunRow) any { return r.Traced }},
	{Name: "untraced_calls", Kind: results.Integer, Detail: true, Doc: "and calls that reached none",
		Cell: func(r *RunRow) any { return r.Untraced }},
	{Name: "lost_calls", Kind: results.Integer, Doc: "calls that missed a tracer they had been promised",
		Cell: func(r *RunRow) any { return r.Lost }},
	{Name: "violations", Kind: results.Integer,
		Doc: "properties violated", Cell: func(r *RunRow) any { return r.Violations }},
	{Name: "ipis_isolated_max", Kind: results.Integer, Doc: "most interrupts that an isolated CPU took",
		Cell: func(r *RunRow) any { return emptyUnless(r.HasIsolated, r.IsolatedMax) }},
	{Name: "burst_max", Kind: results.Integer, Doc: "most interrupts that a CPU took in one millisecond",
		Cell: func(r *RunRow) any { return emptyUnless(r.Engine != HardwareEngine.String(), r.Burst) }},
	{Name: "elapsed_ns", Kind: results.Integer,
		Doc:  "from the first verification to the last answer, by the wall clock",
		Cell: func(r *RunRow) any { return emptyUnless(!isModelled(r), r.Elapsed.Nanoseconds()) }},
}

// modelledColumns are what the timed engine says of a calibration's machine.
var modelledColumns = slices.Concat(
	results.Columns[*RunRow]{
		{Name: "update_ns", Kind: results.Integer, Doc: "from the first verification to the last answer, modelled",
			Cell: func(r *RunRow) any { return int64(r.Modelled.Update) }},
		{Name: "grace_ns", Kind: results.Integer, Doc: "waiting for a grace period after that, modelled",
			Cell: func(r *RunRow) any { return int64(r.Modelled.Grace) }},
		{Name: "stolen_mean_ns", Kind: results.Number,
			Doc:  "time taken from a CPU by interrupts, traps and catching up, modelled",
			Cell: func(r *RunRow) any { return r.Modelled.StolenMean }},
		{Name: "stolen_max_ns", Kind: results.Integer,
			Doc:  "from the CPU that lost most, modelled; as far off as stolen_mean_ns, in proportion",
			Cell: func(r *RunRow) any { return int64(r.Modelled.StolenMax) }},
		{Name: "exposure_ns", Kind: results.Integer, Doc: "mean time that a patched site held a breakpoint, modelled",
			Cell: func(r *RunRow) any { return int64(r.Modelled.Exposure) }},
	},
	results.Of(RangeColumns, func(r *RunRow) *Ranges { return r.Modelled.Ranges() }),
	results.Columns[*RunRow]{
		{Name: "stolen_isolated_max_ns", Kind: results.Integer,
			Detail: true, Doc: "from the isolated CPU that lost most, modelled",
			Cell: func(r *RunRow) any { return int64(r.Modelled.IsolatedStolen) }},
		{Name: "quiet_isolated_ns", Kind: results.Integer,
			Detail: true, Cell: func(r *RunRow) any { return int64(r.Modelled.IsolatedQuiet) },
			Doc: "longest time without an interrupt, of the isolated CPU where it is shortest, modelled"},
	}.When(func(r *RunRow) bool { return r.Modelled.HasQuiet }),
	results.Columns[*RunRow]{
		{Name: "deferred", Kind: results.Integer, Cell: func(r *RunRow) any { return r.Modelled.Deferred },
			Doc: "interrupts that were saved: targets that lazy rounds found in user space and left out; modelled"},
		{Name: "catch_ups", Kind: results.Integer, Cell: func(r *RunRow) any { return r.Modelled.CatchUps },
			Doc: "times that such CPUs synchronised when they next entered the kernel, since the row before; modelled"},
	}.When(func(r *RunRow) bool { return r.Lazy > 0 }),
	results.Columns[*RunRow]{
		{Name: "events", Kind: results.Integer, Detail: true, Doc: "events of the timed engine",
			Cell: func(r *RunRow) any { return r.Modelled.Events }},
		{Name: "events_per_s", Kind: results.Number,
			Detail: true, Doc: "of them, in a second of the wall clock; empty unless asked for (rate)",
			Cell: func(r *RunRow) any { return emptyUnless(r.Modelled.Rate, r.Modelled.EventRate) }},
	},
)

// RangeColumns are how far these times may be off.
var RangeColumns = results.Columns[*Ranges]{
	{Name: "update_range_low_ns", Kind: results.Number,
		Doc:  "lower end of update_ns: 95 % of draws of the calibration's quantities are within",
		Cell: func(r *Ranges) any { return math.Round(r.Update.Low) }},
	{Name: "update_range_high_ns", Kind: results.Number, Doc: "and its upper end",
		Cell: func(r *Ranges) any { return math.Round(r.Update.High) }},
	{Name: "update_hangs_on", Doc: "quantity of the calibration that moves update_ns most, from its one end to the other",
		Cell: func(r *Ranges) any { return results.OrEmpty(r.Update.On()) }},
	{Name: "update_assumed_percent", Kind: results.Number,
		Doc:  "share of update_ns that rests on quantities which are assumed",
		Cell: func(r *Ranges) any { return tenths(100 * r.Update.Assumed) }},
	{Name: "stolen_range_low_ns", Kind: results.Number, Detail: true, Doc: "lower end of stolen_mean_ns",
		Cell: func(r *Ranges) any { return math.Round(r.Stolen.Low) }},
	{Name: "stolen_range_high_ns", Kind: results.Number, Detail: true, Doc: "and its upper end",
		Cell: func(r *Ranges) any { return math.Round(r.Stolen.High) }},
	{Name: "stolen_hangs_on", Detail: true, Doc: "quantity that moves stolen_mean_ns most",
		Cell: func(r *Ranges) any { return results.OrEmpty(r.Stolen.On()) }},
	{Name: "exposure_range_low_ns", Kind: results.Number, Detail: true, Doc: "lower end of exposure_ns",
		Cell: func(r *Ranges) any { return math.Round(r.Exposure.Low) }},
	{Name: "exposure_range_high_ns", Kind: results.Number, Detail: true, Doc: "and its upper end",
		Cell: func(r *Ranges) any { return math.Round(r.Exposure.High) }},
	{Name: "exposure_hangs_on", Detail: true, Doc: "quantity that moves exposure_ns most",
		Cell: func(r *Ranges) any { return results.OrEmpty(r.Exposure.On()) }},
}

// tenths has one digit behind the point.
func tenths(v float64) float64 { return math.Round(10*v) / 10 }

// stressColumns are what only a stress run counts.
var stressColumns = results.Columns[*StressCounts]{
	{Name: "requests", Kind: results.Integer,
		Doc: "clients' requests answered", Cell: func(s *StressCounts) any { return s.Requests }},
	{Name: "updates", Kind: results.Integer,
		Doc: "updates that carried them out", Cell: func(s *StressCounts) any { return s.Updates }},
	{Name: "failed_updates", Kind: results.Integer, Detail: true, Doc: "updates that failed and left every site whole",
		Cell: func(s *StressCounts) any { return s.Failed }},
	{Name: "plugs", Kind: results.Integer, Doc: "times that a CPU was unplugged or plugged in",
		Cell: func(s *StressCounts) any { return s.Plugs }},
}

// CountedColumns are the columns of plan: what run measures of isolated CPUs, it counts.
var CountedColumns = slices.Concat(PlanColumns, results.Columns[*PlanRow]{
	{Name: "ipis_isolated_max", Kind: results.Integer,
		Detail: true, Cell: func(r *PlanRow) any { return r.IPIsPerCPU - r.Lazy },
		Doc: "most interrupts that an isolated CPU takes, if it stays in user space"},
}.When(func(r *PlanRow) bool { return r.Isolated() > 0 }))

// CPUColumns are the columns of a table with a row for each run, CPU and cause.
var CPUColumns = results.Columns[CPURow]{
	{Name: "run", Kind: results.Integer, Doc: "row of run.csv, from 0", Cell: func(r CPURow) any { return r.run }},
	{Name: "cpu", Kind: results.Integer, Doc: "number of the CPU", Cell: func(r CPURow) any { return r.cpu }},
	{Name: "role", Doc: "what it does when nobody interrupts it",
		Cell: func(r CPURow) any { return r.Roles[r.cpu].String() }},
	{Name: "cause", Doc: "why it was interrupted", Cell: func(r CPURow) any { return r.cause.String() }},
	{Name: "ipis", Kind: results.Integer,
		Doc: "interrupts taken", Cell: func(r CPURow) any { return r.Counts.Taken[r.cpu][r.cause] }},
	{Name: "sent_rounds", Kind: results.Integer,
		Doc: "rounds sent", Cell: func(r CPURow) any { return r.Counts.Rounds[r.cpu][r.cause] }},
	{Name: "traps", Kind: results.Integer, Doc: "breakpoints run into; the CPU's, repeated for each cause",
		Cell: func(r CPURow) any { return r.Tallies[r.cpu][cpus.Trap] }},
	{Name: "stolen_ns", Kind: results.Integer, Cell: CPURow.stolen,
		Doc: "time taken from the CPU; the CPU's, repeated for each cause; empty where it is not modelled"},
}

// emptyUnless is a cell that holds a value only where it applies.
func emptyUnless(applies bool, value any) any {
	if !applies {
		return results.Empty
	}
	return value
}
