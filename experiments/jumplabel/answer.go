// SPDX-License-Identifier: Apache-2.0

package jumplabel

import (
	"bytes"
	"fmt"
	"io"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/form"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sim/timeline"
)

// answer is what the rows say that were finished.
type answer struct {
	*experiments.Study[Config, *row]
	Facts *facts

	timeline *timeline.Recorder // of the published key, in events
	events   bytes.Buffer
}

func (a *answer) findings() *experiments.Findings {
	f := &experiments.Findings{Report: a, No: a.differ(), Pictures: []experiments.Picture{
		{Picture: a.times().Picture()}, {End: "-handler", Picture: a.search().Picture()},
	}}
	if len(a.Rows) > 0 && a.pair(a.Rows[0].Machine) != nil {
		f.Documents = []results.Document{{Name: "jump-label.pftrace", Write: func(w io.Writer) error {
			_, err := w.Write(a.events.Bytes())
			return err
		}}}
	}
	return f
}

// find is the row of a key; nil if there is none.
func (a *answer) find(m experiments.Machine, entries int, w way) *row {
	return experiments.First(a.Rows, func(r *row) bool {
		return r.Machine == m && r.Entries == entries &&
			r.name == w.name
	})
}

// pair is the published key on a machine, one by one and batched.
type pair struct{ Slow, Fast *row }

// traps is how many breakpoints are run into batched for each one by one, over the
// calibration's intervals, as a multiple of what it likely is: as many as sites hold
// breakpoints long, for two rounds and the stores of those that are switched together.
func (p *pair) traps() calibration.Spread {
	m := p.Fast.Machine
	s := m.Spreads(rangeSeed, calibration.Samples, 1, func(c *calibration.Costs, out []float64) {
		rounds := 2 * (c.Round(m.Online-1) + c.Fence)
		out[0] = (rounds + 2*float64(p.Fast.Entries)*c.Store) / (rounds + 2*c.Store)
	})[0]
	return s.Scaled(1 / s.Likely)
}

// pair is nil where one of them is missing.
func (a *answer) pair(m experiments.Machine) *pair {
	n := int(a.Facts.slow.Entries)
	p := &pair{a.find(m, n, ways[0]), a.find(m, n, ways[1])}
	if p.Slow == nil || p.Fast == nil {
		return nil
	}
	return p
}

// Pairs are those of all machines.
func (a *answer) Pairs() (out []*pair) {
	for _, m := range a.Config.Machines {
		if p := a.pair(m); p != nil {
			out = append(out, p)
		}
	}
	return out
}

// FirstPair is the first of them; nil if there is none.
func (a *answer) FirstPair() *pair {
	return experiments.First(a.Pairs(), func(*pair) bool { return true })
}

// Low and High are the ends of what was fitted.
func (a *answer) Low() fit  { low, _ := a.Facts.ends(); return low }
func (a *answer) High() fit { _, high := a.Facts.ends(); return high }

// Fitted is the calibration that was fitted to the published pair.
func (a *answer) Fitted() string { return fitted }

// PerBatch is the rounds of a batch.
func (a *answer) PerBatch() int { return poke.RoundsPerBatch() }

// Calls is how often each CPU calls the key's sites, a second.
func (a *answer) Calls() float64 { return *a.Config.Calls }

// differ is a count that is not the formula's, or not the published one.
func (a *answer) differ() error {
	for _, r := range a.Rows {
		if want := poke.RoundsPerBatch() * r.batches(r.Entries); r.Counted.Rounds != want {
			return fmt.Errorf("%d entries %s: %d rounds, not %d", r.Entries, r.name, r.Counted.Rounds, want)
		}
	}
	return nil
}

