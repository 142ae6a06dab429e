// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package live

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// forbidden names, in the environment of a child, the system call that it is to do without.
const forbidden = "TEXTPOKE_TEST_FORBIDDEN"

// forbid lets a system call of this process fail, as sandboxes do (seccomp(2)).
func forbid(number int) error {
	const load, equal, answer = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K,
		unix.BPF_RET | unix.BPF_K
	filter := []unix.SockFilter{
		{Code: load}, // struct seccomp_data begins with the number
		{Code: equal, K: uint32(number), Jf: 1},
		{Code: answer, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: answer, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&program))); e != 0 {
		return e
	}
	return nil
}

// TestRefusals: where the system lacks or forbids what a machine needs, that is an error, and
// the next one can be opened all the same.
func TestRefusals(t *testing.T) {
	if number, err := strconv.Atoi(os.Getenv(forbidden)); err == nil {
		if err := forbid(number); err != nil {
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
	for name, number := range map[string]int{"membarrier": unix.SYS_MEMBARRIER, "memfd_create": unix.SYS_MEMFD_CREATE} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestRefusals$", "-test.v")
		cmd.Env = append(os.Environ(), forbidden+"="+strconv.Itoa(number))
		out, err := cmd.CombinedOutput()
		if strings.Contains(string(out), "cannot forbid") {
			t.Skip(string(out))
		}
		if n := strings.Count(string(out), "\nrefused: "); err != nil || n != 2 {
			t.Errorf("without %s: %v: %s", name, err, out)
		}
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
	if err := a.Close(); err != nil {
		t.Fatal(err)
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
