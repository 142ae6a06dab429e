// Package catalogue lists the experiments.
package catalogue

import (
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sim/experiments"
	"github.com/textpoke/textpoke/sim/experiments/attach"
	"github.com/textpoke/textpoke/sim/experiments/buffersize"
	"github.com/textpoke/textpoke/sim/experiments/callops"
	"github.com/textpoke/textpoke/sim/experiments/callopsalternatives"
	"github.com/textpoke/textpoke/sim/experiments/coexist"
	"github.com/textpoke/textpoke/sim/experiments/directops"
	"github.com/textpoke/textpoke/sim/experiments/eraladder"
	"github.com/textpoke/textpoke/sim/experiments/flushcause"
	"github.com/textpoke/textpoke/sim/experiments/fprobe"
	"github.com/textpoke/textpoke/sim/experiments/int3lookup"
	"github.com/textpoke/textpoke/sim/experiments/ipiburst"
	"github.com/textpoke/textpoke/sim/experiments/isolation"
	"github.com/textpoke/textpoke/sim/experiments/jumplabel"
	"github.com/textpoke/textpoke/sim/experiments/kernelinterrupts"
	"github.com/textpoke/textpoke/sim/experiments/metadata"
	"github.com/textpoke/textpoke/sim/experiments/migration"
	"github.com/textpoke/textpoke/sim/experiments/mutations"
	"github.com/textpoke/textpoke/sim/experiments/pareto"
	"github.com/textpoke/textpoke/sim/experiments/reach"
	"github.com/textpoke/textpoke/sim/experiments/refcount"
	"github.com/textpoke/textpoke/sim/experiments/trigger"
)

// All are the experiments, in the order in which they are listed and run.
func All() []*experiments.Experiment {
	return []*experiments.Experiment{
		&ipiburst.Experiment,
		&flushcause.Experiment,
		&eraladder.Experiment,
		&buffersize.Experiment,
		&pareto.Experiment,
		&jumplabel.Experiment,
		&kernelinterrupts.Experiment,
		&int3lookup.Experiment,
		&refcount.Experiment,
		&isolation.Experiment,
		&migration.Experiment,
		&attach.Experiment,
		&directops.Experiment,
		&reach.Experiment,
		&coexist.Experiment,
		&mutations.Experiment,
		&callopsalternatives.Experiment,
		&callops.Experiment,
		&trigger.Experiment,
		&metadata.Experiment,
		&fprobe.Experiment,
	}
}

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
