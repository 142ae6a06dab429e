// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ulikunitz/xz"

	"github.com/textpoke/textpoke/internal/spelling"
)

// Action is something that can be switched on and off and counted around.
type Action struct {
	Name     string
	Argument string // what may or must stand behind a colon; "" for nothing
	Must     bool   // the argument must stand there
	Doc      string
}

const moduleLoad = "module-load"

// actions are what the guest can do (guest/action.go).
var actions = []Action{
	{"function-tracer", "FILTER", false, "the function tracer, on all functions or on those of a filter"},
	{"function-graph", "FILTER", false, "the function_graph tracer, likewise"},
	{"tracepoint", "[GROUP/]NAME", true, "one trace event"},
	{"event-group", "NAME", true, "all trace events of a group; \"all\" is all of all"},
	{"static-key", "NAME", true, "a static key that a file below /proc/sys switches, such as sched_schedstats"},
	{"kprobe", "SYMBOL[+OFFSET]", false,
		"an event of a kprobe, at vfs_read without a symbol; 0.2 s follow, in which it is optimised"},
	{"kretprobe", "SYMBOL", false, "likewise, of a return probe"},
	{"kprobe-multi", "NUMBER", false, "one BPF link to the first so many functions, without a number 1"},
	{"fentry", "SYMBOL", false, "a BPF program on a function's entry, vfs_read without a symbol"},
	{"fexit", "SYMBOL", false, "likewise, on its entry and its end"},
	{moduleLoad, "FILE", true, "a kernel module is loaded, and unloaded again"},
	{"idle", "", false, "nothing, for a second"},
}

// Actions are what can be measured.
func Actions() []Action { return slices.Clone(actions) }

// CheckAction tells what is wrong with the name of an action.
func CheckAction(action string) error {
	name, arg, given := strings.Cut(action, ":")
	i := slices.IndexFunc(actions, func(a Action) bool { return a.Name == name })
	if i < 0 {
		var names []string
		for _, a := range actions {
			names = append(names, a.Name)
		}
		return fmt.Errorf("action %q: %w", action, spelling.NotOneOf(name, names))
	}
	switch a := actions[i]; {
	case a.Must && arg == "":
		return fmt.Errorf("action %q: want %s:%s", action, a.Name, a.Argument)
	case given && a.Argument == "":
		return fmt.Errorf("action %q: %s stands alone", action, a.Name)
	case strings.ContainsAny(action, "\n\r\x00"):
		return fmt.Errorf("action %q: want one line", action)
	}
	return nil
}

// mostModule bounds an unpacked module, in bytes.
const mostModule = 256 << 20

// moduleEntry is a kernel module as the guest loads it: unpacked.
func moduleEntry(file string) (entry, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return entry{}, fmt.Errorf("module: %w", err)
	}
	name := filepath.Base(file)
	for {
		var r io.Reader
		switch {
		case bytes.HasPrefix(text, []byte("\xfd7zXZ\x00")):
			r, err = xz.NewReader(bytes.NewReader(text))
		case bytes.HasPrefix(text, []byte{0x1f, 0x8b}):
			r, err = gzip.NewReader(bytes.NewReader(text))
		default:
			name = strings.TrimSuffix(name, path.Ext(name)) + ".ko"
			if !bytes.HasPrefix(text, []byte("\x7fELF")) {
				return entry{}, fmt.Errorf("module %s: no ELF file, nor one packed by gzip or xz", file)
			}
			return entry{name, plain, text}, nil
		}
		if err == nil {
			text, err = io.ReadAll(io.LimitReader(r, mostModule+1))
		}
		if err == nil && len(text) > mostModule {
			err = errors.New("more than 256 MiB unpacked")
		}
		if err != nil {
			return entry{}, fmt.Errorf("module %s: %w", file, err)
		}
		name = strings.TrimSuffix(name, path.Ext(name))
	}
}
