// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// action is something that can be switched on and off again.
type action struct {
	prepare func() error // done before each repetition, and not counted; nil for nothing
	on, off func() error
	again   func() error // what is counted between the two; nil for nothing
	close   func()       // takes back what was prepared; nil for nothing
}

// kinds are the actions by the part of their name before the colon; the argument stands behind it.
var kinds = map[string]func(arg string) (*action, error){
	"function-tracer": func(arg string) (*action, error) { return tracer("function", arg) },
	"function-graph":  func(arg string) (*action, error) { return tracer("function_graph", arg) },
	"tracepoint":      tracepoint,
	"event-group":     eventGroup,
	"static-key":      staticKey,
	"kprobe":          func(arg string) (*action, error) { return kprobe("p", arg) },
	"kretprobe":       func(arg string) (*action, error) { return kprobe("r", arg) },
	"instance":        instance,
	"filter-change":   filterChange,
	"setfilter":       func(arg string) (*action, error) { return filterChange(">" + arg) },
	"record-cmd=0":    recordCmd,
	"kprobe-multi":    kprobeMulti,
	"tracing-multi":   tracingMulti,
	"fentry":          func(arg string) (*action, error) { return trampoline(traceFentry, arg) },
	"fexit":           func(arg string) (*action, error) { return trampoline(traceFexit, arg) },
	"module-load":     module,
	"uprobe":          uprobe,
	"trap":            trap,
	"optimizer":       optimizer,
	"encapsulation":   encapsulation,
	"recalled":        recalled,
	"reload":          reload,
	"churn":           churn,
	"hotplug":         hotplug,
	"on-the-way-up":   traceWayUp,
	"idle":            func(string) (*action, error) { return &action{on: second, off: second}, nil },
}

func newAction(name string) (*action, error) {
	kind, arg, _ := strings.Cut(name, ":")
	switch kind {
	case "callers":
		return called(arg)
	case "together":
		return together(arg)
	}
	f, ok := kinds[kind]
	if !ok {
		return nil, fmt.Errorf("the guest knows no action %q", kind)
	}
	return f(arg)
}

func second() error {
	time.Sleep(time.Second)
	return nil
}

// writes is an action that is one file and its two texts.
func writes(file, on, off string) (*action, error) {
	if _, err := os.Stat(file); err != nil {
		return nil, err
	}
	return &action{
		on:  func() error { return write(file, on) },
		off: func() error { return write(file, off) },
	}, nil
}

// tracer is a tracer of functions; the argument is a filter.
func tracer(name, filter string) (*action, error) {
	have, err := os.ReadFile(tracing + "available_tracers")
	if err != nil {
		return nil, err
	}
	if !strings.Contains(" "+strings.TrimSpace(string(have))+" ", " "+name+" ") {
		return nil, fmt.Errorf("the kernel has no tracer %s, only %s", name, strings.TrimSpace(string(have)))
	}
	a, err := writes(tracing+"current_tracer", name, "nop")
	if err != nil || filter == "" {
		return a, err
	}
	if err := write(tracing+"set_ftrace_filter", filter); err != nil {
		return nil, fmt.Errorf("filter %q: %w", filter, err)
	}
	a.close = func() { _ = write(tracing+"set_ftrace_filter", "") }
	return a, nil
}

// instance is the function tracer of another instance; the argument is a filter.
func instance(filter string) (*action, error) {
	const dir = tracing + "instances/vm/"
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	gone := func() { _ = os.Remove(dir) }
	for _, w := range [][2]string{{"tracing_on", "0"}, {"buffer_size_kb", "64"}, {"set_ftrace_filter", filter}} {
		if err := write(dir+w[0], w[1]); err != nil {
			gone()
			return nil, fmt.Errorf("instance: %s: %w", w[0], err)
		}
	}
	a, err := writes(dir+"current_tracer", "function", "nop")
	if err != nil {
		gone()
		return nil, err
	}
	a.close = gone
	return a, nil
}

// filterChange changes the function tracer's filter while it is on; the argument is FROM>TO.
func filterChange(filters string) (*action, error) {
	from, to, ok := strings.Cut(filters, ">")
	if !ok {
		return nil, fmt.Errorf("%q: want two filters", filters)
	}
	a, err := tracer("function", from)
	if err != nil {
		return nil, err
	}
	const file = tracing + "set_ftrace_filter"
	if err := errors.Join(write(file, to), write(file, from), a.on()); err != nil {
		return nil, err
	}
	nop := a.off
	a.on, a.off = func() error { return write(file, to) }, func() error { return write(file, from) }
	a.close = func() { _ = errors.Join(nop(), write(file, "")) }
	return a, nil
}

// tracepoint is one trace event, GROUP/NAME or NAME.
func tracepoint(name string) (*action, error) {
	if !strings.Contains(name, "/") {
		name = "*/" + name
	}
	found, err := filepath.Glob(tracing + "events/" + name + "/enable")
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%d trace events of the name %s", len(found), name)
	}
	return writes(found[0], "1", "0")
}

