// SPDX-License-Identifier: Apache-2.0

// Package silicon has the experiments on this machine's own CPUs: what a vector's size costs, which defects they show,
// and whether membarrier alone is a round.
package silicon

import (
	"context"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/mathext"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/kernels/microbench"
	"github.com/textpoke/textpoke/poke/live"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results/fit"
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

func text(name string) string { return experiments.Text("silicon/" + name) }

// Silicon measures the price of a vector's size on this machine's own CPUs: rounds,
// traps and time against slots, beside the timed engine's predictions from a calibration of
// the same machine.
var Silicon = (&experiments.Spec[Config, row]{
	Form: text("silicon.experiment"), Measure: measure,
	Fields: func(c *Config) []*choice.Field {
		return []*choice.Field{
			experiments.Records(&c.Records, records.DefaultFor(live.Arch.Traits().Name), "`table` of records"),
		}
	},
}).Experiment()

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

func measure(ctx context.Context, s *experiments.Study[Config, row]) (any, error) {
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
	m := &machine{}
	defer m.close()
	err = experiments.Each(ctx, s, s.Config.Buffers, func(b sched.Buffer) (row, error) {
		c := config(s.Lab, table, b)
		c.Even = true
		r, err := m.execute(ctx, c, s.Config.Repeats)
		if err == nil {
			err = r.model(ctx, c, k)
		}
		return r, err
	})
	return &answer{s, experiments.Assumed(k)}, err
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
func (m *machine) execute(ctx context.Context, c sim.Config, repeats int) (r row, err error) {
	r.Buffer = c.Buffer
	var times []float64
	err = m.flip(ctx, c, 2*repeats, func(u *sim.RunRow, _ []cpus.Violation) {
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
	if err != nil {
		return r, err
	}
	median, err := fit.Median(times)
	r.Median = median.Value
	return r, err
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
	*experiments.Study[Config, row]
	Assumed int // quantities of the calibration that nobody has measured
}

// config is a combination on the CPUs of this machine: as many as may be used, or two.
func config(lab experiments.Lab, t *records.Table, b sched.Buffer) sim.Config {
	return sim.Config{
		Arch: live.Arch, Table: t, Buffer: b, Roles: []cpus.Role{cpus.Busy, cpus.Busy}, Seed: lab.Seed,
		Engine: sim.HardwareEngine, Revision: lab.Revision, Log: lab.Log,
	}
}

// machine is what updates are made on, one job after the other.
type machine struct{ at *sim.Hardware }

func (m *machine) close() {
	if m.at != nil {
		m.at.Close()
	}
}

// flip enables and disables everything in turn, so many times at most, and hands each row
// over, with the first violations so far. It ends early when enough says so; nil never does.
func (m *machine) flip(ctx context.Context, c sim.Config, times int, each func(*sim.RunRow, []cpus.Violation),
	enough func() bool) error {
	j, err := sim.NewJob(c)
	if err != nil {
		return err
	}
	h, err := m.at.Next(j)
	if err != nil {
		return err
	}
	m.at = h
	for i := range times {
		row, err := h.Update(ctx, i%2 == 0)
		if err != nil {
			return err
		}
		each(&row, h.Violations())
		if enough != nil && enough() {
			return nil
		}
	}
	return nil
}

// share is k of n, with the interval that holds the true share with a probability of at
// least 95 %: Clopper and Pearson, "The use of confidence or fiducial limits illustrated
// in the case of the binomial", Biometrika 26 (1934).
type share struct{ K, N int }

const alpha = 0.05

// Low is the lower end.
func (s share) Low() float64 {
	if s.K == 0 {
		return 0
	}
	return mathext.InvRegIncBeta(float64(s.K), float64(s.N-s.K+1), alpha/2)
}

// High is the upper end.
func (s share) High() float64 {
	if s.K == s.N {
		return 1
	}
	return mathext.InvRegIncBeta(float64(s.K+1), float64(s.N-s.K), 1-alpha/2)
}

// Value is the share that was seen.
func (s share) Value() float64 { return float64(s.K) / math.Max(1, float64(s.N)) }

// roundConfig says how often it is tried.
// Its fields are the flags of round.experiment.
type roundConfig struct {
	Updates int
	Sites   int
}

// Round asks whether membarrier alone is a round: whether a breakpoint's handler
// can still be on its way when it is over.
var Round = experiments.New("silicon/round.experiment", measureRounds)

// row is one kind of round.
type roundRow struct {
	Wait       bool
	Updates    int
	Rounds     int
	Median     float64 // of the updates' medians, the least
	Traps      uint64
	Misses     uint64
	Violations uint64
}

// Share is the traps that found no entry.
func (r roundRow) Share() share { return share{K: int(r.Misses), N: int(r.Traps)} }

func measureRounds(ctx context.Context, s *experiments.Study[roundConfig, roundRow]) (any, error) {
	table, err := records.Open(ctx, fmt.Sprintf("gen:n=%d", s.Config.Sites), records.Options{})
	if err != nil {
		return nil, err
	}
	m := &machine{}
	defer m.close()
	err = experiments.Each(ctx, s, []bool{false, true}, func(wait bool) (roundRow, error) {
		r := roundRow{Wait: wait, Median: math.Inf(1)}
		c := config(s.Lab, table, sched.Dynamic)
		c.Borderless = !wait
		err := m.flip(ctx, c, s.Config.Updates, func(u *sim.RunRow, _ []cpus.Violation) {
			r.Updates++
			r.Rounds += u.Rounds
			r.Traps += u.Traps
			r.Misses += u.Misses
			r.Violations += u.Violations
			r.Median = min(r.Median, float64(u.Executed.RoundMedian))
		}, nil)
		return r, err
	})
	return s, err
}
