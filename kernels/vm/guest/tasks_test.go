// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestTasks: a process that another one has started does its task alone, and says why it cannot.
func TestTasks(t *testing.T) {
	was := kinds["own"]
	defer func() { kinds["own"] = was }()
	runtime.LockOSThread() // it ends with the test
	if err := pin(own, 0); err != nil {
		t.Skip("skipped:", err)
	}
	number := `strconv.Atoi: parsing "x": invalid syntax`
	unknown := `the guest knows no action "nothing"`
	for _, c := range []struct{ task, arg, want string }{
		{"spin", "x", number},
		{"spin", "1023", "pin to CPU 1023: invalid argument"},
		{"switch", "0 nothing:y", unknown},
		{"switch", "x nothing", number + "\n" + unknown},
	} {
		if err := run([]string{c.task, c.arg}, true); err == nil || err.Error() != c.want {
			t.Errorf("%s %s: %v, want %s", c.task, c.arg, err, c.want)
		}
	}
	var did []string
	kinds["own"] = func(arg string) (*action, error) {
		note := func(what string) func() error {
			return func() error {
				if did = append(did, what+arg+" on CPU "+allowed("/proc/thread-self/status")); len(did) == 5 {
					return errors.New("enough")
				}
				return nil
			}
		}
		return &action{on: note("on "), off: note("off ")}, nil
	}
	err := run([]string{"switch", "0 own:x y"}, false)
	on, off := "on x y on CPU 0", "off x y on CPU 0"
	if d := cmp.Diff([]string{on, off, on, off, on, off}, did); d != "" || err == nil || err.Error() != "enough" {
		t.Errorf("%v, %s", err, d)
	}
	inRoot(t, nil, func(root) {
		if err := run(nil, true); err == nil || err.Error() != "open /job: no such file or directory" {
			t.Errorf("without a job: %v", err)
		}
	})
}

// TestBegins: proc and sysfs are mounted where they belong, and the guest begins anew on CPU 0, if it is there.
func TestBegins(t *testing.T) {
	for _, c := range []struct{ folders, want string }{
		{"proc sys", "start: no such file or directory"}, // which is /init
		{"proc", "start: mount /sys: no such file or directory"},
		{"sys", "start: mount /proc: no such file or directory"},
	} {
		dir := t.TempDir()
		for name := range strings.FieldsSeq(c.folders) {
			if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		withMounts(t, func() {
			if err := errors.Join(syscall.Unshare(syscall.CLONE_FS), syscall.Chroot(dir), syscall.Chdir("/")); err != nil {
				t.Error(err)
				return
			}
			err := run(nil, false)
			if errors.Is(err, syscall.EPERM) {
				t.Skip("skipped:", err)
			}
			if err == nil || err.Error() != c.want {
				t.Errorf("%s: %v, want %s", c.folders, err, c.want)
			}
			for _, name := range []string{"proc", "sys"} {
				var at syscall.Statfs_t
				kind := map[string]int64{"proc": 0x9fa0, "sys": 0x62656572}[name] // PROC_SUPER_MAGIC, SYSFS_MAGIC
				if there := strings.Contains(c.folders, name); there != (syscall.Statfs("/"+name, &at) == nil && at.Type == kind) {
					t.Errorf("%s: %s is %#x", c.folders, name, at.Type)
				}
			}
			if on := allowed("/proc/thread-self/status"); c.folders != "sys" && on != "0" {
				t.Errorf("the thread may use CPUs %q", on)
			}
		})
	}
}

// TestIdles: a second is a second, switched on or off.
func TestIdles(t *testing.T) {
	a, err := newAction("idle")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := a.on(); err != nil || time.Since(start) < time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
	start = time.Now()
	if idle(3 * time.Millisecond); time.Since(start) < 3*time.Millisecond {
		t.Errorf("idle for %v", time.Since(start))
	}
}

// TestInstances: another instance records nothing, into a small buffer, and has a filter and a tracer of its own. The
// kernel fills the folder that it is made by.
func TestInstances(t *testing.T) {
	const dir = "instances/vm/"
	files := map[string]string{traced(dir + "tracing_on"): "1", traced(dir + "buffer_size_kb"): "1410",
		traced(dir + "set_ftrace_filter"): "old", traced(dir + "current_tracer"): "nop"}
	var asked []string
	inKernel(t, files, func(c call) (uint64, syscall.Errno) {
		asked = append(asked, fmt.Sprint(c.number == unix.SYS_MKDIRAT, string(c.bytes(1, len(traced(dir))))))
		return 0, 0
	}, func() {
		r := root("/")
		a, err := newAction("instance:vfs_*")
		if err != nil {
			t.Error(err)
			return
		}
		if got := r.holds(traced(dir+"tracing_on")) + " " + r.holds(traced(dir+"buffer_size_kb")) + " " +
			r.holds(traced(dir+"set_ftrace_filter")); got != "0 64 vfs_*" {
			t.Error(got)
		}
		if err := a.on(); err != nil || r.holds(traced(dir+"current_tracer")) != "function" {
			t.Errorf("%v, %s", err, r.holds(traced(dir+"current_tracer")))
		}
		if err := a.off(); err != nil || r.holds(traced(dir+"current_tracer")) != "nop" {
			t.Errorf("%v, %s", err, r.holds(traced(dir+"current_tracer")))
		}
		a.close()
		if d := cmp.Diff([]string{"true" + traced(dir), "false" + traced(dir)}, asked); d != "" {
			t.Error(d)
		}
	}, unix.SYS_MKDIRAT, unix.SYS_UNLINKAT)
}

// TestTunnels: where this machine has sockets for tunnels, one is made, of that kind, and closed.
func TestTunnels(t *testing.T) {
	const udp, option, kind = 17, 100, 3 // IPPROTO_UDP, UDP_ENCAP, UDP_ENCAP_L2TPINUDP
	own, err := syscall.Socket(2, 2, 0)  // AF_INET, SOCK_DGRAM
	if err == nil {
		defer syscall.Close(own)
		err = syscall.SetsockoptInt(own, udp, option, kind)
	}
	if err != nil {
		t.Skip("skipped:", err)
	}
	sockets := func() (all []string) {
		list, _ := filepath.Glob("/proc/self/fd/*")
		for _, name := range list {
			if at, _ := os.Readlink(name); strings.HasPrefix(at, "socket:") {
				all = append(all, at)
			}
		}
		return all
	}
	before := sockets()
	a, err := newAction("encapsulation")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.on(); err != nil || len(sockets()) != len(before)+1 {
		t.Errorf("%v, sockets %v", err, sockets())
	}
	if err := a.off(); err != nil || len(sockets()) != len(before) {
		t.Errorf("%v, sockets %v", err, sockets())
	}
}

// TestChurns: who makes page tables is nice.
func TestChurns(t *testing.T) {
	inRoot(t, nil, func(root) { // in a thread that ends
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, 0); err != nil {
			t.Skip("skipped:", err)
		}
		a, err := newAction("churn")
		if err != nil {
			t.Error(err)
			return
		}
		if got, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0); err != nil || got != 20-10 {
			t.Errorf("priority %d, %v", got, err)
		}
		for range 2 {
			if err := errors.Join(a.on(), a.off()); err != nil {
				t.Error(err)
			}
		}
	})
}
