// SPDX-License-Identifier: Apache-2.0

package emulate

import (
	"bytes"
	"debug/elf"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Nothing here is slow; the flag lets go test ./... -long pass through.
var _ = flag.Bool("long", false, "run slow tests")

// program compiles a file of C.
func program(t *testing.T, options ...string) (path string) {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skipf("skipped: %v: nothing is there to execute", err)
	}
	path = filepath.Join(t.TempDir(), "program")
	out, err := exec.Command(gcc, append(options, "-o", path)...).CombinedOutput()
	if err != nil {
		t.Skipf("skipped: gcc %s: %v: %s", options, err, out)
	}
	return path
}

// loaded is what an ELF file holds at its addresses, and where its functions are.
func loaded(t *testing.T, path string) (at func(uint64) []byte, functions map[string]uint64) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Machine != elf.EM_X86_64 {
		t.Skipf("skipped: gcc makes programs for %s", f.Machine)
	}
	segments := map[uint64][]byte{}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			if segments[p.Vaddr], err = io.ReadAll(p.Open()); err != nil {
				t.Fatal(err)
			}
		}
	}
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	functions = map[string]uint64{}
	for _, s := range symbols {
		functions[s.Name] = s.Value
	}
	return func(addr uint64) []byte {
		for start, b := range segments {
			if addr >= start && addr < start+uint64(len(b)) {
				return b[addr-start:]
			}
		}
		return nil
	}, functions
}

// TestFunctions: functions that a compiler made give what they give on the CPU below.
func TestFunctions(t *testing.T) {
	for _, optimise := range []string{"-O0", "-O2", "-Os"} {
		compare(t, program(t, optimise, "-no-pie", "-fcf-protection", "-mno-sse", "-fno-tree-vectorize", "-ffixed-xmm0",
			"testdata/functions.c"))
	}
}

// TestInstructions: each instruction, in each width, does to its registers, to memory and to the
// flags what it does on the CPU below.
func TestInstructions(t *testing.T) {
	compare(t, program(t, "-O1", "-no-pie", "testdata/instructions.c"))
}

// compare executes the functions whose results a program prints: "name a b result".
func compare(t *testing.T, path string) {
	t.Helper()
	want, err := exec.Command(path).Output()
	if err != nil || len(want) == 0 {
		t.Fatalf("%d bytes, %v", len(want), err)
	}
	at, functions := loaded(t, path)
	m := New(at)
	wrong := map[string]bool{}
	for line := range strings.Lines(string(want)) {
		var name string
		var a, b, result uint64
		if _, err := fmt.Sscan(line, &name, &a, &b, &result); err != nil {
			t.Fatal(err)
		}
		if wrong[name] {
			continue // said already
		}
		got, err := m.Call(functions[name], a, b)
		if wrong[name] = err != nil || got != result; wrong[name] {
			t.Errorf("%s(%#x, %#x) is %#x, on the CPU %#x: %v", name, a, b, got, result, err)
		}
	}
}

// code is a machine that executes some bytes.
func code(b ...byte) *Machine {
	const start = 0x1000
	m := New(func(addr uint64) []byte {
		if addr >= start && addr < start+uint64(len(b)) {
			return b[addr-start:]
		}
		return nil
	})
	m.Steps = 1000
	return m
}

