// SPDX-License-Identifier: Apache-2.0

package combine

import "github.com/textpoke/textpoke/experiments"

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
