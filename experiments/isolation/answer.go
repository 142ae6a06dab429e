// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"fmt"
	"math"
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/form"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
)

// answer is what the rows say that were finished, and what is published.
type answer struct {
	*experiments.Study[Config, *row]
	figures
}

// measured is the figure of that name, 0 where nobody has published it.
func (f *figures) measured(name string) published.Isolated {
	return experiments.First(f.all, func(m published.Isolated) bool { return m.Measurement == name })
}

// span prints a length of time.
func span(ns float64) string {
	for _, u := range []struct {
		name string
		ns   float64
	}{{"h", hour}, {"min", hour / 60}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}} {
		if math.Abs(ns) >= u.ns {
			return results.Short(ns/u.ns) + " " + u.name
		}
	}
	return results.Short(ns) + " ns"
}

// within is a length of time with its range.
func within(s calibration.Spread) string {
	return fmt.Sprintf("%s (%s to %s)", span(s.Likely), span(s.Low), span(s.High))
}

func percent(share float64) string { return results.Short(100*share) + " %" }

// usual are the rows of one machine at one rate of updates: the one that interrupts
// everybody, and the lazy one whose entries are nearest to the calibration's; nil
// where there is none yet.
func (a *answer) usual(machine string, updates float64) (everybody, lazy *row) {
	away := func(r *row) float64 { return math.Abs(math.Log((r.entries + 1e-9) / (r.Machine.Costs.Entries + 1e-9))) }
	for _, r := range a.Rows {
		switch {
		case r.Machine.String() != machine || r.updates != updates:
		case !r.lazy:
			everybody = r
		case lazy == nil || away(r) < away(lazy):
			lazy = r
		}
	}
	return everybody, lazy
}

// Machines are the machines that there are rows of.
func (a *answer) Machines() []string {
	return experiments.Distinct(a.Rows, func(r *row) string { return r.Machine.String() })
}

// both are the usual rows of a machine.
type both struct{ Everybody, Lazy *row }

// First are those of the first machine; nil where one is missing.
func (a *answer) First() *both {
	if len(a.Rows) == 0 {
		return nil
	}
	b := &both{}
	if b.Everybody, b.Lazy = a.usual(a.Machines()[0], a.Rate()); b.Everybody == nil || b.Lazy == nil {
		return nil
	}
	return b
}

// Limits are the lazy rows of the machines on which deferral can save time.
func (a *answer) Limits() (out []*row) {
	for _, m := range a.Machines() {
		if _, r := a.usual(m, a.Rate()); r != nil && r.EvenAt() > 0 {
			out = append(out, r)
		}
	}
	return out
}

// textPatching is how much of what hits isolated CPUs is rounds of text patching.
type textPatching struct{ All, Text published.Isolated }

// Percent is its share.
func (t *textPatching) Percent() float64 { return 100 * t.Text.Value / t.All.Value }

// TextPatching is nil where it is not published.
func (a *answer) TextPatching() *textPatching {
	t := &textPatching{a.measured(allCalls), a.measured(textCalls)}
	if t.All.Value <= 0 || t.Text.Value <= 0 {
		return nil
	}
	return t
}

// PublishedHours is how long the published interrupts were counted.
func (a *answer) PublishedHours() int { return publishedHours }

// Interrupts is what isolated CPUs take, of the first machine at the fitted rate.
func (a *answer) Interrupts() form.Table {
	s := form.Table{
		Title: fmt.Sprintf("Interrupts in %s h, %s updates an hour, calibration %s", results.Short(a.Config.Hours),
			results.Short(a.Rate()), a.Machines()[0]),
		Columns: []string{"rounds", "entries a second", "interrupts, all isolated", "most of one", "most in 1 ms",
			"longest quiet", "found in the kernel", "expected", "catch-ups", "rounds a catch-up"},
	}
	for _, r := range a.Rows {
		if r.Machine.String() != a.Machines()[0] || !r.fitted {
			continue
		}
		line := []string{"interrupt everybody", "any", fmt.Sprint(r.IPIs), fmt.Sprint(r.ipisMax), fmt.Sprint(r.burst),
			span(float64(r.quiet)), "", "", "", ""}
		if r.lazy {
			line[0], line[1] = "leave out who is in user space", results.Short(r.entries)
			line[6], line[7], line[8] = percent(r.found()), percent(r.expected()), fmt.Sprint(r.catchUps)
			if r.catchUps > 0 {
				line[9] = results.Short(r.coalesced())
			}
		}
		s.Rows = append(s.Rows, line)
	}
	return s
}

