// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/commands"
	"github.com/textpoke/textpoke/kernels/ledger"
)

// tools are the programs below a folder, as Debian's packages unpack there, at the paths that they have in it, with perf and
// sleep of this machine and the libraries that all of these need.
func tools(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		if err == nil && !d.IsDir() && !strings.Contains(rel, "/share/") {
			files["/"+rel] = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"perf", "sleep"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("skipped: %v", err)
		}
		files[path] = path
	}
	withLibraries(files, dir)
	return files
}

// withLibraries adds the libraries that programs need to their files: those below a folder are there already.
func withLibraries(files map[string]string, dir string) {
	for _, program := range slices.Collect(maps.Values(files)) {
		ldd := exec.Command("ldd", program)
		ldd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(dir, "usr/lib/x86_64-linux-gnu"))
		out, _ := ldd.Output() // no library, no output
		for f := range strings.FieldsSeq(string(out)) {
			if strings.HasPrefix(f, "/") && (dir == "" || !strings.HasPrefix(f, dir)) {
				files[f] = f
			}
		}
	}
}

// commandLines are those of TestOf: what tools do of which the table of docs/kernels.md tells.
var commandLines = []string{
	"trace-cmd record -o /t -p function -l vfs_* sleep 0.5",
	"trace-cmd record -o /t -e sched:sched_switch sleep 0.5",
	"trace-cmd record -o /t -e sched sleep 0.5",
	"trace-cmd record -o /t -p function_graph -l vfs_read sleep 0.5",
	"trace-cmd record -o /t -B other -p function -l vfs_read -e irq sleep 0.5",
	"trace-cmd record -o /t -p function -l vfs_* -n vfs_read -e sched_wakeup sleep 0.5",
	"perf record -o /p -a -e sched:sched_switch sleep 0.5",
	"perf record -o /p -e sched:sched_switch,page-faults sleep 0.5",
	"perf stat -a -e context-switches,sched:sched_wakeup sleep 0.5",
	"perf trace -e openat sleep 0.5",
	"perf trace -a -e sched:sched_switch,irq:* sleep 0.5",
	"perf ftrace -a -T vfs_* sleep 0.5",
	"perf ftrace -G vfs_read sleep 0.5",
	"perf record -o /p -a -e probe:vfs_read sleep 0.5",
}

// TestOf runs command lines of others in a kernel of Linux 6.5 or later for x86, and counts which functions are called on
// an isolated CPU meanwhile: as often as kernels/commands and the ledger say, text by text. What else is called on it is
// told. TEXTPOKE_TOOLS is a folder with trace-cmd and its libraries, as Debian's packages unpack there.
func TestOf(t *testing.T) {
	kernel, dir := os.Getenv("TEXTPOKE_KERNEL"), os.Getenv("TEXTPOKE_TOOLS")
	if !*long || kernel == "" || dir == "" {
		t.Skip("skipped: boots the kernel that TEXTPOKE_KERNEL names, with the tools of TEXTPOKE_TOOLS, with -long")
	}
	k, err := ledger.Open(kernel)
	if err != nil {
		t.Fatal(err)
	}
	const instance = tracefsMount + "instances/observer/"
	steps := []string{"mkdir " + instance, "write " + instance + "buffer_size_kb 4096",
		"write " + instance + "events/csd/csd_queue_cpu/filter cpu == 2", "write " + instance + "events/csd/csd_queue_cpu/enable 1"}
	// The first tracer since boot has its trampoline made.
	steps = append(steps, "run /usr/bin/perf probe vfs_read", "run /usr/bin/"+commandLines[0], "run /usr/bin/"+commandLines[3],
		"run /usr/bin/"+commandLines[len(commandLines)-1])
	for _, line := range commandLines {
		steps = append(steps, "write "+instance+"trace 0", "run /usr/bin/"+line, "run /usr/bin/sleep 2", "show "+instance+"trace")
	}
	roles, err := ParseCPUs("idle=3,isolated=1")
	if err != nil {
		t.Fatal(err)
	}
	m, err := scripting(t, Config{Image: kernel, CPUs: roles, Memory: 2048,
		Actions: []string{"script:" + strings.Join(steps, ";")}}, tools(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	if want := 4 + 3*len(commandLines); len(m.Skips) > 0 || len(m.Watched) != want {
		t.Fatalf("skipped %v; %d answers, want %d", m.Skips, len(m.Watched), want)
	}
	for i, line := range commandLines {
		ran, trace := m.Watched[4+3*i], m.Watched[6+3*i]
		if ran.Code != 0 {
			t.Errorf("%s: exit %d: %s", line, ran.Code, ran.Text)
			continue
		}
		want := calledOf(t, k, line)
		got := map[string]int{}
		for _, f := range regexp.MustCompile(`func=(\w+)`).FindAllStringSubmatch(trace.Text, -1) {
			got[f[1]]++
		}
		t.Logf("%s: called %v, forecast %v", line, got, want)
		for f, n := range want {
			if got[f] != n {
				t.Errorf("%s: %s is called %d times, %d are forecast", line, f, got[f], n)
			}
		}
	}
}

// calledOf is how often a command has each function called on another CPU, while an observer's event is on.
func calledOf(t *testing.T, k *ledger.Kernel, line string) map[string]int {
	t.Helper()
	course, err := commands.Read(line, commands.Machine{Kernel: k, Table: k.Own})
	if err != nil {
		t.Fatal(err)
	}
	r, err := k.In([]string{"action=tracepoint:csd/csd_queue_cpu"}).NewReplay(k.Own)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"do_sync_core": 0, "remote_function": 0, "ftrace_sync_ipi": 0}
	for _, step := range append(course.Begin, course.End...) {
		sent, err := r.Switch(step.Action, step.On)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range sent {
			switch {
			case l.Part == "core-sync":
				want["ftrace_sync_ipi"] += l.Rounds()
			case l.Part == "function-calls":
				want["remote_function"] += l.Rounds()
			case l.Cause <= cpus.EntryCall:
				want["do_sync_core"] += l.Rounds()
			}
		}
	}
	return want
}
