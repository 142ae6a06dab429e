// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/service/api"
)

// release is the version that .ci/release builds, "" for other builds.
var release string

// built is the program, as its build recorded it; results carry it.
var built = func() api.Version {
	info, _ := debug.ReadBuildInfo()
	return buildOf(info)
}()

// buildOf reads a build's information, nil for none. Where no module version was built,
// Go calls it (devel). The revision is the commit, with a plus behind it when the tree had
// changes; "" where the build did not record it, as go run does not.
func buildOf(info *debug.BuildInfo) api.Version {
	v := api.Version{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if release != "" {
		v.Version = release
	}
	if info == nil {
		return v
	}
	if info.Main.Version != "" && release == "" {
		v.Version = info.Main.Version
	}
	dirty := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			v.Revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+"
		}
	}
	v.Revision += dirty
	return v
}

// versionLine is what --version prints.
func versionLine(v api.Version) string {
	line := "textpoke " + v.Version
	if v.Revision != "" {
		line += " " + v.Revision
	}
	return fmt.Sprintf("%s %s %s\n", line, v.Go, v.Platform)
}

// versionColumns are the columns of version.
var versionColumns = results.Columns[api.Version]{
	{Name: "version", Doc: "of textpoke", Cell: func(v api.Version) any { return v.Version }},
	{Name: "revision", Doc: "of its source; empty where the build did not record it",
		Cell: func(v api.Version) any { return results.OrEmpty(v.Revision) }},
	{Name: "go", Doc: "that built it", Cell: func(v api.Version) any { return v.Go }},
	{Name: "platform", Doc: "that it runs on", Cell: func(v api.Version) any { return v.Platform }},
}

func versionCommand(c *common) *cobra.Command {
	return c.prints(&cobra.Command{
		Use:   "version",
		Short: "what this program is",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printRows(cmd.Context(), c, versionColumns, "version", []api.Version{built})
		},
	}, "", versionColumns.Table("version"))
}
