// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// traced is the name of a file of the kernel's tracing.
func traced(name string) string { return tracing + name }

// TestSwitches: what each action writes when it is made, switched on, off, and closed; files that stand in no list stay
// as they were.
func TestSwitches(t *testing.T) {
	const filter, tracer, record = "set_ftrace_filter", "current_tracer", "options/record-cmd"
	wayUp := ""
	for _, f := range onTheWayUp {
		wayUp += f
	}
	for name, c := range map[string]struct {
		made, on, off, closed map[string]string // files below tracing, but for those that begin with a slash
	}{
		"function-tracer": {nil, map[string]string{tracer: "function"}, map[string]string{tracer: "nop"}, nil},
		"function-tracer:vfs_*": {map[string]string{filter: "vfs_*"}, map[string]string{tracer: "function"},
			map[string]string{tracer: "nop"}, map[string]string{filter: ""}},
		"function-graph:f": {map[string]string{filter: "f"},
			map[string]string{tracer: "function_graph"}, map[string]string{tracer: "nop"},
			map[string]string{filter: ""}},
		"tracepoint:sched_switch": {nil, map[string]string{"events/sched/sched_switch/enable": "1"},
			map[string]string{"events/sched/sched_switch/enable": "0"}, nil},
		"tracepoint:a/same": {nil, map[string]string{"events/a/same/enable": "1"},
			map[string]string{"events/a/same/enable": "0"}, nil},
		"event-group:sched": {nil, map[string]string{"events/sched/enable": "1"},
			map[string]string{"events/sched/enable": "0"}, nil},
		"event-group:all": {nil, map[string]string{"events/enable": "1"},
			map[string]string{"events/enable": "0"}, nil},
		"kprobe:f+4": {map[string]string{"kprobe_events": "p:vm/probe f+4\n"},
			map[string]string{"events/vm/probe/enable": "1"}, map[string]string{"events/vm/probe/enable": "0"},
			map[string]string{"kprobe_events": ""}},
		"kretprobe": {map[string]string{"kprobe_events": "r:vm/probe vfs_read\n"},
			map[string]string{"events/vm/probe/enable": "1"}, map[string]string{"events/vm/probe/enable": "0"},
			map[string]string{"kprobe_events": ""}},
		"filter-change:a>b": {map[string]string{filter: "a", tracer: "function"},
			map[string]string{filter: "b"}, map[string]string{filter: "a"}, map[string]string{filter: "",
				tracer: "nop"}},
		"setfilter:b": {map[string]string{filter: "", tracer: "function"},
			map[string]string{filter: "b"}, map[string]string{filter: ""}, map[string]string{tracer: "nop"}},
		"record-cmd=0": {map[string]string{"events/sched/sched_switch/enable": "1"},
			map[string]string{record: "0"}, map[string]string{record: "1"},
			map[string]string{"events/sched/sched_switch/enable": "0"}},
		"record-cmd=0:a/same": {map[string]string{"events/a/same/enable": "1"},
			map[string]string{record: "0"}, map[string]string{record: "1"},
			map[string]string{"events/a/same/enable": "0"}},
		"hotplug": {nil, map[string]string{cpu1: "0"}, map[string]string{cpu1: "1"}, nil},
		"on-the-way-up": {map[string]string{filter: wayUp, "events/sched/sched_switch/enable": "1"},
			map[string]string{tracer: "function"}, map[string]string{tracer: "nop"}, nil},
		"trap": {map[string]string{"/proc/sys/debug/kprobes-optimization": "0",
			"kprobe_events": "p:vm/trap __x64_sys_getppid+5\n", "events/vm/trap/enable": "1"}, nil, nil, nil},
		"optimizer:f+10": {map[string]string{"kprobe_events": "p:vm/optimizer f+10\n", "events/vm/optimizer/enable": "1"},
			map[string]string{"/proc/sys/debug/kprobes-optimization": "1"},
			map[string]string{"/proc/sys/debug/kprobes-optimization": "0"}, nil},
		"uprobe:program": {map[string]string{"uprobe_events": "p:vm/site0 /probed-program:0x10\np:vm/site1 /probed-program:0x20\n", record: "0"}, map[string]string{"events/vm/enable": "1"}, map[string]string{"events/vm/enable": "0"}, map[string]string{"uprobe_events": "", record: "1"}},
		"static-key:sched_numa_balancing": {nil, map[string]string{"/proc/sys/kernel/numa_balancing": "1"},
			map[string]string{"/proc/sys/kernel/numa_balancing": "0"}, nil},
	} {
		files := map[string]string{traced("available_tracers"): "function_graph function nop\n",
			traced(tracer): "nop", traced(filter): "",
			traced("kprobe_events"): "", traced("uprobe_events"): "", traced("events/vm/probe/enable"): "0",
			traced("events/vm/trap/enable"): "0", traced("events/vm/optimizer/enable"): "0",
			traced("events/vm/enable"): "0", traced("events/sched/sched_switch/enable"): "0",
			traced("events/a/same/enable"): "0",
			traced("events/b/same/enable"): "0", traced("events/sched/enable"): "0", traced("events/enable"): "0",
			traced(record): "1", cpu1: "1",
			"/proc/sys/debug/kprobes-optimization": "1", "/probed-program.sites": "0x10 0x20\n"}
		for _, k := range keys {
			files["/proc/sys/"+k.file] = "0"
		}
		inRoot(t, files, func(r root) {
			a, err := newAction(name)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			hold := func(when string, changed map[string]string) {
				for file, text := range changed {
					if !strings.HasPrefix(file, "/") {
						file = traced(file)
					}
					files[file] = text
				}
				for file, want := range files {
					if got := r.holds(file); got != want {
						t.Errorf("%s, %s: %s holds %q, want %q", name, when, file, got, want)
					}
				}
			}
			hold("made", c.made)
			for _, s := range []struct {
				when    string
				do      func() error
				changed map[string]string
			}{{"on", a.on, c.on}, {"off", a.off, c.off}, {"on again", a.on, c.on}, {"off again", a.off, c.off}} {
				if err := s.do(); err != nil {
					t.Errorf("%s, %s: %v", name, s.when, err)
				}
				hold(s.when, s.changed)
			}
			if a.close != nil {
				a.close()
			}
			hold("closed", c.closed)
		})
	}
}

