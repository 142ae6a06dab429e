// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"os"
	"strconv"
	"time"
)

// onTheWayUp are functions that an x86 CPU executes before it is online (start_secondary, arch/x86/kernel/smpboot.c,
// Linux 6.12 and 7.2), and those that they call. Which of them can be traced differs.
var onTheWayUp = []string{"*cpu_starting", "cpuhp_invoke_callback*", "cpuhp_report_idle_dead", "apic_ap_setup",
	"ap_starting", "setup_local_APIC", "x2apic_setup", "lapic_setup_esr", "identify_secondary_cpu", "identify_cpu",
	"store_cpu_info", "smp_store_cpu_info", "set_cpu_sibling_map", "mtrr_ap_init", "cache_ap_online", "cpu_init",
	"cr4_init", "fpu__init_cpu*", "x86_configure_nx", "load_direct_gdt", "calibrate_delay*", "setup_secondary_APIC_clock"}

// bringUp has ftrace change these functions again and again, while another process takes CPU 1 down and up. The
// argument is for how many seconds.
func bringUp(seconds string) (*action, error) {
	n, err := strconv.Atoi(seconds)
	if err != nil {
		return nil, err
	}
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
	if err := another("hotplug", "1"); err != nil {
		return nil, err
	}
	toggle := func() error {
		for end := time.Now().Add(time.Duration(n) * time.Second); time.Now().Before(end); {
			for _, tracer := range []string{"function", "nop"} {
				if err := write(tracing+"current_tracer", tracer); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return &action{on: toggle, off: func() error { return nil }}, nil
}

// hotplug takes a CPU down and up until the machine ends.
func hotplug(cpu string) {
	err := pin(0)
	for err == nil {
		for _, online := range []string{"0", "1"} {
			err = errors.Join(err, write("/sys/devices/system/cpu/cpu"+cpu+"/online", online))
		}
	}
	say("fail", err.Error())
	os.Exit(1)
}