// TestEnds: what is not known, or does not end, is an error that says where; a hook stands in
// for a function, and its result is the function's.
func TestEnds(t *testing.T) {
	for name, c := range map[string]struct {
		bytes []byte
		want  string
	}{
		"ud2":                {[]byte{0x90, 0x0f, 0x0b}, "at 0x1001: ud2: instruction is not known"},
		"cpuid":              {[]byte{0x0f, 0xa2}, "at 0x1000: cpuid: instruction is not known"},
		"jump to itself":     {[]byte{0xeb, 0xfe}, "at 0x1000: it does not come to an end"},
		"floating point":     {[]byte{0xf2, 0x0f, 0x58, 0xc1}, "at 0x1000: addsd %xmm1,%xmm0: operand is not known: X0"},
		"relative to fs":     {[]byte{0x64, 0x48, 0x8b, 0x00}, "at 0x1000: mov %fs:(%rax),%rax: segment FS"},
		"a bit far away":     {[]byte{0x48, 0x0f, 0xa3, 0x08}, "at 0x1000: bt %rcx,(%rax): instruction is not known"},
		"a floating movsd":   {[]byte{0xf2, 0x0f, 0x10, 0xc1}, "at 0x1000: movsd %xmm1,%xmm0: operand is not known: X0"},
		"a jump by parity":   {[]byte{0x7a, 0x00}, "at 0x1000: jp 0x1002: instruction is not known"},
		"a set by parity":    {[]byte{0x0f, 0x9b, 0xc0}, "at 0x1000: setnp %al: instruction is not known"},
		"a count in memory":  {[]byte{0xf3, 0x0f, 0xb8, 0xc1}, "at 0x1000: popcnt %ecx,%eax: instruction is not known"},
		"an interrupt (int)": {[]byte{0xcd, 0x80}, "at 0x1000: int $0x80: instruction is not known"},
		"a long product":     {[]byte{0x48, 0xf7, 0xe9}, "at 0x1000: imul %rcx: instruction is not known"},
		"a short address":    {[]byte{0x67, 0x48, 0x8b, 0x00}, "at 0x1000: mov (%eax),%rax: address by EAX"},
		"a short index":      {[]byte{0x67, 0x48, 0x8b, 0x04, 0x08}, "at 0x1000: mov (%eax,%ecx),%rax: address by EAX"},
		"a control register": {[]byte{0x0f, 0x20, 0xc0}, "at 0x1000: mov %cr0,%rax: operand is not known: CR0"},
		"a segment register": {[]byte{0x8c, 0xd8}, "at 0x1000: mov %ds,%eax: operand is not known: DS"},
		"nothing at all": {[]byte{0xff, 0xff}, "at 0x1000: bytes ff ff 00 00 00 00 00 00 00 00 00 00 00 00 00: " +
			"unrecognized instruction"},
	} {
		if _, err := code(c.bytes...).Call(0x1000); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for steps, want := range map[int]string{4: "<nil>", 3: "at 0x7ffffffff000: it does not come to an end",
		2: "at 0x1002: it does not come to an end"} {
		m := code(0x90, 0x90, 0xc3)
		m.Steps = steps
		if _, err := m.Call(0x1000); fmt.Sprint(err) != want {
			t.Errorf("%d steps: %v, want %s", m.Steps, err, want)
		}
	}
	if _, err := code(0xeb, 0xfe).Call(0x1000); !errors.Is(err, errSteps) {
		t.Error(err)
	}
	m := code(0xe8, 0xfb, 0x0f, 0, 0, 0x48, 0xff, 0xc0, 0xc3) // call 0x2000; inc %rax; ret
	m.Hooks[0x2000] = func(m *Machine) { m.Return(m.Arg(0)*10 + m.Arg(5)) }
	if got, err := m.Call(0x1000, 4, 0, 0, 0, 0, 2); got != 43 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
}

// TestStrings: rep stos and rep movs go as far as the count says.
func TestStrings(t *testing.T) {
	m := code(0xf3, 0x48, 0xab, 0xc3) // rep stos %rax,%es:(%rdi); ret
	m.Store(0x8ff8, bytes.Repeat([]byte{1}, 40))
	if _, err := m.Call(0x1000, 0x9000, 0, 0, 2); err != nil || !bytes.Equal(m.Load(0x8ff8, 32),
		append(append(bytes.Repeat([]byte{1}, 8), make([]byte, 16)...), bytes.Repeat([]byte{1}, 8)...)) {
		t.Errorf("%v, % x", err, m.Load(0x8ff8, 32))
	}
	m = code(0xf3, 0xa4, 0xc3) // rep movsb %ds:(%rsi),%es:(%rdi); ret
	m.Store(0x5000, []byte("abcdef"))
	if _, err := m.Call(0x1000, 0x6000, 0x5001, 0, 3); err != nil || string(m.Load(0x6000, 5)) != "bcd\x00\x00" {
		t.Errorf("%v, %q", err, m.Load(0x6000, 5))
	}
}

// TestMemory: what was stored is read back across the border of a page, the image shows
// elsewhere, and everything else is zero. What is allocated does not overlap.
func TestMemory(t *testing.T) {
	m := code(1, 2, 3)
	m.Store(0x0ffe, []byte{7, 8, 9})
	if got := m.Load(0x0ffd, 7); !bytes.Equal(got, []byte{0, 7, 8, 9, 2, 3, 0}) {
		t.Errorf("% x", got)
	}
	a, b := m.Alloc(pageBytes+1), m.Alloc(1)
	if b < a+pageBytes+1 {
		t.Errorf("%#x and %#x", a, b)
	}
}

// FuzzStep: whatever the bytes are, executing them ends without a panic.
func FuzzStep(f *testing.F) {
	f.Add([]byte{0x48, 0x89, 0xf8, 0xc3}, uint64(1), uint64(2))
	f.Add([]byte{0xf3, 0xaa, 0x0f, 0xba, 0xe0, 0x05, 0xeb, 0xf8}, uint64(1), uint64(1<<63))
	f.Fuzz(func(t *testing.T, b []byte, x, y uint64) {
		if _, err := code(b...).Call(0x1000, x, y, x, y); err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q", err)
		}
	})
}
