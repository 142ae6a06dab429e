// SPDX-License-Identifier: Apache-2.0

// Command mutate measures how many faults the tests of a package find. It puts
// small faults into the package, one by one, runs the package's own tests, and
// lists the faults that these do not notice.
//
//	mutate [-n 100] [-seed 1] [-jobs 2] [-timeout 1m] [-floor 90] [-reasons FILE] PACKAGE...
//
// It changes a copy of the module and never the module itself. It ends with 1
// where a package finds fewer than -floor percent, with 2 where it cannot begin.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"time"
)

// options are the choices of one run.
type options struct {
	n       int
	seed    uint64
	jobs    int
	timeout time.Duration
	floor   float64
	reasons string
}

func main() {
	var o options
	flag.IntVar(&o.n, "n", 100, "faults to put into each package, drawn at random; 0 for all")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the draw")
	flag.IntVar(&o.jobs, "jobs", max(1, runtime.NumCPU()/2), "faults to try side by side")
	flag.DurationVar(&o.timeout, "timeout", time.Minute, "time for a package's tests; a fault that they do not end with is found")
	flag.Float64Var(&o.floor, "floor", 90, "percent of the faults that must be found")
	flag.StringVar(&o.reasons, "reasons", ".ci/mutate.reasons", "file that names faults which change nothing, and why")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	below, err := run(ctx, o, flag.Args())
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	case below > 0:
		fmt.Fprintf(os.Stderr, "mutate: %d packages find less than %g %%\n", below, o.floor)
		os.Exit(1)
	}
}

// run measures each package and prints its row; below counts the packages under the floor.
func run(ctx context.Context, o options, patterns []string) (below int, err error) {
	if len(patterns) == 0 {
		return 0, errors.New("no package is named")
	}
	reasons, err := readReasons(o.reasons)
	if err != nil {
		return 0, err
	}
	packages, err := load(ctx, patterns)
	if err != nil {
		return 0, err
	}
	trees, err := copyTrees(ctx, o.jobs)
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
		drawn := draw(all, o.n, o.seed, p.compiles)
		if len(drawn) == 0 {
			return below, fmt.Errorf("%s: no place for a fault", p.PkgPath)
		}
		if err := p.measure(ctx, drawn, trees, o.timeout); err != nil {
			return below, fmt.Errorf("%s: %w", p.PkgPath, err)
		}
		if p.report(os.Stdout, len(all), drawn, reasons) < o.floor {
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
