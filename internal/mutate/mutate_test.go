// SPDX-License-Identifier: Apache-2.0

// Package mutate measures how many faults the tests of a package find. It puts
// small faults into the package, one by one, runs the package's own tests, and
// lists the faults that these do not notice. It changes a copy of the module and
// never the module itself. It is all tests, since it is a tool of tests: .ci/mutate.
package mutate

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

var (
	count   = flag.Int("n", 100, "faults to put into each package, drawn at random; 0 for all")
	seed    = flag.Uint64("seed", 1, "seed of the draw")
	jobs    = flag.Int("jobs", max(1, runtime.NumCPU()/2), "faults to try side by side")
	within  = flag.Duration("within", time.Minute, "time for a package's tests; a fault that they do not end with is found")
	floor   = flag.Float64("floor", 90, "percent of the faults that must be found")
	reasons = flag.String("reasons", ".ci/mutate.reasons", "file that names faults which change nothing, and why")
)

// TestPackages measures the packages that are named behind -args, from the module's folder.
func TestPackages(t *testing.T) {
	if flag.NArg() == 0 {
		t.Skip("no package is named: .ci/mutate PACKAGE...")
	}
	t.Chdir("../..")
	below, err := run(t.Context(), flag.Args())
	switch {
	case err != nil:
		t.Fatal(err)
	case below > 0:
		t.Errorf("%d packages find less than %g %%", below, *floor)
	}
}

// run measures each package and prints its row; below counts the packages under the floor.
func run(ctx context.Context, patterns []string) (below int, err error) {
	known, err := readReasons(*reasons)
	if err != nil {
		return 0, err
	}
	packages, err := load(ctx, patterns)
	if err != nil {
		return 0, err
	}
	trees, err := copyTrees(ctx, *jobs)
	if err != nil {
		return 0, err
	}
	defer func() {
		for _, tree := range trees {
			os.RemoveAll(tree)
		}
	}()
	fmt.Printf("%-28s %6s %6s %6s %6s %6s %8s\n", "package", "places", "tried", "same", "found", "late", "found %")
	for _, p := range packages {
		all := p.faults()
		drawn := draw(all, *count, *seed, p.compiles)
		if len(drawn) == 0 {
			return below, fmt.Errorf("%s: no place for a fault", p.PkgPath)
		}
		if err := p.measure(ctx, drawn, trees, *within); err != nil {
			return below, fmt.Errorf("%s: %w", p.PkgPath, err)
		}
		if p.report(os.Stdout, len(all), drawn, known) < *floor {
			below++
		}
	}
	return below, nil
}

// report prints the package's row, and below it each of the faults tried that survived and each file that was left
// out. Found counts the late ones too, since a loop may have become endless; many of them speak for a time that is
// too short. It answers the percentage found of the faults that change anything.
func (p *pkg) report(out io.Writer, places int, tried []fault, reasons map[string]string) float64 {
	same, seen, slow := 0, 0, 0
	var left []string
	for _, f := range tried {
		switch key := f.key(p.dir); {
		case f.outcome == late:
			slow++
			seen++
		case f.outcome == found:
			seen++
		case reasons[key] != "":
			same++
		default:
			left = append(left, fmt.Sprintf("%s/%s:%d: %s: %s", p.dir, f.file, f.line, f.outcome, key))
		}
	}
	for _, name := range p.other() {
		left = append(left, fmt.Sprintf("%s/%s: left out: it is for another system or build tag", p.dir, name))
	}
	percent := 100.0
	if n := len(tried) - same; n > 0 {
		percent = 100 * float64(seen) / float64(n)
	}
	fmt.Fprintf(out, "%-28s %6d %6d %6d %6d %6d %8.1f\n", p.dir, places, len(tried), same, seen, slow, percent)
	for _, line := range left {
		fmt.Fprintln(out, " ", line)
	}
	return percent
}

// readReasons reads the faults that change nothing: a line with the fault's key, and an
// indented line with the reason below it. A file that is not there names none.
func readReasons(name string) (map[string]string, error) {
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	reasons, key, n := map[string]string{}, "", 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimRight(line, "\n")
		switch text := strings.TrimSpace(line); {
		case text == "" || text[0] == '#':
		case text == line:
			key = text
		case key == "":
			return nil, fmt.Errorf("%s:%d: a reason without a fault: %s", name, n, text)
		default:
			reasons[key] = strings.TrimSpace(reasons[key] + " " + text)
		}
	}
	return reasons, nil
}
