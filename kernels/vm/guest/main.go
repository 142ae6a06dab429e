// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command guest is the init of a virtual machine: it carries out the actions in /job, counts every CPU's interrupts
// meanwhile, tells them on the console, and switches the machine off. It uses only the standard library: it is built
// from its source alone, for the architecture of the booted kernel.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

const tracing = "/sys/kernel/tracing/"

// job is what the host asks for.
type job struct {
	Actions     []string
	Modules     []string // loaded first, in this order
	Busy        []string // CPUs that are to execute kernel code all the time
	Repetitions int
	Wait        bool // for a line on the console, once the machine is up
}

func main() {
	err := run(os.Args[1:], os.Getenv("PINNED") != "")
	if err != nil {
		say(facts{"Fail": err.Error()})
	}
	if len(os.Args) == 3 {
		os.Exit(1)
	}
	end()
}

// run does the task of a process that another one has started, or the job.
func run(args []string, pinned bool) error {
	switch {
	case len(args) == 2:
		return map[string]func(string) error{"spin": spin, "switch": switched}[args[0]](args[1])
	case !pinned:
		return fmt.Errorf("start: %w", start())
	}
	return work()
}

// start does what only needs to be done once, and begins anew as a process on CPU 0 that
// makes no threads or garbage by itself.
func start() error {
	runtime.LockOSThread() // that the thread which is pinned is the one that goes on
	err := pin(own, 0)
	for _, m := range [][2]string{{"proc", "/proc"}, {"sysfs", "/sys"}} {
		if wrong := syscall.Mount(m[0], m[1], m[0], 0, ""); wrong != nil {
			err = fmt.Errorf("mount %s: %w", m[1], wrong)
		}
	}
	if err == nil {
		err = syscall.Exec("/init", []string{"init"}, []string{"PINNED=1", "GOMAXPROCS=1", "GOGC=off"})
	}
	return err
}

// work carries the job out.
func work() error {
	var j job
	text, err := os.ReadFile("/job")
	if err == nil {
		err = json.Unmarshal(text, &j)
	}
	if err != nil {
		return err
	}
	say(facts{"Release": field("/proc/sys/kernel/osrelease"),
		"Online": field("/sys/devices/system/cpu/online")})
	if on := allowed("/proc/self/status"); on != "0" {
		return fmt.Errorf("the guest may use CPUs %s, want 0 alone: counts would be other CPUs'", on)
	}
	if j.Wait {
		if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
			return fmt.Errorf("wait for the debugger: %w", err)
		}
	}
	// Queues of work and devices may use CPU 0 only, which keeps the others quiet. A kernel that lacks these files
	// has more background.
	for _, file := range []string{"/sys/devices/virtual/workqueue/cpumask", "/proc/irq/default_smp_affinity"} {
		_ = write(file, "1")
	}
	for _, m := range j.Modules {
		if err := loadModule(m); err != nil {
			return err
		}
	}
	if err := j.trace(); err != nil {
		return err
	}
	for _, cpu := range j.Busy {
		if _, err := another("spin", cpu); err != nil {
			return fmt.Errorf("busy CPU %s: %w", cpu, err)
		}
	}
	c := newCounter()
	c.debugged = j.Wait
	for _, name := range j.Actions {
		if err := c.measure(name, j.Repetitions); err != nil {
			say(facts{"Skips": []facts{{"Action": name, "Why": err.Error()}}})
		}
	}
	say(facts{"Done": true})
	return nil
}

// trace makes the kernel's tracing ready. Actions that only load modules do without.
func (j *job) trace() error {
	traced := func(action string) bool { return !strings.Contains(action, ":idle&reload:") }
	if !slices.ContainsFunc(j.Actions, traced) {
		return nil
	}
	if err := syscall.Mount("tracefs", tracing, "tracefs", 0, ""); err != nil {
		return fmt.Errorf("mount %s: %w: the kernel has no tracing", tracing, err)
	}
	// Nothing is to be recorded, only patched.
	for _, w := range [][2]string{{"tracing_on", "0"}, {"buffer_size_kb", "64"}} {
		if err := write(tracing+w[0], w[1]); err != nil {
			return err
		}
	}
	return nil
}

// own is the task that asks.
const own = 0

// pin keeps a task on one CPU.
func pin(task, cpu int) error {
	var mask [16]uint64
	mask[cpu/64] = 1 << (cpu % 64)
	_, _, e := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, uintptr(task), unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask)))
	if e != 0 {
		return fmt.Errorf("pin to CPU %d: %w", cpu, e)
	}
	return nil
}

// allowed are the CPUs that a thread may use, of its file status (proc_pid_status(5)).
func allowed(status string) string {
	b, _ := os.ReadFile(status)
	_, after, _ := strings.Cut(string(b), "\nCpus_allowed_list:")
	list, _, _ := strings.Cut(after, "\n")
	return strings.TrimSpace(list)
}

// another starts a process of the guest that does something else. It has this one's files: without any, it would open
// /dev/null, which there is not, and end.
func another(task, arg string) (pid int, err error) {
	return syscall.ForkExec("/init", []string{"init", task, arg}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}})
}

// spin is a task that keeps its CPU in the kernel.
func spin(cpu string) error {
	n, err := strconv.Atoi(cpu)
	if err == nil {
		err = pin(own, n)
	}
	for err == nil {
		syscall.Getppid()
	}
	return err
}

// write replaces what a file holds, and add adds to it.
func write(file, text string) error { return writeWith(os.O_TRUNC, file, text) }
func add(file, text string) error   { return writeWith(os.O_APPEND, file, text) }

func writeWith(flag int, file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|flag, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// field is the first field of a file.
func field(file string) string {
	b, _ := os.ReadFile(file)
	for f := range strings.FieldsSeq(string(b)) {
		return f
	}
	return "?"
}

// end switches the machine off, once the console has sent everything.
func end() {
	syscall.Sync()
	time.Sleep(100 * time.Millisecond)
	_ = syscall.Reboot(syscall.LINUX_REBOOT_CMD_POWER_OFF)
	select {}
}
