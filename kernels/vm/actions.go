// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/kernels/uprobes"
	"github.com/textpoke/textpoke/records/vmlinux"
)

// The actions that take a file of the host along.
const (
	moduleLoad = "module-load"
	uprobe     = "uprobe"
	together   = "together"
	reload     = "reload:" // one of those that are done together
)

// Actions are the actions that can be measured: those of the ledger that the guest can do (guest/action.go), and idle.
func Actions() []ledger.Action {
	able := slices.DeleteFunc(ledger.Actions(), func(a ledger.Action) bool {
		return slices.Contains([]string{"function-tracer-first", "module-unload", "perf-event", "perf-kprobe", "raw-tracepoint",
			"function-call", "set_ftrace_pid"}, a.Name)
	})
	return append(able, ledger.Action{Name: "idle", Doc: "nothing, for a second"})
}

// CheckAction tells what is wrong with the name of an action.
func CheckAction(action string) error {
	_, _, err := ledger.ParseAction(Actions(), action)
	if err == nil && strings.ContainsAny(action, "\n\r\x00") {
		err = fmt.Errorf("action %q: want one line", action)
	}
	return err
}

// asMeasured is what the guest calls an action: it knows no folders of the host.
func asMeasured(action string) string {
	switch name, file, _ := strings.Cut(action, ":"); name {
	case moduleLoad:
		return name + ":" + moduleName(file)
	case together:
		parts := strings.Split(file, "&")
		for i, part := range parts {
			if before, module, ok := strings.Cut(part, reload); ok {
				parts[i] = before + reload + moduleName(module)
			}
		}
		return name + ":" + strings.Join(parts, "&")
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
	case together:
		var out []entry
		for part := range strings.SplitSeq(arg, "&") {
			_, file, ok := strings.Cut(part, reload)
			if !ok {
				continue
			}
			f, err := moduleEntry(file)
			if err != nil {
				return nil, err
			}
			out = append(out, f)
		}
		return out, nil
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

// moduleName is a module's file without the packing's suffix.
func moduleName(file string) string {
	name, _, _ := strings.Cut(filepath.Base(file), ".ko")
	return name + ".ko"
}

// moduleEntry is a kernel module as the guest loads it: unpacked.
func moduleEntry(file string) (entry, error) {
	text, err := inputs.Read(file, image.MaxModule)
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
