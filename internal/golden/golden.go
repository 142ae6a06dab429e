// SPDX-License-Identifier: Apache-2.0

// Package golden compares what tests make with files that are kept.
package golden

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// Check fails the test when got is not what the file holds. Run the test with -update
// to rewrite the file, and read the change, or look at the picture, before keeping it.
func Check(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	switch {
	case err != nil:
		t.Fatalf("%v (run the test with -update to create it)", err)
	case bytes.Equal(want, got):
	case filepath.Ext(path) == ".svg":
		t.Fatalf("%s is not what comes out now (run the test with -update, and look at it)", path)
	default:
		t.Errorf("%s differs (-want +got):\n%s", path, cmp.Diff(string(want), string(got)))
	}
}
