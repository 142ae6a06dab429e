// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
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

func init() { kinds["sites"], kinds["probes"] = sites, probes }

// A file of sites that probes are set on: what it returns is how many of them were executed.
const (
	sitesFile  = "/sites"
	siteStep   = 16
	nop10      = "\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00"
	leaCall    = "\x48\x8d\x64\x24\x80\xe8" // what a nop becomes, without the displacement
	increments = "\xff\xc0\x90\x90\x90\x90" // inc %eax, and nops up to the next site
	sitesHead  = "\x31\xc0"                 // xor %eax,%eax
	sitesTail  = "\xc3"                     // ret
)

// writeSites writes so many sites and names an event for each.
func writeSites(n int) error {
	text := sitesHead + strings.Repeat("\x90", siteStep-len(sitesHead)) + strings.Repeat(nop10+increments, n) + sitesTail
	if err := os.WriteFile(sitesFile, []byte(text), 0o700); err != nil {
		return err
	}
	for i := range n {
		event := fmt.Sprintf("p:vm/site%d %s:%#x\n", i, sitesFile, (i+1)*siteStep)
		if err := add(tracing+"uprobe_events", event); err != nil {
			return fmt.Errorf("uprobe at %s: %w", event, err)
		}
	}
	return nil
}

// mapped is the file in this process's memory.
type mapped struct{ at uintptr }

func mapSites() (*mapped, error) {
	at, err := mapFile(sitesFile, 0, 1<<12, syscall.PROT_READ|syscall.PROT_EXEC)
	return &mapped{at}, err
}

// call executes all sites. Results of Go's functions are in %rax, and the sites change nothing else.
func (m *mapped) call() int {
	code := &m.at
	return int((*(*func() uint32)(unsafe.Pointer(&code)))())
}

// text is the bytes of so many sites.
func (m *mapped) text(n int) ([][]byte, error) {
	b := make([]byte, n*siteStep)
	f, err := os.Open("/proc/self/mem")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	_, err = f.ReadAt(b, int64(m.at)+siteStep)
	return slices.Collect(slices.Chunk(b, siteStep)), err
}

// all tells whether every site begins with some bytes.
func (m *mapped) all(n int, with string) (bool, error) {
	text, err := m.text(n)
	return !slices.ContainsFunc(text, func(site []byte) bool { return !bytes.HasPrefix(site, []byte(with)) }), err
}

// sites maps so many sites, and has a thread on CPU 1 and one on CPU 2 execute them for ever.
func sites(number string) (*action, error) {
	n, err := strconv.Atoi(number)
	if err != nil {
		return nil, err
	}
	m, err := mapSites()
	if err != nil {
		return nil, err
	}
	runtime.GOMAXPROCS(4)
	for cpu := 1; cpu <= 2; cpu++ {
		go func() {
			runtime.LockOSThread()
			for err := pin(own, cpu); ; {
				if got := m.call(); err != nil || got != n {
					say(facts{"Fail": fmt.Sprintf("CPU %d executed %d of %d sites: %v", cpu, got, n, err)})
					os.Exit(1)
				}
			}
		}()
	}
	return &action{on: second, off: func() error { return nil }}, nil
}

// probes is TIMES:SITES: probes on all sites come and go so many times, while two threads each of two processes execute
// the sites.
func probes(arg string) (*action, error) {
	const enable = tracing + "events/vm/enable"
	number, many, _ := strings.Cut(arg, ":")
	times, err := strconv.Atoi(number)
	n, wrong := strconv.Atoi(many)
	if err := errors.Join(err, wrong); err != nil {
		return nil, err
	}
	if err := writeSites(n); err != nil {
		return nil, err
	}
	if _, err := sites(many); err != nil {
		return nil, err
	}
	own, err := mapSites() // which CPU 0 executes
	if err != nil {
		return nil, err
	}
	return &action{off: func() error { splats(); return nil }, on: func() error {
		pid, err := another("switch", "0 sites:"+many)
		if err != nil {
			return err
		}
		calls := 0
		for i := range times {
			if err := write(enable, "1"); err != nil {
				return fmt.Errorf("toggle %d: %w", i, err)
			}
			time.Sleep(time.Duration(i%7) * time.Millisecond) // the others come upon breakpoints, or on calls
			got := own.call()
			all, err := own.all(n, leaCall)
			if all {
				calls++
			}
			if err := errors.Join(err, write(enable, "0")); err != nil || got != n {
				return fmt.Errorf("toggle %d: %d of %d sites: %w", i, got, n, err)
			}
			if back, err := own.all(n, nop10[:5]); err != nil || !back {
				return fmt.Errorf("toggle %d: nops are back is %v: %w", i, back, err)
			}
			splats()
		}
		var how syscall.WaitStatus
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return err
		}
		if _, err := syscall.Wait4(pid, &how, 0, nil); err != nil || how.Signal() != syscall.SIGKILL {
			return fmt.Errorf("the other process ended by itself: %v, %w", how, err)
		}
		return told(fmt.Appendf(nil, "%d toggles of %d sites, all of which were calls %d times", times, n, calls), nil)
	}}, nil
}
