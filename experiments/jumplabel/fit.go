// SPDX-License-Identifier: Apache-2.0

package jumplabel

import (
	"errors"
	"math"

	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
)

// facts is what was published, and what was fitted to it.
type facts struct {
	rows   []published.KeyUpdate
	slow   published.KeyUpdate // the pair with times: one by one
	fast   published.KeyUpdate // and batched
	Fit    parts
	Search search
}

// of is the published row of a key with so many rounds; a zero one if there is none.
func (f *facts) of(entries, rounds int) (out published.KeyUpdate) {
	for _, r := range f.rows {
		if r.Entries == int64(entries) && r.Rounds == int64(rounds) {
			out = r
		}
	}
	return out
}

// searchedIn is how many entries a handler searches where a key of so many takes so
// many rounds.
func searchedIn(k published.KeyUpdate) int {
	return int(int64(poke.RoundsPerBatch()) * k.Entries / max(k.Rounds, 1))
}

// read reads the published figures and fits to them.
func read(file string) (*facts, error) {
	rows, err := published.JumpLabels.Read(file)
	if err != nil {
		return nil, err
	}
	f := &facts{rows: rows}
	for _, r := range rows {
		if !r.UpdateMS.Known || !r.HandlerNS.Known {
			continue
		}
		if f.slow.Rounds == 0 || r.Rounds > f.slow.Rounds {
			f.slow = r
		}
		if f.fast.Rounds == 0 || r.Rounds < f.fast.Rounds {
			f.fast = r
		}
	}
	if f.slow.Rounds == f.fast.Rounds || f.slow.Entries != f.fast.Entries || searchedIn(f.slow) != 1 ||
		searchedIn(f.fast) < 2 {
		return nil, errors.New(
			"published figures: want update_ms and int3_handler_ns of one key, switched one entry by one and in one batch",
		)
	}
	f.Fit = solve(f.slow, f.fast, f.slow.UpdateMS.Value, f.fast.UpdateMS.Value)
	f.Search = searches(f.slow.HandlerNS.Value, f.fast.HandlerNS.Value, searchedIn(f.fast))
	return f, nil
}

// parts is a switch in two parts: what a round takes and what an entry takes, in
// nanoseconds.
type parts struct{ Round, Entry float64 }

// update is what they make of a switch.
func (f parts) update(entries, rounds int) float64 {
	return f.Round*float64(rounds) + f.Entry*float64(entries)
}

// solve finds both from two times, in milliseconds: two equations with two unknowns,
//
//	slow.Rounds*round + Entries*entry = slow time
//	fast.Rounds*round + Entries*entry = fast time
func solve(slow, fast published.KeyUpdate, slowMS, fastMS float64) parts {
	round := (slowMS - fastMS) * 1e6 / float64(slow.Rounds-fast.Rounds)
	return parts{round, (fastMS*1e6 - float64(fast.Rounds)*round) / float64(fast.Entries)}
}

// ends are the least and the most of both parts, if the published times are rounded
// to their last digit: a half of it either way.
func (f *facts) ends() (low, high parts) {
	low, high = parts{math.Inf(1), math.Inf(1)}, parts{math.Inf(-1), math.Inf(-1)}
	slow, fast := lastDigit(f.slow.UpdateMS.Value)/2, lastDigit(f.fast.UpdateMS.Value)/2
	for _, s := range []float64{-slow, slow} {
		for _, t := range []float64{-fast, fast} {
			x := solve(f.slow, f.fast, f.slow.UpdateMS.Value+s, f.fast.UpdateMS.Value+t)
			low = parts{min(low.Round, x.Round), min(low.Entry, x.Entry)}
			high = parts{max(high.Round, x.Round), max(high.Entry, x.Entry)}
		}
	}
	return low, high
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

// search is what a handler takes with one entry, and what each step of the search
// takes on top of that, in nanoseconds, if steps are the levels of a binary search
// (log2 n), its comparisons on average, or the most of them; in a btree too.
type search struct {
	One                        float64
	Level, Mean, Deepest, Tree float64
}

// steps are numbers of steps of a search among n entries.
type steps struct{ Level, Mean, Deepest, Tree float64 }

// stepsOf counts them.
func stepsOf(n int) steps {
	b := int3.Batch{Addrs: make([]records.Addr, n)}
	for i := range b.Addrs {
		b.Addrs[i] = records.Addr(16 * (i + 1))
	}
	v := int3.CostOf(int3.Vector, b)
	return steps{math.Log2(float64(n)), v.Mean(), float64(v.Max), int3.CostOf(int3.BTree, b).Mean()}
}

// more is what a search among n entries takes more than one of a single entry.
func more(n int) steps {
	s, one := stepsOf(n), stepsOf(1)
	return steps{s.Level - one.Level, s.Mean - one.Mean, s.Deepest - one.Deepest, s.Tree - one.Tree}
}

// searches divides what a handler takes more with n entries by the steps.
func searches(one, many float64, n int) search {
	s := more(n)
	d := many - one
	return search{one, d / s.Level, d / s.Mean, d / s.Deepest, d / s.Tree}
}

// handlers are the handler's times with n entries, by each reading.
func (s search) handlers(n int) steps {
	x := more(n)
	return steps{s.One + s.Level*x.Level, s.One + s.Mean*x.Mean, s.One + s.Deepest*x.Deepest, s.One + s.Tree*x.Tree}
}
