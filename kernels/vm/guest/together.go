// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// together is SECONDS:A&B&C: actions that are switched on and off again and again for so long, and at least once, by a
// process each: A on CPU 0, B on CPU 1, C on CPU 0, and so on. An empty one is left out. Nothing of it is counted.
func together(arg string) (*action, error) {
	seconds, list, _ := strings.Cut(arg, ":")
	names := strings.Split(list, "&")
	n, err := strconv.Atoi(seconds)
	if err != nil || len(names) < 2 {
		return nil, fmt.Errorf("%q: want seconds and some actions", arg)
	}
	first, err := newAction(names[0])
	if err != nil {
		return nil, err
	}
	nothing := func() error { return nil }
	return &action{on: nothing, off: nothing, prepare: func() error {
		runtime.LockOSThread()                       // CPUs are a thread's
		_ = write(tracing+"options/record-cmd", "0") // what an event changes then is its own
		// Since 7.0 a thread optimises kprobes, which was work of CPU 0 (kprobe_optimizer_thread, kernel/kprobes.c).
		for _, id := range tasks(func(name string) bool { return strings.HasPrefix(name, "kprobe-optimize") }) {
			_ = pin(id, 0)
		}
		defer func() { _ = write(cpu1, "1") }() // hotplug may be killed in between
		for i, name := range names[1:] {
			if name == "" {
				continue
			}
			cpu := (i + 1) % 2
			_ = pin(own, cpu) // so that it also starts there; a CPU that is down it waits for
			pid, err := another("switch", fmt.Sprint(cpu)+" "+name)
			if err := errors.Join(err, pin(own, 0)); err != nil {
				return err
			}
			defer func() {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				_, _ = syscall.Wait4(pid, nil, 0, nil)
			}()
		}
		for end := time.Now().Add(time.Duration(n) * time.Second); ; {
			if err := errors.Join(first.on(), first.off()); err != nil || !time.Now().Before(end) {
				return err
			}
		}
	}}, nil
}

// switched switches "CPU ACTION" on and off until it is killed.
func switched(arg string) error {
	cpu, name, _ := strings.Cut(arg, " ")
	n, err := strconv.Atoi(cpu)
	a, wrong := newAction(name)
	for err = errors.Join(err, wrong); err == nil; {
		if err = pin(own, n); errors.Is(err, syscall.EINVAL) { // the CPU is down
			err = nil
			continue
		}
		for err == nil {
			err = errors.Join(a.on(), a.off())
		}
	}
	return err
}

// reload loads a module and unloads it. One that finds no device is unloaded by the kernel, all its text patched.
func reload(file string) (*action, error) {
	text, err := os.ReadFile("/" + file)
	if err != nil {
		return nil, err
	}
	gone := false
	return &action{
		on: func() error {
			err := initModule(file, text)
			if gone = errors.Is(err, syscall.ENODEV); gone {
				err = nil
			}
			return err
		},
		off: func() error {
			if gone {
				return nil
			}
			return unload(moduleName(file))
		},
	}, nil
}

// churn has the kernel make page tables, and free them.
func churn(string) (*action, error) {
	const tables, reach = 64, 2 << 20 // of a table of page table entries
	const nice = 10
	err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, nice)
	var b []byte
	return &action{
		on: func() (err error) {
			b, err = syscall.Mmap(-1, 0, tables*reach, syscall.PROT_READ|syscall.PROT_WRITE,
				syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
			for at := 0; at < len(b); at += reach {
				b[at] = 1
			}
			return err
		},
		off: func() error { return syscall.Munmap(b) },
	}, err
}

// hotplug takes CPU 1 down and up.
func hotplug(string) (*action, error) { return writes(cpu1, "0", "1") }

const cpu1 = "/sys/devices/system/cpu/cpu1/online"

// onTheWayUp are functions that an x86 CPU executes before it is online (start_secondary, arch/x86/kernel/smpboot.c,
// Linux 6.12 and 7.2), and those that they call. Which of them can be traced differs.
var onTheWayUp = []string{"*cpu_starting", "cpuhp_invoke_callback*", "cpuhp_report_idle_dead", "apic_ap_setup",
	"ap_starting", "setup_local_APIC", "x2apic_setup", "lapic_setup_esr", "identify_secondary_cpu", "identify_cpu",
	"store_cpu_info", "smp_store_cpu_info", "set_cpu_sibling_map", "mtrr_ap_init", "cache_ap_online", "cpu_init",
	"cr4_init", "fpu__init_cpu*", "x86_configure_nx", "load_direct_gdt", "calibrate_delay*", "setup_secondary_APIC_clock"}

// traceWayUp is the function tracer on these functions.
func traceWayUp(string) (*action, error) {
	some := false
	for _, name := range onTheWayUp {
		some = add(tracing+"set_ftrace_filter", name) == nil || some
	}
	if !some {
		return nil, errors.New("no function of the way up can be traced")
	}
	// A task that starts recording command lines takes cpus_read_lock, and waits until the CPU is up. This event has
	// it on.
	if err := write(tracing+"events/sched/sched_switch/enable", "1"); err != nil {
		return nil, err
	}
	return writes(tracing+"current_tracer", "function", "nop")
}

// trap is a probe that stays a breakpoint, in getppid(2), which is called then.
func trap(string) (*action, error) {
	if err := write("/proc/sys/debug/kprobes-optimization", "0"); err != nil {
		return nil, err
	}
	// Behind the call site of the tracer, and endbr64 where there is one: the start of an instruction.
	err := errors.New("getppid has no place for a probe")
	for _, offset := range []string{"5", "9", "10"} {
		if err = add(tracing+"kprobe_events", "p:vm/trap __x64_sys_getppid+"+offset+"\n"); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("probe of getppid: %w", err)
	}
	calls := func() error {
		for range 1000 {
			syscall.Getppid()
		}
		return nil
	}
	return &action{on: calls, off: calls}, write(tracing+"events/vm/trap/enable", "1")
}

// optimizer is a probe at a place that becomes a jump, after five ticks (OPTIMIZE_DELAY, kernel/kprobes.c), and a breakpoint
// again. It takes no mutex of the tracer's files, as other actions do: it would go in step with them.
func optimizer(place string) (*action, error) {
	if err := add(tracing+"kprobe_events", "p:vm/optimizer "+place+"\n"); err != nil {
		return nil, fmt.Errorf("probe of %s: %w", place, err)
	}
	if err := write(tracing+"events/vm/optimizer/enable", "1"); err != nil {
		return nil, err
	}
	a, err := writes("/proc/sys/debug/kprobes-optimization", "1", "0")
	if err == nil {
		on := a.on
		a.on = func() error {
			defer time.Sleep(100 * time.Millisecond)
			return on()
		}
	}
	return a, err
}

// encapsulation is a socket for tunnels, which counts the key udp_encap_needed_key up (net/ipv4/udp.c).
func encapsulation(string) (*action, error) {
	const option, kind = 100, 3 // UDP_ENCAP, UDP_ENCAP_L2TPINUDP: include/uapi/linux/udp.h
	socket := -1
	return &action{
		on: func() (err error) {
			if socket, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0); err != nil {
				return err
			}
			return syscall.SetsockoptInt(socket, syscall.IPPROTO_UDP, option, kind)
		},
		off: func() error { return syscall.Close(socket) },
	}, nil
}
