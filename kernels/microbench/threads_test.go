// SPDX-License-Identifier: Apache-2.0

//go:build linux

package microbench

import (
	"context"
	"errors"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/internal/threads"
)

// two are the first two CPUs that this process may use.
func two(t *testing.T) []int {
	t.Helper()
	list, err := threads.Allowed()
	if err != nil || len(list) < 2 {
		t.Skip("skipped: CPUs are", list, err)
	}
	return list[:2]
}

// TestPasses: there are six passes however short the time is, and more in a longer one, until it is over or ends; each
// measures what else is asked for once, undisturbed: no garbage is collected, and no thread waits for a processor of
// Go's. With one CPU a pass is short.
func TestPasses(t *testing.T) {
	unpin, err := threads.Pin(two(t)[0])
	if err != nil {
		t.Fatal(err)
	}
	defer unpin()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	procs, percent := runtime.GOMAXPROCS(0), debug.SetGCPercent(57)
	defer debug.SetGCPercent(percent)
	for _, c := range []struct {
		time      time.Duration
		end, want int
	}{{0, 1, 1}, {0, -1, minPasses}, {time.Hour, minPasses + 1, minPasses + 1}} {
		ctx, cancel := context.WithCancel(t.Context())
		passes := 0
		cfg := config(t)
		cfg.Time = c.time
		cfg.Also = []Bench{{Quantity: "fence", Text: "ours", Basis: "measured", Run: func() float64 {
			if passes++; passes == c.end {
				cancel()
			}
			if p := debug.SetGCPercent(-1); p != -1 || runtime.GOMAXPROCS(0) != 3 {
				t.Errorf("garbage is collected at %d %%, %d processors", p, runtime.GOMAXPROCS(0))
			}
			return 17
		}}}
		r, err := Run(ctx, cfg)
		if cancelled := c.end > 0; errors.Is(err, context.Canceled) != cancelled || (err != nil) != cancelled ||
			passes != c.want {
			t.Fatalf("%v, %d: %v, %d passes, want %d", c.time, c.end, err, passes, c.want)
		}
		if passes >= minPasses && r.Calibration.Costs.Fence != 17 {
			t.Errorf("%v, %d: a fence takes %g", c.time, c.end, r.Calibration.Costs.Fence)
		}
		cancel()
		if p := debug.SetGCPercent(57); p != 57 || runtime.GOMAXPROCS(0) != procs {
			t.Errorf("left: garbage is collected at %d %%, %d processors", p, runtime.GOMAXPROCS(0))
		}
	}
}

// TestDescribe: a machine is its CPUs' model, which the kernel names or, on RISC-V, their microarchitecture, and the
// kernel's release.
func TestDescribe(t *testing.T) {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Fatal(err)
	}
	want, name := "a machine of unknown model", ""
	if m := regexp.MustCompile(`(?m)^(?:model name|uarch)\s*:\s*(.*)$`).FindSubmatch(text); m != nil {
		name = string(m[1])
		want = name
	}
	if got := Model(); got != name {
		t.Errorf("%q, want %q", got, name)
	}
	if got := describe(); got != want+", Linux "+strings.TrimSpace(string(release)) {
		t.Error(got)
	}
}

// TestOn: a function runs on its CPU alone, and its error is told; where there is no such CPU it does not run.
func TestOn(t *testing.T) {
	fails := errors.New("no")
	for _, cpu := range two(t) {
		var on []int
		if err := <-On(cpu, func() (err error) {
			on, err = threads.Allowed()
			return errors.Join(err, fails)
		}); err == nil || err.Error() != "no" || !slices.Equal(on, []int{cpu}) {
			t.Errorf("CPU %d: %v, on %v", cpu, err, on)
		}
		if err := <-On(cpu, func() error { return nil }); err != nil {
			t.Error(err)
		}
	}
	if err := <-On(1000, func() error { t.Error("it ran"); return nil }); err == nil {
		t.Error("there is a CPU 1000")
	}
}

// TestPass: with two CPUs everything has a time of its own or a reason. A line's way takes time and is the answer's,
// and half of a system call is either way into the kernel and out.
func TestPass(t *testing.T) {
	cpus := two(t)
	m := &machine{cpus: cpus, base: config(t).Base, why: map[string]string{}}
	found := m.pass(t.Context())
	if found["line_transfer"] != found["answer"] || found["user_entry"] != found["user_exit"] {
		t.Errorf("%v", found)
	}
	for _, q := range []string{"line_transfer", "user_entry", "reference"} {
		if !(found[q] > 0) {
			t.Errorf("%s takes %g", q, found[q])
		}
	}
	if threads.Register() != nil {
		t.Skip("skipped: no membarrier")
	}
	if _, ok := found["delivery"]; !ok || len(m.why) != 1 || m.why["send"] == "" { // which alone needs a third CPU
		t.Errorf("%v, missing %v", found, m.why)
	}
	m = &machine{cpus: []int{cpus[0], 1000}, base: m.base, why: map[string]string{}}
	found = m.pass(t.Context())
	want := map[string]string{}
	for _, q := range []string{"round_setup", "send", "delivery", "jitter", "handler", "answer", "line_transfer"} {
		want[q] = "sched_setaffinity to CPU 1000: invalid argument"
	}
	if d := cmp.Diff(want, m.why); d != "" || len(found) != 4 {
		t.Errorf("%v, %s", found, d)
	}
}

// TestRounds: as many rounds as a pass has take their time, whatever number of targets spins; nothing is left of those
// that are cut short; of the errors of targets and sender a target's is told.
func TestRounds(t *testing.T) {
	cpus := two(t)
	if err := threads.Register(); err != nil {
		t.Skip("skipped: ", err)
	}
	m := &machine{cpus: []int{cpus[0], cpus[1], cpus[1]}}
	for n := range 3 {
		times, _, err := m.to(t.Context(), n)
		if err != nil || len(times) != roundsAPass || slices.Min(times) <= 0 {
			t.Errorf("%d targets: %v, %v", n, times, err)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if times, _, err := m.to(over, 1); !errors.Is(err, context.Canceled) || len(times) != 0 {
		t.Errorf("%v, %v", times, err)
	}
	m.cpus = []int{1000, 1001}
	if _, _, err := m.to(t.Context(), 1); err == nil || err.Error() != "sched_setaffinity to CPU 1001: invalid argument" {
		t.Error(err)
	}
}

// TestTransferEnds: two threads that share a CPU wait longer for each other than for the end of the time.
func TestTransferEnds(t *testing.T) {
	cpu := two(t)[0]
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&machine{cpus: []int{cpu, cpu}}).transfer(over); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
