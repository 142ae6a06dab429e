package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/results"
)

// version of the program; results carry it.
const version = "0.1.0"

func versionCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "what this program is",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t := results.Table{Name: "version", Columns: []results.Column{
				{Name: "version", Doc: "of textpoke"},
				{Name: "revision", Doc: "of its source; empty where the build did not record it"},
				{Name: "go", Doc: "that built it"},
				{Name: "platform", Doc: "that it runs on"},
			}}
			if err := t.Add(version, revision(), runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH); err != nil {
				return err
			}
			return c.whole(cmd.Context(), t)
		},
	}
}

// revision is the commit that the program was built from, with a plus when the
// tree had changes; "" when the build did not record it, as go run does not.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	var rev, dirty string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			rev = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+"
		}
	}
	return rev + dirty
}
