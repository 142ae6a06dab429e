// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// The part of bpf(2) in use, from include/uapi/linux/bpf.h: a program that does nothing, attached to one function by
// a trampoline, or to many by one link. Fields of the argument are named by where they lie.
const (
	progLoad          = 5
	rawTracepointOpen = 17
	linkCreate        = 28

	progKprobe  = 2
	progTracing = 26

	traceFentry      = 24
	traceFexit       = 25
	traceKprobeMulti = 42
	traceFentryMulti = 59 // since Linux 7.2
)

type bpfAttr [144]byte

func (a *bpfAttr) u32(at int, v uint32) { binary.NativeEndian.PutUint32(a[at:], v) }
func (a *bpfAttr) pointer(at int, p unsafe.Pointer) {
	binary.NativeEndian.PutUint64(a[at:], uint64(uintptr(p)))
}

// bpf calls bpf(2) and returns a file. Whatever the argument points to, keep holds.
func bpf(command uintptr, a *bpfAttr, keep ...any) (int, error) {
	number := uintptr(280) // arch/*/include/uapi/asm/unistd.h: the generic table
	if runtime.GOARCH == "amd64" {
		number = 321
	}
	fd, _, e := syscall.Syscall(number, command, uintptr(unsafe.Pointer(a)), unsafe.Sizeof(*a))
	runtime.KeepAlive(keep)
	if e != 0 {
		return 0, e
	}
	return int(fd), nil
}

// loadEmpty loads a program that returns 0.
func loadEmpty(kind, attach, function uint32) (int, error) {
	var a bpfAttr
	code := [2]uint64{0xb7, 0x95} // r0 = 0; exit
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return 0, errors.New("a big-endian machine")
	}
	license := []byte("GPL\x00")
	a.u32(0, kind)
	a.u32(4, uint32(len(code)))
	a.pointer(8, unsafe.Pointer(&code))
	a.pointer(16, unsafe.Pointer(&license[0]))
	a.u32(68, attach)
	a.u32(108, function)
	fd, err := bpf(progLoad, &a, &code, license)
	if err != nil {
		return 0, fmt.Errorf("load a BPF program: %w", err)
	}
	return fd, nil
}

// attached is an action that opens a file and closes it again.
func attached(open func() (int, error), program int) *action {
	link := -1
	return &action{
		on: func() (err error) {
			link, err = open()
			return err
		},
		off:   func() error { return syscall.Close(link) },
		close: func() { _ = syscall.Close(program) },
	}
}

// trampoline is one fentry or fexit program on a function.
func trampoline(attach uint32, function string) (*action, error) {
	if function == "" {
		function = "vfs_read"
	}
	id, err := functionID("/sys/kernel/btf/vmlinux", function)
	if err != nil {
		return nil, err
	}
	program, err := loadEmpty(progTracing, attach, id)
	if err != nil {
		return nil, err
	}
	return attached(func() (int, error) {
		var a bpfAttr
		a.u32(8, uint32(program))
		return bpf(rawTracepointOpen, &a)
	}, program), nil
}

// functionID is the number of a function's type.
func functionID(file, function string) (uint32, error) {
	ids, err := functionIDs(file, map[string]bool{function: true})
	if err == nil && ids[function] == 0 {
		err = fmt.Errorf("%s: no function %s", file, function)
	}
	return ids[function], err
}

// functionIDs are the numbers of functions' types in BTF (Documentation/bpf/btf.rst); those that it lacks are left out.
func functionIDs(file string, wanted map[string]bool) (map[string]uint32, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	u32 := func(at int) int { return int(binary.LittleEndian.Uint32(b[at:])) }
	types, strs := u32(4)+u32(8), u32(4)+u32(16)
	// Bytes behind a type, by kind: those of each of its members, and those of the type.
	each := map[int]int{4: 12, 5: 12, 6: 8, 13: 8, 15: 12, 19: 12}
	once := map[int]int{1: 4, 3: 12, 14: 4, 17: 4}
	const funcKind = 12
	ids := map[string]uint32{}
	for id, at, end := uint32(1), types, types+u32(12); at < end; id++ {
		info := u32(at + 4)
		kind, members := info>>24&0x1f, info&0xffff
		if kind == funcKind {
			name := b[strs+u32(at):]
			if n := bytes.IndexByte(name, 0); n >= 0 && wanted[string(name[:n])] {
				ids[string(name[:n])] = id
			}
		}
		at += 12 + members*each[kind] + once[kind]
	}
	return ids, nil
}

