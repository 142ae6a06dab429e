// SPDX-License-Identifier: Apache-2.0

package image

import (
	"fmt"
	"testing"

	"github.com/textpoke/textpoke/records/vmlinux"
)

// evidenceOf is of a kernel with these variables and functions, and what each calls.
func evidenceOf(variables []string, calls map[string]string) *evidence {
	var all []vmlinux.Symbol
	for i, v := range variables {
		all = append(all, vmlinux.Symbol{Name: v, Addr: uint64(i)})
	}
	k := &Kernel{Kernel: &vmlinux.Kernel{Symbols: vmlinux.NewSymbols("", all)}, called: map[string]map[string]int{}}
	for f, to := range calls {
		k.Parts[f], k.called[f] = []uint64{1}, map[string]int{to: 1}
	}
	return &evidence{Kernel: k, values: map[string]Mechanism{}}
}

// TestKeeps: of 6.1 and 6.2 on Ubuntu's and Debian's kernels, and of one that names no data.
func TestKeeps(t *testing.T) {
	for _, c := range []struct {
		variables []string
		rounds    int
		want      string
	}{
		{[]string{"saved_ftrace_func"}, 3, "0 true"},
		{[]string{"saved_ftrace_func", "save_func.4"}, 3, "1 true"},
		{[]string{"saved_ftrace_func", "devfreq_powersave_func"}, 3, "0 true"},
		{nil, 3, "0 false"},
		{nil, 0, "0 true"},
	} {
		e := evidenceOf(c.variables, nil)
		e.set(EntryRounds, c.rounds, "")
		e.keeps()
		m, known := e.values[EntryKept]
		if got := fmt.Sprint(m.Value, known); got != c.want {
			t.Errorf("%s, %d rounds: %s, want %s", c.variables, c.rounds, got, c.want)
		}
	}
}

// TestDetaching: the functions and their calls are those of Linux 5.4, 6.1 and 7.2.
func TestDetaching(t *testing.T) {
	const unregister, shutdown, rude = "unregister_ftrace_function", "ftrace_shutdown", "synchronize_rcu_tasks_rude"
	for name, c := range map[string]struct {
		calls map[string]string
		want  string
	}{
		"5.4":     {map[string]string{unregister: shutdown, shutdown: "schedule_on_each_cpu"}, "1 true"},
		"6.1":     {map[string]string{unregister: shutdown, shutdown: rude, rude: "__wait_rcu_gp"}, "1 true"},
		"7.2":     {map[string]string{unregister: shutdown, shutdown: rude, rude: "__x86_return_thunk"}, "0 true"},
		"another": {map[string]string{unregister: shutdown, shutdown: "something_new"}, "0 false"},
		"none":    {nil, "0 true"},
	} {
		e := evidenceOf(nil, c.calls)
		e.detaching()
		m, known := e.values[DetachWakes]
		if got := fmt.Sprint(m.Value, known); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestCopying: what a new BPF trampoline sends where it is copied to its place: arm64 6.12,
// 7.2, riscv64 7.2, x86-64; and whether every CPU stops when one is changed there.
func TestCopying(t *testing.T) {
	const prepare, insert, kick = "arch_prepare_bpf_trampoline", "aarch64_insn_copy", "kick_all_cpus_sync"
	for _, c := range []struct {
		calls        map[string]string
		also         string // what prepare calls besides
		syncs, stops int
	}{
		{map[string]string{prepare: insert, insert: "__text_poke", "__text_poke": kick, kick: ""}, kick, 2, 0},
		{map[string]string{prepare: insert, insert: kick, kick: ""}, "", 1, 0},
		{map[string]string{prepare: "bpf_arch_text_copy", "bpf_arch_text_copy": "patch_text_nosync",
			"patch_text_nosync": "flush_icache_all", "flush_icache_all": "", "bpf_arch_text_poke": "patch_text",
			"patch_text": "stop_machine_cpuslocked", "stop_machine_cpuslocked": ""}, "", 1, 1},
		{map[string]string{prepare: "kvmalloc", "bpf_arch_text_poke": "text_poke_bp"}, "", 0, 0},
		{map[string]string{insert: kick, prepare: "", kick: ""}, "", 0, 0}, // others copy
	} {
		e := evidenceOf(nil, c.calls)
		if c.also != "" {
			e.called[prepare][c.also] = 1
		}
		e.copying()
		if e.value(DirectSyncs) != c.syncs || e.value(SkipStops) != c.stops {
			t.Errorf("%v: %d and %d, want %d and %d", c.calls, e.value(DirectSyncs), e.value(SkipStops), c.syncs, c.stops)
		}
	}
}
