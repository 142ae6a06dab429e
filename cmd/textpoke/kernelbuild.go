// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/build"
)

func kernelBuild(c *common) *cobra.Command {
	b := build.Config{}
	cmd := &cobra.Command{
		Use: "build --source SOURCE --out DIR",
		RunE: func(cmd *cobra.Command, _ []string) error {
			b.Progress = c.stage()
			built, err := build.Build(cmd.Context(), b)
			if err != nil {
				return err
			}
			if len(built.Left) > 0 {
				fmt.Fprintf(c.streams.err, "textpoke: %s has not: %s\n", built.Source, strings.Join(built.Left, ", "))
			}
			return printRows(cmd.Context(), c, build.FileColumns, "files", built.Files)
		},
	}
	c.prints(cmd, "", build.FileColumns.Table("files"))
	names := spelling.Each(build.Architectures(), func(a build.Arch) string { return a.Name })
	f := cmd.Flags()
	add(cmd, choice.Text(&b.Source, "source", "",
		"`name` of a Debian package such as linux-source-7.2 (in /usr/src, or downloaded), "+
			"its file, an archive, or a tree, which is copied"),
		choice.Text(&b.Out, "out", "", "`folder` of everything"))
	f.StringArrayVar(&b.Patches, "patch", nil, "`file` to apply, as patch -p1 does; again for more")
	f.StringArrayVar(&b.Fragments, "config", nil, "`file` with lines such as CONFIG_KASAN=y, or one of "+
		strings.Join(build.Fragments(), ", ")+"; again for more")
	f.StringVar(&b.Arch, "arch", names[0], "`instruction set`: "+strings.Join(names, ", "))
	f.IntVar(&b.Jobs, "jobs", runtime.NumCPU(), "`number` of compilers at a time")
	offer(cmd, "arch", names)
	offerFiles(cmd, "config", build.Fragments())
	_ = cmd.MarkFlagRequired("source")
	_ = cmd.MarkFlagRequired("out")
	return cmd
}
