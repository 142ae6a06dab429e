// SPDX-License-Identifier: Apache-2.0

package fakekernel

import (
	"debug/elf"
	"io"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/textpoke/textpoke/records/vmlinux"
)

// Compile makes a kernel of a file of C, linked to where kernels lie, without any table. The
// test is skipped where there is no compiler for x86-64.
func Compile(t testing.TB, source string, options ...string) *vmlinux.Kernel {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kernel")
	args := append([]string{"-O2", "-nostdlib", "-static", "-ffreestanding", "-fno-pic", "-no-pie", "-mcmodel=kernel",
		"-mno-sse", "-fno-stack-protector", "-Wl,-Ttext-segment=0xffffffff81000000", "-o", path, source}, options...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Skipf("skipped: gcc: %v: %s", err, out)
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m := &vmlinux.Memory{Arch: vmlinux.OfMachine(f.Machine)}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			b := make([]byte, p.Memsz)
			if _, err := io.ReadFull(p.Open(), b[:p.Filesz]); err != nil {
				t.Fatal(err)
			}
			m.Segments = append(m.Segments, vmlinux.Segment{Addr: p.Vaddr, Data: b})
		}
	}
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	var all []vmlinux.Symbol
	for _, s := range symbols {
		kind := byte('D')
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			kind = 'T'
		}
		if s.Name != "" && s.Value>>63 == 1 {
			all = append(all, vmlinux.Symbol{Addr: s.Value, Type: kind, Name: s.Name})
		}
	}
	return &vmlinux.Kernel{Memory: m, Symbols: vmlinux.NewSymbols("", all), File: source}
}
