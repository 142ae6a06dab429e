// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/experiments/grid"
	"github.com/textpoke/textpoke/internal/inputs"
)

// formEnding is how names of files with experiments end.
const formEnding = ".experiment"

// experimentFile adds the command of an experiment that stands in a file, where the
// command line names one: its flags are known only when it has been read.
func experimentFile(c *common, root *cobra.Command, args []string) error {
	at := slices.Index(args, "experiment")
	parent, _, err := root.Find([]string{"experiment"})
	if at < 0 || at+1 >= len(args) || err != nil || !namesForm(parent, args[at+1]) {
		return nil
	}
	path := args[at+1]
	if strings.ContainsAny(path, " \t") {
		return fmt.Errorf("experiment %q: want a name of a file without blanks", path)
	}
	e, err := grid.Open(path)
	if err != nil {
		return err
	}
	x := newExperiment(c, e)
	x.file = path
	x.cmd.Use = path
	wordArgs(x.cmd)
	parent.AddCommand(x.cmd)
	return nil
}

// namesForm tells whether a word is no command and looks like a file.
func namesForm(parent *cobra.Command, word string) bool {
	if strings.HasPrefix(word, "-") || slices.ContainsFunc(parent.Commands(), func(cmd *cobra.Command) bool {
		return cmd.Name() == word
	}) {
		return false
	}
	info, err := os.Stat(inputs.Place(word))
	return err == nil && !info.IsDir() || strings.HasSuffix(word, formEnding) || strings.ContainsRune(word, '/')
}
