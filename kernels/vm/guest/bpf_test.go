// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/google/go-cmp/cmp"
)

// TestFunctionNumbers: types are counted from 1, whatever lies between them; a type that is no function has no number.
func TestFunctionNumbers(t *testing.T) {
	word := &btf.Int{Name: "int", Size: 4}
	proto := &btf.FuncProto{Return: word, Params: []btf.FuncParam{{Name: "a", Type: word}, {Name: "b", Type: word}}}
	types := []btf.Type{word, &btf.Pointer{Target: word}, &btf.Array{Type: word, Index: word, Nelems: 3},
		&btf.Struct{Name: "f", Size: 8, Members: []btf.Member{{Name: "a", Type: word}, {Name: "b", Type: word,
			Offset: 32}}},
		&btf.Union{Name: "u", Size: 4, Members: []btf.Member{{Name: "a", Type: word}}},
		&btf.Enum{Name: "e", Size: 4, Values: []btf.EnumValue{{Name: "x", Value: 1}, {Name: "y", Value: 2}}},
		&btf.Enum{Name: "e64", Size: 8, Values: []btf.EnumValue{{Name: "z", Value: 1 << 40}}}, proto,
		&btf.Func{Name: "f", Type: proto},
		&btf.Typedef{Name: "t", Type: word}, &btf.Func{Name: "vfs_read", Type: proto, Linkage: btf.GlobalFunc},
		&btf.Var{Name: "v", Type: word, Linkage: btf.GlobalVar}, &btf.Func{Name: "last", Type: proto}}
	b, err := btf.NewBuilder(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]uint32{}
	for _, typ := range types {
		id, err := b.Add(typ)
		if err != nil {
			t.Fatal(err)
		}
		if f, ok := typ.(*btf.Func); ok {
			want[f.Name] = uint32(id)
		}
	}
	raw, err := b.Marshal(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	inRoot(t, map[string]string{"/btf": string(raw)}, func(root) {
		got, err := functionIDs("/btf", map[string]bool{"f": true, "vfs_read": true, "last": true, "t": true,
			"v": true, "e": true})
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%v, %s", err, d)
		}
		if id, err := functionID("/btf", "vfs_read"); id != want["vfs_read"] || err != nil {
			t.Errorf("%d, %v", id, err)
		}
		if _, err := functionID("/btf", "vfs"); err == nil || err.Error() != "/btf: no function vfs" {
			t.Error(err)
		}
		if _, err := functionID("/none", "f"); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
}

// TestUnique: the first functions that can be traced whose names are theirs alone, without those that a compiler
// made and those
// that are none any more.
func TestUnique(t *testing.T) {
	inRoot(t,
		map[string]string{"/proc/kallsyms": "1 T a\n2 t twice\n3 t twice\n4 T b\n5 t c.isra.0\n" +
			"6 T __ftrace_invalid_address___8\n7 T d [m]\nshort line\n",
			traced("available_filter_functions"): "a\ntwice\nc.isra.0\n__ftrace_invalid_address___8\nd [m]\nnone\nb\n"},
		func(root) {
			for n, want := range map[int]string{1: "a", 2: "a b"} {
				if got, err := unique(n); strings.Join(got, " ") != want || err != nil {
					t.Errorf("%d: %q, %v", n, got, err)
				}
			}
			if _, err := unique(3); err == nil || err.Error() != "2 functions, want 3" {
				t.Error(err)
			}
		})
	for text, want := range map[string]int{"": 1, "1": 1, "17": 17} {
		if n, err := number(text); n != want || err != nil {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
	for _, text := range []string{"0", "-1", "x"} {
		if n, err := number(text); n != 0 || err == nil ||
			err.Error() != fmt.Sprintf("%q: want a number of functions", text) {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
}

// TestAttached: a file is opened when it is switched on, closed when it is switched off, and its program when
// all is over.
func TestAttached(t *testing.T) {
	from, program, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := syscall.Dup(int(program.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	program.Close()
	fails := errors.New("no")
	opened := -1
	a := attached(func() (int, error) {
		if opened >= 0 {
			return 0, fails
		}
		opened, err = syscall.Dup(int(from.Fd()))
		return opened, err
	}, to)
	there := func(fd int) bool {
		var s syscall.Stat_t
		return syscall.Fstat(fd, &s) == nil
	}
	if err := a.on(); err != nil || !there(opened) {
		t.Error(err)
	}
	if err := a.off(); err != nil || there(opened) {
		t.Errorf("%v, the link stays", err)
	}
	if err := a.on(); !errors.Is(err, fails) {
		t.Error(err)
	}
	if a.close(); there(to) {
		t.Error("the program stays")
	}
	var attr bpfAttr
	attr.u32(4, 0x01020304)
	if binary.NativeEndian.Uint32(attr[4:]) != 0x01020304 || attr[0] != 0 || attr[8] != 0 {
		t.Errorf("%v", attr)
	}
	if fd, err := bpf(9999, &attr); err == nil || errors.Is(err, syscall.ENOSYS) { // of a system call that there is
		t.Errorf("a command that there is not: %d, %v", fd, err)
	}
}

// TestPrograms: a program is loaded of the kind that is asked for, and closed with its action; the kernel
// refuses functions that
// there are not.
func TestPrograms(t *testing.T) {
	fd, err := loadEmpty(progKprobe, 0, 0)
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS) {
		t.Skip("skipped:", err)
	}
	if err != nil || fd <= 2 || syscall.Close(fd) != nil {
		t.Errorf("%d, %v", fd, err)
	}
	if fd, err := loadEmpty(1<<16, 0, 0); err == nil || !strings.HasPrefix(err.Error(), "load a BPF program: ") {
		t.Errorf("of no kind: %d, %v", fd, err)
	}
	b, err := btf.NewBuilder([]btf.Type{&btf.Func{Name: "no_such",
		Type: &btf.FuncProto{Return: &btf.Int{Name: "int", Size: 4}}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	types, err := b.Marshal(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	inRoot(t, map[string]string{"/sys/kernel/btf/vmlinux": string(types),
		"/proc/kallsyms":                     "1 T no_such\n2 T nor_such\n",
		traced("available_filter_functions"): "no_such\nnor_such\n"}, func(root) {
		for name, want := range map[string]string{"fentry:no_such": "load a BPF program: ",
			"fexit:no_such": "load a BPF program: ",
			"fentry:other":  "/sys/kernel/btf/vmlinux: no function other", "kprobe-multi:3": "2 functions, want 3",
			"tracing-multi":   "0 functions of the first 2 have a type and are not refused, want 1",
			"tracing-multi:2": "2 functions, want 4"} {
			if a, err := newAction(name); a != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
		}
		program, err := loadEmpty(progKprobe, traceKprobeMulti, 0)
		if err != nil { // before Linux 5.18
			return
		}
		_ = syscall.Close(program)
		a, err := newAction("kprobe-multi:2")
		if err != nil || a == nil {
			t.Errorf("%v, %v", a, err)
			return
		}
		// The kernel says so of names that it has read and does not find, or of any where it has no fprobe.
		if err := a.on(); !errors.Is(err, syscall.ESRCH) && !errors.Is(err, syscall.EOPNOTSUPP) {
			t.Errorf("functions that there are not are probed: %v", err)
		}
		a.close()
	})
}
