// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/kernels/conform"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sim"
)

func kernelConform(c *common) *cobra.Command {
	var r recordFlags
	var plan string
	cmd := &cobra.Command{
		Use: "conform IMAGE|RECORDING...", Short: "hold what a kernel was seen to do against a protocol, step by step",
		Long: "conform holds recordings (kernel record) against the protocol that the kernel's image names, or against a plan\n" +
			"file: every step must be one of the plan's, with its bytes and in its order, and CPUs must do what the\n" +
			"machine's CPUs may do. An image is booted and recorded first. The first step that does not fit is told, and\n" +
			"the exit code is 1." + imagesHelp,
		Example: "  textpoke kernel conform vfs.recording\n" +
			"  textpoke kernel conform vmlinuz --action static-key:sched_schedstats --plan mine.plan",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := refuseEmpty(cmd, "plan"); err != nil {
				return err
			}
			var protocol *poke.Protocol
			if plan != "" {
				var err error
				if protocol, err = sim.OpenPlan(plan); err != nil {
					return err
				}
			}
			list, err := r.recordings(cmd.Context(), c, args)
			if err != nil {
				return err
			}
			c.note(args...)
			var rows []conform.Row
			var no error
			for _, one := range list {
				result, err := conform.Check(one, protocol)
				if err != nil {
					return err
				}
				if rows = append(rows, conform.Row{Recording: one, Result: result}); result.Misfit != nil {
					no = errNo
					fmt.Fprintf(c.streams.err, "textpoke: %s: %v\n", one.Name(), result.Misfit)
				}
			}
			if err := printRows(cmd.Context(), c, conform.Columns, "conform", rows); err != nil {
				return err
			}
			return no
		},
	}
	c.prints(cmd, "", conform.Columns.Table("conform"))
	r.boots(cmd, "3", 1)
	cmd.Flags().StringVar(&plan, "plan", "", "hold the steps against this plan `file` (docs/plan-files.md)")
	return cmd
}