// recordCmd clears the option record-cmd while a trace event is on, and sets it again.
func recordCmd(name string) (*action, error) {
	if name == "" {
		name = "sched/sched_switch"
	}
	event, err := tracepoint(name)
	if err != nil {
		return nil, err
	}
	a, err := writes(tracing+"options/record-cmd", "0", "1")
	if err == nil {
		err = event.on()
	}
	if err != nil {
		return nil, err
	}
	a.close = func() { _ = event.off() }
	return a, nil
}

// eventGroup is all trace events of a group, or all of all with the name "all".
func eventGroup(name string) (*action, error) {
	if name == "all" {
		return writes(tracing+"events/enable", "1", "0")
	}
	return writes(tracing+"events/"+name+"/enable", "1", "0")
}

// keys are static keys that a file switches.
var keys = map[string]struct{ file, on string }{
	"sched_schedstats":                 {"kernel/sched_schedstats", "1"},           // kernel/sched/core.c
	"bpf_stats_enabled_key":            {"kernel/bpf_stats_enabled", "1"},          // kernel/bpf/syscall.c
	"delayacct_key":                    {"kernel/task_delayacct", "1"},             // kernel/delayacct.c
	"net_high_order_alloc_disable_key": {"net/core/high_order_alloc_disable", "1"}, // net/core/sock.c
	"hugetlb_optimize_vmemmap_key":     {"vm/hugetlb_optimize_vmemmap", "1"},       // mm/hugetlb_vmemmap.c
	"sched_numa_balancing":             {"kernel/numa_balancing", "1"},             // kernel/sched/core.c
}

func staticKey(name string) (*action, error) {
	k, ok := keys[name]
	if !ok {
		return nil, fmt.Errorf("the guest knows no file that switches the key %q", name)
	}
	return writes("/proc/sys/"+k.file, k.on, "0")
}

// kprobe is an event of a probe at SYMBOL or SYMBOL+OFFSET, which is made beforehand.
func kprobe(kind, where string) (*action, error) {
	if where == "" {
		where = "vfs_read"
	}
	if err := add(tracing+"kprobe_events", fmt.Sprintf("%s:vm/probe %s\n", kind, where)); err != nil {
		return nil, fmt.Errorf("kprobe at %s: %w", where, err)
	}
	a, err := writes(tracing+"events/vm/probe/enable", "1", "0")
	if err != nil {
		return nil, err
	}
	// An optimised probe becomes a jump some time later (kernel/kprobes.c: OPTIMIZE_DELAY, five jiffies).
	on := a.on
	a.on = func() error {
		err := on()
		later()
		return err
	}
	a.close = func() { _ = write(tracing+"kprobe_events", "") }
	return a, nil
}

// later waits until the kernel has done its deferred work, such as freeing the init text of a module: until no worker is
// called by its work (kworker/u8:1+events_unbound; wq_worker_comm, kernel/workqueue.c), or for a minute.
func later() {
	for range 300 {
		time.Sleep(200 * time.Millisecond)
		if len(tasks(working)) == 0 {
			return
		}
	}
}

func working(name string) bool {
	return strings.HasPrefix(name, "kworker/") && strings.Contains(name, "+")
}

// tasks are the numbers of processes, and of the kernel's threads, that have such names.
func tasks(named func(string) bool) (ids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, file := range files {
		name, _ := os.ReadFile(file)
		if id, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && named(string(name)) {
			ids = append(ids, id)
		}
	}
	return ids
}

// module is a kernel module in the initramfs.
func module(file string) (*action, error) {
	text, err := os.ReadFile("/" + file)
	if err != nil {
		return nil, err
	}
	name := moduleName(file)
	return &action{
		on: func() error {
			defer later()
			return initModule(file, text)
		},
		off: func() error {
			defer later()
			return unload(name)
		},
	}, nil
}

func unload(name string) error {
	p, err := syscall.BytePtrFromString(name)
	if err != nil {
		return err
	}
	return uninterrupted("unload "+name, func() syscall.Errno {
		_, _, e := syscall.Syscall(syscall.SYS_DELETE_MODULE, uintptr(unsafe.Pointer(p)), 0, 0)
		return e
	})
}

// uninterrupted makes a system call until no signal, such as those of Go's scheduler, has ended what it
// waits for: module_mutex (kernel/module/main.c) while another module comes or goes.
func uninterrupted(what string, call func() syscall.Errno) error {
	e := call()
	for e == syscall.EINTR {
		e = call()
	}
	if e != 0 {
		return fmt.Errorf("%s: %w", what, e)
	}
	return nil
}

// moduleName is what the kernel calls the module of a file.
func moduleName(file string) string {
	return strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".ko"), "-", "_")
}

func loadModule(file string) error {
	text, err := os.ReadFile("/" + file)
	if err != nil {
		return err
	}
	return initModule(file, text)
}

func initModule(file string, text []byte) error {
	args := []byte{0}
	return uninterrupted("load "+file, func() syscall.Errno {
		_, _, e := syscall.Syscall(syscall.SYS_INIT_MODULE, uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)),
			uintptr(unsafe.Pointer(&args[0])))
		return e
	})
}
