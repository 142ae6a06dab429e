// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

func init() { kinds["script"], kinds["stress"] = scripted, stress }

// script is a list of steps that the host's program is tried with, parted by semicolons:
//
//	start ARGUMENTS  starts the program, which goes on
//	await TEXT       waits until it has said that, and two seconds more
//	until ARGUMENTS  runs it again and again until it ends with 0
//	run ARGUMENTS    runs it, or the program whose path stands first, and tells its exit code and its output
//	kill, stop       ends the started one, by SIGKILL or SIGTERM, and tells how it ended and its output
//	together A & B   does steps at the same time, and tells their results in the order in which they end
//	wait DURATION    does nothing
//	mkdir FOLDER     makes a folder
//	rmdir FOLDER     removes one
//	load, unload M   loads the module in the file /M, or unloads it
//	truncate N       calls truncate(2) N times
//	drop             leaves the programs that follow the capability CAP_SYSLOG alone (capabilities(7))
//	show FILE        tells what a file holds
//	write FILE TEXT  writes a file that is there
type script struct {
	program *exec.Cmd
	nothing *os.File // there is no /dev/null
}

func scripted(steps string) (*action, error) {
	nothing, err := os.Open("/job")
	if err != nil {
		return nil, err
	}
	if err := loopback(); err != nil {
		return nil, err
	}
	_ = syscall.Mount("devtmpfs", "/dev", "devtmpfs", 0, "") // for programs that want /dev/null
	s := &script{nothing: nothing}
	return &action{
		prepare: func() error { // nothing of it is counted
			for step := range strings.SplitSeq(steps, ";") {
				if err := s.step(strings.TrimSpace(step)); err != nil {
					return fmt.Errorf("%s: %w", step, err)
				}
			}
			return nil
		},
		on:    func() error { return nil },
		off:   func() error { return nil },
		close: func() { _ = s.end(syscall.SIGKILL) },
	}, nil
}

func (s *script) step(step string) error {
	verb, rest, _ := strings.Cut(step, " ")
	switch verb {
	case "start":
		s.program = s.command(rest)
		out, err := os.Create(said)
		if err != nil {
			return err
		}
		defer out.Close()
		s.program.Stdout, s.program.Stderr = out, out
		return s.program.Start()
	case "await":
		return s.until(func() (bool, error) {
			b, err := os.ReadFile(said)
			if err == nil && strings.Contains(string(b), rest) {
				time.Sleep(2 * time.Second)
				return true, nil
			}
			return false, err
		})
	case "kill":
		return s.end(syscall.SIGKILL)
	case "stop":
		return s.end(syscall.SIGTERM)
	case "run":
		b, err := s.command(rest).CombinedOutput()
		return told(b, err)
	case "until":
		return s.until(func() (bool, error) {
			b, err := s.command(rest).CombinedOutput()
			if err != nil {
				return false, nil
			}
			return true, told(b, nil)
		})
	case "show":
		b, err := os.ReadFile(rest)
		return told(b, err)
	case "together":
		var all sync.WaitGroup
		var errs [64]error
		for i, one := range strings.Split(rest, " & ") {
			all.Go(func() { errs[i%len(errs)] = s.step(one) })
		}
		all.Wait()
		return errors.Join(errs[:]...)
	case "drop":
		runtime.LockOSThread() // the bounding set is a thread's
		const prCapbsetDrop, capSyslog = 24, 34
		for c := range uintptr(64) {
			if c != capSyslog { // capabilities that the kernel does not have fail
				_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prCapbsetDrop, c, 0)
			}
		}
		return nil
	case "wait":
		d, err := time.ParseDuration(rest)
		time.Sleep(d)
		return err
	case "rmdir":
		return syscall.Rmdir(rest)
	case "load":
		return loadModule(rest)
	case "unload":
		return unload(moduleName(rest))
	case "truncate":
		n, err := strconv.Atoi(rest)
		for range n {
			err = errors.Join(err, syscall.Truncate("/job", 0))
		}
		return err
	case "mkdir":
		return os.Mkdir(rest, 0o700)
	case "write":
		file, text, _ := strings.Cut(rest, " ")
		return write(file, text)
	}
	return errors.New("no such step")
}

