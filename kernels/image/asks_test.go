// SPDX-License-Identifier: Apache-2.0

package image

import (
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/records/vmlinux"
)

// TestConditionsOfCode: what a function's code names, and what the kernel holds, up to their borders.
func TestConditionsOfCode(t *testing.T) {
	m := newMade()
	m.name(0x100, 't', "f")
	m.name(0x140, 't', "g")
	m.name(0x180, 't', "run_sync")
	m.name(0x1c0, 't', "h")
	m.name(0x3000, 'D', "word")
	m.name(0x3010, 'D', "place")
	m.name(0x3020, 'D', "table.7")
	m.put(0x100, lea(0x100, 0x3010), []byte{0x90, 0xc3})
	m.put(0x140, call(0x140, 0x180), call(0x145, 0x180), call(0x14a, 0x1c0), []byte{0x90, 0x13, 0, 0, 0})
	m.put(0x1c0, []byte{0x83, 0x3d}, near(0x1c7, 0x3005), []byte{1}) // cmpl $1,word+5(%rip)
	m.put(0x5000, []byte{0xde, 0xad, 0xbe, 0xef}, "PREEMPT words")
	k := m.kernel()
	for _, c := range []struct {
		condition string
		want      bool
	}{
		{"refers f place 1", true}, {"refers f word 0x10", false}, {"refers f word 0x11", true},
		{"refers f table.7 8", false},
		{"refers g place 1", false}, {"refers f nothing 8", false},
		{"touches word 3 h", false}, {"touches word 4 h", true}, {"touches word 5 h", true}, {"touches word 6 h", false},
		{"touches word 7 h", false}, {"touches word 8 h", true}, {"touches word 9 h", false},
		{"touches word 5 gone f h", true}, {"touches nothing 5 h", false},
		{"executes g 0x13", true}, {"executes g 0x14", false}, {"executes f 0x13", false},
		{"constant deadbeef", true}, {"constant deadbeee", false}, {"constant 488d3d", false}, // which stands in the text
		{"contains words", true}, {"contains Words", false},
		{"calls g 2 run_sync", true}, {"calls g 3 run_sync", false}, {"calls g 3 run_sync h", true},
		{"calls gone 1 run_sync", false},
		{"variable table", true}, {"variable tabl", false}, {"named place", true}, {"named table", false},
		{"batch", false}, {"sorted", false}, {"slots", false}, {"call-ops", false}, {"preempted", false},
		{"member tracepoint", false},
	} {
		rule := MustRules("name\n\t1 if " + c.condition + " | {f}{n}")
		if a, ok := k.Judge(&rule[0], nil); ok != c.want {
			t.Errorf("%s: %+v, %v", c.condition, a, ok)
		}
	}
	for condition, want := range map[string]string{"touches word 5 gone f h": "h", "calls g 1 run_sync h": "3"} {
		rule := MustRules("name\n\t1 if " + condition + " | {f}{n}")
		if a, _ := k.Judge(&rule[0], nil); a.Evidence != want {
			t.Errorf("%s: %+v", condition, a)
		}
	}
}

// TestConditionsOfQueues: what was executed is evidence, and whether it is sorted and how many slots there are.
func TestConditionsOfQueues(t *testing.T) {
	rules := MustRules("name\n\t1 if batch and sorted and slots | {rounds}, {slots}\n" +
		"\t2 if batch and slots | {rounds}, {slots}: {said}")
	for option, want := range map[string]Answer{"-DUNORDERED": {"1", "4, 100"}, "-DORDERED": {"2",
		"4, 100: executed: of patches with ascending addresses the one behind 100 ends a batch, " +
			"which interrupts every CPU 4 times"}} {
		k := vectorKernel(t, "-DSLOTS=100", "-DROUNDS=4", option)
		if a, ok := k.Judge(&rules[0], nil); !ok || a != want {
			t.Errorf("%s: %+v, %v", option, a, ok)
		}
	}
}

// TestNoBatches: queues of x86-64 alone are executed, and only those that can be ended and added to; too few
// records are told.
func TestNoBatches(t *testing.T) {
	for name, change := range map[string]func(k *Kernel){
		"nothing ends it": func(k *Kernel) { delete(k.Names, "text_poke_finish") },
		"nothing adds":    func(k *Kernel) { delete(k.Names, "text_poke_queue") },
		"arm64":           func(k *Kernel) { k.Arch = vmlinux.OfMachine(elf.EM_AARCH64) },
	} {
		k := vectorKernel(t, "-DSLOTS=100", "-DROUNDS=3")
		change(k)
		if b, err := k.RunBatch(); !errors.Is(err, ErrNoBatch) || b != (Batch{}) {
			t.Errorf("%s: %+v, %v", name, b, err)
		}
	}
	for records, want := range map[int]string{2: "too few records to queue", 3: "<nil>"} {
		k := vectorKernel(t, "-DSLOTS=1", "-DROUNDS=3")
		k.Records.Sites = k.Records.Sites[:records]
		if _, err := k.RunBatch(); fmt.Sprint(err) != want {
			t.Errorf("%d: %v", records, err)
		}
	}
}

