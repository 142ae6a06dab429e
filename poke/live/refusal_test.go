// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package live

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/textpoke/textpoke/internal/sandbox"
)

// forbidden names, in the environment of a child, what it is to do without.
const forbidden = "TEXTPOKE_TEST_FORBIDDEN"

// TestRefusals: where the system lacks or forbids what a machine needs, that is an error, and
// the next one can be opened all the same.
func TestRefusals(t *testing.T) {
	if what := os.Getenv(forbidden); what != "" {
		if err := sandbox.Forbid(what); err != nil {
			fmt.Printf("cannot forbid: %v\n", err)
			return
		}
		for range 2 {
			if _, err := Define(8, 1); err == nil || errors.Is(err, ErrOpen) {
				fmt.Printf("not refused: %v\n", err)
			} else {
				fmt.Printf("refused: %v\n", err)
			}
		}
		return
	}
	define(t, 1, 1) // or there is nothing to forbid
	for _, name := range []string{"membarrier", "memfd_create", "executable memory"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestRefusals$", "-test.v")
		cmd.Env = append(os.Environ(), forbidden+"="+name)
		out, err := cmd.CombinedOutput()
		if strings.Contains(string(out), "cannot forbid") {
			t.Skip(string(out))
		}
		if n := strings.Count(string(out), "\nrefused: "); err != nil || n != 2 {
			t.Errorf("without %s: %v: %s", name, err, out)
		}
	}
}

// TestTraced: under a debugger, which would get the breakpoints, there is no machine.
func TestTraced(t *testing.T) {
	if os.Getenv(forbidden) == "untraced" {
		_, err := Define(1, 1)
		fmt.Printf("%v\n", err)
		return
	}
	define(t, 1, 1)
	runtime.LockOSThread() // ptrace answers the thread that traces
	defer runtime.UnlockOSThread()
	var out strings.Builder
	cmd := exec.Command(os.Args[0], "-test.run=^TestTraced$")
	cmd.Env = append(os.Environ(), forbidden+"=untraced")
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd.Stdout = write
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	write.Close()
	for {
		var status unix.WaitStatus
		if _, err := unix.Wait4(cmd.Process.Pid, &status, 0, nil); err != nil || !status.Stopped() {
			break
		}
		sig := status.StopSignal()
		if sig == unix.SIGTRAP { // the stop at its start
			sig = 0
		}
		if err := unix.PtraceCont(cmd.Process.Pid, int(sig)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.Copy(&out, read); err != nil || !strings.Contains(out.String(), ErrTraced.Error()) {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// TestTooMuch: what cannot be laid out is an error before anything is mapped.
func TestTooMuch(t *testing.T) {
	for _, c := range [][2]int{{0, 1}, {1, 0}, {-1, 1}, {1 << 62, 1}, {1, 1 << 50}} {
		if s, err := Define(c[0], c[1]); err == nil {
			_ = s.Close()
			t.Errorf("%d sites, %d threads: no error", c[0], c[1])
		}
	}
	define(t, 1, 1)
}

// TestClosed: what is closed says so, and closing it again takes nothing away from the next.
func TestClosed(t *testing.T) {
	a := define(t, 2, 1)
	c, err := a.Register()
	if err != nil {
		t.Fatal(err)
	}
	c.Unregister()
	c.Unregister()
	if _, err := a.Register(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Register(); err == nil {
		t.Error("there was room for one, and two are registered")
	}
	late := &Caller{a.machine.Threads()[0], a}
	if err := a.Enable(t.Context(), 1); err != nil || !late.Call(1) {
		t.Fatalf("site 1 is not on: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if late.Call(1) {
		t.Error("a site of what is closed is on")
	}
	b := define(t, 2, 1)
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if err := a.Enable(t.Context(), 0); !errors.Is(err, ErrClosed) {
		t.Errorf("enable: %v", err)
	}
	if err := a.Check(); !errors.Is(err, ErrClosed) {
		t.Errorf("check: %v", err)
	}
	if _, err := a.Register(); !errors.Is(err, ErrClosed) {
		t.Errorf("register: %v", err)
	}
	if err := b.Enable(t.Context(), 1); err != nil {
		t.Error(err)
	}
	caller, err := b.Register()
	if err != nil {
		t.Fatal(err)
	}
	if caller.Call(0) || !caller.Call(1) {
		t.Error("site 1 alone was enabled")
	}
}
