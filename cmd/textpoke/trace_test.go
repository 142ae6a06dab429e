// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/internal/readtrace"
)

// TestTraceShowsWhatTheRowsCount: for every combination as many arrows leave the
// patcher, and arrive at CPUs, as its rows have interrupts.
func TestTraceShowsWhatTheRowsCount(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.pftrace")
	s := mustSheet(t, done(t, "run", "--records", "gen:n=300,groups=2", "--buffer", "64,dynamic", "--protocol",
		"breakpoint",
		"--cpus", "2", "--cpus", "busy=2,idle=1", "--trace", path, "--format", "csv"))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := readtrace.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{}
	for _, row := range s.rows {
		key := row["arch"] + " breakpoint, buffer " + row["buffer"] + ", order table, " + row["cpus"] + " CPUs"
		n, err := strconv.Atoi(row["ipis"])
		if err != nil {
			t.Fatal(err)
		}
		want[key] += n
	}
	if len(want) != 12 {
		t.Fatalf("%d combinations", len(want))
	}
	left, arrived := map[string]int{}, map[string]int{}
	for _, group := range f.Tracks {
		before, _, _ := strings.Cut(group.Name, " CPUs")
		key := before + " CPUs"
		for _, track := range f.Under(group.Name) {
			for _, slice := range track.Slices {
				left[key] += len(slice.Leaves)
				arrived[key] += len(slice.Arrives)
			}
		}
	}
	for key, n := range want {
		if left[key] != n || arrived[key] != n {
			t.Errorf("%s: %d arrows leave and %d arrive, the rows have %d interrupts", key, left[key], arrived[key], n)
		}
	}
}

// TestTraceOfNothing: runs that came to nothing leave nothing behind.
func TestTraceOfNothing(t *testing.T) {
	dir := t.TempDir()
	r := textpoke(t, "run", "--arch", "x86_64", "--records", "gen:n=3000,spacing=1048576,base=0x40000000", "--trace",
		filepath.Join(dir, "x"))
	if r.code != exitWrong || !strings.Contains(r.err, "cannot reach") {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left behind, %v", left, err)
	}
}

// firstWrite tells whether a file was there when the first line was printed.
type firstWrite struct {
	path  string
	there *bool
}

func (w firstWrite) Write(p []byte) (int, error) {
	if w.there != nil && !*w.there {
		_, err := os.Stat(w.path)
		*w.there = err == nil
	}
	return 0, errors.New("nobody reads")
}

// TestTraceComesFirst: the counterexample is saved though whoever reads the table goes after
// its first line.
func TestTraceComesFirst(t *testing.T) {
	path, there := filepath.Join(t.TempDir(), "t.json"), false
	run(t.Context(), []string{"check", "--arch", "x86_64", "--mutate", "drop-sync-1", "--trace", path},
		streams{strings.NewReader(""), firstWrite{path, &there}, io.Discard})
	if !there {
		t.Error("nothing was saved before the first line")
	}
}
