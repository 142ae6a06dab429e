// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/results"
)

func installCommand(c *common) *cobra.Command {
	prefix := "~/.local"
	cmd := newCommand("install", func(cmd *cobra.Command, _ []string) error { return c.install(cmd.Root(), prefix) })
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
	const program, shells = "bin/textpoke", 3
	files := map[string]func(io.Writer) error{
		program: writeSelf,
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
	fmt.Fprintf(c.streams.out, "%s, %d man pages and %d completions below %s\n", filepath.Join(prefix, program),
		len(files)-1-shells, shells, filepath.Join(prefix, "share"))
	return os.Chmod(filepath.Join(prefix, program), 0o755)
}

// writeSelf copies this program.
func writeSelf(w io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	b, err := os.ReadFile(self)
	if err == nil {
		_, err = w.Write(b)
	}
	return err
}

// manName is what a command's page is called: textpoke-plan.
func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// writeMan writes a command's page for man (man(7)).
func (c *common) writeMan(w io.Writer, cmd *cobra.Command) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"textpoke %s\" \"textpoke\"\n", strings.ToUpper(manName(cmd)), built.Version)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", manName(cmd), roff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(cmd.UseLine()))
	if cmd.Long != "" {
		fmt.Fprintf(&b, ".SH DESCRIPTION\n%s", prose(cmd.Long))
	}
	for _, t := range c.tables[cmd] {
		fmt.Fprintf(&b, ".SH %s\n", strings.ToUpper(t.title()))
		for _, column := range t.Columns {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(column.Name), roff(column.Doc))
		}
	}
	flags := func(title string, set *pflag.FlagSet) {
		if !set.HasAvailableFlags() {
			return
		}
		fmt.Fprintf(&b, ".SH %s\n", title)
		set.VisitAll(func(f *pflag.Flag) {
			value, usage := pflag.UnquoteUsage(f)
			name := "--" + f.Name
			if f.Shorthand != "" {
				name = "-" + f.Shorthand + ", " + name
			}
			if value != "" {
				name += " " + value
			}
			if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" {
				usage += " (default " + strings.Trim(f.DefValue, "[]") + ")"
			}
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(name), roff(usage))
		})
	}
	flags("OPTIONS", cmd.LocalFlags())
	flags("OPTIONS OF EVERY COMMAND", cmd.InheritedFlags())
	if cmd.Example != "" {
		fmt.Fprint(&b, ".SH EXAMPLES\n.nf\n")
		for line := range strings.SplitSeq(cmd.Example, "\n") {
			fmt.Fprintln(&b, roff(continued(line, manWidth)))
		}
		fmt.Fprint(&b, ".fi\n")
	}
	fmt.Fprint(
		&b,
		".SH EXIT STATUS\n0: done. 1: the answer is no. 2: the request is wrong. 3: cut short. 4: no server answers.\n",
	)
	var also []string
	if cmd.HasParent() {
		also = append(also, manName(cmd.Parent())+"(1)")
	}
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			also = append(also, manName(sub)+"(1)")
		}
	}
	if len(also) > 0 {
		fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", roff(strings.Join(also, ", ")))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// manWidth is how wide lines may be that man does not fill: it indents them by seven on
// screens of 80.
const manWidth = 72

// prose is paragraphs that man fills; lists keep their lines.
func prose(text string) string {
	var b strings.Builder
	for i, paragraph := range strings.Split(text, "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if strings.Contains("\n"+paragraph, "\n  ") {
			fmt.Fprintf(&b, ".nf\n%s\n.fi\n", roff(filled(paragraph, manWidth)))
			continue
		}
		b.WriteString(roff(paragraph) + "\n")
	}
	return b.String()
}

// roff escapes text, so that roff takes all of it for text.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
