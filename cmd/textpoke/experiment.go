package main

import (
	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sim"
	"github.com/textpoke/textpoke/sim/experiments"
)

func experimentCommand(c *common) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "experiment",
		Short: "questions with all it takes to answer them again: list, mutations, kernel-interrupts",
	}
	cmd.AddCommand(experimentList(c), experimentMutations(c), experimentKernelInterrupts(c))
	return cmd
}

func experimentList(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "the experiments, and what each of them asks",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := experiments.List()
			if err != nil {
				return err
			}
			return c.whole(cmd.Context(), t)
		},
	}
}

// mutationsFlags is the flags of experiment mutations.
type mutationsFlags struct {
	machineFlags
	effortFlags
}

func experimentMutations(c *common) *cobra.Command {
	var k mutationsFlags
	cmd := &cobra.Command{
		Use:   experiments.Mutations.Name,
		Short: "which steps does the safety of a protocol rest on? every protocol, with every defect",
		Long: "mutations puts every protocol to the checker, as it is and with every mutation that it offers, on\n" +
			"every instruction set and with every fetch model. With --out it writes the table, a plot of it\n" +
			"(mutations.svg, mutations.png) and report.md, which answers the question and holds the answer\n" +
			"against what is known. That mutations break protocols is the answer, not an error: the exit code\n" +
			"is 1 only when a protocol breaks without any, and nothing known says that it should." + columnsHelp(experiments.MutationTable()),
		Example: "  textpoke experiment mutations --out mutations\n" +
			"  textpoke experiment mutations --arch x86_64 --protocol native --format csv\n" +
			"  textpoke experiment mutations --protocol breakpoint-lazy --cpus busy=1,isolated=1",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return k.run(cmd, c) },
	}
	k.machineFlags.register(cmd, poke.Names(), cpus.FetchNames())
	k.effortFlags.register(cmd)
	return cmd
}

func (k *mutationsFlags) run(cmd *cobra.Command, c *common) error {
	o, err := k.options()
	if err != nil {
		return err
	}
	g, err := k.grid()
	if err != nil {
		return err
	}
	questions, err := experiments.MutationQuestions(*g)
	if err != nil {
		return err
	}
	answer := &experiments.MutationAnswer{Asked: len(questions)}
	out := &output{table: experiments.MutationTable(), documents: answer.Documents()}
	cut, err := c.answers(cmd.Context(), questions, o, out, func(row *sim.VerdictRow) {
		answer.Rows = append(answer.Rows, *row)
	})
	if err != nil {
		return err
	}
	if err := answer.Unexpected(); err != nil {
		return noError{err}
	}
	if cut {
		return errCut
	}
	return nil
}
