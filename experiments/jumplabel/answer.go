// SPDX-License-Identifier: Apache-2.0

package jumplabel

import (
	"bytes"
	"fmt"
	"io"

	"github.com/textpoke/textpoke/experiments"
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
	f := &experiments.Findings{Report: a}
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

// searches are what a search costs, by each reading of the two published points.
func (a *answer) searches() (out []searched) {
	for _, n := range a.Config.Entries {
		s := searched{Entries: n, Steps: stepsOf(n), By: a.Facts.Search.handlers(n)}
		for _, k := range a.Facts.rows {
			if k.HandlerNS.Known && searchedIn(k) == n {
				s.PublishedNS = &k.HandlerNS.Value
			}
		}
		out = append(out, s)
	}
	return out
}

// searched is a handler's search among some entries.
type searched struct {
	Entries     int
	Steps, By   steps // By in nanoseconds
	PublishedNS *float64
}

// Comparisons are the published figures, and traps, which the form does not know.
func (a *answer) Comparisons() []experiments.Comparison {
	out := a.Study.Comparisons()
	for _, p := range a.Pairs() {
		if p.Slow.traps.Mean > 0 {
			ours := p.Fast.traps.Mean / p.Slow.traps.Mean
			s := p.traps().Scaled(ours)
			out = append(out, experiments.Comparison{
				What:      fmt.Sprintf("breakpoints run into, batched over one by one, %s (prediction)", p.Fast.Machine),
				Published: trapsBatched, Ours: ours, Source: a.Facts.fast.Source, Low: s.Low, High: s.High,
			})
		}
	}
	return out
}

// trapsBatched is how many breakpoints were run into when the updates were batched,
// for each before: 10 % fewer, says the cover letter of the series ("x86/jump_label:
// Bound IPIs sent when updating a static key", v6, 2019-06-12).
const trapsBatched = 0.9