// TestStaticKeys: each is switched by its file; others are not known.
func TestStaticKeys(t *testing.T) {
	for name, k := range keys {
		inRoot(t, map[string]string{"/proc/sys/" + k.file: "0"}, func(r root) {
			a, err := newAction("static-key:" + name)
			if err != nil {
				t.Error(err)
				return
			}
			if err := a.on(); err != nil || r.holds("/proc/sys/"+k.file) != "1" {
				t.Errorf("%s: %v", name, err)
			}
			if err := a.off(); err != nil || r.holds("/proc/sys/"+k.file) != "0" {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestSwitchesRefused: what a kernel does not have is told before anything is switched, and nothing is left of it.
func TestSwitchesRefused(t *testing.T) {
	for name, want := range map[string]string{
		"function-graph":           "the kernel has no tracer function_graph, only function nop",
		"function-tracer:f":        `filter "f": open /sys/kernel/tracing/set_ftrace_filter: no such file or directory`,
		"tracepoint:same":          "2 trace events of the name */same",
		"tracepoint:none":          "0 trace events of the name */none",
		"tracepoint:a/none":        "0 trace events of the name a/none",
		"event-group:none":         "stat /sys/kernel/tracing/events/none/enable: no such file or directory",
		"static-key:none":          `the guest knows no file that switches the key "none"`,
		"static-key:delayacct_key": "stat /proc/sys/kernel/task_delayacct: no such file or directory",
		"kprobe":                   "kprobe at vfs_read: open /sys/kernel/tracing/kprobe_events: no such file or directory",
		"instance:f":               "instance: tracing_on: open /sys/kernel/tracing/instances/vm/tracing_on: no such file or directory",
		"filter-change:a":          `"a": want two filters`,
		"record-cmd=0":             "0 trace events of the name sched/sched_switch",
		"record-cmd=0:a/same":      "stat /sys/kernel/tracing/options/record-cmd: no such file or directory",
		"module-load:no.ko":        "open /no.ko: no such file or directory",
		"fexit":                    "open /sys/kernel/btf/vmlinux: no such file or directory",
		"fentry":                   "open /sys/kernel/btf/vmlinux: no such file or directory",
		"tracing-multi:x":          `"x": want a number of functions`,
		"kprobe-multi:0":           `"0": want a number of functions`,
		"kprobe-multi":             "open /proc/kallsyms: no such file or directory",
		"tracing-multi:2":          "open /proc/kallsyms: no such file or directory",
		"on-the-way-up":            "no function of the way up can be traced",
		"trap":                     "open /proc/sys/debug/kprobes-optimization: no such file or directory",
		"uprobe:none":              "open /probed-none.sites: no such file or directory",
		"uprobe:none@many":         `"many": want a number of processes`,
		"hotplug":                  "stat /sys/devices/system/cpu/cpu1/online: no such file or directory",
		"callers:nothing":          `the guest knows no action "nothing"`,
		"callers:idle":             "no function that interrupts other CPUs can be probed",
		"nothing:f":                `the guest knows no action "nothing"`,
	} {
		files := map[string]string{traced("available_tracers"): "function nop\n", traced("current_tracer"): "nop",
			traced("events/a/same/enable"): "0",
			traced("events/b/same/enable"): "0", traced("instances/.there"): ""}
		inRoot(t, files, func(r root) {
			if a, err := newAction(name); a != nil || err == nil || err.Error() != want {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
			for file, text := range files {
				if got := r.holds(file); got != text {
					t.Errorf("%s: %s holds %q", name, file, got)
				}
			}
			if _, err := os.Stat(traced("instances/vm")); err == nil {
				t.Errorf("%s: the instance is left", name)
			}
		})
	}
}

// TestModules: the kernel is asked to load what the file holds, under its name; one that it does not take is told.
func TestModules(t *testing.T) {
	for file, want := range map[string]string{"a.ko": "a", "lib/snd-pcm.ko": "snd_pcm", "x-y-z": "x_y_z"} {
		if got := moduleName(file); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
	inRoot(t, map[string]string{"/not-there.ko": "no module"}, func(root) {
		for _, kind := range []string{"module-load", "reload"} {
			a, err := newAction(kind + ":not-there.ko")
			if err != nil {
				t.Error(err)
				return
			}
			if err := a.on(); err == nil || !strings.HasPrefix(err.Error(), "load not-there.ko: ") {
				t.Errorf("%s: %v", kind, err)
			}
			start := time.Now()
			if err := a.off(); err == nil || !strings.HasPrefix(err.Error(), "unload not_there: ") {
				t.Errorf("%s: %v", kind, err)
			}
			if took := time.Since(start); kind == "module-load" && took < 200*time.Millisecond { // deferred work is waited for
				t.Errorf("%s is over after %v", kind, took)
			}
		}
		if err := loadModule("none.ko"); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
		if err := unload("a\x00b"); err == nil {
			t.Error("a name with a zero")
		}
	})
}

// TestWorks: deferred work is done when no worker is called by its work.
func TestWorks(t *testing.T) {
	for name, want := range map[string]bool{"kworker/u8:1+events_unbound\n": true, "kworker/0:2-events\n": false,
		"bash+x\n": false} {
		inRoot(t, map[string]string{"/proc/1/comm": "init\n", "/proc/17/comm": name,
			"/proc/self/comm": "kworker/1:1+me\n"}, func(root) {
			if got := len(tasks(working)) > 0; got != want {
				t.Errorf("%q: %v", name, got)
			}
		})
	}
}

// TestStacks: of CPU 0's stacks what lies behind a function that interrupts others, the innermost first.
func TestStacks(t *testing.T) {
	head := func(cpu string) string { return fmt.Sprintf("   sh-1 [%s] d..1. 1.0: <stack trace>\n", cpu) }
	const own = " => kprobe_handler\n => smp_call_function_many_cond\n => on_each_cpu_cond_mask\n => text_poke\n"
	for text, want := range map[string][]string{
		"": nil, head("000") + own: {"smp_call_function_many_cond < on_each_cpu_cond_mask < text_poke"}, head("001") + own: nil,
		head("000") + own + head("001") + own + head("000") + " => smp_call_function_single\n": {
			"smp_call_function_many_cond < on_each_cpu_cond_mask < text_poke", "smp_call_function_single"},
		head("000") + " => nothing_of_it\n": nil, "   sh-1 [000] d..1. 1.0: sender0\n" + own: nil,
	} {
		inRoot(t, map[string]string{traced("trace"): text}, func(root) {
			got, err := readStacks()
			if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%q: %q, %v, want %q", text, got, err, want)
			}
		})
	}
}

// TestCalledProbes: the functions that interrupt are probed as far as they can be, for as long as the action; the
// buffer is made larger, and records come from between on and off.
func TestCalledProbes(t *testing.T) {
	trigger := func(i int) string { return traced(fmt.Sprintf("events/callers/sender%d/trigger", i)) }
	files := map[string]string{traced("kprobe_events"): "", traced("buffer_size_kb"): "64", traced("trace"): "old",
		traced("tracing_on"):              "0",
		"/proc/sys/kernel/task_delayacct": "0"}
	for i := range senders {
		files[trigger(i)] = ""
	}
	inRoot(t, files, func(r root) {
		a, err := newAction("callers:static-key:delayacct_key")
		if err != nil {
			t.Error(err)
			return
		}
		want := ""
		for i, f := range senders {
			want += fmt.Sprintf("p:callers/sender%d %s\n", i, f)
			if got := r.holds(trigger(i)); got != "stacktrace" {
				t.Errorf("%s: %q", trigger(i), got)
			}
		}
		if got := r.holds(traced("kprobe_events")); got != want || r.holds(traced("buffer_size_kb")) != "4096" {
			t.Errorf("%q, want %q", got, want)
		}
		if lines := heard(t, func() { err = a.on() }); err != nil || len(lines) != 0 ||
			r.holds("/proc/sys/kernel/task_delayacct") != "1" ||
			r.holds(traced("trace")) != "" || r.holds(traced("tracing_on")) != "0" {
			t.Errorf("%q, %v", lines, err)
		}
		if err := a.off(); err != nil || r.holds("/proc/sys/kernel/task_delayacct") != "0" {
			t.Error(err)
		}
		a.close()
		was := kinds["own"]
		defer func() { kinds["own"] = was }()
		kinds["own"] = func(string) (*action, error) {
			seen := func() error {
				return fmt.Errorf("recorded %s%s", r.holds(traced("tracing_on")), r.holds(traced("trace")))
			}
			return &action{prepare: seen, on: seen, off: seen, close: func() { r.write(t, "/closed", "") }}, nil
		}
		if a, err = newAction("callers:own"); err != nil {
			t.Error(err)
			return
		}
		for _, do := range []func() error{a.on, a.off} {
			if err := do(); err == nil || err.Error() != "recorded 1" || r.holds(traced("tracing_on")) != "0" {
				t.Error(err)
			}
		}
		if a.close(); r.holds("/closed") != "" || a.prepare() == nil {
			t.Error("the action itself is not closed, or not prepared")
		}
		if r.holds(trigger(1)) != "!stacktrace" || r.holds(traced("kprobe_events")) != "" {
			t.Errorf("%q", r.holds(trigger(1)))
		}
	})
}

// TestUninterrupted: a signal ends what a call waits for, and it is made again; another error is told.
func TestUninterrupted(t *testing.T) {
	for want, text := range map[syscall.Errno]string{0: "<nil>", syscall.EBUSY: "load x: device or resource busy"} {
		answers := []syscall.Errno{syscall.EINTR, syscall.EINTR, want, syscall.ENOENT}
		err := uninterrupted("load x", func() syscall.Errno { e := answers[0]; answers = answers[1:]; return e })
		if fmt.Sprint(err) != text || len(answers) != 1 {
			t.Errorf("%v, and %d answers left; want %s and 1", err, len(answers), text)
		}
	}
}