// TestTracepointsAreSorted: by name, wherever they lie.
func TestTracepointsAreSorted(t *testing.T) {
	m := newMade()
	var want, got []string
	for i := range 40 {
		name := fmt.Sprintf("tp_%02d", i*7%40)
		want = append(want, name)
		m.name(0x3000+0x40*i, 'D', "__tracepoint_"+name)
		m.put(0x3000+0x40*i, 0x5000+0x10*i)
		m.put(0x5000+0x10*i, name)
	}
	for _, tp := range m.kernel().Tracepoints() {
		got = append(got, tp.Name)
	}
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestMembersWithinOthers: a member counts that lies in the structure itself or in a union without a name, and
// no other.
func TestMembersWithinOthers(t *testing.T) {
	word := &btf.Int{Name: "u64", Size: 8}
	at := func(name string, bytes uint32, t btf.Type) btf.Member {
		return btf.Member{Name: name, Type: t, Offset: btf.Bits(8 * bytes)}
	}
	union := &btf.Union{Size: 16, Members: []btf.Member{at("key", 8, word)}}
	for name, c := range map[string]struct {
		member btf.Member
		want   uint64
	}{
		"itself": {at("key", 16, word), 16}, "a union": {at("", 16, union), 24}, "a union with a name": {at("named",
			16, union), 99},
		"a field without a name": {at("", 16, word), 99}, "another": {at("keys", 16, word), 99},
	} {
		types := []btf.Type{&btf.Struct{Name: "tracepoint", Size: 32, Members: []btf.Member{at("first", 0, word),
			c.member}}}
		b, err := btf.NewBuilder(types, nil)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := b.Spec()
		if err != nil {
			t.Fatal(err)
		}
		got := uint64(99)
		if member(spec, "tracepoint", "key", &got); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
		for condition, want := range map[string]bool{"tracepoint": true, "tracepoint first": true,
			"tracepoint other": false, "event": false} {
			rules := MustRules("name\n\t1 if member " + condition + " | x")
			if a, ok := (&Kernel{Kernel: &vmlinux.Kernel{Symbols: vmlinux.NewSymbols("", nil)},
				types: spec}).Judge(&rules[0], nil); ok != want {
				t.Errorf("%s: member %s: %+v", name, condition, a)
			}
		}
		got = 99
		if member(spec, "event", "key", &got); got != 99 {
			t.Errorf("%s: a structure that there is not: %d", name, got)
		}
	}
}

// TestPreempts: the first of the ways to preempt that a banner names as a word of its own; records name an ops
// on instruction sets
// whose entry has no call to patch.
func TestPreempts(t *testing.T) {
	for banner, want := range map[string]string{"Linux SMP PREEMPT_DYNAMIC Debian": "dynamic",
		"PREEMPT_RT PREEMPT": "rt", "x PREEMPT_LAZY": "lazy",
		"SMP NOPREEMPT_RT": "", "": ""} {
		k := &Kernel{Kernel: &vmlinux.Kernel{Banner: banner}}
		if got := k.Preempt(); got != want {
			t.Errorf("%q: %q, want %q", banner, got, want)
		}
	}
	for _, c := range []struct {
		arch  elf.Machine
		names []string
		want  bool
	}{
		{elf.EM_AARCH64, []string{"ftrace_caller"}, true}, {elf.EM_AARCH64, []string{"ftrace_caller", "ftrace_call"},
			false}, {elf.EM_AARCH64, nil, false},
		{elf.EM_RISCV, []string{"ftrace_caller"}, true}, {elf.EM_X86_64, []string{"ftrace_caller"}, false},
	} {
		k := withCalls(c.names, nil)
		k.Banner = "PREEMPT_RT"
		rules := MustRules("name\n\t1 if call-ops and preempted | {preempt}\n\t2 if preempted | {preempt}")
		k.Memory = &vmlinux.Memory{Arch: vmlinux.OfMachine(c.arch)}
		if got := k.CallOps(); got != c.want {
			t.Errorf("%s %q: %v", c.arch, c.names, got)
		}
		want := Answer{map[bool]string{true: "1", false: "2"}[c.want], "rt"}
		if a, _ := k.Judge(&rules[0], nil); a != want {
			t.Errorf("%s %q: %+v", c.arch, c.names, a)
		}
	}
}
