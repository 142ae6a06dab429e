// SPDX-License-Identifier: Apache-2.0

package vm

import (
	_ "embed"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The guest carries scripts out, and stress, by scriptSource; it executes sites that probes are set on by sitesSource.
//
//go:embed guest/script_test.go
var scriptSource []byte

//go:embed guest/sites_test.go
var sitesSource []byte

// scripting boots a machine whose guest carries scripts out, and that has files of the host at the paths of files.
func scripting(t *testing.T, c Config, files map[string]string) (*Measurement, error) {
	t.Helper()
	c.Repetitions, c.more.source = 1, map[string][]byte{"script.go": scriptSource, "sites.go": sitesSource}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		c.more.files = append(c.more.files, hostEntries(t, path, files[path])...)
	}
	return Measure(t.Context(), c)
}

// hostEntries are a file of the host at an absolute path, and the folders that it is in.
func hostEntries(t *testing.T, path, file string) (out []entry) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	path = strings.TrimPrefix(filepath.Clean(path), "/")
	for i, c := range path {
		if c == '/' {
			out = append(out, entry{path[:i], folder, nil})
		}
	}
	return append(out, entry{path, executable, text})
}
