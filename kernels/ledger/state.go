// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/kernels/image"
)

// StateHelp says what [Kernel.In] reads.
const StateHelp = "KEY=on (a static key), probe=TRACEPOINT[:N] (so many probes), recording=on (of command lines), " +
	"record-cmd=off (that option), modules=none (none is loaded), action=ACTION (it is on)"

// In is the kernel in a state that no image tells: tracers, keys and probes that are on or attached
// already. Each fact is NAME=VALUE, see [StateHelp]; a wrong one fails when it is replayed.
func (k *Kernel) In(state []string) *Kernel {
	in := *k
	in.state = state
	return &in
}

// State is what was told with [Kernel.In].
func (k *Kernel) State() []string { return k.state }

// tellAll brings the kernel into the state that the facts describe, and drops the lines of the
// rounds that this sends.
func (r *Replay) tellAll(facts []string) error {
	for _, fact := range facts {
		err := r.tell(fact)
		if _, unknown := r.Take(); err == nil {
			err = unknown
		}
		if err != nil {
			return fmt.Errorf("state %q: %w", fact, err)
		}
	}
	return nil
}

func (r *Replay) tell(fact string) error {
	name, value, ok := strings.Cut(fact, "=")
	switch {
	case !ok || value == "":
		return fmt.Errorf("want %s", StateHelp)
	case name == "probe":
		tp, number, given := strings.Cut(value, ":")
		n := 1
		if given {
			var err error
			if n, err = strconv.Atoi(number); err != nil || n < 0 || n > 1000 {
				return fmt.Errorf("%q: want a number of probes up to 1000", number)
			}
		}
		for i := range n {
			r.hook(tp, fmt.Sprintf("told %d", i))
		}
	case name == "action":
		_, err := r.Switch(value, true)
		return err
	case name == "record-cmd" && value == "off":
		r.silent = true
	case name == "modules" && value == "none":
		r.noModules = true
	case value != "on":
		return fmt.Errorf("value %q: want on", value)
	case name == "recording":
		r.record(true)
	default:
		r.use(name, true)
	}
	return nil
}

// tracefs is where it is mounted, by itself or below debugfs.
var tracefs = []string{"sys/kernel/tracing", "sys/kernel/debug/tracing"}

// UserTracking is a key that is on where CPUs are nohz_full (ct_cpu_track_user, kernel/context_tracking.c).
const UserTracking = "context_tracking_key"

// keyFiles are files that are empty, or 0, while a static key is off.
var keyFiles = []struct{ key, file string }{
	{UserTracking, "sys/devices/system/cpu/nohz_full"},
	{"sched_schedstats", "proc/sys/kernel/sched_schedstats"},                           // kernel/sched/core.c
	{"sched_numa_balancing", "proc/sys/kernel/numa_balancing"},                         // kernel/sched/core.c
	{"bpf_stats_enabled_key", "proc/sys/kernel/bpf_stats_enabled"},                     // kernel/bpf/syscall.c
	{"delayacct_key", "proc/sys/kernel/task_delayacct"},                                // kernel/delayacct.c
	{"net_high_order_alloc_disable_key", "proc/sys/net/core/high_order_alloc_disable"}, // net/core/sock.c
	{"hugetlb_optimize_vmemmap_key", "proc/sys/vm/hugetlb_optimize_vmemmap"},           // mm/hugetlb_vmemmap.c
}

// machine is the files of a running machine.
type machine struct {
	root  string
	fs    fs.FS
	k     *Kernel
	state []string
}

// Here is the state of a running machine, as [Kernel.In] takes it: static keys that its files tell, modules, and in
// tracefs options, tracers, probes and events. root is "/", or a folder with a copy of its files. It fails without
// tracefs, where another kernel runs than k, and for a fact without a rule.
func (k *Kernel) Here(root string) ([]string, error) {
	m := &machine{root: root, fs: os.DirFS(root), k: k}
	at := slices.IndexFunc(tracefs, func(dir string) bool { return m.text(dir+"/current_tracer") != "" })
	if at < 0 {
		return nil, fmt.Errorf("no tracefs can be read at %s (root can: mount -t tracefs nodev /sys/kernel/tracing)",
			filepath.Join(root, tracefs[0]))
	}
	if runs := m.text("proc/sys/kernel/osrelease"); k.File != "" && runs != k.Release {
		return nil, fmt.Errorf("release %q runs here, and %s is of %s", runs, k.File, k.Release)
	}
	for _, f := range keyFiles {
		if v := m.text(f.file); v != "" && v != "0" && v != "(null)" && k.Facts.Keys[f.key] > 0 {
			m.tell(f.key, "on")
		}
	}
	if err := m.modules(); err != nil {
		return nil, err
	}
	if m.text(tracefs[at]+"/options/record-cmd") == "0" {
		m.tell("record-cmd", "off")
	}
	instances, err := fs.Glob(m.fs, tracefs[at]+"/instances/*")
	if err != nil {
		return nil, err
	}
	probes := m.text(tracefs[at] + "/kprobe_events")
	for i, dir := range append([]string{tracefs[at]}, instances...) {
		function := "function-tracer"
		if i > 0 {
			function = "instance"
		}
		if err := errors.Join(m.tracer(dir, function), m.events(dir, probes)); err != nil {
			return nil, err
		}
	}
	return m.state, nil
}