// Rates is what other rates of updates give.
func (a *answer) Rates() form.Table {
	s := form.Table{
		Title: fmt.Sprintf("Other rates of updates, calibration %s", a.Machines()[0]),
		Columns: []string{"updates an hour", "interrupts of one CPU", "longest quiet", "with deferral", "longest quiet",
			"entries a second", "rounds a catch-up"},
	}
	for _, r := range a.Rows {
		if r.Machine.String() != a.Machines()[0] || r.lazy {
			continue
		}
		line := []string{results.Short(r.updates), fmt.Sprint(r.ipisMax), span(float64(r.quiet)), "", "", "", ""}
		if r.fitted {
			line[0] += " (fitted)"
		}
		if _, lazy := a.usual(r.Machine.String(), r.updates); lazy != nil {
			line[3], line[4], line[5] = fmt.Sprint(lazy.ipisMax), span(float64(lazy.quiet)), results.Short(lazy.entries)
			if lazy.catchUps > 0 {
				line[6] = results.Short(lazy.coalesced())
			}
		}
		s.Rows = append(s.Rows, line)
	}
	return s
}

// Time is what deferral saves and costs an isolated CPU in an hour, machine by machine.
func (a *answer) Time() form.Table {
	s := form.Table{
		Title: fmt.Sprintf("Time of an isolated CPU in an hour, modelled, %s updates an hour", results.Short(a.Rate())),
		Columns: []string{"calibration", "system call before", "after", "saved in interrupts", "entries a second",
			"dearer entries cost", "break-even, entries a second"},
	}
	for _, m := range a.Machines() {
		_, r := a.usual(m, a.Rate())
		if r == nil {
			continue
		}
		c := r.Machine.Costs
		line := []string{m, span(c.UserEntry + c.UserExit), span(c.UserEntry + c.UserExit + c.DeferralEntry),
			within(r.spread.saved), results.Short(r.entries), within(r.spread.dearer), ""}
		if e, ok := r.breakEven(); ok {
			line[6] = results.Short(e)
		}
		s.Rows = append(s.Rows, line)
	}
	return s
}

// Comparisons holds what was published against the machines that it is of.
func (a *answer) Comparisons() (out []experiments.Comparison) {
	if len(a.Rows) > 0 && a.Config.Hours == publishedHours {
		everybody, lazy := a.usual(a.Machines()[0], a.Rate())
		if everybody != nil && everybody.isolated() == a.Isolated() {
			out = append(out,
				experiments.Comparison{What: a.total.Measurement, Published: a.total.Value, Ours: float64(everybody.IPIs),
					Source: a.total.Source},
				experiments.Comparison{What: a.Each.Measurement, Published: a.Each.Value,
					Ours: float64(everybody.IPIs) / float64(everybody.isolated()), Source: a.Each.Source})
			if lazy != nil && a.left.Measurement != "" {
				out = append(out, experiments.Comparison{What: fmt.Sprintf(
					"%s (here: %s entries a second)",
					a.left.Measurement,
					results.Short(
						lazy.entries,
					),
				), Published: a.left.Value, Ours: float64(lazy.IPIs), Exact: true, Source: a.left.Source})
			}
		}
	}
	for _, name := range a.Machines() {
		_, r := a.usual(name, a.Rate())
		for _, m := range a.all {
			if r == nil || !strings.Contains(strings.ToLower(m.Measurement), " "+strings.ReplaceAll(r.Machine.Name, "gold-",
				"gold ")+",") {
				continue
			}
			c := r.Machine.Costs
			ours := c.UserEntry + c.UserExit
			if strings.HasSuffix(m.Measurement, "after") {
				ours += c.DeferralEntry
			}
			out = append(out, experiments.Comparison{What: m.Measurement + ", ns", Published: m.Value, Ours: ours,
				Source: m.Source})
		}
	}
	return out
}
