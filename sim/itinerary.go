// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"github.com/textpoke/textpoke/cpus"
)

// Move is where a patcher goes on once that many rounds of its update have been
// answered.
type Move struct{ After, To int }

// Itinerary lets the next update begin on a CPU and go on on others at given rounds,
// in place of wherever it likes. It fails where a CPU runs no patcher.
func (l *Live) Itinerary(home int, moves ...Move) error {
	for _, cpu := range append([]Move{{To: home}}, moves...) {
		if cpu.To < 0 || cpu.To >= len(l.job.Roles) || !l.job.Roles[cpu.To].RunsPatcher() {
			return fmt.Errorf("cpu %d of %s runs no patcher", cpu.To, cpus.FormatRoles(l.job.Roles))
		}
	}
	start := l.machine.Ledger.Read().TotalRounds(cpus.Sync)
	l.patcher.Home, l.patcher.Migrate = home, true
	l.patcher.Chooser = &itinerary{
		Chooser: cpus.NewRandom(l.job.Seed, 0), at: home, moves: moves,
		rounds: func() int { return int(l.machine.Ledger.Read().TotalRounds(cpus.Sync) - start) },
	}
	return nil
}

// itinerary chooses as it is told when a patcher asks whether to move.
type itinerary struct {
	cpus.Chooser
	at     int
	moves  []Move
	rounds func() int // answered so far
}

// Choose answers moves by the itinerary, and everything else by the chooser behind it.
func (c *itinerary) Choose(what cpus.Choice, n int) int {
	if what != cpus.ChooseMove {
		return c.Chooser.Choose(what, n)
	}
	if len(c.moves) == 0 || c.rounds() < c.moves[0].After {
		return 0 // stays
	}
	from, to := c.at, c.moves[0].To
	c.at, c.moves = to, c.moves[1:]
	switch to {
	case from:
		return 0
	case 0: // a patcher that is told its own CPU goes to CPU 0
		return from
	}
	return to
}
