// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// writes marks commands whose argument is a file to be written.
const writes = "writes"

// readers are the flags that name files to be read.
var readers = []string{"plan", "records", "kernel", "calibration", "filter", "kallsyms", "litmus", "replay", "conform"}

// readStdin puts stdin into a file, and that file in the place of every - that stands
// where a file to be read goes.
func (c *common) readStdin(cmd *cobra.Command, args []string) error {
	if _, is := cmd.Annotations[writes]; !is && cmd.ArgsLenAtDash() < 0 {
		for i, a := range args {
			if a == "-" {
				path, err := c.spool()
				if err != nil {
					return err
				}
				args[i] = path
			}
		}
	}
	var failed error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains(readers, f.Name) {
			failed = errors.Join(failed, c.stdinIn(f))
		}
	})
	return failed
}

// stdinIn replaces - in a flag's values, and @- where those of files begin with @.
func (c *common) stdinIn(f *pflag.Flag) error {
	values, changed := texts(f), false
	for i, v := range values {
		if v != "-" && v != "@-" {
			continue
		}
		path, err := c.spool()
		if err != nil {
			return err
		}
		values[i], changed = v[:len(v)-1]+path, true
	}
	if !changed {
		return nil
	}
	if list, several := f.Value.(pflag.SliceValue); several {
		return list.Replace(values)
	}
	return f.Value.Set(values[0])
}

// spool puts stdin into a file, once: it can be read as often as any other.
func (c *common) spool() (string, error) {
	if c.stdin != "" {
		return c.stdin, nil
	}
	f, err := os.CreateTemp("", "textpoke-stdin-*")
	if err != nil {
		return "", fmt.Errorf("read stdin: %w", err)
	}
	c.stdin = f.Name()
	_, err = io.Copy(f, c.streams.in)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("read stdin: %w", err)
	}
	return c.stdin, nil
}

// asTyped names stdin in a text as the command line does.
func (c *common) asTyped(text string) string {
	if c.stdin == "" {
		return text
	}
	return strings.ReplaceAll(text, c.stdin, "-")
}
