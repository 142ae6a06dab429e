// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// probed is a process of the program that is probed. It hits every site for each byte that it is sent, and answers
// with a byte.
type probed struct {
	process    *os.Process
	in, answer *os.File
}

// uprobe probes the sites of a program of the host; the argument is PROGRAM[@PROCESSES]. Processes are new each time:
// some kernels leave a call in the text of those whose probe has gone.
func uprobe(arg string) (*action, error) {
	name, number, given := strings.Cut(arg, "@")
	processes := 1
	if given {
		var err error
		if processes, err = strconv.Atoi(number); err != nil {
			return nil, fmt.Errorf("%q: want a number of processes", number)
		}
	}
	program := "/probed-" + name
	sites, err := os.ReadFile(program + ".sites")
	if err != nil {
		return nil, err
	}
	for i, offset := range strings.Fields(string(sites)) {
		if err := add(tracing+"uprobe_events", fmt.Sprintf("p:vm/site%d %s:%s\n", i, program, offset)); err != nil {
			return nil, fmt.Errorf("uprobe at %s:%s: %w", program, offset, err)
		}
	}
	// An event has command lines recorded, which is another action's.
	if err := write(tracing+"options/record-cmd", "0"); err != nil {
		return nil, err
	}
	a, err := writes(tracing+"events/vm/enable", "1", "0")
	if err != nil {
		return nil, err
	}
	var running []*probed
	enable := a.on
	a.prepare = func() error {
		end := endAll(running)
		running, err = startAll(program, processes)
		return errors.Join(end, err, hitAll(running))
	}
	a.on = func() error { return errors.Join(enable(), hitAll(running)) }
	a.again = func() error { return hitAll(running) }
	a.close = func() {
		_ = endAll(running)
		_ = write(tracing+"uprobe_events", "")
		_ = write(tracing+"options/record-cmd", "1")
	}
	return a, nil
}

// startAll starts so many processes, which wait for their first byte.
func startAll(program string, n int) (all []*probed, err error) {
	for range n {
		input, in, err := os.Pipe()
		if err != nil {
			return all, err
		}
		answer, output, err := os.Pipe()
		if err != nil {
			return all, err
		}
		p, err := os.StartProcess(program, []string{program}, &os.ProcAttr{Files: []*os.File{input, output, os.Stdout}})
		_ = errors.Join(input.Close(), output.Close())
		if err != nil {
			return all, err
		}
		all = append(all, &probed{p, in, answer})
	}
	return all, nil
}

// hitAll takes every process through its sites.
func hitAll(all []*probed) error {
	for _, p := range all {
		var b [1]byte
		if _, err := p.in.Write(b[:]); err != nil {
			return err
		}
		if _, err := p.answer.Read(b[:]); err != nil {
			return fmt.Errorf("the program that is probed: %w", err)
		}
	}
	return nil
}

// endAll ends every process.
func endAll(all []*probed) (err error) {
	for _, p := range all {
		err = errors.Join(err, p.in.Close(), p.answer.Close())
		_, wait := p.process.Wait()
		err = errors.Join(err, wait)
	}
	return err
}
