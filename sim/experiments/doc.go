// Package experiments holds questions about live patching together with what it
// takes to answer them again: the grid of combinations that is asked, what is
// known of the answer from elsewhere, a plot, and a report that is made of the
// rows and of nothing else.
package experiments

import (
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sim/experiments/kernelinterrupts"
)

// Experiment is one question.
type Experiment struct {
	Name     string // as the command line spells it
	Question string
}

// KernelInterrupts is the experiment of package kernelinterrupts.
var KernelInterrupts = Experiment{Name: kernelinterrupts.Name, Question: kernelinterrupts.Question}

// All lists the experiments.
func All() []Experiment { return []Experiment{Mutations, KernelInterrupts} }

// List is the experiments as a table.
func List() (results.Table, error) {
	t := results.Table{Name: "list", Columns: []results.Column{
		{Name: "name", Doc: "as the command line spells it"},
		{Name: "question", Doc: "what it asks"},
	}}
	for _, e := range All() {
		if err := t.Add(e.Name, e.Question); err != nil {
			return t, err
		}
	}
	return t, nil
}
