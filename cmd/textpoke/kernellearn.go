// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/kernels/learn"
)

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
