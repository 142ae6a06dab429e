// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/service/journal"
)

func backupCommand(c *common) *cobra.Command {
	var w struct{ data string }
	cmd := newCommand("backup FILE", func(cmd *cobra.Command, args []string) error {
		err := journal.Backup(cmd.Context(), w.data, args[0])
		return c.copied(args[0], err, "wrote "+args[0]+": textpoke restore makes a directory of it")
	})
	return declare(cmd, "backup", &w)
}

func restoreCommand(c *common) *cobra.Command {
	var w struct{ data string }
	cmd := newCommand("restore FILE", func(cmd *cobra.Command, args []string) error {
		err := journal.Restore(cmd.Context(), args[0], w.data)
		return c.copied(args[0], err, "made "+w.data+": textpoke serve --data "+quote(w.data)+" goes on from there")
	})
	return declare(cmd, "backup", &w)
}

// copied says what was made, or which copy an error is about.
func (c *common) copied(file string, err error, made string) error {
	switch {
	case err == nil:
		fmt.Fprintln(c.streams.err, "textpoke: "+made)
	case !strings.HasPrefix(err.Error(), file+":"):
		err = fmt.Errorf("%s: %w", file, err)
	}
	return err
}

// partColumns are what serve --verify prints.
var partColumns = results.Declare(declared, "part", map[string]func(journal.Part) any{
	"sound": func(p journal.Part) any { return p.Wrong == "" },
})

// verify says what of a directory is sound.
func (s *serveFlags) verifyData(ctx context.Context) error {
	parts, err := journal.Verify(ctx, s.verify)
	if err != nil {
		return fmt.Errorf("--verify %s: %w", s.verify, err)
	}
	if err := printRows(ctx, s.common, partColumns, "parts", parts); err != nil {
		return err
	}
	if slices.ContainsFunc(parts, func(p journal.Part) bool { return p.Wrong != "" }) {
		return errNo
	}
	return nil
}
