// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/kernels/audit"
	"github.com/textpoke/textpoke/kernels/image"
)

func kernelAudit(c *common) *cobra.Command {
	var list bool
	cmd := newCommand("audit IMAGE...", func(cmd *cobra.Command, args []string) error {
		if list {
			return printRows(cmd.Context(), c, audit.RuleColumns, "rules", audit.Rules)
		}
		return c.audit(cmd, args)
	})
	cmd.Long = imagesHelp
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if list {
			return cobra.NoArgs(cmd, args)
		}
		return cobra.MinimumNArgs(1)(cmd, args)
	}
	cmd.Flags().BoolVar(&list, "list", false, "print the defects that are looked for instead")
	c.prints(cmd, "", audit.Columns.Table("audit"))
	c.prints(cmd, "with --list", audit.RuleColumns.Table("rules"))
	return cmd
}

// audit holds every image against the rules; one that cannot be read ends it before anything is
// printed.
func (c *common) audit(cmd *cobra.Command, files []string) error {
	var all []audit.Finding
	for _, file := range files {
		if err := cmd.Context().Err(); err != nil {
			return err
		}
		k, err := image.Open(file)
		if err != nil {
			return err
		}
		c.note(file)
		all = append(all, audit.Of(k)...)
	}
	answer, clean := audit.Answer(all, len(files))
	if err := printAnswer(cmd.Context(), c, answer, audit.Columns, "audit", all); err != nil || clean {
		return err
	}
	return errNo
}
