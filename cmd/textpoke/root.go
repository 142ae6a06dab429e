// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/points"
)

// streams is where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// common is the flags of every command.
type common struct {
	streams
	stdin  string   // the file that stdin was put into, "" for none
	kept   string   // what becomes of a run that is cut short, for people
	screen *os.File // stdout where it is a terminal, nil otherwise
	pager  *pager   // what is written to it, unless it is to be seen at once
	format results.Format
	out    string // directory, "" for none
	seeds  []uint64
	level  string         // one of levels
	args   []string       // the command line, for the manifest
	asked  choice.Request // the same, with stdin as a file
	start  time.Time
	inputs []string // files that were read
	shard  points.Shard
	part   *results.Part // what shard is of the sweep at hand, nil for all of it

	progress *progress
	columns  []string // that stdout shows; nil for the usual ones
	flags    *pflag.FlagSet
	tables   map[*cobra.Command][]printed
	color    string // one of colors

	calibrations []*calibration.Calibration // that times rest on
	found        experiments.Kept           // by experiments that are run together

	queue  string // address of the queue that workers take points from, "" for none
	access accessFlags
	cores  int // in a worker: for one point; 0 elsewhere
}

// live marks commands whose output is seen as it comes.
const live = "live"

func newCommon(s streams) *common {
	c := &common{
		streams:  s,
		kept:     "what was finished is written and marked incomplete",
		format:   results.FormatTable,
		seeds:    []uint64{1},
		level:    "warn",
		start:    time.Now(),
		progress: newProgress(s.err),
		tables:   map[*cobra.Command][]printed{},
	}
	if c.progress != nil {
		c.streams.err = c.progress
	}
	if p := newPager(s.out); p != nil {
		c.screen, c.pager, c.streams.out = p.screen, p, p
	}
	return c
}

// rootFor is the root, with every command, for a command line. To read all experiments takes a quarter of a start: they
// are left out where the line is about a command that knows nothing of them.
func rootFor(c *common, args []string) *cobra.Command {
	s := c.streams
	root := &cobra.Command{
		Use:           "textpoke",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.Version = built.Version
	root.SetVersionTemplate(built.Line("textpoke"))
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	f := root.PersistentFlags()
	f.VarP(&c.format, "format", "f", "how stdout looks: table, csv, json or benchfmt")
	f.StringVarP(&c.out, "out", "o", "", "also write files into this `directory`")
	addTo(f, root, seedField(c),
		choice.One(&c.level, "log", "", "least serious log `level` that is written to stderr", choice.OneOf(levels)),
		choice.One(&c.color, "color", colors[0], "`when` answers are coloured", choice.OneOf(colors)))
	f.StringSliceVar(&c.columns, "columns", nil,
		"`names` of the columns that stdout shows, in this order; +NAME: beside the usual ones; all: every one")
	offer(root, "format", results.Formats)
	c.offerColumns(root)
	root.SetFlagErrorFunc(flagError)
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		_, seenAsItComes := cmd.Annotations[live]
		switch {
		case !seenAsItComes:
			c.progress.watch(cmd.CommandPath())
		case c.pager != nil:
			c.pager.off = true
		}
		c.args, c.flags = commandLine(cmd, args), cmd.Flags()
		if err := c.readStdin(cmd, args); err != nil {
			return err
		}
		c.asked = request(cmd)
		if _, ok := cmd.Annotations[sweeps]; !ok && len(c.seeds) > 1 {
			return fmt.Errorf("--seed %q: %s takes one seed", cmd.Flag("seed").Value, cmd.CommandPath())
		}
		if cmd.Flags().Changed("columns") && len(c.columns) == 0 {
			return errors.New("--columns: empty list")
		}
		if f := cmd.Flag("out"); f.Changed && f.Value.String() == "" {
			return errors.New(`--out "": want a name`)
		}
		return together(c.asked)
	}
	interrupts := &cobra.Command{Use: "interrupts"}
	interrupts.AddCommand(interruptsDiff(c), interruptsSample(c))
	root.AddCommand(
		runCommand(c),
		planCommand(c),
		checkCommand(c),
		proveCommand(c),
		lessonsCommand(c),
		&cobra.Command{
			Use:   "experiment",
			Short: "questions with all it takes to answer them again (list, all, one of them, or a FILE" + formEnding + ")",
		},
		calibrateCommand(c),
		recordsCommand(c),
		interrupts,
		kernelCommand(c),
		serveCommand(c),
		backupCommand(c),
		restoreCommand(c),
		ctlCommand(c),
		mergeCommand(c),
		workerCommand(c),
		reportCommand(c),
		schemaCommand(c),
		versionCommand(c),
		installCommand(c),
	)
	about, _, _ := root.Find(args) // the root, where it finds none
	for about.HasParent() && about.Parent() != root {
		about = about.Parent()
	}
	switch about.Name() {
	case root.Name(), "experiment", "schema", "install":
		addExperiments(c, root)
	}
	addHelp(root)
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.Short = "completion of commands and flags for a shell"
	}
	wordArgs(root)
	root.SetHelpCommand(helpCommand())
	root.SetHelpFunc(c.help)
	return root
}

// newCommand is a command with its usage and what it does; help.txt has the rest. Marks are live, sweeps and writes.
func newCommand(use string, run func(cmd *cobra.Command, args []string) error, marks ...string) *cobra.Command {
	cmd := &cobra.Command{Use: use, RunE: run, Annotations: map[string]string{}}
	for _, mark := range marks {
		cmd.Annotations[mark] = ""
	}
	return cmd
}

