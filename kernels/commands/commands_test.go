// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/records"
)

// Nothing here is slow; the flag lets go test ./... -long pass through.
var _ = flag.Bool("long", false, "run slow tests")

// machine has five functions, a few events, and modules of which one needs another.
func machine(t testing.TB) Machine {
	t.Helper()
	var raw []records.Raw
	for i, name := range []string{"vfs_open", "vfs_read", "vfs_write", "__x64_sys_openat", "bpf_lsm_file_open"} {
		raw = append(raw, records.Raw{Addr: records.Addr(0x1000 + 16*i), Symbol: name})
	}
	table, err := records.New("five", "x86_64", raw)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	dep := "a/ext4.ko.xz: a/jbd2.ko.xz a/crc16.ko.xz\na/jbd2.ko.xz:\na/crc16.ko.xz:\nb/snd-dummy.ko:\n"
	if err := os.WriteFile(filepath.Join(dir, "modules.dep"), []byte(dep), 0o600); err != nil {
		t.Fatal(err)
	}
	facts := &ledger.Facts{Keys: map[string]int{"perf_swevent_enabled+0x30": 1, "perf_sched_events": 2}, Events: []image.Event{
		{Group: "sched", Name: "sched_switch"}, {Group: "sched", Name: "sched_wakeup"}, {Group: "irq", Name: "softirq_entry"},
		{Group: "ftrace", Name: "function"}, {Group: "raw_syscalls", Name: "sys_enter"}, {Group: "raw_syscalls", Name: "sys_exit"},
	}}
	return Machine{&ledger.Kernel{Facts: facts}, table, dir}
}

// said is a course in words: what begins, what ends where that is not the same, and what is not understood.
func said(c ledger.Course) string {
	c.End = slices.DeleteFunc(slices.Clone(c.End), func(s ledger.Step) bool { return s.Action == "set_ftrace_pid" }) // see TestPids
	words := func(steps []ledger.Step) string {
		var all []string
		for _, s := range steps {
			sign := "-"
			if s.On {
				sign = "+"
			}
			all = append(all, sign+s.Action)
		}
		return strings.Join(all, " ")
	}
	begin, end := words(c.Begin), words(c.End)
	out := begin
	if end != strings.TrimSpace(strings.ReplaceAll(" "+begin, " +", " -")) {
		out += " | " + end
	}
	for _, u := range c.Unknown {
		out += " ? " + u
	}
	return out
}

