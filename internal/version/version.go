// SPDX-License-Identifier: Apache-2.0

// Package version says what a program is, as its build recorded it.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// release is the version that .ci/release builds, "" for other builds.
var release string

// Program is a program.
type Program struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Built is this program.
func Built() Program {
	info, _ := debug.ReadBuildInfo()
	return of(info)
}

// of reads a build's information, nil for none. Where no module version was built, Go
// calls it (devel). The revision is the commit, with a plus behind it when the tree had
// changes; "" where the build did not record it, as go run does not.
func of(info *debug.BuildInfo) Program {
	v := Program{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
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

// Line is the program in a line, after its name.
func (p Program) Line(name string) string {
	line := name + " " + p.Version
	if p.Revision != "" {
		line += " " + p.Revision
	}
	return fmt.Sprintf("%s %s %s\n", line, p.Go, p.Platform)
}
