package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/sim/experiments"
	"github.com/textpoke/textpoke/sim/experiments/kernelinterrupts"
	"github.com/textpoke/textpoke/sim/kernels"
)

func experimentKernelInterrupts(c *common) *cobra.Command {
	var summary bool
	cmd := &cobra.Command{
		Use:   experiments.KernelInterrupts.Name,
		Short: "does the ledger of a tracer's interrupts predict what real kernels take? model against measured, row by row",
		Long: "kernel-interrupts holds what a kernel sends when a tracer is switched, cause by cause, against what the\n" +
			"CPUs of real kernels took: a row for every reading of every interrupt row, also of those that nothing\n" +
			"models. With --out it writes these and the summary (a row a toggle), and report.md." + columnsHelp(kernelinterrupts.RowsTable()),
		Example: "  textpoke experiment kernel-interrupts --out kernel-interrupts\n" +
			"  textpoke experiment kernel-interrupts --summary",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return kernelInterrupts(cmd.Context(), c, summary) },
	}
	cmd.Flags().BoolVar(&summary, "summary", false, "print a row for each toggle and interrupt row, over receivers and repetitions")
	return cmd
}

func kernelInterrupts(ctx context.Context, c *common, summarize bool) error {
	measured, err := kernels.Measurements()
	if err != nil {
		return err
	}
	answer, err := kernelinterrupts.Compare(ctx, measured)
	if err != nil {
		return err
	}
	rows, summary, err := answer.Filled()
	if err != nil {
		return err
	}
	shown, beside := rows, &summary
	if summarize {
		shown, beside = summary, &rows
	}
	all := shown.Rows
	shown.Rows = nil
	out := &output{table: shown, documents: answer.Documents()}
	return c.each(ctx, out, len(all), func(i int, o *output) error { return o.addRow(all[i]) }, beside)
}
