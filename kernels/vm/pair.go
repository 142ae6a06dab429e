// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"slices"

	"github.com/textpoke/textpoke/results"
)

// Pair is one row of one action in one direction, on two kernels: before a patch and after it.
type Pair struct {
	Before, After Summary  // each with the prediction of its own image
	Forecast      *Summary // After with the forecast of the first image, nil if there was none
}

// Pairs puts two kernels side by side, in the rows that their predictions have. The forecast is of
// the first kernel with other mechanisms; nil where there is none.
func Pairs(before, after []Summary, forecast Predictions) (pairs []*Pair) {
	for _, b := range before {
		i := slices.IndexFunc(after, func(a Summary) bool {
			return a.Action == b.Action && a.Direction == b.Direction && a.Row == b.Row
		})
		if i < 0 || !b.Compared || !after[i].Compared {
			continue
		}
		p := &Pair{Before: b, After: after[i]}
		if n, known := forecast[Switched{b.Action, b.Direction}][b.Row]; known {
			f := after[i]
			f.Predicted = n
			p.Forecast = &f
		}
		pairs = append(pairs, p)
	}
	return pairs
}

// Judged is what was measured of the pair with a prediction each: of either kernel, and of the
// forecast.
func (p *Pair) Judged() []Summary {
	all := []Summary{p.Before, p.After}
	if p.Forecast != nil {
		all = append(all, *p.Forecast)
	}
	return all
}

// PairColumns are the columns of pairs.
var PairColumns = results.Declare(declared, "pair", map[string]func(*Pair) any{
	"forecast": func(p *Pair) any {
		if p.Forecast == nil {
			return results.Empty
		}
		return p.Forecast.Predicted.Rounds
	},
	"why": func(p *Pair) any { all := p.Judged(); return results.OrEmpty(all[len(all)-1].Why()) },
})
