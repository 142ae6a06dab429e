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

// TestProcessesHitSites: so many processes of the program are started, each takes a byte and answers, before the
// probes, with them, and again; all of them end.
func TestProcessesHitSites(t *testing.T) {
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	inRoot(t, map[string]string{"/probed-program.sites": "0x10\n", "/probed-program": string(program),
		traced("uprobe_events"): "", "/hits": "",
		traced("options/record-cmd"): "1", traced("events/vm/enable"): "0"}, func(r root) {
		if err := os.Chmod("/probed-program", 0o700); err != nil {
			t.Error(err)
			return
		}
		a, err := newAction("uprobe:program@2")
		if err != nil {
			t.Error(err)
			return
		}
		hits := ""
		for range 2 {
			for i, do := range []func() error{a.prepare, a.on, a.again, a.off} {
				if err := do(); err != nil {
					t.Errorf("%v", err)
					return
				}
				if hits += []string{"00", "11", "11", ""}[i]; r.holds("/hits") != hits {
					t.Errorf("hits without probes and with: %s, want %s", r.holds("/hits"), hits)
				}
			}
		}
		if a.close(); children() {
			t.Error("a process goes on")
		}
		all, err := startAll("/probed-program", 3)
		if err != nil || len(all) != 3 {
			t.Errorf("%d processes, %v", len(all), err)
		}
		if err := hitAll(all); err != nil {
			t.Error(err)
		}
		if err := endAll(all); err != nil {
			t.Error(err)
		}
		for _, p := range all {
			if err := p.process.Kill(); err == nil {
				t.Errorf("process %d goes on", p.process.Pid)
			}
		}
		if err := hitAll(all); err == nil {
			t.Error("a process that has ended is hit")
		}
		if all, err := startAll("/none", 1); len(all) != 0 || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%d processes of no program, %v", len(all), err)
		}
	})
}

// TestStarts: another process is the guest itself, with the task that it has, and this one's files.
func TestStarts(t *testing.T) {
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	inRoot(t, map[string]string{"/init": string(program), "/started": ""}, func(r root) {
		if err := os.Chmod("/init", 0o700); err != nil {
			t.Error(err)
			return
		}
		pid, err := another("spin", "3")
		if err != nil {
			t.Error(err)
			return
		}
		for end := time.Now().Add(time.Minute); r.holds("/started") == "" && time.Now().Before(end); {
		}
		if got := r.holds("/started"); got != "spin 3\n" {
			t.Errorf("%q", got)
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
		_, _ = syscall.Wait4(pid, nil, 0, nil)
	})
	inRoot(t, nil, func(root) {
		if pid, err := another("spin", "1"); err == nil {
			t.Errorf("process %d of no program", pid)
		}
	})
}

// TestTogether: the first action is switched on and off here, at least once, the others by a process each, one on CPU
// 1, the next on CPU 0; when it is over these are gone.
func TestTogether(t *testing.T) {
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	inRoot(t, map[string]string{"/init": string(program), "/started": "", cpu1: "0", traced("options/record-cmd"): "1",
		"/proc/sys/kernel/task_delayacct": "?"}, func(r root) {
		if err := os.Chmod("/init", 0o700); err != nil {
			t.Error(err)
			return
		}
		if err := pin(own, 0); err != nil {
			t.Skip("skipped:", err)
		}
		a, err := newAction("together:0:static-key:delayacct_key&churn&&idle")
		if err != nil {
			t.Error(err)
			return
		}
		if err := errors.Join(a.on(), a.off(), a.prepare()); err != nil {
			t.Error(err)
		}
		if r.holds("/proc/sys/kernel/task_delayacct") != "0" || r.holds(traced("options/record-cmd")) != "0" ||
			r.holds(cpu1) != "1" {
			t.Errorf("%q, %q, %q", r.holds("/proc/sys/kernel/task_delayacct"), r.holds(traced("options/record-cmd")),
				r.holds(cpu1))
		}
		if children() {
			t.Error("a process goes on")
		}
		for line := range strings.Lines(r.holds("/started")) { // as far as they got
			if line != "switch 1 churn\n" && line != "switch 1 idle\n" {
				t.Errorf("%q was started", line)
			}
		}
	})
}

// children tells whether a process of this one goes on, or has ended and nobody has asked.
func children() bool {
	_, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
	return !errors.Is(err, syscall.ECHILD)
}

// TestIdleAndChurn: doing nothing can be switched on and off; page tables are made and freed as often as it is asked for.
func TestIdleAndChurn(t *testing.T) {
	if a, err := newAction("idle"); err != nil || a == nil || a.on == nil || a.off == nil || a.prepare != nil {
		t.Errorf("%+v, %v", a, err)
	}
	inRoot(t, nil, func(root) { // in a thread that ends: it is nice from here on
		a, err := newAction("churn")
		if err != nil {
			t.Error(err)
			return
		}
		for range 2 {
			if err := errors.Join(a.on(), a.off()); err != nil {
				t.Error(err)
			}
		}
		if err := a.off(); err == nil {
			t.Error("what is gone is freed again")
		}
		a, err = newAction("encapsulation")
		if err != nil {
			t.Error(err)
			return
		}
		if err := a.on(); err != nil {
			t.Skip("skipped: no sockets for tunnels:", err)
		}
		if err := a.off(); err != nil {
			t.Error(err)
		}
		if err := a.off(); err == nil {
			t.Error("a socket that is closed is closed again")
		}
	})
}

// TestFilesAreClosed: reading a file by its lines leaves none open, whether all of them are read or not.
func TestFilesAreClosed(t *testing.T) {
	file := t.TempDir() + "/lines"
	if err := os.WriteFile(file, []byte("a b\nc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	next := func() uintptr {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		return f.Fd()
	}
	next() // what the runtime opens for itself is open now
	before := next()
	for enough, want := range []string{"[a b] ", "[a b] [c] "} {
		said := ""
		err := eachLine(file, func(fields []string) bool {
			said += fmt.Sprint(fields, " ")
			return enough > 0
		})
		if err != nil || said != want {
			t.Errorf("%q, %v", said, err)
		}
	}
	if after := next(); after != before {
		t.Errorf("the next file is number %d, and was %d", after, before)
	}
}
