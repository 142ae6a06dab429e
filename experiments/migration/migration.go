// Package migration asks what interrupt counters show of a patcher that moves to
// another CPU in the middle, and sends the rounds of the measurements of 2019
// again, from the CPUs that must have sent them.
package migration

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
)

const (
	name     = "migration"
	question = "The patcher moves to another CPU in the middle of an update: what do the interrupt counters show? Does that explain the " +
		"uneven row of the measurements of 2019, where six CPUs took 661 interrupts, one 631 and one 30?"
)

// Experiment is the question.
var Experiment = experiments.Legacy{
	Name: name, Question: question,
	Short: "the patcher moves to another CPU in the middle: the uneven row of 2019, explained and repeated",
	About: "migration works out of the published interrupt counts who sent how many rounds, and then carries\n" +
		"out updates of as many rounds on the live machine, with the patcher on those CPUs: what each CPU\n" +
		"takes must be what was published, interrupt by interrupt. The exit code is 1 where it is not.",
	Examples: []string{
		"migration --out migration",
		"migration --published counts.csv --format csv",
	},
	Table: table,
	Flags: func(f *pflag.FlagSet) experiments.LegacyRun {
		r := &request{}
		f.StringVar(&r.file, "published", "", "`file` in place of the published counts: CSV with patching, action, cpu, before, after, delta, source")
		return r.run
	},
}.Experiment()

// request is what the flags ask for.
type request struct{ file string }

func table() results.Table {
	return results.Table{Name: name, Columns: []results.Column{
		{Name: "patching", Doc: "which kernel was measured"},
		{Name: "action", Doc: "the tracer is switched on (enable) or off"},
		{Name: "cpu", Doc: "number of the CPU"},
		{Name: "delta_published", Doc: "interrupts that it took, as published"},
		{Name: "rounds", Doc: "rounds that explain all CPUs' interrupts"},
		{Name: "senders", Doc: "CPUs that must have sent them"},
		{Name: "sent_rounds", Doc: "rounds that this CPU must have sent, and sends here"},
		{Name: "ipis", Doc: "interrupts that it takes on the live machine"},
		{Name: "error", Doc: "that less what was published"},
	}}
}

func (r *request) run(ctx context.Context, lab *experiments.Lab) (*experiments.Answer, error) {
	counts, err := published.Interrupts.Read(r.file)
	if err != nil {
		return nil, err
	}
	readings, err := published.Readings(counts)
	if err != nil {
		return nil, err
	}
	measured, err := explain(readings)
	if err != nil {
		return nil, err
	}
	a := &answer{asked: len(measured)}
	for _, m := range measured {
		if err := m.repeat(ctx, lab); err != nil {
			return a.answer(), err
		}
		a.done = append(a.done, m)
		for cpu, c := range m.Counts {
			err := lab.Add(m.Patching, m.Action, c.CPU, c.Delta, m.why.Rounds, m.why.Senders, m.why.Sent[cpu], m.taken[cpu], m.taken[cpu]-c.Delta)
			if err != nil {
				return a.answer(), err
			}
		}
	}
	return a.answer(), nil
}