// helpCommand is cobra's, but fails on a word that is no command.
func helpCommand() *cobra.Command {
	cmd := newCommand("help [command]", func(cmd *cobra.Command, args []string) error {
		about, rest, err := cmd.Root().Find(args)
		if err == nil && len(rest) > 0 {
			err = about.Args(about, rest)
		}
		if err != nil {
			return noCommand(cmd.Root(), strings.Join(args, " "))
		}
		about.InitDefaultHelpFlag()
		return about.Help()
	})
	cmd.Short = "help about any command"
	return cmd
}

// wordArgs words complaints about arguments for people, in a command and all
// below it. A command with subcommands fails on other words: cobra by itself prints
// help and exits with 0.
func wordArgs(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		wordArgs(sub)
	}
	if !cmd.HasSubCommands() {
		if cmd.Args == nil {
			cmd.Args = argsOf(cmd.Use)
		}
		cmd.Args = exactly(cmd.Args)
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return noCommand(cmd, args[0])
		}
		return nil
	}
	if cmd.RunE == nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return cmd.Help() }
	}
}

// flagInUse is a flag that a usage shows with its value, or the dashes before the words of another command.
var flagInUse = regexp.MustCompile(`--\w+ \w+|--`)

// argsOf is how many arguments a usage shows: one for each word, or none where it stands in brackets, and any number
// before dots.
func argsOf(use string) cobra.PositionalArgs {
	_, use, _ = strings.Cut(use, " ")
	words := strings.Fields(flagInUse.ReplaceAllString(use, ""))
	least := spelling.Count(words, func(word string) bool { return !strings.ContainsAny(word, "[]") })
	if strings.Contains(use, "...") {
		return cobra.MinimumNArgs(least)
	}
	return cobra.RangeArgs(least, len(words))
}

// exactly says how a command is used when the number of arguments is wrong.
func exactly(args cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, a []string) error {
		if args(cmd, a) == nil {
			return nil
		}
		if args(cmd, nil) == nil && args(cmd, a[:1]) != nil {
			meant := ""
			if cmd.Flags().Lookup("filter") != nil {
				meant = "; did you mean --filter " + quote(a[0]) + "?"
			}
			return fmt.Errorf("%q: %s takes no arguments%s", a[0], cmd.CommandPath(), meant)
		}
		return fmt.Errorf("usage: %s %s", cmd.Parent().CommandPath(), cmd.Use)
	}
}

func noCommand(cmd *cobra.Command, name string) error {
	names := spelling.Each(cmd.Commands(), (*cobra.Command).Name)
	return fmt.Errorf("no command %q%s", cmd.CommandPath()+" "+name, nearest(name, names))
}

// seedField is the choice of seeds. Given again, it is the last that counts.
func seedField(c *common) *choice.Field {
	return choice.One(&c.seeds, "seed", "",
		"`number` that fixes random choices, but not which CPU runs when; plan and run also take a list",
		choice.Kind[[]uint64]{Type: "numbers",
			Parse: func(text string) ([]uint64, error) {
				return spelling.ReadEach(strings.Split(text, ","), func(part string) (uint64, error) {
					n, err := strconv.ParseUint(part, 0, 64)
					if err != nil {
						err = errors.New("want a whole number from 0 to 18446744073709551615, or a list of them")
					}
					return n, err
				})
			},
			Format: func(seeds []uint64) string {
				return strings.Trim(strings.ReplaceAll(fmt.Sprint(seeds), " ", ","), "[]")
			},
		})
}

// note remembers the files among the inputs, for the manifest. Built-in tables
// come before files of their name.
func (c *common) note(inputs ...string) {
	for _, path := range inputs {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && !isBuiltin(path) {
			c.inputs = append(c.inputs, path)
		}
	}
}

// isBuiltin tells whether there is a built-in table of a name.
func isBuiltin(name string) bool {
	return slices.Contains(records.BuiltinNames(), name)
}

// kallsyms notes the file of that flag, which must be there even where no list
// needs it.
func (c *common) kallsyms(path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		err = errors.New("it is a directory")
	}
	if err != nil {
		return fmt.Errorf("--kallsyms: %w", err)
	}
	c.note(path)
	return nil
}

// texts are those that a flag was given.
func texts(f *pflag.Flag) []string {
	if list, is := f.Value.(interface{ GetSlice() []string }); is {
		return append([]string{}, list.GetSlice()...)
	}
	return []string{f.Value.String()}
}

// request is what the flags of a command ask for.
func request(cmd *cobra.Command) choice.Request {
	_, name, _ := strings.Cut(cmd.CommandPath(), " ")
	r := choice.Request{Name: name, Config: choice.Choices{}}
	cmd.Flags().Visit(func(f *pflag.Flag) { r.Config[f.Name] = texts(f) })
	return r
}

// commandLine is the command and the flags that were set, in a stable order.
func commandLine(cmd *cobra.Command, args []string) []string {
	line := strings.Fields(cmd.CommandPath())
	cmd.Flags().Visit(func(f *pflag.Flag) {
		for _, s := range texts(f) {
			line = append(line, "--"+f.Name+"="+s)
		}
	})
	if cmd.ArgsLenAtDash() >= 0 {
		line = append(line, "--")
	}
	return append(line, args...)
}
