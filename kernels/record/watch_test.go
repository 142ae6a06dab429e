// SPDX-License-Identifier: Apache-2.0

package record

import (
	"debug/elf"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/records/fakekernel"
	"github.com/textpoke/textpoke/records/vmlinux"
)

// watched are the functions that rules find, with their evidence, and the notes.
func watched(t *testing.T, k *image.Kernel) (out []string) {
	t.Helper()
	list, notes, err := Watches(k)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range list {
		out = append(out, string(w.Kind)+": "+w.Evidence)
	}
	return append(out, notes...)
}

// TestWatches: each rule, on functions whose calls stand in a file of C. Of two functions of which one does the other's work
// one is watched, and a function that patchers do not lead to is not.
func TestWatches(t *testing.T) {
	const both = "stop: stop_machine_cpuslocked is there, stand: multi_cpu_stop is there, " +
		"grace: ftrace_shutdown calls synchronize_rcu_tasks"
	for option, want := range map[string]string{
		"-DLINUX_6_1": "begin: arch_ftrace_update_code calls ftrace_replace_code calls text_poke_finish calls text_poke_bp_batch, " +
			"store: text_poke_bp_batch calls text_poke calls __text_poke, answer: do_sync_core is there, " +
			"round: text_poke_bp_batch calls on_each_cpu_cond_mask, trap: poke_int3_handler is there, " + both,
		"-DSINCE_6_16": "begin: arch_ftrace_update_code calls ftrace_replace_code calls smp_text_poke_batch_finish, " +
			"store: smp_text_poke_batch_finish calls __text_poke, answer: do_sync_core is there, " +
			"round: smp_text_poke_batch_finish calls on_each_cpu_cond_mask, trap: smp_text_poke_int3_handler is there, " + both,
	} {
		got := watched(t, image.Of(fakekernel.Compile(t, "testdata/patchers.c", option)))
		if d := cmp.Diff(want, strings.Join(got, ", ")); d != "" {
			t.Errorf("%s: %s", option, d)
		}
	}
}

// TestNoRule: a kernel that stores to text by functions of other names.
func TestNoRule(t *testing.T) {
	k := image.Of(&vmlinux.Kernel{Memory: &vmlinux.Memory{Arch: vmlinux.OfMachine(elf.EM_RISCV)}, File: "x",
		Symbols: vmlinux.NewSymbols("", []vmlinux.Symbol{{Addr: begins, Type: 'T', Name: "_text"}})})
	_, notes, err := Watches(k)
	if !errors.Is(err, ErrNoRule) || err.Error() != "x: no rule finds a function that stores to text" || len(notes) != 5 {
		t.Errorf("%q, %v", notes, err)
	}
}
