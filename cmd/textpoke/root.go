package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/textpoke/textpoke/results"
)

// streams is where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// common is the flags of every command.
type common struct {
	streams
	format results.Format
	out    string // directory, "" for none
	seed   uint64
	level  zapcore.Level
	args   []string // the command line, for the manifest
	start  time.Time
	inputs []string // files that were read
}

func rootCommand(s streams) *cobra.Command {
	c := &common{streams: s, format: results.FormatTable, level: zapcore.WarnLevel, start: time.Now()}
	root := &cobra.Command{
		Use:           "textpoke",
		Short:         "a laboratory for live text patching",
		Long:          "textpoke counts, runs and checks what happens when a kernel rewrites code that\nevery CPU keeps executing.",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SuggestionsMinimumDistance = 3
	f := root.PersistentFlags()
	f.Var(&c.format, "format", "how stdout looks: table, csv or json")
	f.StringVar(&c.out, "out", "", "also write files into this `directory`")
	f.Uint64Var(&c.seed, "seed", 1, "fixes every random choice")
	f.Var(levelFlag{&c.level}, "log", "least serious log `level` that is written to stderr")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return suggestFlag(cmd, err) })
	root.PersistentPreRun = func(cmd *cobra.Command, args []string) { c.args = commandLine(cmd, args) }
	root.AddCommand(runCommand(c), planCommand(c), recordsCommand(c), interruptsCommand(c), versionCommand(c))
	for _, sub := range root.Commands() {
		refuseUnknown(sub)
	}
	refuseUnknown(root)
	return root
}

// refuseUnknown makes a command that only has subcommands fail on anything else:
// cobra by itself prints help and exits with 0.
func refuseUnknown(cmd *cobra.Command) {
	if !cmd.HasSubCommands() {
		return
	}
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		var names []string
		for _, sub := range cmd.Commands() {
			names = append(names, sub.Name())
		}
		return fmt.Errorf("%s: no command %q%s", cmd.CommandPath(), args[0], nearest(args[0], names))
	}
}

// levelFlag reads a log level.
type levelFlag struct{ *zapcore.Level }

func (l levelFlag) Set(s string) error {
	err := l.Level.Set(s)
	if err != nil {
		return errors.New("want debug, info, warn or error")
	}
	return nil
}

func (levelFlag) Type() string { return "level" }

// logger writes structured lines to stderr.
func (c *common) logger() *zap.Logger {
	enc := zap.NewProductionEncoderConfig()
	enc.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(enc), zapcore.AddSync(c.err), c.level))
}

// commandLine is the command and the flags that were set, in a stable order.
func commandLine(cmd *cobra.Command, args []string) []string {
	line := strings.Fields(cmd.CommandPath())
	cmd.Flags().Visit(func(f *pflagFlag) {
		if v, ok := f.Value.(interface{ GetSlice() []string }); ok {
			for _, s := range v.GetSlice() {
				line = append(line, "--"+f.Name+"="+s)
			}
			return
		}
		line = append(line, "--"+f.Name+"="+f.Value.String())
	})
	return append(line, args...)
}
