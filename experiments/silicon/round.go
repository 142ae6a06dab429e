// SPDX-License-Identifier: Apache-2.0

package silicon

import (
	"context"
	"fmt"
	"math"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

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
