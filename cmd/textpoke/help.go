// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/results"
)

const (
	// unknownWidth is how wide help is where the width of the screen is unknown.
	unknownWidth = 80
	// readable is how wide text may be: longer lines are hard to follow.
	readable = 100
)

// descriptions are what commands do, first in a line, and examples.
//
//go:embed help.txt
var descriptions string

// addHelp gives commands their text of help.txt, in front of the text about arguments that several commands take.
func addHelp(root *cobra.Command) {
	for _, section := range strings.Split(descriptions, "\n# "+root.Name())[1:] {
		name, text, _ := strings.Cut(section, "\n")
		cmd, rest, err := root.Find(strings.Fields(name))
		if err == nil && len(rest) > 0 && cmd.Parent() == root && !cmd.HasSubCommands() {
			continue // what is below the command was left out
		}
		if err != nil || len(rest) > 0 {
			panic("help.txt: no command" + name)
		}
		short, text, _ := strings.Cut(text, "\n")
		about, examples, _ := strings.Cut(text, "Examples:\n")
		cmd.Short, cmd.Long, cmd.Example = short, strings.TrimSpace(about)+cmd.Long, strings.Trim(examples, "\n")
	}
}

// printed is a table whose rows a command prints, and when it does.
type printed struct {
	results.Table
	when string // such as "with --scenario"; "" for a command's usual rows
}

// forPeople marks tables that stand in the place of the rows where people read.
const forPeople = "for people"

// prints notes that a command prints rows of a table: help, man page and schema show its
// columns.
func (c *common) prints(cmd *cobra.Command, when string, t results.Table) *cobra.Command {
	c.tables[cmd] = append(c.tables[cmd], printed{t, when})
	return cmd
}

// title is what stands above the columns.
func (p printed) title() string { return strings.TrimSpace("Columns " + p.when) }

// help prints a command's description, its usage and flags, and its columns.
func (c *common) help(cmd *cobra.Command, _ []string) {
	w, width := c.streams.out, min(cmp.Or(c.width(), unknownWidth), readable)
	for i, paragraph := range strings.Split(cmp.Or(cmd.Long, cmd.Short), "\n\n") {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, filled(paragraph, width))
	}
	fmt.Fprint(w, "\nUsage:\n")
	if cmd.Runnable() && !cmd.HasSubCommands() {
		fmt.Fprintf(w, "  %s\n", cmd.UseLine())
	} else {
		fmt.Fprintf(w, "  %s [command]\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		fmt.Fprint(w, "\nExamples:\n")
		for line := range strings.SplitSeq(cmd.Example, "\n") {
			fmt.Fprintln(w, continued(line, width))
		}
	}
	var commands []described
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() || sub.Name() == "help" {
			commands = append(commands, described{sub.Name(), sub.Short})
		}
	}
	list(w, "Commands", width, commands)
	for _, t := range c.tables[cmd] {
		list(w, t.title(), width, spelling.Each(t.Columns, func(column results.Column) described {
			return described{column.Name, column.Doc}
		}))
	}
	if cmd.HasAvailableLocalFlags() {
		fmt.Fprintf(w, "\nFlags:\n%s\n", strings.TrimRight(cmd.LocalFlags().FlagUsagesWrapped(width), "\n"))
	}
	if cmd.HasAvailableInheritedFlags() {
		fmt.Fprintf(w, "\nFlags of every command:\n%s\n",
			strings.TrimRight(cmd.InheritedFlags().FlagUsagesWrapped(width), "\n"))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\n\"%s [command] --help\" says more about a command.\n", cmd.CommandPath())
	}
}

// described is a name with what there is to say of it.
type described struct{ name, about string }

// list prints names and what there is to say of each, in two columns.
func list(w io.Writer, title string, width int, lines []described) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s:\n", title)
	names := 0
	for _, l := range lines {
		names = max(names, len(l.name))
	}
	for _, l := range lines {
		fmt.Fprintf(w, "  %-*s  %s\n", names, l.name, hung(l.about, width, names+4))
	}
}

// hung breaks text that begins in a column, so that all its lines do.
func hung(s string, width, column int) string {
	return results.Folded(s, max(20, width-column), column)
}

// filled breaks a paragraph where lines end. Lists keep their lines: one that is indented, or
// begins with a dash, goes on in the column in which its text begins.
func filled(paragraph string, width int) string {
	var out []string
	item, column := "", 0
	end := func() {
		switch {
		case item == "":
		case column == 0:
			out = append(out, results.Folded(item, width, 0))
		case results.Displayed(item) > width && column < width-20:
			out = append(out, item[:column]+hung(item[column:], width, column))
		default:
			out = append(out, item)
		}
		item, column = "", 0
	}
	for line := range strings.Lines(paragraph) {
		line = strings.TrimRight(line, "\n")
		indent := len(line) - len(strings.TrimLeft(line, " "))
		listed := indent > 1 || strings.HasPrefix(line, "- ")
		if item != "" && (!listed && column == 0 || indent > 2 && indent == column) {
			item += " " + strings.Join(strings.Fields(line), " ")
			continue
		}
		if end(); listed {
			item, column = line, textColumn(line)
		} else {
			item = strings.Join(strings.Fields(line), " ")
		}
	}
	end()
	return strings.Join(out, "\n")
}

// narrowed breaks lines that are wider than the screen: commands before a flag, all else at
// blanks.
func (c *common) narrowed(text string) string {
	width := c.width()
	if width == 0 {
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		line, ended := strings.CutSuffix(line, "\n")
		indent := len(line) - len(strings.TrimLeft(line, " "))
		switch {
		case results.Displayed(line) <= width:
		case strings.Contains(line, "textpoke "):
			line = continued(line, width)
		default:
			line = line[:indent] + hung(line[indent:], width, indent+2)
		}
		if out.WriteString(line); ended {
			out.WriteString("\n")
		}
	}
	return out.String()
}

// textColumn is where a list's text begins: behind its name, if there is one.
func textColumn(line string) int {
	indent := len(line) - len(strings.TrimLeft(line, " -"))
	if gap := strings.LastIndex(line, "  "); gap > indent {
		return gap + 2
	}
	return indent
}

// continued breaks a command line before a flag, as a shell reads on behind a backslash.
func continued(line string, width int) string {
	if results.Displayed(line) <= width {
		return line
	}
	const indent = 6
	at := strings.LastIndex(line[:width-2], " --")
	if at <= indent { // the first word is too long by itself
		if at = strings.Index(line[indent:], " --"); at <= 0 {
			return line
		}
		at += indent
	}
	return line[:at] + " \\\n" + continued("     "+line[at:], width)
}
