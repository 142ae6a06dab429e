// Command textpoke is a laboratory for live text patching: it counts and
// measures what it costs every CPU when a kernel changes the code that all of
// them are executing, and shows which protocols are safe.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/textpoke/textpoke/sim"
)

// The exit codes, which scripts rely on.
const (
	exitDone  = 0
	exitNo    = 1 // the answer is no: a violation, figures that do not add up
	exitWrong = 2 // the request is wrong
	exitCut   = 3 // cut short: what was finished is written
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// errNo is the answer no; what it is about has been printed.
var errNo = errors.New("the answer is no")

// run carries one command line out and returns the exit code.
func run(ctx context.Context, args []string, s streams) int {
	root := rootCommand(s)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errNo):
		return exitNo
	case sim.Stopped(err) || ctx.Err() != nil:
		fmt.Fprintln(s.err, "textpoke: cut short; what was finished is written and marked incomplete")
		return exitCut
	}
	fmt.Fprintf(s.err, "textpoke: %v\n", err)
	return exitWrong
}
