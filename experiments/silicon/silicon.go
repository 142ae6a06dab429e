// SPDX-License-Identifier: Apache-2.0

// Package silicon has the experiments on this machine's own CPUs: what a vector's size costs, which defects they show,
// and whether membarrier alone is a round.
package silicon

import (
	"context"
	"time"

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
	Form: text("silicon.experiment"), Fields: (*Config).fields, Measure: measure,
}).Experiment()

func (c *Config) fields() []*choice.Field {
	return []*choice.Field{
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
