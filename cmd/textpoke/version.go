// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/internal/version"
	"github.com/textpoke/textpoke/results"
)

// built is this program; results carry it.
var built = version.Built()

// versionColumns are the columns of version.
var versionColumns = results.Columns[version.Program]{
	{Name: "version", Doc: "of textpoke", Cell: func(v version.Program) any { return v.Version }},
	{Name: "revision", Doc: "of its source; empty where the build did not record it",
		Cell: func(v version.Program) any { return results.OrEmpty(v.Revision) }},
	{Name: "go", Doc: "that built it", Cell: func(v version.Program) any { return v.Go }},
	{Name: "platform", Doc: "that it runs on", Cell: func(v version.Program) any { return v.Platform }},
}

func versionCommand(c *common) *cobra.Command {
	return c.prints(&cobra.Command{
		Use:   "version",
		Short: "what this program is",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printRows(cmd.Context(), c, versionColumns, "version", []version.Program{built})
		},
	}, "", versionColumns.Table("version"))
}
