// SPDX-License-Identifier: Apache-2.0

// Command textpoke is a laboratory for live text patching. When a kernel changes
// code that every CPU is executing, each of them pays: textpoke counts and
// measures the price, and shows which protocols are safe.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/experiments/catalogue"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/internal/version"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/points"
	"github.com/textpoke/textpoke/service/lab"
	"github.com/textpoke/textpoke/sim"
)

// The exit codes, which scripts rely on.
const (
	exitDone  = 0
	exitNo    = 1 // the answer is no: a violation, figures that do not add up
	exitWrong = 2 // the request is wrong
	exitCut   = 3 // cut short: the finished rows are written
	exitAlone = 4 // no server answers
)

func main() {
	std := streams{os.Stdin, os.Stdout, os.Stderr}
	lab.Serve(catalogue.All, (&common{streams: std, level: "warn"}).serverLog())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	inputs.Until(ctx)
	os.Exit(run(ctx, os.Args[1:], std))
}

// errNo is the answer no, where what it is about has been printed.
var errNo = points.ErrNo

// errCut is an answer that was cut short, where that has been printed.
var errCut = errors.New("cut short")

// noError is the answer no, and the error is what it is about.
type noError struct{ error }

func (noError) Is(target error) bool { return target == errNo }
func (n noError) Unwrap() error      { return n.error }

// noServer says that no server answers at the address.
type noServer struct{ error }

func (n noServer) Unwrap() error { return n.error }

// run carries one command line out and returns the exit code. An error is one
// line on stderr.
func run(ctx context.Context, args []string, s streams) int {
	c := newCommon(s)
	root := rootFor(c, args)
	root.SetArgs(args)
	err := experimentFile(c, root, args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	c.progress.unwatch()
	if c.stdin != "" {
		_ = os.Remove(c.stdin) // a file among temporary ones does no harm
	}
	if shown := c.pager.flush(); err == nil {
		err = shown
	}
	if err == nil {
		return exitDone
	}
	cut := sim.Stopped(err) || errors.Is(err, errCut)
	switch {
	case cut:
		fmt.Fprintln(s.err, "textpoke: cut short;", c.kept)
	case err != errNo:
		text := choice.Spell(err, func(name string) string { return "--" + name }) // as flags spell choices
		fmt.Fprintf(s.err, "textpoke: %s\n", strings.ReplaceAll(c.asTyped(text), "\n", "; "))
	}
	switch {
	case errors.Is(err, errNo): // also when it was cut short after that
		return exitNo
	case cut || ctx.Err() != nil:
		return exitCut
	}
	if errors.As(err, new(noServer)) {
		return exitAlone
	}
	return exitWrong
}

// built is this program; results carry it.
var built = version.Built()

// versionColumns are the columns of version.
var versionColumns = results.Declare[version.Program](declared, "version", nil)

func versionCommand(c *common) *cobra.Command {
	return c.prints(newCommand("version", func(cmd *cobra.Command, _ []string) error {
		return printRows(cmd.Context(), c, versionColumns, "version", []version.Program{built})
	}), "", versionColumns.Table("version"))
}
