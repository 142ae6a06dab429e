// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/internal/files"
	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/records/vmlinux"
)

// mutateFlags choose what is changed; one of them does.
type mutateFlags struct {
	slots     int
	drop, out string
}

func kernelMutate(c *common) *cobra.Command {
	var f mutateFlags
	cmd := newCommand("mutate IMAGE --out FILE", func(cmd *cobra.Command, args []string) error {
		return c.mutate(cmd, args[0], f)
	})
	cmd.Long = imagesHelp
	declare(cmd, "kernel mutate", &f)
	cmd.MarkFlagsOneRequired("slots", "drop")
	return cmd
}

func (c *common) mutate(cmd *cobra.Command, file string, f mutateFlags) error {
	k, err := image.Open(file)
	if err != nil {
		return err
	}
	change, err := f.change(k)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(inputs.Place(file))
	if err == nil {
		b, err = vmlinux.Inside(file, b)
	}
	if err == nil {
		b, err = k.Apply(b, change)
	}
	if err != nil {
		return err
	}
	if err := files.Write(f.out, 0o644, files.From(bytes.NewReader(b))); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n%#x: % x, was % x\n", change.What, change.At, change.New, change.Old)
	return err
}

// change is what the flags ask for.
func (f *mutateFlags) change(k *image.Kernel) (image.Change, error) {
	if f.drop == "" {
		return k.WithSlots(f.slots)
	}
	from, to, ok := strings.Cut(f.drop, ":")
	if !ok || from == "" || to == "" {
		return image.Change{}, errors.New("--drop: want CALLER:CALLEE")
	}
	return k.WithoutCall(from, to)
}
