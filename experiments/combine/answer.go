// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"fmt"
	"strconv"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/form"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/plots"
)

// answer is what the rows say that were finished.
type answer struct {
	*experiments.Study[Config, *row]
}

// Schemes are the ways, for those who read what they are.
func (a *answer) Schemes() []scheme { return schemes }

// Peak is the most clients of the first machine at their highest load, one way; nil if
// they were not counted.
func (a *answer) Peak(name string) (peak *row) { return a.most(name, func(*row) bool { return true }) }

// Quiet is the most clients at their lowest load where that is another.
func (a *answer) Quiet(name string) *row {
	lowest := a.Config.Loads[0]
	for _, load := range a.Config.Loads {
		lowest = min(lowest, load)
	}
	r := a.most(name, func(r *row) bool { return r.Load == lowest })
	if r == a.Peak(name) {
		return nil
	}
	return r
}

func (a *answer) most(name string, holds func(*row) bool) (most *row) {
	for _, r := range a.Rows {
		if r.scheme.Name == name && r.Machine == a.Config.Machines[0] && holds(r) &&
			(most == nil || r.Clients > most.Clients || r.Clients == most.Clients && r.Load > most.Load) {
			most = r
		}
	}
	return most
}

// Alone are the rows of one client.
func (a *answer) Alone() []*row {
	return experiments.Where(a.Rows, func(r *row) bool { return r.Clients == 1 })
}

// AloneSaves is the most that one of them saves.
func (a *answer) AloneSaves() (most float64) {
	for _, r := range a.Alone() {
		most = max(most, r.Saved())
	}
	return most
}

// table has a column a scheme.
func (a *answer) table(cell func(*row) string) form.Table {
	keys := []string{"calibration", "clients", "load", "contended today"}
	return experiments.Pivot(a.Rows, keys, func(r *row) []string {
		now := experiments.First(a.Rows, func(n *row) bool { return n.point == r.point })
		return []string{r.Machine.String(), strconv.Itoa(r.Clients), fmt.Sprint(r.Load),
			results.Fixed(1, 100*now.ContendedShare()) + " %"}
	}, func(r *row) string { return r.scheme.Name }, cell)
}

// Rounds are those of an update.
func (a *answer) Rounds() form.Table {
	return a.table(func(r *row) string { return results.Fixed(3, r.RoundsPerUpdate()) })
}

// Interrupts are those of an update that a CPU takes.
func (a *answer) Interrupts() form.Table {
	return a.table(func(r *row) string { return results.Fixed(3, r.IPIsPerCPU()) })
}

// Latencies are what updates take, in rounds.
func (a *answer) Latencies() form.Table {
	return a.table(func(r *row) string { return results.Fixed(1, r.Latency()) })
}

// chart is the rounds of an update of clients that never pause, or pause least.
func (a *answer) chart() *plots.Chart {
	c := &plots.Chart{
		Title: "Who asks alone saves nothing; who stands in line could share",
		X:     plots.Axis{Label: "clients", Log: true}, Y: plots.Axis{Label: "rounds of an update, mean", Log: true},
	}
	peak := a.Peak(today)
	if peak == nil {
		return c
	}
	c.Subtitle = fmt.Sprintf("Load of each client: %g (1: it never pauses); %d sites an update; order of events: %s",
		peak.Load, a.Config.Patches, peak.Machine)
	curves, ideal := experiments.Curves{Kind: plots.Line}, experiments.Curves{Kind: plots.Curve}
	for _, r := range a.Rows {
		if r.Machine != peak.Machine || r.Load != peak.Load {
			continue
		}
		curves.Add(r.scheme.Name, float64(r.Clients), r.RoundsPerUpdate())
		if r.scheme.Name == today {
			ideal.Add("ideal: all clients in every batch", float64(r.Clients), r.Ideal())
		}
	}
	c.Series = append(curves.Series, ideal.Series...)
	return c
}
