// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/kernels/gdb"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/records/vmlinux"
)

// Instructions of x86_64, as Debian's 6.1 and 7.2 begin __text_poke with.
var (
	tracer = []byte{0xe8, 0, 0, 0, 0}                               // call, a nop in a kernel that runs
	pushes = []byte{0x41, 0x57, 0x53}                               // push %r15, %rbx
	grows  = []byte{0x48, 0x83, 0xec, 0x40}                         // sub $0x40,%rsp
	saves  = []byte{0x48, 0x89, 0x54, 0x24, 0x10}                   // mov %rdx,0x10(%rsp)
	canary = []byte{0x65, 0x48, 0x8b, 0x05, 0x58, 0x7e, 0xac, 0x02} // mov %gs:0x2ac7e58(%rip),%rax
	copies = []byte{0x48, 0x89, 0xf0}                               // mov %rsi,%rax
	masks  = []byte{0x25, 0xff, 0x0f, 0, 0}                         // and $0xfff,%eax
	adds   = []byte{0x4c, 0x8d, 0x34, 0x08}                         // lea (%rax,%rcx,1),%r14
)

// loads is an instruction with four bytes of distance to the variable.
func loads(op ...byte) []byte { return append(op, 'h', 'e', 'r', 'e') }

// TestEarlyLoad: a function is watched at its load of the variable if all arguments are there still; else at its
// beginning.
func TestEarlyLoad(t *testing.T) {
	const function, variable = 0xffffffff81000000, 0xffffffff82000000
	toRAX, toRBX, toRSI := loads(0x8b, 0x05), loads(0x48, 0x8b, 0x1d), loads(0x8b, 0x35)
	for name, c := range map[string]struct {
		code  [][]byte
		grown uint64
		bytes int // 0: not found
	}{
		"6.1":           {[][]byte{tracer, pushes, grows, saves, canary, copies, masks, adds, toRAX}, 0x50, 4},
		"nothing else":  {[][]byte{toRAX}, 0, 4},
		"eight bytes":   {[][]byte{pushes, toRBX}, 0x10, 8},
		"no-ops":        {[][]byte{{0x0f, 0x1f, 0x44, 0, 0}, {0x90}, toRAX}, 0, 4},
		"an argument":   {[][]byte{{0x48, 0x89, 0xc6}, toRAX}, 0, 0}, // mov %rax,%rsi
		"into one":      {[][]byte{toRSI}, 0, 0},
		"its half":      {[][]byte{{0x31, 0xd2}, toRAX}, 0, 0}, // xor %edx,%edx
		"the stack's":   {[][]byte{{0x48, 0x89, 0xc4}, toRAX}, 0, 0},
		"a call behind": {[][]byte{pushes, tracer, toRAX}, 0, 0},
		"a branch":      {[][]byte{{0x74, 0x00}, toRAX}, 0, 0},
		"by distance":   {[][]byte{{0x48, 0x29, 0xc4}, toRAX}, 0, 0}, // sub %rax,%rsp
		"compared":      {[][]byte{append(loads(0x83, 0x3d), 0)}, 0, 0},
		"of a CPU":      {[][]byte{append([]byte{0x65}, toRAX...), {0xc3}}, 0, 0},
		"a store":       {[][]byte{loads(0x89, 0x05), {0xc3}}, 0, 0},
		"no code":       {[][]byte{{0x06}}, 0, 0},
		"an end":        {[][]byte{pushes}, 0, 0},
	} {
		code := bytes.Join(c.code, nil)
		behind := uint64(function)
		if i := bytes.Index(code, []byte("here")); i >= 0 {
			behind += uint64(i + 4)
			binary.LittleEndian.PutUint32(code[i:], uint32(variable-behind))
		}
		k := image.Of(&vmlinux.Kernel{Memory: &vmlinux.Memory{Arch: vmlinux.OfMachine(elf.EM_X86_64),
			Segments: []vmlinux.Segment{{Addr: function, Data: code}}},
			Symbols: vmlinux.NewSymbols("", []vmlinux.Symbol{{Addr: function, Type: 'T', Name: "f"}})})
		if l, ok := earlyLoad(k, function); ok {
			t.Errorf("%s: %+v without a variable", name, l)
		}
		k.Add("after_bootmem", variable)
		got, ok := earlyLoad(k, function)
		if want := (load{variable, c.bytes, behind, behind, c.grown}); ok != (c.bytes > 0) || ok && got != want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, ok, want)
		}
	}
}

