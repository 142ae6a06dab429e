// SPDX-License-Identifier: Apache-2.0

// Package catalogue lists the experiments.
package catalogue

import (
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/attach"
	"github.com/textpoke/textpoke/experiments/batches"
	"github.com/textpoke/textpoke/experiments/callops"
	"github.com/textpoke/textpoke/experiments/callopsalternatives"
	"github.com/textpoke/textpoke/experiments/coexist"
	"github.com/textpoke/textpoke/experiments/combine"
	"github.com/textpoke/textpoke/experiments/directops"
	"github.com/textpoke/textpoke/experiments/fprobe"
	"github.com/textpoke/textpoke/experiments/int3lookup"
	"github.com/textpoke/textpoke/experiments/isolation"
	"github.com/textpoke/textpoke/experiments/kernelinterrupts"
	"github.com/textpoke/textpoke/experiments/metadata"
	"github.com/textpoke/textpoke/experiments/migration"
	"github.com/textpoke/textpoke/experiments/mutations"
	"github.com/textpoke/textpoke/experiments/reach"
	"github.com/textpoke/textpoke/experiments/refcount"
	"github.com/textpoke/textpoke/experiments/silicon"
	"github.com/textpoke/textpoke/experiments/trigger"
	"github.com/textpoke/textpoke/experiments/uprobes"
	"github.com/textpoke/textpoke/results"
)

// All are the experiments, in the order in which they are listed and run.
func All() []*experiments.Experiment {
	return []*experiments.Experiment{
		batches.IPIBurst(),
		batches.FlushCause(),
		combine.Experiment(),
		batches.EraLadder(),
		batches.BufferSize(),
		batches.Pareto(),
		batches.JumpLabel(),
		kernelinterrupts.Experiment(),
		int3lookup.Experiment(),
		refcount.Experiment(),
		isolation.Experiment(),
		migration.Experiment(),
		attach.Experiment(),
		directops.Experiment(),
		reach.Experiment(),
		coexist.Experiment(),
		mutations.Experiment(),
		callopsalternatives.Experiment(),
		callops.Experiment(),
		trigger.Experiment(),
		metadata.Experiment(),
		fprobe.Experiment(),
		uprobes.Experiment(),
		silicon.Silicon(),
		silicon.Straddle(),
		silicon.Round(),
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
