// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/textpoke/textpoke/kernels/gdb"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/kernels/record"
	"github.com/textpoke/textpoke/kernels/vm"
)

var long = flag.Bool("long", false, "run slow tests")

// booted records the x86 kernel that TEXTPOKE_KERNEL names, with something in it changed.
func booted(t *testing.T, action string, mutate func(*gdb.Client, *image.Kernel) error) (*record.Recording, error) {
	t.Helper()
	kernel := os.Getenv("TEXTPOKE_KERNEL")
	if !*long || kernel == "" {
		t.Skip("skipped: boots the kernel that TEXTPOKE_KERNEL names, with -long; .ci/vm does so")
	}
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		t.Skip("skipped: qemu-system-x86_64 is not installed: nothing is booted")
	}
	roles, err := vm.ParseCPUs("3")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := record.Record(ctx, record.Config{Mutate: mutate, Config: vm.Config{Image: kernel, CPUs: roles,
		Repetitions: 1, Actions: []string{action}, Progress: func(s string) { t.Log(s) }}})
	var failed *vm.BootError
	if errors.As(err, &failed) {
		_ = os.Remove(failed.Console)
	}
	if r == nil {
		t.Fatal(err)
	}
	return r, err
}

// batchers change text for a batch, over the releases.
var batchers = []string{"smp_text_poke_batch_finish", "text_poke_bp_batch"}

// body is a function's code, as it lies in the machine: a CPU that is in the kernel sees it.
func body(c *gdb.Client, k *image.Kernel, names ...string) (at uint64, code []byte, err error) {
	for _, name := range names {
		if at, ok := k.Addr(name); ok {
			code, err = c.Read(0, at, int(k.After(at).Addr-at))
			return at, code, err
		}
	}
	return 0, nil, fmt.Errorf("none of %v is there", names)
}

// nop5 is a nop of five bytes (arch/x86/include/asm/nops.h).
var nop5 = []byte{0x0f, 0x1f, 0x44, 0, 0}

// withoutCall overwrites a function's n-th call of another one by a nop, from 0.
func withoutCall(n int, callees []string, callers ...string) func(*gdb.Client, *image.Kernel) error {
	return func(c *gdb.Client, k *image.Kernel) error {
		at, code, err := body(c, k, callers...)
		if err != nil {
			return err
		}
		var targets []uint64
		for _, callee := range callees {
			if addr, ok := k.Addr(callee); ok {
				targets = append(targets, addr)
			}
		}
		for i := 0; i+5 <= len(code); i++ {
			to := at + uint64(i+5) + uint64(int64(int32(binary.LittleEndian.Uint32(code[i+1:]))))
			if code[i] == 0xe8 && slices.Contains(targets, to) {
				if n--; n < 0 {
					return c.Write(0, at+uint64(i), nop5)
				}
			}
		}
		return fmt.Errorf("%v: too few calls of %v", callers, callees)
	}
}

// withoutWaiting changes what is passed for wait to the first round of a batch: mov $1,%ecx before the call.
func withoutWaiting(c *gdb.Client, k *image.Kernel) error {
	at, code, err := body(c, k, batchers...)
	if err != nil {
		return err
	}
	round, _ := k.Addr("on_each_cpu_cond_mask")
	for i := 0; i+5 <= len(code); i++ {
		to := at + uint64(i+5) + uint64(int64(int32(binary.LittleEndian.Uint32(code[i+1:]))))
		if code[i] != 0xe8 || to != round {
			continue
		}
		if n := bytes.LastIndex(code[:i], []byte("\xb9\x01\x00\x00\x00")); n > i-48 {
			return c.Write(0, at+uint64(n+1), []byte{0})
		}
	}
	return errors.New("no round that waits")
}

// anotherByte changes the breakpoint that is stored: movb $0xcc to the stack, or a constant that the code refers to.
func anotherByte(c *gdb.Client, k *image.Kernel) error {
	at, code, err := body(c, k, batchers...)
	if err != nil {
		return err
	}
	for i := 0; i+5 <= len(code); i++ {
		for mode, n := range map[byte]int{0x44: 4, 0x45: 3} { // off(%rsp), off(%rbp)
			if code[i] == 0xc6 && code[i+1] == mode && code[i+n] == 0xcc {
				return c.Write(0, at+uint64(i+n), []byte{0x90})
			}
		}
	}
	for _, name := range batchers {
		for _, at := range k.Refs(name) {
			if b := k.At(at); len(b) > 0 && b[0] == 0xcc && !k.IsText(at) {
				return c.Write(0, at, []byte{0x90})
			}
		}
	}
	return errors.New("no breakpoint is stored")
}

// first is the first step of a kind that what answers to, from 1.
func first(r *record.Recording, k record.Kind, which func(*record.Step) bool) int {
	for i := range r.Steps {
		if s := &r.Steps[i]; s.Kind == k && which(s) {
			return i + 1
		}
	}
	return -1
}