// earlyOf records a machine of x86_64 whose function that stores is watched at a load.
func earlyOf(t *testing.T) (*recorder, *machine) {
	x, m := recorderOf(t)
	x.Client = m.serve(t, "x86_64")
	x.early = Watch{Kind: Store, Function: "__patch_insn_write", At: stores, args: []string{copier, at, from, length},
		load: load{variable: key, bytes: 4, behind: stores + 0x20, until: stores + 0x24, grown: 0x50}}
	x.at[stores] = x.early
	m.put(oneTask, 1, 2, 3, 4)
	return x, m
}

// TestEarlyStores: a CPU that has loaded the variable there is about to store, and one that has loaded it elsewhere is
// not. Of two that stop at a time the server tells of one; it may tell of the other one later.
func TestEarlyStores(t *testing.T) {
	x, m := earlyOf(t)
	const rcx, rdx, rsi, rsp, rip, stack = 2, 3, 4, 7, 16, anotherTask + 0x800
	m.put(stack+0x50, binary.LittleEndian.AppendUint64(nil, back)...)
	place := func(cpu int, pc, at uint64) {
		r := &m.regs[cpu]
		r[rip], r[rsi], r[rdx], r[rcx], r[rsp] = pc, at, oneTask, 2, stack
	}
	stop := func(cpu int, watched uint64) {
		t.Helper()
		r, err := x.Registers(cpu)
		if err == nil {
			err = x.stopped(gdb.Stop{CPU: cpu, Watched: watched}, r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	place(1, stores+0x20, site)
	stop(1, key)
	place(1, stores+0x25, site)
	stop(1, key)
	place(0, stores+0x20, site+2)
	place(1, answers, 0)
	stop(1, 0) // CPU 0 has loaded it, too
	stop(0, key)
	place(0, stores+0x24, site) // behind the branch
	stop(0, key)
	want := []string{"CPU 1: store 0xffffffff80007000 01 02 <- 00 00 b", "CPU 0: store 0xffffffff80007002 01 02 <- 00 00 b",
		"CPU 1: answer ipi_remote_fence_i", "CPU 0: store 0xffffffff80007000 01 02 <- 00 00 b"}
	if got := x.told(); !slices.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}

// TestEarlyIsWatched: what loads the variable stops, and not what begins the function.
func TestEarlyIsWatched(t *testing.T) {
	x, m := course(t)
	w := x.at[stores]
	w.load = load{variable: key, bytes: 4, behind: stores + 4, until: stores + 4}
	x.at[stores] = w
	if _, err := follow(t, x, m, &Config{}); err != nil {
		t.Fatal(err)
	}
	watched := slices.Contains(m.done, fmt.Sprintf("Z3,%x,4", uint64(key)))
	if !watched || slices.Contains(m.done, fmt.Sprintf("Z1,%x,1", uint64(stores))) || x.early.At != stores {
		t.Errorf("%q, %+v", m.done, x.early)
	}
}

// TestBranch: what belongs to a load ends behind a branch, or before an argument changes.
func TestBranch(t *testing.T) {
	var (
		tests  = []byte{0x85, 0xc0}                      // test %eax,%eax
		stores = []byte{0x48, 0xc7, 4, 0x24, 0, 0, 0, 0} // movq $0,(%rsp)
		leaves = []byte{0x0f, 0x84, 1, 2, 0, 0}          // je
		jumps  = []byte{0xeb, 3}
		calls  = []byte{0xe8, 1, 2, 0, 0}
		moves  = []byte{0x48, 0x89, 0xf7} // mov %rsi,%rdi
	)
	for name, c := range map[string]struct {
		code [][]byte
		want uint64
	}{
		"7.2": {[][]byte{stores, tests, leaves, moves}, 16}, "a jump": {[][]byte{tests, jumps, tests, jumps}, 4},
		"a call": {[][]byte{tests, calls, jumps}, 2}, "an argument": {[][]byte{stores, moves, leaves}, 8},
		"the end": {[][]byte{tests}, 2}, "nothing": {nil, 0},
	} {
		if got := branch(bytes.Join(c.code, nil)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