// TestRead: what command lines switch, by the tools' sources (see each parser).
func TestRead(t *testing.T) {
	m := machine(t)
	const task = "+static-key:perf_sched_events"
	for line, want := range map[string]string{
		"trace-cmd record -p function":                                     "+function-tracer",
		"trace-cmd record -e sched_switch -- sleep 1":                      "+tracepoint:sched/sched_switch",
		"trace-cmd record -e irq":                                          "+tracepoint:irq/softirq_entry",
		"trace-cmd record -e softirq_entry":                                "+tracepoint:irq/softirq_entry",
		"sudo /usr/bin/trace-cmd record -esched:sched_switch -e 'irq:*' x": "+tracepoint:sched/sched_switch +tracepoint:irq/softirq_entry",
		"trace-cmd record -p function -l vfs_read -l vfs_write": "+function-tracer:vfs_read vfs_write | " +
			"-setfilter:vfs_read vfs_write -function-tracer:vfs_read vfs_write",
		"trace-cmd record -p function -l vfs_* -n vfs_read": "+function-tracer:vfs_* !vfs_read | " +
			"+filter-change:vfs_* !vfs_read>!vfs_read -setfilter:!vfs_read -function-tracer:vfs_* !vfs_read",
		"trace-cmd start -p function_graph -g vfs_read -e sched_switch":                                             "+tracepoint:sched/sched_switch +function-graph | ",
		"trace-cmd record -B a -p function":                                                                         "+instance",
		"trace-cmd record -B a -p function_graph":                                                                   " ? tracer function_graph a",
		"trace-cmd record -p irqsoff -P 17 -e nosuch":                                                               " ? option P 17 ? event nosuch, which is not in the image ? tracer irqsoff",
		"trace-cmd record -p function -l schedule:traceoff":                                                         " ? filter schedule:traceoff: a command",
		"perf record -a -e sched:sched_switch,cycles:u,cpu/event=0x3c,umask=0x1/":                                   "+perf-event:sched/sched_switch +function-call:3",
		"perf record -e '{cs,faults}' -- true":                                                                      task + " +static-key:perf_swevent_enabled+0x30 +function-call:1",
		"perf record -a -e probe:vfs_read__return":                                                                  "+perf-kprobe:vfs_read +function-call:3",
		"perf stat -C 1 -e sched:sched_w*":                                                                          "+perf-event:sched/sched_wakeup",
		"perf trace -e openat,sched:sched_switch -p 1":                                                              task + " +perf-event:raw_syscalls/sys_enter +perf-event:raw_syscalls/sys_exit +perf-event:sched/sched_switch",
		"perf trace -a -e sched:sched_switch":                                                                       "+perf-event:sched/sched_switch +function-call:1",
		"perf trace --no-syscalls -F all":                                                                           "+function-call:1 ? -F: page faults",
		"perf ftrace -a -T vfs_read -N vfs_open":                                                                    "+function-tracer:vfs_read !vfs_open",
		"perf ftrace latency -T vfs_read -t function_graph ls":                                                      "+raw-tracepoint:sched_switch +function-graph:vfs_read",
		"perf probe vfs_read":                                                                                       "",
		"bpftrace -e 'kprobe:vfs_read+8,kretprobe:vfs_w* /pid == 1/ { @=count(); }'":                                "+perf-kprobe:vfs_read+8 +kprobe-multi:vfs_w*",
		"bpftrace -e 'BEGIN { printf(\"}\") } t:sched:sched_switch, rt:sched_wakeup { /* } */ }'":                   "+perf-event:sched/sched_switch +raw-tracepoint:sched_wakeup",
		"bpftrace -e 'struct a { int b; }; kfunc:vmlinux:vfs_r*,fr:vfs_write { if (1) { exit(); } } u:/bin/a:b {}'": "+fentry:vfs_read +fexit:vfs_write ? probe u:/bin/a:b",
		"modprobe ext4 some=1":                                                                                      "+module-load:" + m.Modules + "/a/crc16.ko.xz +module-load:" + m.Modules + "/a/jbd2.ko.xz +module-load:" + m.Modules + "/a/ext4.ko.xz",
		"modprobe -a snd_dummy nosuch":                                                                              "+module-load:" + m.Modules + "/b/snd-dummy.ko ? module nosuch, which modules.dep does not have",
		"bpftrace -e 'fentry:nosuch* {}'":                                                                           "+fentry:nosuch*",
		"insmod /x.ko":                                                                                              "+module-load:/x.ko",
	} {
		c, err := Read(line, m)
		if err != nil {
			t.Errorf("%s: %v", line, err)
		} else if d := cmp.Diff(want, said(c)); d != "" {
			t.Errorf("%s: %s", line, d)
		}
	}
}

// TestPids: trace-cmd empties the filter of processes twice in each instance that does something.
func TestPids(t *testing.T) {
	for line, want := range map[string]int{"-p function": 2, "-B a -p function": 2, "-e sched -B a -e irq": 4} {
		c, err := Read("trace-cmd record "+line, machine(t))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, s := range c.End {
			if s.Action == "set_ftrace_pid" {
				n++
			}
		}
		if n != want {
			t.Errorf("%s: %d, want %d", line, n, want)
		}
	}
}