func (m *machine) tell(name, value string) { m.state = append(m.state, name+"="+value) }

// text is a file's, without the space around it; "" for one that cannot be read.
func (m *machine) text(file string) string {
	b, _ := fs.ReadFile(m.fs, file)
	return strings.TrimSpace(string(b))
}

// ModuleName is the kernel's name of a module, of its name or its file.
func ModuleName(file string) string {
	name, _, _ := strings.Cut(path.Base(file), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// ModuleFiles reads a modules.dep (depmod(8)): of each module its file, and those of the modules that it needs.
func ModuleFiles(dep string) map[string][]string {
	files := map[string][]string{}
	for line := range strings.Lines(dep) {
		if file, needs, ok := strings.Cut(line, ":"); ok {
			files[ModuleName(file)] = append([]string{file}, strings.Fields(needs)...)
		}
	}
	return files
}

// modules are loaded, in the order in which they were: the last one stands first in /proc/modules.
func (m *machine) modules() error {
	dir := "lib/modules/" + m.text("proc/sys/kernel/osrelease")
	files := ModuleFiles(m.text(dir + "/modules.dep"))
	loaded := strings.Split(m.text("proc/modules"), "\n")
	if b, err := fs.ReadFile(m.fs, "proc/modules"); err == nil && len(b) == 0 {
		m.tell("modules", "none")
	}
	for _, line := range slices.Backward(loaded) {
		name, _, _ := strings.Cut(line, " ")
		switch file := files[ModuleName(name)]; {
		case name == "":
		case file == nil:
			return fmt.Errorf("module %s is loaded, and %s names no file of it", name, filepath.Join(m.root, dir, "modules.dep"))
		default:
			m.tell("action", "module-load:"+filepath.Join(m.root, dir, file[0]))
		}
	}
	return nil
}

// tracer is the one that is on in an instance, and its filter. Lines with a colon, and those with a hash, are no filter.
func (m *machine) tracer(dir, function string) error {
	action := map[string]string{"function": function, "function_graph": "function-graph"}[m.text(dir+"/current_tracer")]
	switch name := m.text(dir + "/current_tracer"); {
	case name == "nop" || name == "":
		return nil
	case action == "":
		return fmt.Errorf("tracer %s is on: no rule holds for it", name)
	}
	var filter []string
	for line := range strings.Lines(m.text(dir + "/set_ftrace_filter")) {
		if name, _, _ := strings.Cut(line, " "); !strings.ContainsAny(line, "#:") {
			filter = append(filter, strings.TrimSpace(name))
		}
	}
	if len(filter) > 0 {
		action += ":" + strings.Join(filter, " ")
	}
	m.tell("action", action)
	return nil
}

// events are on in an instance: those of the image, and those of probes. Others only record command lines.
func (m *machine) events(dir, probes string) error {
	for line := range strings.Lines(m.text(dir + "/set_event")) {
		event := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(event) < 2 {
			continue
		}
		known := func(e image.Event) bool { return e.Group == event[0] && e.Name == event[1] }
		if slices.ContainsFunc(m.k.Facts.Events, known) {
			m.tell("action", "tracepoint:"+event[0]+"/"+event[1])
			continue
		}
		if err := m.probe(event[0]+"/"+event[1], probes); err != nil {
			return err
		}
	}
	return nil
}

// probe is an event that somebody defined in kprobe_events (Documentation/trace/kprobetrace.rst).
func (m *machine) probe(event, probes string) error {
	for line := range strings.Lines(probes) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kind, name, _ := strings.Cut(f[0], ":")
		switch {
		case name != event:
		case strings.HasPrefix(kind, "p"):
			m.tell("action", "kprobe:"+f[1])
			return nil
		case strings.HasPrefix(kind, "r"):
			m.tell("action", "kretprobe:"+f[1])
			return nil
		default:
			return fmt.Errorf("event %s is on: no rule holds for a probe as %q", event, f[0])
		}
	}
	m.tell("recording", "on")
	return nil
}
