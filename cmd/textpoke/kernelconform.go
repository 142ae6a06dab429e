// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/kernels/conform"
	"github.com/textpoke/textpoke/kernels/learn"
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

func kernelLearn(c *common) *cobra.Command {
	var r recordFlags
	cmd := &cobra.Command{
		Use: "learn IMAGE|RECORDING...", Short: "write the plan file of what a kernel was seen to do",
		Long: "learn folds recordings of one kernel (kernel record) into a plan file, loops and conditions included, which\n" +
			"check and prove then judge. Comments on top of it tell what was seen how often, what was seen once, what\n" +
			"is assumed, and how it differs from the protocol that is shipped. Where a recording does not conform to the\n" +
			"plan that was learned of it, the exit code is 1. An image is booted and recorded first." +
			imagesHelp,
		Example: "  textpoke kernel learn vfs.recording key.recording\n" +
			"  textpoke check --plan k.plan --arch x86_64",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := r.recordings(cmd.Context(), c, args)
			if err != nil {
				return err
			}
			learned, err := learn.Plan(list)
			if err != nil {
				return err
			}
			if _, err := c.streams.out.Write(learned.Text); err != nil {
				return err
			}
			for _, misfit := range learned.Misfits {
				fmt.Fprintf(c.streams.err, "textpoke: %v\n", misfit)
				err = errNo
			}
			return err
		},
	}
	r.boots(cmd, "3", 1)
	return cmd
}
