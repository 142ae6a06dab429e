// SPDX-License-Identifier: Apache-2.0

// Package silicon measures on this machine's own CPUs what a vector's size costs: rounds,
// traps and time against slots, beside what the timed engine predicts from a calibration
// that is taken on the same machine.
package silicon

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/hardware"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/kernels/microbench"
	"github.com/textpoke/textpoke/poke/live"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
	engine "github.com/textpoke/textpoke/sim/hardware"
)

// Config says what is measured.
// Its fields are the flags of silicon.experiment.
type Config struct {
	Records string
	Buffers []sched.Buffer
	Repeats int
}

//go:embed silicon.experiment
var declared string

// Experiment is the question.
var Experiment = (&experiments.Spec[Config, row]{
	Form: declared, Cells: cells, Fields: (*Config).fields, Measure: measure,
}).Experiment()

func (c *Config) fields() []*experiments.Field {
	return []*experiments.Field{
		experiments.Records(&c.Records, records.DefaultFor(live.Arch.Traits().Name), "`table` of records"),
	}
}

// row is a vector.
type row struct {
	Records, Rounds int
	Buffer          sched.Buffer
	Measured        figures
	Modelled        figures
	Waited          *time.Duration // of the measured time, the patcher for its CPU
	Calls           float64        // a second, of a CPU that nobody disturbs
	Median          float64        // time of all updates
	Violations      uint64
}

// figures are those of one update that enables everything; times are in nanoseconds.
type figures struct{ Time, InRounds, Round, Traps, Lost float64 }

// Share is what rounds take of the time.
func (f figures) Share() float64 { return f.InRounds / f.Time }

// Steps is the time outside of rounds, in which the patcher does what the plan says at sites.
func (f figures) Steps() float64 { return f.Time - f.InRounds }

// Held is what rounds took beyond their median, or beyond a modelled one where that is less:
// of few rounds the median is held up itself.
func (r row) Held() float64 {
	usual := r.Measured.Round
	if r.Rounds < few {
		usual = min(usual, r.Modelled.Round)
	}
	return max(0, r.Measured.InRounds-float64(r.Rounds)*usual)
}

// few rounds have a median that says little.
const few = 10

// cells are those that no field and no method is.
var cells = map[string]func(row) any{
	"waited_ns": func(r row) any {
		if r.Waited == nil {
			return results.Empty
		}
		return r.Waited.Nanoseconds()
	},
}

func measure(ctx context.Context, s *experiments.Study[Config, row]) (*experiments.Findings, error) {
	if _, err := engine.Allowed(); err != nil {
		return nil, err
	}
	table, err := records.Open(ctx, s.Config.Records, records.Options{Arch: live.Arch.Traits().Name})
	if err != nil {
		return nil, err
	}
	k, err := calibrated(ctx)
	if err != nil {
		return nil, err
	}
	err = experiments.Each(ctx, s, s.Config.Buffers, func(b sched.Buffer) (row, error) {
		c := hardware.Config(s.Lab, table, b)
		c.Even = true
		r, err := execute(ctx, c, s.Config.Repeats)
		if err == nil {
			err = r.model(ctx, c, k)
		}
		return r, err
	})
	a := &answer{s.Rows, hardware.Processor(), k}
	return &experiments.Findings{
		Report: a, No: a.violated(),
	}, err
}

// calibrationTime is how long a calibration is taken for.
const calibrationTime = time.Second

// calibrated is a calibration of this machine.
func calibrated(ctx context.Context) (*calibration.Calibration, error) {
	also, done, err := engine.Benches()
	if err != nil {
		return nil, err
	}
	defer done()
	arch := live.Arch.Traits().Name
	r, err := microbench.Run(ctx, microbench.Config{
		Name: "this-machine", Arch: arch, Base: calibration.Nearest(arch, 2), Time: calibrationTime, Also: also,
	})
	if err != nil {
		return nil, err
	}
	return r.Calibration, nil
}

