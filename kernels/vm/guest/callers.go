// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// senders are the functions that interrupt other CPUs for a call, over the releases (kernel/smp.c).
var senders = []string{"smp_call_function_many_cond", "smp_call_function_single", "smp_call_function_single_async",
	"smp_call_function_any"}

// called is another action together with the stacks that CPU 0 had when it interrupted others. Its counts are not
// those of the action alone, since the probes are attached.
func called(name string) (*action, error) {
	a, err := newAction(name)
	if err != nil {
		return nil, err
	}
	var triggers []string
	for i, f := range senders {
		event := fmt.Sprint("sender", i)
		if add(tracing+"kprobe_events", fmt.Sprintf("p:callers/%s %s\n", event, f)) != nil {
			continue
		}
		triggers = append(triggers, tracing+"events/callers/"+event+"/trigger")
		if err := write(triggers[len(triggers)-1], "stacktrace"); err != nil {
			return nil, err
		}
	}
	gone := func() {
		for _, file := range triggers {
			_ = write(file, "!stacktrace") // the next action attaches them again
		}
		_ = write(tracing+"kprobe_events", "")
		if a.close != nil {
			a.close()
		}
	}
	if len(triggers) == 0 {
		return nil, errors.New("no function that interrupts other CPUs can be probed")
	}
	if err := write(tracing+"buffer_size_kb", "4096"); err != nil {
		return nil, err
	}
	step := func(direction string, do func() error) func() error {
		return func() error {
			err := errors.Join(write(tracing+"trace", ""), write(tracing+"tracing_on", "1"), do(),
				write(tracing+"tracing_on", "0"))
			stacks, read := readStacks()
			for _, s := range stacks {
				say(facts{"Callers": []facts{{"Action": name, "Direction": direction, "Stack": s}}})
			}
			return errors.Join(err, read)
		}
	}
	return &action{prepare: a.prepare, on: step("enable", a.on), off: step("disable", a.off), close: gone}, nil
}

// readStacks reads the stacks that CPU 0 had, one line each, the innermost function first.
func readStacks() (stacks []string, err error) {
	text, err := os.ReadFile(tracing + "trace")
	var stack []string
	mine := false
	end := func() {
		if mine && len(stack) > 0 {
			stacks = append(stacks, strings.Join(stack, " < "))
		}
		stack, mine = nil, false
	}
	for line := range strings.Lines(string(text)) {
		frame, in := strings.CutPrefix(strings.TrimSpace(line), "=> ")
		if !in {
			end()
			mine = strings.Contains(line, "[000]") && strings.Contains(line, "<stack trace>")
			continue
		}
		if len(stack) == 0 && !slices.Contains(senders, frame) {
			continue // the probe's own
		}
		stack = append(stack, frame)
	}
	end()
	return stacks, err
}