// Switches is rounds and times.
func (a *answer) Switches() form.Table {
	s := form.Table{Columns: []string{
		"machine", "entries", "way", "rounds", "by the fit (ms)",
		"modelled, likely (low to high) (ms)", "95 % interval", "published " +
			"(ms)", "error", "basis", "traps",
	}}
	for _, r := range a.Rows {
		known := r.known()
		was, off := "-", "-"
		if known.UpdateMS.Known {
			was, off = results.Four(known.UpdateMS.Value), fmt.Sprintf("%+.1f %%", r.off())
		}
		s.Rows = append(s.Rows, []string{
			r.Machine.String(), fmt.Sprint(r.Entries), r.name, fmt.Sprint(r.Counted.Rounds),
			results.Four(a.Facts.Fit.update(r.Entries, r.Counted.Rounds) / 1e6),
			fmt.Sprintf("%s (%s to %s)", results.Four(r.update.Mean/1e6), results.Four(r.spread.Low/1e6),
				results.Four(r.spread.High/1e6)),
			results.Four(r.update.Low/1e6) + " to " +
				results.Four(r.update.High/1e6), was, off, r.basis(), results.Four(r.traps.Mean),
		})
	}
	return s
}

// Handlers is what a search costs, by each reading of the two published points.
func (a *answer) Handlers() form.Table {
	s := form.Table{Columns: []string{
		"entries", "comparisons, mean", "most", "btree, mean", "by levels", "by the mean", "by the most", "by a btree's " +
			"mean", "published",
	}}
	for _, n := range a.Config.Entries {
		x, at := a.Facts.Search.handlers(n), stepsOf(n)
		was := "-"
		for _, k := range a.Facts.rows {
			if k.HandlerNS.Known && searched(k) == n {
				was = results.Four(k.HandlerNS.Value)
			}
		}
		s.Rows = append(s.Rows, []string{
			fmt.Sprint(n), fmt.Sprintf("%.3f", at.mean), fmt.Sprint(at.deepest), fmt.Sprintf("%.3f", at.tree),
			results.Four(x.level), results.Four(x.mean), results.Four(x.deepest), results.Four(x.tree), was,
		})
	}
	return s
}

// Comparisons is the published figures.
func (a *answer) Comparisons() (out []experiments.Comparison) {
	for i, m := range a.Config.Machines {
		for _, k := range a.Facts.rows {
			for _, w := range ways {
				r := a.find(m, int(k.Entries), w)
				if r == nil || k.Rounds != int64(r.Counted.Rounds) {
					continue
				}
				if i == 0 { // counts are the same everywhere
					out = append(out, experiments.Comparison{What: k.Measurement + ", rounds", Published: float64(k.Rounds),
						Ours: float64(r.Counted.Rounds), Exact: true, Source: k.Source})
				}
				on := fmt.Sprintf("%s (%s)", m, r.basis())
				if k.UpdateMS.Known {
					out = append(out, experiments.Comparison{What: k.Measurement + ", time (ms), " + on, Published: k.UpdateMS.Value,
						Ours: r.update.Mean / 1e6, Source: k.Source, Low: r.spread.Low / 1e6, High: r.spread.High / 1e6})
				}
				if k.HandlerNS.Known {
					h := r.handlerSpread()
					out = append(out, experiments.Comparison{What: k.Measurement + ", handler (ns), " + on,
						Published: k.HandlerNS.Value, Ours: r.handler(), Source: k.Source, Low: h.Low, High: h.High})
				}
			}
		}
		if p := a.pair(m); p != nil && p.Slow.traps.Mean > 0 {
			ours := p.Fast.traps.Mean / p.Slow.traps.Mean
			s := p.traps().Scaled(ours)
			out = append(out, experiments.Comparison{
				What: fmt.Sprintf("breakpoints run into, batched over one by one, %s (prediction)",
					m), Published: trapsBatched, Ours: ours, Source: a.Facts.fast.Source, Low: s.Low, High: s.High,
			})
		}
	}
	return out
}

// trapsBatched is how many breakpoints were run into when the updates were batched,
// for each before: 10 % fewer, says the cover letter of the series ("x86/jump_label:
// Bound IPIs sent when updating a static key", v6, 2019-06-12).
const trapsBatched = 0.9
