// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/results"
)

func installCommand(c *common) *cobra.Command {
	prefix := "~/.local"
	cmd := &cobra.Command{
		Use:   "install",
		Short: "put the program, its man pages and the completion of shells where they belong",
		Long: "install copies the program to PREFIX/bin, a man page for every command to PREFIX/share/man/man1, and\n" +
			"the completion of bash, zsh and fish to where these shells look for it below PREFIX/share. What was\n" +
			"there of an earlier version is replaced.",
		Example: "  textpoke install\n  sudo textpoke install --prefix /usr/local",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.install(cmd.Root(), prefix) },
	}
	cmd.Flags().StringVar(&prefix, "prefix", prefix, "`directory` that everything goes below")
	return cmd
}

// install writes all files below a prefix.
func (c *common) install(root *cobra.Command, prefix string) error {
	if rest, is := strings.CutPrefix(prefix, "~/"); is {
		home, err := os.UserHomeDir()
		if err != nil {
			return err
		}
		prefix = filepath.Join(home, rest)
	}
	files := map[string]func(io.Writer) error{
		"share/bash-completion/completions/textpoke": func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"share/zsh/site-functions/_textpoke":         root.GenZshCompletion,
		"share/fish/vendor_completions.d/textpoke.fish": func(w io.Writer) error {
			return root.GenFishCompletion(w, true)
		},
	}
	var pages func(cmd *cobra.Command)
	pages = func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		cmd.InitDefaultHelpFlag()
		files["share/man/man1/"+manName(cmd)+".1"] = func(w io.Writer) error { return c.writeMan(w, cmd) }
		for _, sub := range cmd.Commands() {
			pages(sub)
		}
	}
	pages(root)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(prefix, name)
		if _, err := results.OpenDir(filepath.Dir(path)); err != nil {
			return err
		}
		if err := toFile(path, files[name]); err != nil {
			return err
		}
	}
	program, shells := filepath.Join(prefix, "bin", "textpoke"), 3
	if err := c.installProgram(program); err != nil {
		return err
	}
	fmt.Fprintf(c.streams.out, "%s, %d man pages and %d completions below %s\n", program, len(files)-shells, shells,
		filepath.Join(prefix, "share"))
	return nil
}

// installProgram copies this program, unless it is there already.
func (c *common) installProgram(path string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	from, err := os.Stat(self)
	if err != nil {
		return err
	}
	if there, err := os.Stat(path); err == nil && os.SameFile(from, there) {
		return nil
	}
	b, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	dir, err := results.OpenDir(filepath.Dir(path))
	if err == nil {
		err = dir.Write(filepath.Base(path), func(w io.Writer) error { _, err := w.Write(b); return err })
	}
	if err == nil {
		err = os.Chmod(path, 0o755)
	}
	return err
}
