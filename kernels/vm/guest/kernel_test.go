// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"syscall"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf/btf"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// call is a system call of the guest.
type call struct {
	number uint32
	args   [6]uint64
}

// bytes is memory that an argument points to: the guest's is the test's own.
func (c *call) bytes(arg, n int) []byte { return memory(c.args[arg], n) }

func memory(at uint64, n int) []byte {
	p := uintptr(at)
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&p))), n)
}

// inKernel does something in a thread with a root of its own whose calls of some numbers the test answers, in the
// kernel's place (seccomp_unotify(2)): by a number, or by an error.
func inKernel(t *testing.T, files map[string]string, answer func(c call) (uint64, syscall.Errno), do func(), numbers ...uint32) {
	t.Helper()
	inRoot(t, files, func(root) {
		listener, err := listen(numbers)
		if err != nil {
			t.Skip("skipped: a kernel of one's own:", err)
		}
		over, ended := make(chan bool), make(chan bool)
		go func() {
			defer close(ended)
			serveCalls(t, listener, over, answer)
		}()
		do()
		close(over)
		<-ended
		_ = unix.Close(listener)
	})
}

// listen has this thread's calls of some numbers answered by who reads the file.
func listen(numbers []uint32) (int, error) {
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}} // the number stands first
	for i, n := range numbers {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: n, Jt: uint8(len(numbers) - i)})
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, err
	}
	fd, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER,
		uintptr(unsafe.Pointer(&program)))
	if e != 0 {
		return 0, e
	}
	return int(fd), nil
}

func serveCalls(t *testing.T, listener int, over <-chan bool, answer func(c call) (uint64, syscall.Errno)) {
	for {
		select {
		case <-over:
			return
		default:
		}
		if n, err := unix.Poll([]unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}, 10); n < 1 || err != nil {
			continue
		}
		// struct seccomp_notif: an id, pid and flags, and the call; seccomp_notif_resp: the id, a result, an error.
		var asked struct {
			id         uint64
			pid, flags uint32
			number     uint32
			arch       uint32
			ip         uint64
			args       [6]uint64
		}
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV,
			uintptr(unsafe.Pointer(&asked))); e != 0 {
			t.Error(e)
			return
		}
		told := struct {
			id    uint64
			value uint64
			err   int32
			flags uint32
		}{id: asked.id}
		value, e := answer(call{asked.number, asked.args})
		told.value, told.err = value, -int32(e)
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SEND,
			uintptr(unsafe.Pointer(&told))); e != 0 {
			t.Error(e)
			return
		}
	}
}

// TestKernelIsAskedForModules: what a file holds, with no arguments, and the name that the kernel knows it by.
func TestKernelIsAskedForModules(t *testing.T) {
	const text = "a module's text"
	var loaded, unloaded []string
	inKernel(t, map[string]string{"/a-b.ko": text}, func(c call) (uint64, syscall.Errno) {
		switch {
		case c.number == unix.SYS_DELETE_MODULE && c.args[1] == 0:
			unloaded = append(unloaded, string(c.bytes(0, 4)))
			return 0, syscall.EBUSY
		case c.number == unix.SYS_INIT_MODULE && c.args[1] == uint64(len(text)) && c.bytes(2, 1)[0] == 0:
			loaded = append(loaded, string(c.bytes(0, len(text))))
			return 0, []syscall.Errno{0, syscall.ENODEV, syscall.ENOEXEC}[len(loaded)-1]
		}
		return 0, syscall.EILSEQ
	}, func() {
		if err := loadModule("a-b.ko"); err != nil {
			t.Error(err)
		}
		if err := unload("a_b"); err == nil || err.Error() != "unload a_b: device or resource busy" {
			t.Error(err)
		}
		a, err := newAction("reload:a-b.ko")
		if err != nil {
			t.Error(err)
			return
		}
		if err := errors.Join(a.on(), a.off()); err != nil { // it found no device, and has gone
			t.Error(err)
		}
		if err := a.on(); err == nil || err.Error() != "load a-b.ko: exec format error" {
			t.Error(err)
		}
		if err := a.off(); err == nil || err.Error() != "unload a_b: device or resource busy" {
			t.Error(err)
		}
		want := [][]string{{text, text, text}, {"a_b\x00", "a_b\x00"}}
		if d := cmp.Diff(want, [][]string{loaded, unloaded}); d != "" {
			t.Error(d)
		}
	}, unix.SYS_INIT_MODULE, unix.SYS_DELETE_MODULE)
}

// TestKernelIsAskedForCounters: a raw event of the firmware's of each CPU, of all processes; what the kernel has on all
// CPUs is counted.
func TestKernelIsAskedForCounters(t *testing.T) {
	var asked []string
	none := uint64(^uintptr(0))
	inKernel(t, map[string]string{"/sys/devices/system/cpu/online": "0-1\n", "/sys/bus/platform/drivers/riscv-pmu-sbi": ""},
		func(c call) (uint64, syscall.Errno) {
			attr := c.bytes(0, 112)
			event := binary.NativeEndian.Uint64(attr[8:])
			kind, size := binary.NativeEndian.Uint32(attr), binary.NativeEndian.Uint32(attr[4:])
			if kind != 4 || size != 112 || uint32(c.args[1]) != uint32(none) || uint32(c.args[3]) != uint32(none) || c.args[4] != 0 {
				return 0, syscall.EILSEQ
			}
			asked = append(asked, string('0'+rune(event&^(1<<63)))+string('0'+rune(c.args[2])))
			if event == 1<<63|11 && c.args[2] == 1 {
				return 0, syscall.ENOENT
			}
			return 1000 + uint64(len(asked)), 0
		}, func() {
			c := newCounter()
			want := []firmwareRow{{"FW_FENCE_I_RECVD", "Firmware: remote fence.i received", []int{1001, 1002}},
				{"FW_SFENCE_VMA_ASID_RECVD", "Firmware: remote sfence.vma with ASID received", []int{1005, 1006}}}
			if d := cmp.Diff(want, c.firmware, cmp.AllowUnexported(firmwareRow{})); d != "" || c.cpus != 2 {
				t.Errorf("%d CPUs, %s", c.cpus, d)
			}
			if d := cmp.Diff([]string{"90", "91", ";0", ";1", "=0", "=1"}, asked); d != "" {
				t.Error(d)
			}
		}, unix.SYS_PERF_EVENT_OPEN)
}

