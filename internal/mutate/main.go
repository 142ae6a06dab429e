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
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"time"
)

// options are the choices of one run.
type options struct {
	n       int           // faults put into each package, drawn at random; 0 for all
	seed    uint64        // of the draw
	jobs    int           // faults tried side by side
	timeout time.Duration // of one package's tests
	floor   float64       // percent of the faults that must be found
	reasons string        // file of faults that change nothing
}

func main() {
	var o options
	flag.IntVar(&o.n, "n", 100, "faults to put into each package, drawn at random; 0 for all")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the draw")
	flag.IntVar(&o.jobs, "jobs", max(1, runtime.NumCPU()/2), "faults to try side by side")
	flag.DurationVar(&o.timeout, "timeout", time.Minute,
		"time for a package's tests; a fault that they do not end with is found")
	flag.Float64Var(&o.floor, "floor", 90, "percent of the faults that must be found")
	flag.StringVar(&o.reasons, "reasons", ".ci/mutate.reasons", "file that names faults which change nothing, and why")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	below, err := run(ctx, os.Stdout, o, flag.Args())
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
func run(ctx context.Context, out io.Writer, o options, patterns []string) (below int, err error) {
	if len(patterns) == 0 {
		return 0, fmt.Errorf("no package is named")
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
	heading(out)
	for _, p := range packages {
		faults, err := p.faults()
		if err != nil {
			return below, fmt.Errorf("%s: %w", p.path, err)
		}
		result, err := measure(ctx, p, draw(faults, o.n, o.seed, p.compiles), trees, o.timeout)
		if err != nil {
			return below, fmt.Errorf("%s: %w", p.path, err)
		}
		result.all = len(faults)
		if result.report(out, reasons) < o.floor {
			below++
		}
	}
	return below, nil
}
