// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/kernels/conform"
	"github.com/textpoke/textpoke/kernels/learn"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sim"
)

func kernelConform(c *common) *cobra.Command {
	var r recordFlags
	var plan, protocol string
	cmd := &cobra.Command{
		Use:  "conform IMAGE|RECORDING...",
		Long: imagesHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := refuseEmpty(cmd, "plan"); err != nil {
				return err
			}
			var mine *poke.Protocol
			if plan != "" {
				var err error
				if mine, err = sim.OpenPlan(plan); err != nil {
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
				p := mine
				if p == nil {
					if p, err = conform.Shipped(one, protocol); err != nil {
						return err
					}
				}
				result, err := conform.Check(one, p)
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
	add(cmd, choice.One(&protocol, "protocol", "", "hold the steps against the protocol of this `name` (default: the image's)",
		choice.OneOf(poke.Names())))
	cmd.MarkFlagsMutuallyExclusive("plan", "protocol")
	return cmd
}

func kernelLearn(c *common) *cobra.Command {
	var r recordFlags
	cmd := &cobra.Command{
		Use:  "learn IMAGE|RECORDING...",
		Long: imagesHelp,
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
