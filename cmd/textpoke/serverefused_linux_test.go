// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// tracing is the files of a tracefs with an idle instance.
func tracing() map[string]string {
	return map[string]string{
		"available_tracers": "function_graph function nop\n", "current_tracer": "nop\n",
		"available_filter_functions": "a\nb\n", "available_filter_functions_addrs": "ffffffff81000010 a\nffffffff81000020 b\n",
		"available_events": "sched:sched_switch\n", "instances/textpoke/current_tracer": "nop\n",
		"instances/textpoke/set_event": "", "instances/textpoke/set_ftrace_filter": "#### all functions enabled ####\n",
	}
}

// written writes files below a folder.
func written(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// contents are the files and folders below a folder.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		all[path] = "a folder"
		if err == nil && !d.IsDir() {
			b, bad := os.ReadFile(path)
			all[path], err = string(b), bad
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// elsewhere runs a program, in a namespace of mounts of its own, where a folder's tracing, security and debug are those of
// sysfs, and the folder's textpoke is this program.
const elsewhere = `cd "$1"; for d in tracing security debug; do mount --bind $d /sys/kernel/$d; done; mount --bind "$2" textpoke
shift 2; exec "$@"`

// TestServeRefused: a kernel that cannot be served is refused in one line that says what is missing, with exit code 2, and
// nothing of tracefs is changed.
func TestServeRefused(t *testing.T) {
	if out, err := exec.Command("unshare", "-m", "mount", "-t", "tmpfs", "none", "/sys/kernel/security").CombinedOutput(); err != nil {
		t.Skipf("skipped: wants to mount in a namespace of its own: %v %s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const foreign = "instance textpoke traces, and no server with --data DATA has made it since the machine was booted: " +
		"--instance names another, and --release takes this one away"
	for name, c := range map[string]struct {
		without  string            // names that begin with it
		changes  map[string]string // of the files
		lockdown string
		nobody   bool // is the user
		mode     fs.FileMode
		held     bool // by another server
		says     string
	}{
		"not mounted": {mode: 0o755, says: "no tracefs at /sys/kernel/tracing or /sys/kernel/debug/tracing: root can mount it " +
			"(mount -t tracefs nodev /sys/kernel/tracing), unless the kernel has none or is locked down"},
		"no rights": {without: "-", nobody: true, mode: 0o700, says: "tracefs at /sys/kernel/tracing: no permission: be root, or of " +
			"the group that owns the mount (mount -o remount,gid=GROUP,mode=770 /sys/kernel/tracing)"},
		"no right to write": {without: "instances/", nobody: true, mode: 0o755,
			says: "instance textpoke: it is not there, and cannot be made in /sys/kernel/tracing/instances: permission denied"},
		"lockdown": {without: "-", nobody: true, mode: 0o700, lockdown: "none integrity [confidentiality]\n", says: "tracefs at " +
			"/sys/kernel/tracing: the kernel is locked down for confidentiality, and refuses it to all users (kernel_lockdown(7))"},
		"no dynamic ftrace": {without: "available_filter_functions", mode: 0o755,
			says: "the kernel has no dynamic ftrace: it needs CONFIG_FUNCTION_TRACER and CONFIG_DYNAMIC_FTRACE"},
		"a tracer of somebody's": {without: "-", mode: 0o755,
			changes: map[string]string{"instances/textpoke/current_tracer": "function\n"},
			says:    foreign},
		"events of somebody's": {without: "-", mode: 0o755,
			changes: map[string]string{"instances/textpoke/set_event": "sched:sched_switch\n"},
			says:    foreign},
		"another server": {without: "-", mode: 0o755, held: true,
			says: "instance textpoke: another server holds it"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			mount, above := filepath.Join(dir, "tracing"), filepath.Join(dir, "data")
			data := filepath.Join(above, "new")
			for _, d := range []string{"tracing/instances", "security", "debug", "data"} {
				if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			files := tracing()
			maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasPrefix(name, c.without) })
			maps.Copy(files, c.changes)
			written(t, mount, files)
			written(t, dir, map[string]string{"security/lockdown": c.lockdown, "textpoke": ""})
			for path, mode := range map[string]fs.FileMode{filepath.Dir(dir): 0o755, mount: c.mode, above: 0o777} {
				if err := os.Chmod(path, mode); err != nil {
					t.Fatal(err)
				}
			}
			if c.held {
				f, err := os.Open(filepath.Join(mount, "instances/textpoke"))
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
					t.Fatal(err)
				}
			}
			before := contents(t, mount)
			args := []string{"-m", "sh", "-ec", elsewhere, "sh", dir, self}
			if c.nobody {
				args = append(args, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
			}
			serve := exec.Command("unshare", append(args, "./textpoke", "serve", "--machine", "kernel", "--log", "error", "--data", data,
				"--listen", "127.0.0.1:0")...)
			var said strings.Builder
			serve.Stderr = &said
			_ = serve.Run()
			want := "textpoke: " + strings.ReplaceAll(c.says, "DATA", data) + "\n"
			if code := serve.ProcessState.ExitCode(); code != exitWrong || said.String() != want {
				t.Errorf("exit %d, says\n%swant %d and\n%s", code, &said, exitWrong, want)
			}
			if _, err := os.Stat(data); err == nil {
				t.Error("it has made its directory")
			}
			if after := contents(t, mount); !maps.Equal(after, before) {
				t.Errorf("it changed\n%v, to\n%v", before, after)
			}
		})
	}
}