// said is what the program that was started has said.
const said = "/said"

// until does something again and again until it is so: an emulator is slow.
func (s *script) until(so func() (bool, error)) error {
	for range 600 {
		if ok, err := so(); ok || err != nil {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
	return errors.New("it never was so")
}

func (s *script) command(arguments string) *exec.Cmd {
	words := strings.Fields(arguments)
	if len(words) == 0 || !strings.HasPrefix(words[0], "/") {
		words = append([]string{"/textpoke"}, words...)
	}
	c := exec.Command(words[0], words[1:]...)
	c.Stdin, c.Env = s.nothing, []string{"HOME=/", "PATH=/:/usr/bin"}
	return c
}

func (s *script) end(signal syscall.Signal) error {
	if s.program == nil {
		return nil
	}
	p := s.program
	s.program = nil
	_ = p.Process.Signal(signal)
	err := p.Wait()
	var code *exec.ExitError
	if errors.As(err, &code) {
		err = nil
	}
	b, read := os.ReadFile(said)
	return errors.Join(err, read, told(append([]byte(p.ProcessState.String()+"\n"), b...), nil))
}

// told tells what a step said, and its exit code.
func told(text []byte, err error) error {
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code, err = exit.ExitCode(), nil
	}
	if err == nil {
		say(facts{"Watched": []facts{{"Text": string(text), "Code": code}}})
	}
	return err
}

// loopback brings the interface lo up (netdevice(7), SIOCSIFFLAGS).
func loopback() error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	request := struct {
		name  [syscall.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}{flags: syscall.IFF_UP}
	copy(request.name[:], "lo")
	if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))); e != 0 {
		return fmt.Errorf("bring lo up: %w", e)
	}
	return nil
}

// stress is what users of text patching do, so many times; the tracers change all functions the first times.
func stress(count string) (*action, error) {
	n, err := strconv.Atoi(count)
	if err != nil {
		return nil, err
	}
	var others []*action
	for _, name := range []string{"kprobe:vfs_read", "fentry:vfs_write", "tracing-multi:100", "event-group:sched",
		"static-key:bpf_stats_enabled_key"} {
		a, err := newAction(name)
		if err != nil {
			say(facts{"Skips": []facts{{"Action": name, "Why": err.Error()}}})
			continue
		}
		others = append(others, a)
	}
	return &action{off: func() error { splats(); return nil }, on: func() error {
		const all = 3
		for i := range n {
			if i == all {
				for _, name := range append(onTheWayUp, "vfs_*", "*sched*") {
					_ = add(tracing+"set_ftrace_filter", name)
				}
			}
			for _, tracer := range []string{"function", "nop", "function_graph", "nop"} {
				if err := write(tracing+"current_tracer", tracer); err != nil {
					return fmt.Errorf("toggle %d: %s: %w", i, tracer, err)
				}
			}
			for _, a := range others {
				if err := errors.Join(a.on(), a.off()); err != nil {
					return fmt.Errorf("toggle %d: %w", i, err)
				}
			}
			splats()
		}
		return nil
	}}, nil
}

// splats tells what the kernel has warned of since it was last asked: the lines of its log from one that begins a warning.
func splats() {
	const readAndClear = 4 // SYSLOG_ACTION_READ_CLEAR, syslog(2)
	log := make([]byte, 1<<18)
	n, err := syscall.Klogctl(readAndClear, log)
	if err != nil {
		return
	}
	for _, mark := range []string{"WARNING: ", "BUG: ", "INFO: ", "kernel BUG at", "Oops: "} {
		if at := strings.Index(string(log[:n]), mark); at >= 0 {
			const consoleOff, most = 6, 8192 // SYSLOG_ACTION_CONSOLE_OFF: the kernel's messages would part the line
			_, _ = syscall.Klogctl(consoleOff, nil)
			say(facts{"Watched": []facts{{"Text": string(log[at:min(n, at+most)]), "Code": -1}}})
			return
		}
	}
}
