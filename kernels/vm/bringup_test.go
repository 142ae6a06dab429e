// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/textpoke/textpoke/kernels/gdb"
	"github.com/textpoke/textpoke/kernels/image"
)

// TestHitWhileBroughtUp forces on a kernel what docs/findings.md says of ftrace and CPUs that are brought up: one
// that is stopped between a breakpoint and its handler, as a host may stop it, is waited for while it is online, and
// all goes on. Before it is, nobody waits; the batch is dropped, and the kernel dies of a breakpoint that nobody
// knows. Boots the x86 kernel that TEXTPOKE_KERNEL names; it must be one since Linux 6.3.
func TestHitWhileBroughtUp(t *testing.T) {
	kernel := os.Getenv("TEXTPOKE_KERNEL")
	if !*long || kernel == "" {
		t.Skip("skipped: boots the kernel that TEXTPOKE_KERNEL names, with -long")
	}
	_, e, err := bootable(kernel, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath(e.qemu); err != nil || e.arch != "x86_64" {
		t.Skipf("skipped: %s is not installed, or the kernel is of %s: nothing is booted", e.qemu, e.arch)
	}
	img, err := image.Open(kernel)
	if err != nil {
		t.Fatal(err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(img.Release, "%d.%d", &major, &minor); err != nil || major < 6 || major == 6 && minor < 3 {
		t.Skipf("skipped: %s is not of Linux 6.3 or later", img.Release)
	}
	s, err := newStopper(t, img)
	if err != nil {
		t.Fatal(err)
	}
	roles, err := ParseCPUs("2")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	m, err := Measure(ctx, Config{Image: kernel, CPUs: roles, Repetitions: 1, Actions: []string{"bring-up:240"},
		Debug: s.force, Progress: func(line string) { t.Log(line) }})
	if m != nil && len(m.Skips) > 0 {
		t.Fatal(m.Skips)
	}
	var died *BootError
	if !errors.As(err, &died) || !errors.Is(err, ErrDied) {
		t.Fatalf("%v: want a kernel that panicked", err)
	}
	console, err := os.ReadFile(died.Console)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"int3: 0000", "CPU: 1 ", "Kernel panic"} {
		if !bytes.Contains(console, []byte(want)) {
			t.Errorf("the console does not say %q: %s", want, died.Console)
		}
	}
	if !t.Failed() {
		_ = os.Remove(died.Console)
	}
}

// stopper stops CPUs where they are to be.
type stopper struct {
	*gdb.Client
	err                        error // the first one; nothing is asked after it
	t                          *testing.T
	handler, round, mask, site uint64 // where they lie; the site is that of the function
	function                   uint64 // that a CPU executes before it is online
}

func newStopper(t *testing.T, img *image.Kernel) (*stopper, error) {
	s := &stopper{t: t}
	for name, at := range map[string]*uint64{"notify_cpu_starting": &s.function, "on_each_cpu_cond_mask": &s.round,
		"__cpu_online_mask": &s.mask, "poke_int3_handler": &s.handler, "smp_text_poke_int3_handler": &s.handler} {
		if addr, ok := img.Addr(name); ok {
			*at = addr
		}
	}
	for _, at := range img.Records.Sites {
		if at >= s.function && at < s.function+16 {
			s.site = at
		}
	}
	if s.handler == 0 || s.mask == 0 || s.round == 0 || s.site == 0 {
		return nil, fmt.Errorf("a symbol is not there: %+v", *s)
	}
	return s, nil
}

// held is for how long a CPU is not given any time.
const held = time.Second

// force holds CPU 1 at the handler while it is online, which the kernel outlives, and then while it is not yet: stopped
// in a function of the way up, it waits until CPU 0 has written a breakpoint there, runs into it, and is held.
func (s *stopper) force(ctx context.Context, socket string, begin func() error) error {
	client, _, err := gdb.Dial(ctx, "unix", socket, gdb.LayoutOf("x86_64"))
	if err != nil {
		return err
	}
	defer client.Close()
	s.Client, s.err = client, begin()
	online := func(cpu int) bool { return s.bytes(cpu, s.mask, 1)[0]&2 != 0 }
	s.until(s.handler, -1, func(cpu int) bool { return cpu == 1 && online(cpu) })
	s.t.Log("CPU 1 is online and runs into a breakpoint")
	s.hold()
	s.until(s.function, -1, func(cpu int) bool { return cpu == 1 && !online(cpu) })
	s.t.Log("CPU 1 is on its way up")
	s.until(s.round, 0, func(cpu int) bool { return s.bytes(cpu, s.site, 1)[0] == breakpoint })
	s.until(s.handler, 1, func(int) bool { return true })
	before, mask := s.bytes(1, s.site, 5), s.bytes(1, s.mask, 1)
	s.hold()
	s.t.Logf("with CPUs %#x online, CPU 1 has run into % x at %#x; after %v it is % x", mask, before, s.site, held,
		s.bytes(1, s.site, 5))
	return errors.Join(s.err, s.Detach())
}

// bytes reads memory; the first error stays.
func (s *stopper) bytes(cpu int, at uint64, n int) []byte {
	var b []byte
	if s.err == nil {
		b, s.err = s.Read(cpu, at, n)
	}
	return append(b, make([]byte, n)...)[:n]
}

// hold lets CPU 0 alone go on for a while.
func (s *stopper) hold() {
	if s.err == nil {
		s.err = s.Only(0)
	}
	if s.err == nil {
		_, s.err = s.WaitFor(held)
	}
}

// until lets one CPU go on, or all with -1, until one comes to an address and that is what was wanted.
func (s *stopper) until(at uint64, who int, wanted func(cpu int) bool) {
	for s.err == nil {
		stop, err := s.next(at, who)
		if s.err = err; err != nil || wanted(stop.CPU) {
			return
		}
		s.err = s.Step(stop.CPU)
	}
}

// next lets CPUs go on until one comes to an address.
func (s *stopper) next(at uint64, who int) (gdb.Stop, error) {
	err := s.Insert(at)
	if err == nil && who < 0 {
		err = s.Continue()
	} else if err == nil {
		err = s.Only(who)
	}
	if err != nil {
		return gdb.Stop{}, err
	}
	stop, err := s.Wait()
	return stop, errors.Join(err, s.Remove(at))
}

const breakpoint = 0xcc
