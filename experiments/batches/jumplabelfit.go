// SPDX-License-Identifier: Apache-2.0

package batches

import (
	"errors"
	"math"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
)

// known is a published switch.
type known struct{ published.KeyUpdate }

// Searched is how many entries a handler searches where the key takes so many rounds.
func (k known) Searched() int {
	return int(int64(poke.RoundsPerBatch()) * k.Entries / max(k.Rounds, 1))
}

// pairOf is the published pair with times: one by one, and batched; and what their handlers' searches take.
type pairOf struct {
	Slow, Fast         known
	SlowHalf, FastHalf float64 // of the last digit of their times
	One, Many          steps
}

// read reads the published figures, and finds the pair.
func read(file string) (all []known, p pairOf, err error) {
	rows, err := published.JumpLabels.Read(file)
	if err != nil {
		return nil, p, err
	}
	for _, r := range rows {
		k := known{r}
		all = append(all, k)
		if !r.UpdateMS.Known || !r.HandlerNS.Known {
			continue
		}
		if p.Slow.Rounds == 0 || r.Rounds > p.Slow.Rounds {
			p.Slow = k
		}
		if p.Fast.Rounds == 0 || r.Rounds < p.Fast.Rounds {
			p.Fast = k
		}
	}
	if p.Slow.Rounds == p.Fast.Rounds || p.Slow.Entries != p.Fast.Entries || p.Slow.Searched() != 1 || p.Fast.Searched() < 2 {
		return nil, p, errors.New(
			"published figures: want update_ms and int3_handler_ns of one key, switched one entry by one and in one batch",
		)
	}
	p.SlowHalf, p.FastHalf = lastDigit(p.Slow.UpdateMS.Value)/2, lastDigit(p.Fast.UpdateMS.Value)/2
	p.One, p.Many = stepsOf(1), stepsOf(p.Fast.Searched())
	return all, p, nil
}

// lastDigit is the unit of a number's last decimal digit: 1 of 57, 0.1 of 1.4.
func lastDigit(v float64) float64 {
	unit := 1.0
	for range 9 {
		if math.Abs(v/unit-math.Round(v/unit)) < 1e-9 {
			break
		}
		unit /= 10
	}
	return unit
}

// steps are numbers of steps of a search: the levels of a binary search (log2 n), its comparisons on average, or the
// most of them; in a btree too.
type steps struct{ Level, Mean, Deepest, Tree float64 }

// stepsOf counts those among n entries.
func stepsOf(n int) steps {
	b := int3.Batch{Addrs: make([]records.Addr, n)}
	for i := range b.Addrs {
		b.Addrs[i] = records.Addr(16 * (i + 1))
	}
	v := int3.CostOf(int3.Vector, b)
	return steps{math.Log2(float64(n)), v.Mean(), float64(v.Max), int3.CostOf(int3.BTree, b).Mean()}
}

// searched is a handler's search among some entries.
type searched struct {
	Entries int
	Steps   steps
}

// searches are those among the entries that are asked for.
func (c *keys) searches() (out []searched) {
	for _, n := range c.Entries {
		out = append(out, searched{n, stepsOf(n)})
	}
	return out
}

// pair is the published key on a machine, one by one and batched.
type pair struct{ Slow, Fast *keyRow }

// pairs are those of all machines.
func (a *answer) pairs() (out []*pair) {
	for _, m := range a.Config.Machines {
		switched := func(w way) *keyRow {
			return experiments.First(a.Rows, func(r *keyRow) bool {
				return r.Machine == m && r.Entries == int(a.known.Slow.Entries) && r.name == w.name
			})
		}
		if p := (&pair{switched(ways[0]), switched(ways[1])}); p.Slow != nil && p.Fast != nil {
			out = append(out, p)
		}
	}
	return out
}
