// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// watcher is the program that the host has put beside the guest, and how it is asked to watch.
var watcher = []string{"/textpoke", "kernel", "watch", "--interval", "100ms", "--row", "CAL", "--budget", "isolated=2",
	"--format", "csv"}

// watched is another action, of which a watcher on CPU 0 tells what it sees in /proc/interrupts.
func watched(name string) (*action, error) {
	a, err := newAction(name)
	if err != nil {
		return nil, err
	}
	nothing, err := os.Open("/job") // there is no /dev/null
	if err != nil {
		return nil, err
	}
	defer nothing.Close()
	const file = "/watched"
	seen, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	defer seen.Close()
	w := exec.Command(watcher[0], watcher[1:]...)
	w.Stdin, w.Stdout, w.Stderr = nothing, seen, os.Stdout
	if err := w.Start(); err != nil {
		return nil, err
	}
	for range 300 { // an emulator is slow: it begins with its header
		if st, err := seen.Stat(); err != nil || st.Size() > 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(time.Second) // and has read once
	also := a.close
	return &action{on: a.on, off: a.off, close: func() {
		time.Sleep(time.Second) // an interval and more
		_ = w.Process.Signal(syscall.SIGINT)
		_ = w.Wait()
		text, _ := os.ReadFile(file)
		say("watched", strconv.Itoa(w.ProcessState.ExitCode()), strconv.Quote(string(text)))
		if also != nil {
			also()
		}
	}}, nil
}
