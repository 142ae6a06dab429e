// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// everyCommand calls do with each command that people can give, and what stands behind
// textpoke.
func everyCommand(c *common, do func(cmd *cobra.Command, words []string)) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		do(cmd, strings.Fields(cmd.CommandPath())[1:])
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(rootFor(c, nil))
}

// TestHelpFits: help and man pages of every command fit a screen of 80 columns, but for
// words that are longer.
func TestHelpFits(t *testing.T) {
	const width = 80
	t.Setenv("COLUMNS", "80")
	t.Setenv("MANWIDTH", "80")
	fits := func(what, text string) {
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\n")
			if n := utf8.RuneCountInString(line); n > width && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%s: %d characters: %s", what, n, line)
			}
		}
	}
	var pages bytes.Buffer
	commands := 0
	c := newCommon(streams{strings.NewReader(""), io.Discard, io.Discard})
	everyCommand(c, func(cmd *cobra.Command, words []string) {
		fits(strings.Join(words, " ")+" --help", done(t, append(words, "--help")...))
		commands++
		if err := c.writeMan(&pages, cmd); err != nil {
			t.Fatal(err)
		}
	})
	man := exec.CommandContext(t.Context(), "man", "-l", "-")
	man.Stdin = &pages
	out, err := man.Output()
	if err != nil {
		t.Skipf("pages are not looked at: man: %v", err)
	}
	fits("man", string(out))
	if n := strings.Count(string(out), "\nSYNOPSIS"); n != commands {
		t.Errorf("%d pages of %d commands", n, commands)
	}
}
