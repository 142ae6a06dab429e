// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results/interrupts"
	"github.com/textpoke/textpoke/results/interrupts/report"
)

// explainFlags is the flags of both commands.
type explainFlags struct {
	rows  []string
	all   bool
	slots int
	other string

	exact, perCPU bool
}

func (e *explainFlags) options(cmd *cobra.Command) (interrupts.Options, error) {
	o := interrupts.Options{Rows: e.rows, All: e.all, Slots: e.slots, PerBatch: int64(poke.RoundsPerBatch()), Exact: e.exact}
	if cmd.Flags().Changed("row") && (len(e.rows) == 0 || slices.Contains(e.rows, "")) {
		return o, fmt.Errorf("--row %q: want the name of a row, such as CAL or IPI1", strings.Join(e.rows, ","))
	}
	lo, hi, ranged := strings.Cut(e.other, "-")
	if !ranged {
		hi = lo
	}
	var err1, err2 error
	o.Other.Lo, err1 = strconv.ParseInt(lo, 10, 64)
	o.Other.Hi, err2 = strconv.ParseInt(hi, 10, 64)
	if err1 != nil || err2 != nil || o.Other.Lo < 0 || o.Other.Hi < o.Other.Lo {
		return o, fmt.Errorf("--other %q: want a number of rounds, or two as 46-49", e.other)
	}
	return o, nil
}

func interruptsDiff(c *common) *cobra.Command {
	var e explainFlags
	var w struct{ background string }
	cmd := newCommand("diff BEFORE AFTER", func(cmd *cobra.Command, args []string) error {
		o, err := e.options(cmd)
		if err != nil {
			return err
		}
		pairs, err := interrupts.Load(args[0], args[1])
		if err != nil {
			return err
		}
		c.note(slices.Compact(args)...)
		if cmd.Flags().Changed("background") {
			idle, err := interrupts.Read(w.background)
			if err != nil {
				return fmt.Errorf("--background: %w", err)
			}
			c.note(w.background)
			o.Background = &idle
		}
		return c.report(pairs, o, e.perCPU)
	})
	c.prints(cmd, "", report.Columns())
	declare(cmd, "interrupts", &e)
	return declare(cmd, "interrupts diff", &w)
}

func interruptsSample(c *common) *cobra.Command {
	var e explainFlags
	cmd := newCommand("sample -- COMMAND [ARGUMENT...]", func(cmd *cobra.Command, args []string) error {
		o, err := e.options(cmd)
		if err != nil {
			return err
		}
		pair, err := interrupts.Sample(interrupts.ProcFile, func() error {
			run := exec.CommandContext(cmd.Context(), args[0], args[1:]...)
			// stdout is for the comparison.
			run.Stdin, run.Stdout, run.Stderr = c.streams.in, c.streams.err, c.streams.err
			return run.Run()
		})
		var failed *exec.ExitError
		if err != nil && !errors.As(err, &failed) {
			return fmt.Errorf("sample %s: %w", args[0], err)
		}
		// That the command failed is told, whether the figures add up or not.
		err = c.report([]interrupts.Pair{pair}, o, e.perCPU)
		if failed == nil || err != nil && !errors.Is(err, errNo) {
			return err
		}
		if cmd.Context().Err() != nil {
			return context.Cause(cmd.Context())
		}
		return noError{fmt.Errorf("sample %s: %w", args[0], failed)}
	}, live)
	c.prints(cmd, "", report.Columns())
	return declare(cmd, "interrupts", &e)
}

// report prints comparisons; figures that do not add up are the answer no.
func (c *common) report(pairs []interrupts.Pair, o interrupts.Options, perCPU bool) error {
	r, err := report.NewReport(pairs, o, perCPU)
	if err != nil {
		return err
	}
	f, err := c.openFiles()
	if err != nil {
		return err
	}
	if err := r.Write(c.streams.out, c.format); err != nil {
		return err
	}
	if err := f.write(&r.All); err != nil {
		return err
	}
	if err := f.close(true); err != nil {
		return err
	}
	if !r.Consistent {
		return errNo
	}
	return nil
}
