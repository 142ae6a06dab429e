// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package live

import (
	"bytes"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// TestGoGoesOn: while sites are switched and called, the collector runs all the time, a
// profiler interrupts, stacks grow, and signals that are not ours reach Go: a nil pointer
// panics and is recovered, a SIGTRAP that somebody sends is delivered to who asked for it.
func TestGoGoesOn(t *testing.T) {
	s := define(t, 8, 3)
	var profile bytes.Buffer
	if err := pprof.StartCPUProfile(&profile); err != nil {
		t.Skip(err)
	}
	defer pprof.StopCPUProfile()
	foreign := make(chan os.Signal, 1)
	signal.Notify(foreign, unix.SIGTRAP)
	defer signal.Stop(foreign)
	stop := callers(t, s, 2, func(c *Caller, i int) {
		c.Call(i & 7)
		if i%10_000 == 0 {
			deep(i % 300)
		}
	})
	stopCollecting := callers(t, s, 1, func(c *Caller, i int) {
		c.Call(i & 7)
		runtime.GC()
	})
	for i := range 40 {
		if err := s.Enable(t.Context(), i&7, (i+3)&7); err != nil {
			t.Fatal(err)
		}
		if !nilPanics() {
			t.Fatal("a nil pointer did not panic")
		}
		if err := s.Disable(t.Context(), i&7, (i+3)&7); err != nil {
			t.Fatal(err)
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Kill(os.Getpid(), unix.SIGTRAP); err != nil {
		t.Fatal(err)
	}
	<-foreign
	stop()
	stopCollecting()
	for _, th := range s.machine.Threads() {
		c := th.Counts()
		if c.Traps != c.Hits || c.Wrong+c.Unhandled+c.Faults != 0 {
			t.Errorf("%+v", c)
		}
	}
}

// TestSentSignals: a SIGTRAP that is sent to a thread is nobody's breakpoint, wherever the thread is.
func TestSentSignals(t *testing.T) {
	s := define(t, 4, 2)
	// Not stopped: a thread may take its signal after the test, and Go would end the process.
	signal.Notify(make(chan os.Signal, 1), unix.SIGTRAP)
	stop := callers(t, s, 2, func(c *Caller, i int) { c.t.Call(i&3, 1000) })
	for i := range 400 {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Skip(err)
		}
		tid, err := strconv.Atoi(threads[i%len(threads)].Name())
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Tgkill(os.Getpid(), tid, unix.SIGTRAP) // a thread may have ended
	}
	stop()
	for _, th := range s.machine.Threads() {
		if c := th.Counts(); c.Traps+c.Faults+c.Unhandled != 0 {
			t.Errorf("a signal that was sent was taken for a breakpoint: %+v", c)
		}
	}
}

func nilPanics() (yes bool) {
	defer func() { yes = recover() != nil }()
	var p *int
	*p = 1
	return false
}

// deep makes a stack grow.
func deep(n int) int {
	var room [256]byte
	if n == 0 {
		return int(room[0])
	}
	return deep(n-1) + int(room[n&255])
}
