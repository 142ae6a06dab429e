// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/build"
)

func kernelBuild(c *common) *cobra.Command {
	b := build.Config{}
	cmd := newCommand("build --source SOURCE --out DIR", func(cmd *cobra.Command, _ []string) error {
		b.Progress = c.stage()
		built, err := build.Build(cmd.Context(), b)
		if err != nil {
			return err
		}
		if len(built.Left) > 0 {
			fmt.Fprintf(c.streams.err, "textpoke: %s has not: %s\n", built.Source, strings.Join(built.Left, ", "))
		}
		return printRows(cmd.Context(), c, build.FileColumns, "files", built.Files)
	})
	c.prints(cmd, "", build.FileColumns.Table("files"))
	names := spelling.Each(build.Architectures(), func(a build.Arch) string { return a.Name })
	declare(cmd, "kernel build", &b, strings.Join(build.Fragments(), ", "), names[0], strings.Join(names, "|"),
		runtime.NumCPU())
	offerFiles(cmd, "config", build.Fragments)
	return cmd
}