// TestReadRefuses: a word that a tool would refuse is an error in one line.
func TestReadRefuses(t *testing.T) {
	for line, want := range map[string]string{
		"": "not one of", "strace ls": "not one of", "trace-cmd report": "record", "perf top": "record", "trace-cmd record --nosuch": "nosuch",
		"perf record -e": "argument", "bpftrace": "want a program", "bpftrace -e 'BEGIN {'": "no end", "bpftrace -e '}'": "none begins",
		"bpftrace no.bt": "no such file", "modprobe": "no module", "trace-cmd 'record": "quot",
		"bpftrace -e x": "no probe", "bpftrace -e 'struct a;'": "no probe",
	} {
		_, err := Read(line, machine(t))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
}

const tetragonPolicy = `apiVersion: cilium.io/v1alpha1
kind: TracingPolicy
metadata: {name: files}
spec:
  kprobes:
  - {call: sys_openat, syscall: true, return: true}
  - {call: vfs_read, syscall: false, args: [{index: 0, type: file}]}
  tracepoints:
  - {subsystem: sched, event: sched_switch}
  - {subsystem: sched, event: sched_wakeup, raw: true}
  lsmhooks:
  - hook: file_open
  uprobes:
  - {path: /bin/bash, symbols: [readline]}
`

// TestFiles: a policy, a script and a list of modules.
func TestFiles(t *testing.T) {
	m, dir := machine(t), t.TempDir()
	const rest = "+perf-event:sched/sched_switch +raw-tracepoint:sched_wakeup +fexit:bpf_lsm_file_open ? 1 probes in programs"
	alone := tetragonPolicy + "  options:\n  - {name: disable-kprobe-multi, value: \"1\"}\n"
	for name, c := range map[string]struct{ text, want string }{
		"a.yaml": {tetragonPolicy, "+kprobe-multi:__x64_sys_openat vfs_read +kprobe-multi:__x64_sys_openat " + rest},
		"b.yml":  {alone, "+perf-kprobe:__x64_sys_openat +perf-kprobe:vfs_read +perf-kprobe:__x64_sys_openat " + rest},
		"e.yml": {strings.Replace(alone, "\"1\"", "\"true\"", 1), "+perf-kprobe:__x64_sys_openat +perf-kprobe:vfs_read " +
			"+perf-kprobe:__x64_sys_openat " + rest},
		"f.yml": {strings.Replace(alone, "\"1\"", "\"0\"", 1), "+kprobe-multi:__x64_sys_openat vfs_read " +
			"+kprobe-multi:__x64_sys_openat " + rest},
		"c.bt":   {"#!/usr/bin/bpftrace\n// }\nkprobe:vfs_open\n/ comm == \"a\" /\n{ }\n", "+perf-kprobe:vfs_open"},
		"d.conf": {"# sound\nsnd-dummy\n", "+module-load:" + m.Modules + "/b/snd-dummy.ko"},
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Read(file, m)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if d := cmp.Diff(c.want, said(got)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestNothingToRead: a file without a probe is refused, and a function that is not there is named.
func TestNothingToRead(t *testing.T) {
	m, dir := machine(t), t.TempDir()
	for name, c := range map[string]struct{ text, want string }{
		"a.yaml": {"", "no policy"}, "b.bt": {"", "no probe"}, "c.bt": {"\xff\xfe\x00", "no probe"},
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(file, m); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	c := &course{Machine: m}
	text := strings.Replace(tetragonPolicy, "vfs_read", "nosuch", 1)
	if err := c.tetragon(text); err != nil || !strings.Contains(said(c.Course), "? kprobe nosuch ?") {
		t.Errorf("%v, %s", err, said(c.Course))
	}
	if two, err := Read("trace-cmd record\n -p function", m); err != nil || strings.Contains(two.Name, "\n") {
		t.Errorf("%v: the name of a command in two lines is %q", err, two.Name)
	}
}

// fuzz reads texts with one tool: each step has a name that the ledger knows.
func fuzz(f *testing.F, read func(*course, string) error, seeds ...string) {
	m := machine(f)
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := &course{Machine: m}
		if read(c, text) != nil {
			return
		}
		for _, s := range append(c.Begin, c.End...) {
			name, _, _ := strings.Cut(s.Action, ":")
			if !slices.Contains(ledger.ActionNames(), name) {
				t.Errorf("%q: no action %s", text, name)
			}
		}
	})
}

func command(read func(*course, []string) error) func(*course, string) error {
	return func(c *course, text string) error { return read(c, strings.Fields(text)) }
}

func FuzzTraceCmd(f *testing.F) {
	fuzz(f, command((*course).traceCmd), "record -p function -l vfs_* -n a -B b -e sched -a", "start -p function_graph -g x")
}

func FuzzPerf(f *testing.F) {
	fuzz(f, command((*course).perf), "record -a -e {a:b,cs}:u,probe:x_1", "trace -e openat ls", "ftrace -G x", "probe x")
}

func FuzzBpftrace(f *testing.F) {
	fuzz(f, (*course).bpftrace, "BEGIN{} kprobe:a,kr:b* /x/ { \"}\" }", "/* { */ f:a:b{}", "struct x {};t:sched:*{}")
}

func FuzzTetragon(f *testing.F) {
	fuzz(f, (*course).tetragon, tetragonPolicy, "kind: TracingPolicy\n---\n")
}

func FuzzModules(f *testing.F) {
	fuzz(f, command((*course).modprobe), "-a ext4 x", "ext4 a=b")
}
