// SPDX-License-Identifier: Apache-2.0

package sim

import (
	_ "embed"
	"math"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/results"
)

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
var RangeColumns = results.Declare(declared, "range", map[string]func(*Ranges) any{
	"update_range_low_ns":    func(r *Ranges) any { return math.Round(r.Update.Low) },
	"update_range_high_ns":   func(r *Ranges) any { return math.Round(r.Update.High) },
	"update_assumed_percent": func(r *Ranges) any { return tenths(100 * r.Update.Assumed) },
	"stolen_range_low_ns":    func(r *Ranges) any { return math.Round(r.Stolen.Low) },
	"stolen_range_high_ns":   func(r *Ranges) any { return math.Round(r.Stolen.High) },
	"exposure_range_low_ns":  func(r *Ranges) any { return math.Round(r.Exposure.Low) },
	"exposure_range_high_ns": func(r *Ranges) any { return math.Round(r.Exposure.High) },
})

// tenths has one digit behind the point.
func tenths(v float64) float64 { return math.Round(10*v) / 10 }

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
