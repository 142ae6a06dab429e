// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// put writes the files of a machine below a folder.
func put(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// moduleSource has three branches of a key and a site of a static call that it does not define.
const moduleSource = `void f(void) {}
#define BRANCH ".long f - ., f - .\n.quad sched_schedstats - .\n"
__asm__(".section .modinfo, \"a\"\n.asciz \"license=GPL\"\n.section __jump_table, \"aw\"\n" BRANCH BRANCH BRANCH
	".section .static_call_sites, \"aw\"\n.long f - ., __SCK__tp_func_sched_switch - .\n");
`

// made compiles a module.
func made(t *testing.T, file string) {
	t.Helper()
	put(t, filepath.Dir(file), map[string]string{"m.c": moduleSource})
	if out, err := exec.Command("gcc", "-c", "-o", file, filepath.Join(filepath.Dir(file), "m.c")).CombinedOutput(); err != nil {
		t.Skipf("skipped: gcc: %v: %s", err, out)
	}
}

// TestHere: a folder stands for a machine whose every file is written down here.
func TestHere(t *testing.T) {
	root, k := t.TempDir(), mustKernel(t, "x86_64-6.12")
	const tracing = "sys/kernel/tracing/"
	if _, err := k.Here(root); err == nil || !strings.HasPrefix(err.Error(), "no tracefs can be read at "+root) {
		t.Error(err)
	}
	put(t, root, map[string]string{tracing + "current_tracer": "nop\n"})
	if state, err := k.Here(root); err != nil || len(state) != 0 {
		t.Errorf("nothing is on: %v, %v", state, err)
	}
	made(t, filepath.Join(root, "lib/modules/6.12/extra.ko"))
	made(t, filepath.Join(root, "lib/modules/6.12/kernel/some-thing.ko"))
	put(t, root, map[string]string{
		"proc/sys/kernel/osrelease":                 "6.12\n",
		"lib/modules/6.12/modules.dep":              "kernel/some-thing.ko: extra.ko\nextra.ko:\n",
		"proc/modules":                              "some_thing 1 0 - Live 0x0\nextra 1 1 some_thing, Live 0x0\n",
		"proc/sys/kernel/sched_schedstats":          "1\n",
		"proc/sys/kernel/task_delayacct":            "0\n",
		"sys/devices/system/cpu/nohz_full":          "(null)\n",
		tracing + "options/record-cmd":              "0\n",
		tracing + "current_tracer":                  "function\n",
		tracing + "set_ftrace_filter":               "vfs_read\nvfs_write [m]\nvfs_open:traceoff:unlimited\n",
		tracing + "kprobe_events":                   "p:kprobes/a vfs_read+0x8 x=1\n\nr4:kprobes/b vfs_write\np:kprobes/off vfs_open\n",
		tracing + "set_event":                       "sched:sched_switch\nkprobes:a\nkprobes:b\nuprobes:c\n\n",
		tracing + "instances/one/current_tracer":    "function\n",
		tracing + "instances/one/set_event":         "sched:sched_waking\n",
		tracing + "instances/two/current_tracer":    "function_graph\n",
		tracing + "instances/one/set_ftrace_filter": "#### all functions enabled ####\n",
	})
	want := []string{"sched_schedstats=on", "action=module-load:" + root + "/lib/modules/6.12/extra.ko",
		"action=module-load:" + root + "/lib/modules/6.12/kernel/some-thing.ko", "record-cmd=off", "action=function-tracer:vfs_read vfs_write",
		"action=tracepoint:sched/sched_switch", "action=kprobe:vfs_read+0x8", "action=kretprobe:vfs_write", "recording=on",
		"action=instance", "action=tracepoint:sched/sched_waking", "action=function-graph"}
	state, err := k.Here(root)
	if err != nil || !slices.Equal(state, want) {
		t.Errorf("%v\n%q\n%q", err, state, want)
	}
	image := *k
	image.File = "vmlinuz"
	if _, err := image.Here(root); err != nil {
		t.Error(err)
	}
	for file, c := range map[string][2]string{
		"proc/modules":              {"gone 1 0 - Live 0x0\n", "module gone is loaded, and "},
		"proc/sys/kernel/osrelease": {"6.13\n", `release "6.13" runs here, and vmlinuz is of 6.12`},
		tracing + "current_tracer":  {"wakeup\n", "tracer wakeup is on: no rule holds for it"},
		tracing + "kprobe_events":   {"f:kprobes/a vfs_read\n", `event kprobes/a is on: no rule holds for a probe as "f:kprobes/a"`},
	} {
		before, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		put(t, root, map[string]string{file: c[0]})
		if state, err := image.Here(root); err == nil || !strings.HasPrefix(err.Error(), c[1]) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %q, %v, want %s", file, state, err, c[1])
		}
		put(t, root, map[string]string{file: string(before)})
	}
	put(t, root, map[string]string{"proc/modules": ""})
	if state, err := k.Here(root); err != nil || !slices.Contains(state, "modules=none") {
		t.Errorf("without modules: %q, %v", state, err)
	}
}

// TestLoaded: the branches of a module are a batch of their own, and its sites of static calls are patched too, until it
// is unloaded. Without the option record-cmd an event records no command lines.
func TestLoaded(t *testing.T) {
	k, file := mustKernel(t, "x86_64-6.12"), filepath.Join(t.TempDir(), "m.ko")
	made(t, file)
	module := "action=module-load:" + file
	cost := func(action string, state ...string) int {
		t.Helper()
		sent, _ := both(t, k.In(state), action)
		return sent[0]
	}
	if bare, with := cost("static-key:sched_schedstats"), cost("static-key:sched_schedstats", module); bare != 3 || with != 6 {
		t.Errorf("key: %d, with a module %d", bare, with)
	}
	event := "tracepoint:sched_switch"
	if bare, with := cost(event, "recording=on"), cost(event, "recording=on", module); with-bare != 3 {
		t.Errorf("event: %d, with a module %d", bare, with)
	}
	r, err := k.In([]string{module}).NewReplay(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Switch("module-unload:"+file, true); err != nil || len(r.loaded) != 0 {
		t.Errorf("%d modules, %v", len(r.loaded), err)
	}
	event = "tracepoint:signal_generate" // its tracepoint is none of those that recording hooks, which take 33
	if with, without := cost(event), cost(event, "record-cmd=off"); with-without != 33 || without == 0 {
		t.Errorf("event: %d, without recording %d", with, without)
	}
}
