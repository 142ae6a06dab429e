// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/results/page"
)

// reportName is the page that stands in the directory which it is about.
const reportName = "report.html"

func reportCommand(c *common) *cobra.Command {
	var html string
	cmd := &cobra.Command{
		Use: "report DIR", Annotations: map[string]string{writes: ""},
		Short: "one page of what a command wrote under --out, to attach to a mail",
		Long: "report reads a directory that any command wrote under --out, and those of experiments below it, and\n" +
			"writes one HTML file: the command line, when and of what, the answer, pictures, reports, and the first\n" +
			"rows of each table. The file needs nothing beside it, follows light and dark, and can be printed.\n" +
			"experiment all writes it by itself.",
		Example: "  textpoke plan --out costs\n  textpoke report costs\n  textpoke report costs --html mail.html",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if html == "" {
				html = filepath.Join(args[0], reportName)
			}
			return c.writePage(args[0], html)
		},
	}
	cmd.Flags().StringVar(&html, "html", "", "`file` to write; - is stdout (default DIR/"+reportName+")")
	return cmd
}

// writePage writes the page of a directory.
func (c *common) writePage(dir, file string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("%s: it is a file: want a directory that was written with --out", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	defer root.Close()
	p, err := page.Read(root.FS(), quote)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return c.toPage(file, p.Write)
}
