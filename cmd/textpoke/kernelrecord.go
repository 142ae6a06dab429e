// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/internal/files"
	"github.com/textpoke/textpoke/kernels/conform"
	"github.com/textpoke/textpoke/kernels/learn"
	"github.com/textpoke/textpoke/kernels/record"
	"github.com/textpoke/textpoke/kernels/vm"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sim"
)

// recordFlags choose what a kernel is booted and recorded for.
type recordFlags struct {
	measureFlags
	out, trace string
	steps      int
}

func kernelRecord(c *common) *cobra.Command {
	var r recordFlags
	cmd := newCommand("record IMAGE --out FILE", func(cmd *cobra.Command, args []string) error {
		return r.record(cmd, c, args[0])
	})
	cmd.Long = imagesHelp
	r.boots(cmd, 3, 1)
	return declare(cmd, "kernel record", &r)
}

// record records into a file.
func (r *recordFlags) record(cmd *cobra.Command, c *common, image string) error {
	made, err := r.recorded(cmd.Context(), c, image)
	if err != nil {
		return err
	}
	if err := files.Write(r.out, 0o666, made.Write); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	if r.trace != "" {
		if err := files.Write(r.trace, 0o666, made.Timeline); err != nil {
			return fmt.Errorf("--trace: %w", err)
		}
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s %s: %d steps\n", made.Arch, made.Release, len(made.Steps))
	return err
}

// recorded boots a kernel and records it. A machine that fails leaves no file behind.
func (r *recordFlags) recorded(ctx context.Context, c *common, image string) (*record.Recording, error) {
	config, err := r.config(c, image)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	made, err := record.Record(limited, record.Config{Config: config, Steps: r.steps})
	if failed, ok := errors.AsType[*vm.BootError](err); ok {
		_ = os.Remove(failed.Console)
		err = fmt.Errorf("record %s: %w", image, failed.Err)
	}
	switch {
	case err != nil && limited.Err() != nil && ctx.Err() == nil: // a machine that hangs: nothing is written
		return nil, fmt.Errorf("record %s: the machine has not come to its end after %v", image, r.limit)
	case err != nil:
		return nil, err
	}
	return made, nil
}

// recordings are the files of recordings, read, and the images, booted and recorded.
func (r *recordFlags) recordings(ctx context.Context, c *common, args []string) (list []*record.Recording, err error) {
	for _, file := range args {
		one, err := record.Open(file)
		if errors.Is(err, record.ErrNoRecording) {
			one, err = r.recorded(ctx, c, file)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

func kernelConform(c *common) *cobra.Command {
	var r recordFlags
	var w struct{ plan, protocol string }
	cmd := newCommand("conform IMAGE|RECORDING...", func(cmd *cobra.Command, args []string) error {
		var mine *poke.Protocol
		if w.plan != "" {
			var err error
			if mine, err = sim.OpenPlan(w.plan); err != nil {
				return err
			}
		}
		list, err := r.recordings(cmd.Context(), c, args)
		if err != nil {
			return err
		}
		c.note(args...)
		var rows []conform.Row
		for _, one := range list {
			p := mine
			if p == nil {
				if p, err = conform.Shipped(one, w.protocol); err != nil {
					return err
				}
			}
			result, err := conform.Check(one, p)
			if err != nil {
				return err
			}
			if rows = append(rows, conform.Row{Recording: one, Result: result}); result.Misfit != nil {
				fmt.Fprintf(c.streams.err, "textpoke: %s: %v\n", one.Name(), result.Misfit)
			}
		}
		answer, yes := conform.Answer(rows)
		if err := printAnswer(cmd.Context(), c, answer, conform.Columns, "conform", rows); err != nil || yes {
			return err
		}
		return errNo
	})
	cmd.Long = imagesHelp
	c.prints(cmd, "", conform.Columns.Table("conform"))
	r.boots(cmd, 3, 1)
	return declare(cmd, "kernel conform", &w, strings.Join(poke.Names(), "|"))
}

func kernelLearn(c *common) *cobra.Command {
	var r recordFlags
	cmd := newCommand("learn IMAGE|RECORDING...", func(cmd *cobra.Command, args []string) error {
		list, err := r.recordings(cmd.Context(), c, args)
		if err != nil {
			return err
		}
		learned, err := learn.Plan(list)
		if err != nil {
			return err
		}
		if _, err := c.streams.out.Write(learned.Text); err != nil {
			return err
		}
		for _, misfit := range learned.Misfits {
			fmt.Fprintf(c.streams.err, "textpoke: %v\n", misfit)
			err = errNo
		}
		return err
	})
	cmd.Long = imagesHelp
	r.boots(cmd, 3, 1)
	return cmd
}