// loading is what the kernel is asked for by bpf(2).
type loading struct {
	Command            uint64
	Kind, Attach, Type uint32 // of a program
	Code               []uint64
	License            string
	Program, Link      uint32 // of a link
	Types              []uint32
	Names              []string
	Tracepoint         uint32
}

func (c *call) loading() (l loading) {
	attr := c.bytes(1, 144)
	u32 := func(at int) uint32 { return binary.NativeEndian.Uint32(attr[at:]) }
	u64 := func(at int) uint64 { return binary.NativeEndian.Uint64(attr[at:]) }
	l.Command = c.args[0]
	switch l.Command {
	case 5: // BPF_PROG_LOAD
		l.Kind, l.Attach, l.Type, l.License = u32(0), u32(68), u32(108), string(memory(u64(16), 4))
		for i := range u32(4) {
			l.Code = append(l.Code, binary.NativeEndian.Uint64(memory(u64(8)+8*uint64(i), 8)))
		}
	case 17: // BPF_RAW_TRACEPOINT_OPEN
		l.Tracepoint = u32(8)
	case 28: // BPF_LINK_CREATE
		if l.Program, l.Link = u32(0), u32(8); l.Link == 59 { // BPF_TRACE_FENTRY_MULTI
			for i := range u32(32) {
				l.Types = append(l.Types, binary.NativeEndian.Uint32(memory(u64(16)+4*uint64(i), 4)))
			}
			break
		}
		for i := range u32(20) {
			name := binary.NativeEndian.Uint64(memory(u64(24)+8*uint64(i), 8))
			l.Names = append(l.Names, string(memory(name, 2)))
		}
	}
	return l
}

// TestKernelIsAskedForPrograms: a program that does nothing is loaded for a function or for many, and attached when it is
// switched on: to the first functions that have a type and are not refused, by their types, or to the first of a name.
func TestKernelIsAskedForPrograms(t *testing.T) {
	proto := &btf.FuncProto{Return: &btf.Int{Name: "int", Size: 4}}
	var list []btf.Type
	for _, name := range []string{"a", "b", "c", "d"} {
		list = append(list, &btf.Func{Name: name, Type: proto})
	}
	b, err := btf.NewBuilder(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	id := map[string]uint32{}
	for _, typ := range list {
		n, err := b.Add(typ)
		if err != nil {
			t.Fatal(err)
		}
		id[typ.TypeName()] = uint32(n)
	}
	types, err := b.Marshal(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"/sys/kernel/btf/vmlinux": string(types), "/proc/kallsyms": "1 T a\n2 T n\n3 T b\n4 T c\n5 T d\n",
		traced("available_filter_functions"): "a\nn\nb\nc\nd\n"}
	empty := func(kind, attach, function uint32) loading {
		return loading{Command: 5, Kind: kind, Attach: attach, Type: function, Code: []uint64{0xb7, 0x95}, License: "GPL\x00"}
	}
	for name, want := range map[string][]loading{
		"fentry:b": {empty(26, 24, id["b"]), {Command: 17, Tracepoint: 5001}},
		"fexit:c":  {empty(26, 25, id["c"]), {Command: 17, Tracepoint: 5001}},
		"tracing-multi:2": {empty(26, 24, id["a"]), empty(26, 24, id["b"]), empty(26, 24, id["c"]), empty(26, 59, 0),
			{Command: 28, Program: 5004, Link: 59, Types: []uint32{id["b"], id["c"]}}}, // a is refused
		"kprobe-multi:2": {empty(2, 42, 0), {Command: 28, Program: 5001, Link: 42, Names: []string{"a\x00", "n\x00"}}},
	} {
		var asked []loading
		inKernel(t, files, func(c call) (uint64, syscall.Errno) {
			l := c.loading()
			asked = append(asked, l)
			if c.args[2] != 144 || l.Kind == 26 && l.Type == id["a"] {
				return 0, syscall.EINVAL
			}
			return 5000 + uint64(len(asked)), 0
		}, func() {
			a, err := newAction(name)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			if err := a.on(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := a.off(); !errors.Is(err, syscall.EBADF) { // the file is none
				t.Errorf("%s: %v", name, err)
			}
			a.close()
			if d := cmp.Diff(want, asked); d != "" {
				t.Errorf("%s: %s", name, d)
			}
		}, unix.SYS_BPF)
		asked = nil
		inKernel(t, files, func(c call) (uint64, syscall.Errno) {
			if asked = append(asked, c.loading()); len(asked) == len(want) {
				return 0, syscall.EMFILE
			}
			return 5000 + uint64(len(asked)), map[bool]syscall.Errno{true: syscall.EINVAL}[asked[len(asked)-1].Type == id["a"]]
		}, func() {
			a, err := newAction(name)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			if err := a.on(); !errors.Is(err, syscall.EMFILE) {
				t.Errorf("%s: %v", name, err)
			}
		}, unix.SYS_BPF)
	}
}
