// SPDX-License-Identifier: Apache-2.0

package silicon

import (
	"context"
	"math"

	"gonum.org/v1/gonum/mathext"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/poke/live"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

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
