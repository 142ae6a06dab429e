// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// textpoke is the program, built for a machine; the test is skipped where none can be booted.
func textpoke(t *testing.T) (kernel, file string) {
	t.Helper()
	kernel = os.Getenv("TEXTPOKE_KERNEL")
	if !*long || kernel == "" {
		t.Skip("skipped: boots the kernel that TEXTPOKE_KERNEL names, with -long; .ci/vm does so")
	}
	_, e, err := bootable(kernel, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath(e.qemu); err != nil {
		t.Skipf("skipped: %s is not installed: nothing is booted", e.qemu)
	}
	file = filepath.Join(t.TempDir(), "textpoke")
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", file, "github.com/textpoke/textpoke/cmd/textpoke")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+e.goarch)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return kernel, file
}

// TestServeKernel: textpoke serve, as root with CAP_SYSLOG alone (docs/textpoke-kernel.service), in front of a kernel's own tracer, in a machine that has nothing
// else. Two clients' functions are merged into one filter, trace events and function graph are beside it; a kill loses
// nothing and the next start makes the kernel agree, though its filter was changed meanwhile; what a client disables is off
// though the other's stays; --release leaves nothing.
func TestServeKernel(t *testing.T) {
	kernel, program := textpoke(t)
	roles, err := ParseCPUs("idle=3")
	if err != nil {
		t.Fatal(err)
	}
	const serve = "serve --machine kernel --data /data --log warn"
	const filter = "/sys/kernel/tracing/instances/textpoke/set_ftrace_filter"
	steps := []struct{ do, says, not string }{
		{do: "drop"},
		{do: "start " + serve},
		{do: "until ctl enable --client a --record vfs_read --format csv", says: "live"},
		{do: "run ctl enable --client b --filter vfs_* --format csv", says: "live"},
		{do: "run ctl plan --disable --client b --filter vfs_*", says: "no forecast"},
		{do: "show /sys/kernel/tracing/enabled_functions", says: "vfs_read"},
		{do: "run ctl count --client a --for 2s --format csv", says: "function,vfs_read", not: "vfs_open"},
		{do: "run ctl trace --client b --for 1s", says: ": vfs_", not: "do_filp_open <-"},
		{do: "run ctl disable --client b --filter vfs_* --format csv", says: "live"},
		{do: "show " + filter, says: "vfs_read"},
		{do: "show /proc/interrupts", says: "CAL"},
		{do: "run ctl enable --client c --ops kprobe --record vfs_open", says: "this machine has function, graph, event"},
		{do: "run ctl enable --client e --ops event --filter sched/sched_process_* --format csv", says: "live"},
		{do: "run ctl enable --client g --ops graph --record vfs_open --format csv", says: "graph"},
		{do: "run ctl count --client e --for 2s --format csv", says: "event,sched_process_fork", not: "function,"},
		{do: "run ctl trace --client g --ops graph --for 1s", says: "", not: "vfs_read"},
		{do: "kill", says: "killed"},
		{do: "show " + filter, says: "vfs_read"},
		{do: "write " + filter + " vfs_open"},
		{do: "start " + serve},
		{do: "until ctl enable --client a --record vfs_write --format csv", says: "live"},
		{do: "show " + filter, says: "vfs_read\nvfs_write\n"},
		{do: "show /sys/kernel/tracing/instances/textpoke/set_event", says: "sched:sched_process_fork\n"},
		{do: "run ctl disable --client e --ops event --filter * --format csv", says: "live"},
		{do: "show /sys/kernel/tracing/instances/textpoke/set_event"},
		{do: "run ctl disable --client g --ops graph --filter * --format csv", says: "live"},
		{do: "run ctl disable --client a --filter * --format csv", says: "live"},
		{do: "show /sys/kernel/tracing/instances/textpoke/current_tracer", says: "nop"},
		{do: "show /sys/kernel/tracing/enabled_functions"},
		{do: "stop", says: "exit status 0"},
		{do: "run serve --machine kernel --release"},
		{do: "run serve --verify /data", says: "sound"},
	}
	var script []string
	for _, s := range steps {
		script = append(script, s.do)
	}
	m, err := Measure(t.Context(), Config{Image: kernel, CPUs: roles, Program: program, Repetitions: 1, Memory: 2048,
		Actions: []string{"script:" + strings.Join(script, ";")}, Progress: func(s string) { t.Log(s) }})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Skips) > 0 {
		t.Errorf("skipped: %v", m.Skips)
	}
	told := m.Watched
	for _, s := range steps {
		if verb, _, _ := strings.Cut(s.do, " "); slices.Contains([]string{"start", "write", "drop"}, verb) {
			continue
		}
		if len(told) == 0 {
			t.Fatalf("%s: nothing was told", s.do)
		}
		text := told[0].Text
		t.Logf("%s: exit %d: %.300s", s.do, told[0].Code, text)
		told = told[1:]
		if !strings.Contains(text, s.says) || s.says == "" && s.not == "" && text != "" {
			t.Errorf("%s: says %.300q, want %q", s.do, text, s.says)
		}
		if s.not != "" && strings.Contains(text, s.not) {
			t.Errorf("%s: says %.300q, want no %q", s.do, text, s.not)
		}
	}
}