// number reads how many functions there are to be, 1 unless it is said.
func number(count string) (int, error) {
	if count == "" {
		return 1, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q: want a number of functions", count)
	}
	return n, nil
}

// attachable tells whether a program may be attached to a function's entry. The kernel refuses functions of a denylist and
// those with arguments that a trampoline cannot pass, when a program is loaded for one, and a whole link with one of them
// (bpf_check_attach_target, kernel/bpf/verifier.c).
func attachable(function uint32) bool {
	program, err := loadEmpty(progTracing, traceFentry, function)
	if err == nil {
		_ = syscall.Close(program)
	}
	return err == nil
}

// tracingMulti is one link to so many functions by trampolines: the first that have a type and are not refused.
func tracingMulti(count string) (*action, error) {
	n, err := number(count)
	if err != nil {
		return nil, err
	}
	names, err := unique(2 * n)
	if err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	numbers, err := functionIDs("/sys/kernel/btf/vmlinux", wanted)
	if err != nil {
		return nil, err
	}
	var ids []uint32
	for _, name := range names {
		if id := numbers[name]; id != 0 && len(ids) < n && attachable(id) {
			ids = append(ids, id)
		}
	}
	if len(ids) < n {
		return nil, fmt.Errorf("%d functions of the first %d have a type and are not refused, want %d", len(ids), len(names), n)
	}
	program, err := loadEmpty(progTracing, traceFentryMulti, 0)
	if err != nil {
		return nil, err
	}
	return attached(func() (int, error) {
		var a bpfAttr
		a.u32(0, uint32(program))
		a.u32(8, traceFentryMulti)
		a.pointer(16, unsafe.Pointer(&ids[0]))
		a.u32(32, uint32(n))
		return bpf(linkCreate, &a, ids)
	}, program), nil
}

// kprobeMulti is one link to so many functions, the first of a name that no other has.
func kprobeMulti(count string) (*action, error) {
	n, err := number(count)
	if err != nil {
		return nil, err
	}
	names, err := unique(n)
	if err != nil {
		return nil, err
	}
	program, err := loadEmpty(progKprobe, traceKprobeMulti, 0)
	if err != nil {
		return nil, err
	}
	pointers := make([]*byte, n)
	for i, name := range names {
		if pointers[i], err = syscall.BytePtrFromString(name); err != nil {
			return nil, err
		}
	}
	return attached(func() (int, error) {
		var a bpfAttr
		a.u32(0, uint32(program))
		a.u32(8, traceKprobeMulti)
		a.u32(20, uint32(n))
		a.pointer(24, unsafe.Pointer(&pointers[0]))
		return bpf(linkCreate, &a, pointers)
	}, program), nil
}

// unique are the first functions that can be traced and whose names are theirs alone.
func unique(n int) ([]string, error) {
	seen := map[string]int{}
	err := eachLine("/proc/kallsyms", func(f []string) bool {
		if len(f) > 2 {
			seen[f[2]]++
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	var names []string
	err = eachLine(tracing+"available_filter_functions", func(f []string) bool {
		// Those of the group blocked from kprobes are refused one and all; notrace ones are not in the list.
		if len(f) == 1 && seen[f[0]] == 1 && !strings.HasPrefix(f[0], "__ftrace_invalid") && !strings.Contains(f[0], ".") {
			names = append(names, f[0])
		}
		return len(names) < n
	})
	if err == nil && len(names) < n {
		err = fmt.Errorf("%d functions, want %d", len(names), n)
	}
	return names, err
}

func eachLine(file string, do func(fields []string) bool) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() && do(strings.Fields(s.Text())) {
	}
	return s.Err()
}