// hasty is the first step in which a sender goes on before every other CPU has answered, from 1.
func hasty(r *record.Recording) int {
	answers := map[int]bool{}
	for i, s := range r.Steps {
		switch s.Kind {
		case record.Round:
			clear(answers)
			answers[s.CPU] = true
		case record.Answer:
			answers[s.CPU] = true
		case record.Done:
			if len(answers) < r.CPUs {
				return i + 1
			}
		}
	}
	return -1
}

func any1(*record.Step) bool { return true }

// TestBooted: a kernel as it is conforms to the protocol that its image names.
func TestBooted(t *testing.T) {
	r, err := booted(t, "function-tracer:vfs_*", nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Check(r, nil)
	if err != nil || got.Misfit != nil {
		t.Fatalf("%v, %v", err, got)
	}
	if got.Stores != 3*got.Sites || got.Rounds != 3*got.Batches || got.Sites < 100 {
		t.Errorf("%+v", got)
	}
}

// TestMutations changes a booted kernel through the debugger. Each change is found at the first step that it makes
// differ, whatever becomes of the kernel afterwards.
func TestMutations(t *testing.T) {
	round, store := []string{"on_each_cpu_cond_mask", "on_each_cpu"}, []string{"__text_poke"}
	length := func(n int) func(*record.Step) bool { return func(s *record.Step) bool { return len(s.New) == n } }
	for name, c := range map[string]struct {
		mutate func(*gdb.Client, *image.Kernel) error
		action string
		where  func(r *record.Recording) int
		want   string
	}{
		"no first round": {withoutCall(0, round, batchers...), "", func(r *record.Recording) int {
			return first(r, record.Store, length(4))
		}, "the plan has Sync 1 here"},
		"no second round": {withoutCall(1, round, batchers...), "", func(r *record.Recording) int {
			return first(r, record.Store, func(s *record.Step) bool { return s.Old[0] == 0xcc })
		}, "the plan has Sync 2 here"},
		"no third round": {withoutCall(2, round, batchers...), "", func(r *record.Recording) int {
			return first(r, record.Unpublish, any1)
		}, "the plan has Sync 3 here"},
		"no breakpoint": {withoutCall(0, store, batchers...), "", func(r *record.Recording) int {
			return first(r, record.Store, any1)
		}, "the plan has Write breakpoint cc"},
		"no tail": {withoutCall(1, store, batchers...), "", func(r *record.Recording) int {
			return first(r, record.End, any1)
		}, "is not a whole instruction"},
		"no head": {withoutCall(2, store, batchers...), "", func(r *record.Recording) int {
			return first(r, record.End, any1)
		}, "a breakpoint stays"},
		"another byte": {anotherByte, "", func(r *record.Recording) int {
			return first(r, record.Store, any1)
		}, "the plan has Write breakpoint cc"},
		"answers held back": {withoutWaiting, "", func(r *record.Recording) int {
			return hasty(r)
		}, "has not answered the round"},
		// xor %eax,%eax; ret
		"handler that knows nothing": {func(c *gdb.Client, k *image.Kernel) error {
			at, _, err := body(c, k, "smp_text_poke_int3_handler", "poke_int3_handler")
			if err != nil {
				return err
			}
			return c.Write(0, at, []byte{0x31, 0xc0, 0xc3})
		}, "function-tracer", func(r *record.Recording) int {
			return first(r, record.Pass, any1)
		}, "the handler does not know a breakpoint that stands there"},
		"no round of kprobes": {withoutCall(0, []string{"smp_text_poke_sync_each_cpu", "text_poke_sync"}, "arch_arm_kprobe"),
			"kprobe:vfs_read+5", func(r *record.Recording) int {
				return 1 + first(r, record.Store, func(s *record.Step) bool { return s.Name == "arch_arm_kprobe" })
			}, "the plan's step Sync 1 is missing before it"},
		// lock orl or movl: what publishes is not stored
		"not published": {withoutPublish, "", func(r *record.Recording) int {
			return first(r, record.Store, any1)
		}, "the plan has Publish here"},
	} {
		t.Run(name, func(t *testing.T) {
			action := c.action
			if action == "" {
				action = "function-tracer:vfs_*"
			}
			r, failed := booted(t, action, c.mutate)
			got, err := Check(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := c.where(r)
			t.Logf("%d steps, %v, %v", len(r.Steps), got.Misfit, failed)
			if got.Misfit == nil || got.Misfit.Step != want || !strings.Contains(got.Misfit.What, c.want) {
				t.Errorf("%v: want step %d, %q", got.Misfit, want, c.want)
			}
		})
	}
}

// withoutPublish leaves out movl $1,bp_desc.refs: of ten bytes, with the distance from its end.
func withoutPublish(c *gdb.Client, k *image.Kernel) error {
	at, code, err := body(c, k, batchers...)
	if err != nil {
		return err
	}
	refs, ok := k.Addr("bp_desc")
	for i := 0; ok && i+10 <= len(code); i++ {
		to := at + uint64(i+10) + uint64(int64(int32(binary.LittleEndian.Uint32(code[i+2:]))))
		if code[i] == 0xc7 && code[i+1] == 0x05 && to == refs+12 {
			return c.Write(0, at+uint64(i), append(bytes.Clone(nop5), nop5...))
		}
	}
	return errors.New("no store that publishes")
}
