// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/kernels/uprobes"
	"github.com/textpoke/textpoke/records/vmlinux"
)

// Action is something that can be switched on and off and counted around.
type Action struct {
	Name     string
	Argument string // what may or must stand behind a colon; "" for nothing
	Must     bool   // the argument must stand there
	Doc      string
}

// The actions that take a file of the host along.
const (
	moduleLoad = "module-load"
	uprobe     = "uprobe"
)

// actions are what the guest can do (guest/action.go).
var actions = []Action{
	{"function-tracer", "FILTER", false, "the function tracer, on all functions or on those of a filter"},
	{"function-graph", "FILTER", false, "the function_graph tracer, likewise"},
	{"instance", "FILTER", false, "the function tracer of another instance, likewise"},
	{"filter-change", "FROM>TO", true, "the function tracer's filter is changed while it is on, and changed back"},
	{"tracepoint", "[GROUP/]NAME", true, "one trace event"},
	{"event-group", "NAME", true, "all trace events of a group; \"all\" is all of all"},
	{"static-key", "NAME", true, "a static key that a file below /proc/sys switches, such as sched_schedstats"},
	{"kprobe", "SYMBOL[+OFFSET]", false,
		"an event of a kprobe, at vfs_read without a symbol; 0.2 s follow, in which it is optimised"},
	{"kretprobe", "SYMBOL", false, "likewise, of a return probe"},
	{"kprobe-multi", "NUMBER", false, "one BPF link to the first so many functions, without a number 1"},
	{"tracing-multi", "NUMBER", false, "likewise, a link of fentry programs, since Linux 7.2"},
	{"fentry", "SYMBOL", false, "a BPF program on a function's entry, vfs_read without a symbol"},
	{"fexit", "SYMBOL", false, "likewise, on its entry and its end"},
	{moduleLoad, "FILE", true, "a kernel module is loaded, and unloaded again"},
	{uprobe, "PROGRAM[@PROCESSES]", true,
		"USDT probes of a program, which hits them for each byte it reads; 3xnop5 is a sample"},
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

// asMeasured is what the guest calls an action: it knows no folders of the host.
func asMeasured(action string) string {
	switch name, file, _ := strings.Cut(action, ":"); name {
	case moduleLoad:
		return name + ":" + moduleName(file)
	case uprobe:
		return name + ":" + filepath.Base(file)
	}
	return action
}

// filesOf are what an action takes along.
func filesOf(action string) ([]entry, error) {
	switch name, arg, _ := strings.Cut(action, ":"); name {
	case moduleLoad:
		f, err := moduleEntry(arg)
		return []entry{f}, err
	case uprobe:
		return probedEntries(arg)
	}
	return nil, nil
}

// probedEntries are a program that is to be probed, and the list of where: offsets in its file.
func probedEntries(target string) ([]entry, error) {
	p, _, err := uprobes.OpenTarget(target)
	if err != nil {
		return nil, err
	}
	text, err := p.Text()
	if err != nil {
		return nil, err
	}
	var sites strings.Builder
	for _, s := range p.Sites {
		fmt.Fprintf(&sites, "%#x\n", s.Offset)
	}
	name := "probed-" + filepath.Base(p.File)
	return []entry{{name, executable, text}, {name + ".sites", plain, []byte(sites.String())}}, nil
}

// moduleName is a module's file without what it is packed with.
func moduleName(file string) string {
	name, _, _ := strings.Cut(filepath.Base(file), ".ko")
	return name + ".ko"
}

// moduleEntry is a kernel module as the guest loads it: unpacked.
func moduleEntry(file string) (entry, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return entry{}, fmt.Errorf("module: %w", err)
	}
	if text, err = vmlinux.Unpack(text, image.MaxModule); err != nil {
		return entry{}, fmt.Errorf("module %s: %w", file, err)
	}
	if !bytes.HasPrefix(text, []byte("\x7fELF")) {
		return entry{}, fmt.Errorf("module %s: no ELF file, nor a packed one", file)
	}
	return entry{moduleName(file), plain, text}, nil
}