// execute measures one vector.
func execute(ctx context.Context, c sim.Config, repeats int) (r row, err error) {
	r.Buffer = c.Buffer
	var times []float64
	err = hardware.Flip(ctx, c, 2*repeats, func(u *sim.RunRow, _ []cpus.Violation) {
		r.Violations += u.Violations
		if u.Direction != "enable" {
			return
		}
		r.Records, r.Rounds = u.Patches, u.Rounds
		times = append(times, float64(u.Elapsed))
		r.Calls = max(r.Calls, 1000/u.Executed.Pace.Seconds())
		if len(times) == 1 || float64(u.Elapsed) < r.Measured.Time {
			x := u.Executed
			r.Measured = figures{float64(u.Elapsed), float64(x.RoundsAll), float64(x.RoundMedian), float64(u.Traps), x.Stolen}
			r.Waited = x.Waited
		}
	}, nil)
	if err == nil {
		r.Median = median(times)
	}
	return r, err
}

func median(list []float64) float64 {
	slices.Sort(list)
	n := len(list)
	return (list[(n-1)/2] + list[n/2]) / 2
}

// model asks the timed engine about the same vector, with calls as even and as fast as
// those of the threads.
func (r *row) model(ctx context.Context, c sim.Config, k *calibration.Calibration) error {
	even := *k
	even.Costs.Skew = 0
	c.Engine, c.Calibration, c.Even, c.Calls = sim.TimedEngine, &even, false, &r.Calls
	j, err := sim.NewJob(c)
	if err != nil {
		return err
	}
	e, err := sim.NewTimed(j)
	if err != nil {
		return err
	}
	defer e.Close()
	u, err := e.Update(ctx, true)
	if err == nil {
		round := k.Costs.Round(len(c.Roles) - 1)
		r.Modelled = figures{float64(u.Modelled.Update), float64(u.Rounds) * round, round, float64(u.Traps),
			u.Modelled.StolenMean}
	}
	return err
}

// answer is what was measured.
type answer struct {
	Rows        []row
	Processor   string
	Calibration *calibration.Calibration
}

// Headline is the answer in one line.
func (a *answer) Headline() string {
	var parts []string
	for _, r := range a.Rows {
		parts = append(parts, fmt.Sprintf("%s slots: %d rounds, %.3g ms, %.0f traps", r.Buffer, r.Rounds, r.Measured.Time/1e6,
			r.Measured.Traps))
	}
	return strings.Join(parts, "; ")
}

// Millis is a time of the report.
func (a *answer) Millis(ns float64) string { return fmt.Sprintf("%.3g", ns/1e6) }

// Micros is a time of the report.
func (a *answer) Micros(ns float64) string { return fmt.Sprintf("%.3g", ns/1e3) }

// Wait is how long a patcher waited.
func (a *answer) Wait(d *time.Duration) string { return a.Millis(float64(*d)) }

// Calls are the most and the least calls a second, in millions.
func (a *answer) Calls() string {
	least, most := a.Rows[0].Calls, a.Rows[0].Calls
	for _, r := range a.Rows {
		least, most = min(least, r.Calls), max(most, r.Calls)
	}
	return fmt.Sprintf("%.3g to %.3g", least/1e6, most/1e6)
}

// Assumed is how many quantities of the calibration nobody has measured.
func (a *answer) Assumed() (n int) {
	for _, e := range a.Calibration.Entries {
		if e.Basis == calibration.Assumed {
			n++
		}
	}
	return n
}

func (a *answer) violated() error {
	for _, r := range a.Rows {
		if r.Violations > 0 {
			return fmt.Errorf("%s slots: %d violations of the plan as it is", r.Buffer, r.Violations)
		}
	}
	return nil
}

// Ratio is the modelled time by the measured one.
func (r row) Ratio() float64 { return r.Modelled.Time / r.Measured.Time }

// Away is the time in which a thread that the update needed had no CPU, at the least: a
// patcher that waits for its own does so in rounds, too.
func (r row) Away() (ns float64) {
	ns = r.Held()
	if r.Waited != nil {
		ns = max(ns, float64(*r.Waited))
	}
	return min(ns, r.Measured.Time)
}

// Present is the modelled time by the measured one less what threads were away.
func (r row) Present() float64 { return r.Modelled.Time / max(1, r.Measured.Time-r.Away()) }
