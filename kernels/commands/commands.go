// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/shlex"
	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/records"
)

// Machine is where a command is to run.
type Machine struct {
	Kernel  *ledger.Kernel
	Table   *records.Table // of its functions; nil where they are unknown
	Modules string         // folder with modules.dep
}

// course collects what a command switches.
type course struct {
	ledger.Course
	Machine
}

// tools are the commands that are read.
var tools = map[string]func(*course, []string) error{"trace-cmd": (*course).traceCmd, "perf": (*course).perf,
	"bpftrace": (*course).bpftraceCommand, "modprobe": (*course).modprobe, "insmod": (*course).insmod}

// files are the kinds of files, by the ends of their names.
var files = map[string]func(*course, string) error{".bt": (*course).bpftrace, ".yaml": (*course).tetragon,
	".yml": (*course).tetragon, ".conf": (*course).moduleList}

// Read reads a command line, or the file of that name.
func Read(of string, m Machine) (ledger.Course, error) {
	c := &course{Course: ledger.Course{Name: strings.ReplaceAll(of, "\n", " ")}, Machine: m}
	words, err := shlex.Split(of)
	if err == nil {
		err = c.read(words)
	}
	if err != nil {
		return ledger.Course{}, fmt.Errorf("%q: %w", of, err)
	}
	return c.Course, nil
}

func (c *course) read(words []string) error {
	name := ""
	if len(words) > 0 {
		name = filepath.Base(words[0])
	}
	switch tool, file := tools[name], files[filepath.Ext(name)]; {
	case name == "sudo":
		return c.read(words[1:])
	case tool != nil:
		return tool(c, words[1:])
	case file != nil && len(words) == 1:
		return c.file(words[0], file)
	}
	return fmt.Errorf("%w; or a file *.bt, *.yaml, *.conf", spelling.NotOneOf(name, slices.Sorted(maps.Keys(tools))))
}

// mostText is how long a file may be.
const mostText = 1 << 20

func (c *course) file(name string, read func(*course, string) error) error {
	text, err := inputs.Read(name, mostText)
	if err != nil {
		return err
	}
	return read(c, string(text))
}

// options reads options up to the first word that is none, and gives each to take in turn, by its long name where it has
// one. The table holds a word for each, s/long; "=" behind it says that it wants a value.
func options(table string, words []string, take func(name, value string)) (rest []string, err error) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.SetInterspersed(false)
	f.Usage = func() {}
	for option := range strings.FieldsSeq(table) {
		short, long, _ := strings.Cut(strings.TrimSuffix(option, "="), "/")
		name := long
		if name == "" {
			name = short
		}
		add := func(value string) error {
			take(name, value)
			return nil
		}
		if strings.HasSuffix(option, "=") {
			f.FuncP(name, short, "", add)
		} else {
			f.BoolFuncP(name, short, "", add)
		}
	}
	err = f.Parse(words)
	return f.Args(), err
}

// both switches actions on, and off again at the end.
func (c *course) both(actions ...string) {
	for _, a := range actions {
		c.Begin = append(c.Begin, ledger.Step{Action: a, On: true})
		c.End = append(c.End, ledger.Step{Action: a})
	}
}

func (c *course) unknown(format string, args ...any) {
	c.Unknown = append(c.Unknown, fmt.Sprintf(format, args...))
}

// events are trace events: one, those of a glob, a group, or all.
func (c *course) events(action, name string) {
	name = strings.Replace(strings.TrimSuffix(name, ":"), ":", "/", 1)
	found := len(c.Begin)
	for _, e := range c.Kernel.Facts.Events {
		whole, _ := path.Match(name, e.Group+"/"+e.Name)
		alone, _ := path.Match(name, e.Name)
		if (whole || alone || name == e.Group || name == "all") && e.Group != "ftrace" {
			c.both(action + ":" + e.Group + "/" + e.Name)
		}
	}
	if len(c.Begin) == found {
		c.unknown("event %s, which is not in the image", name)
	}
}

// functions are the functions that a pattern matches; where there is no table, the pattern.
func (c *course) functions(pattern string) (names []string) {
	f, err := records.ParseFilter([]string{pattern})
	if err != nil || c.Table == nil {
		return []string{pattern}
	}
	for _, i := range f.Match(c.Table) {
		names = append(names, c.Table.Symbol(i))
	}
	return slices.Compact(names)
}
