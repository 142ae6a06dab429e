// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSwitchesLackFiles: whatever file of an action a kernel does not have, the action is none, and the error names it.
func TestSwitchesLackFiles(t *testing.T) {
	missing := func(call, name string) string { return call + " " + tracing + name + ": no such file or directory" }
	const trigger = "events/callers/sender%d/trigger"
	for _, c := range []struct{ name, has, want string }{
		{"function-tracer", "", missing("open", "available_tracers")},
		{"function-tracer", "available_tracers", missing("stat", "current_tracer")},
		{"filter-change:a>b", "", missing("open", "available_tracers")},
		{"filter-change:a>b", "available_tracers current_tracer", `filter "a": ` + missing("open", "set_ftrace_filter")},
		{"setfilter:b", "available_tracers current_tracer",
			missing("open", "set_ftrace_filter") + "\n" + missing("open", "set_ftrace_filter")},
		{"uprobe:program", "", "uprobe at /probed-program:0x10: " + missing("open", "uprobe_events")},
		{"uprobe:program", "uprobe_events", missing("open", "options/record-cmd")},
		{"uprobe:program", "uprobe_events options/record-cmd", missing("stat", "events/vm/enable")},
		{"trap", "", "probe of getppid: " + missing("open", "kprobe_events")},
		{"optimizer:f", "", "probe of f: " + missing("open", "kprobe_events")},
		{"optimizer:f", "kprobe_events", missing("open", "events/vm/optimizer/enable")},
		{"kprobe:f", "kprobe_events", missing("stat", "events/vm/probe/enable")},
		{"kretprobe:f+4", "", "kprobe at f+4: " + missing("open", "kprobe_events")},
		{"on-the-way-up", "set_ftrace_filter", missing("open", "events/sched/sched_switch/enable")},
		{"on-the-way-up", "set_ftrace_filter events/sched/sched_switch/enable", missing("stat", "current_tracer")},
		{"callers:hotplug", "kprobe_events", missing("open", fmt.Sprintf(trigger, 0))},
		{"callers:hotplug", "kprobe_events " + fmt.Sprintf(strings.Repeat(trigger+" ", 4), 0, 1, 2, 3),
			missing("open", "buffer_size_kb")},
		{"kprobe-multi", "", missing("open", "available_filter_functions")},
		{"tracing-multi", "available_filter_functions", "open /sys/kernel/btf/vmlinux: no such file or directory"},
		{"instance:f", "instances", "mkdir " + tracing + "instances/vm/: not a directory"},
	} {
		files := map[string]string{"/probed-program.sites": "0x10\n", "/proc/kallsyms": "1 T a\n2 T b\n", cpu1: "1",
			"/proc/sys/debug/kprobes-optimization": "1"}
		for name := range strings.FieldsSeq(c.has) {
			files[traced(name)] = map[string]string{"available_tracers": "function\n",
				"available_filter_functions": "a\nb\n"}[name]
		}
		inRoot(t, files, func(root) {
			if a, err := newAction(c.name); err == nil || err.Error() != c.want {
				t.Errorf("%s with %q: %v, %v, want %s", c.name, c.has, a, err, c.want)
			}
		})
	}
}

// TestCallersAreTold: the stacks that an action left, each with its direction; those of before are gone, and what the
// action itself says comes with an error.
func TestCallersAreTold(t *testing.T) {
	was := kinds["own"]
	defer func() { kinds["own"] = was }()
	stack := func(caller string) func() error {
		return func() error {
			if on := field(traced("tracing_on")); on != "1" {
				t.Errorf("tracing is %s", on)
			}
			return add(traced("trace"), "   sh-1 [000] d..1. 1.0: <stack trace>\n => smp_call_function_single\n => "+caller+"\n")
		}
	}
	kinds["own"] = func(string) (*action, error) {
		return &action{on: stack("text_poke"), off: func() error {
			_ = stack("text_poke_bp")()
			return os.ErrInvalid
		}}, nil
	}
	files := map[string]string{traced("kprobe_events"): "", traced("buffer_size_kb"): "64", traced("trace"): "old",
		traced("tracing_on"): "0"}
	for i := range senders {
		files[traced(fmt.Sprintf("events/callers/sender%d/trigger", i))] = ""
	}
	inRoot(t, files, func(r root) {
		a, err := newAction("callers:own:x")
		if err != nil {
			t.Error(err)
			return
		}
		said := func(direction, caller string) []string {
			const line = `{"Callers":[{"Action":"own:x","Direction":%q,"Stack":"smp_call_function_single \u003c %s"}]}`
			return []string{fmt.Sprintf(line, direction, caller)}
		}
		if d := cmp.Diff(said("enable", "text_poke"), heard(t, func() { err = a.on() })); d != "" || err != nil {
			t.Errorf("%v %s", err, d)
		}
		if d := cmp.Diff(said("disable", "text_poke_bp"), heard(t, func() { err = a.off() })); d != "" ||
			err == nil || err.Error() != os.ErrInvalid.Error() {
			t.Errorf("%v %s", err, d)
		}
		if on, size := r.holds(traced("tracing_on")), r.holds(traced("buffer_size_kb")); on != "0" || size != "4096" {
			t.Errorf("tracing is %s, the buffer has %s kB", on, size)
		}
	})
}

// TestProbedEnds: a program that ends instead of answering is told.
func TestProbedEnds(t *testing.T) {
	input, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	answer, output, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer answer.Close()
	p := []*probed{{nil, in, answer}}
	output.Close()
	if err := hitAll(p); err == nil || err.Error() != "the program that is probed: EOF" {
		t.Error(err)
	}
	input.Close()
	if err := hitAll(p); err == nil || !strings.HasPrefix(err.Error(), "write |1: ") {
		t.Error(err)
	}
}
