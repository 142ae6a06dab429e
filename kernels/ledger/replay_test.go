// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"strings"
	"testing"
)

// switched is what a receiver takes in one row when an action is switched on, and off.
func switched(t *testing.T, kernel, action, row string, state ...string) (on, off int) {
	t.Helper()
	k := mustKernel(t, kernel)
	r, err := k.In(state).NewReplay(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, sum := range []*int{&on, &off} {
		lines, err := r.Switch(action, i == 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lines {
			if l.Row == row {
				*sum += l.Rounds()
			}
		}
	}
	return on, off
}

// TestMeasuredActions: what the quietest of four CPUs took on these kernels, booted. N is
// the number of functions, and B = ceil(N / 256) batches; the formulas are those that the
// measured numbers followed for N = 1, 255, 256, 257 and 1000.
func TestMeasuredActions(t *testing.T) {
	const fence = "FW_FENCE_I_RECVD"
	const recording = "recording=on" // of command lines, so that it costs nothing
	type cell struct {
		kernel, action, row string
		state               []string
		on, off             int
	}
	cells := []cell{
		{"x86_64-6.12", "function-tracer", "CAL", nil, 3*168 + 49, 3*168 + 46},
		{"x86_64-6.12", "function-graph", "CAL", nil, 3*168 + 67, 3*168 + 64},
		{"arm64-6.12", "function-tracer", "IPI1", nil, 4, 4},
		{"arm64-6.12", "function-graph", "IPI1", nil, 4, 4},
		{"riscv64-6.12", "function-tracer", "IPI0", nil, 1, 1},
		{"riscv64-6.12", "function-tracer", fence, nil, 3, 3},
		{"riscv64-7.2", "function-tracer", fence, nil, 41845 + 4, 41845 + 4},
		{"riscv64-7.2", "function-tracer", "IPI1", nil, 1, 1},
		{"x86_64-6.12", "kprobe", "CAL", []string{recording}, 19, 16},
		{"x86_64-7.2", "kprobe", "CAL", []string{recording}, 19, 16},
		{"x86_64-6.12", "kprobe:a", "CAL", []string{recording, "action=kprobe:b"}, 3, 3},
		{"x86_64-6.12", "kprobe:a", "CAL", []string{recording, "action=kprobe:a"}, 0, 0}, // they share the probe
		{"x86_64-7.2", "event-group:irq", "CAL", []string{recording}, 81, 81},
		{"x86_64-6.12", "static-key:sched_schedstats", "CAL", nil, 3, 3},
		{"arm64-6.12", "static-key:sched_schedstats", "IPI1", nil, 1, 1},
		{"arm64-6.1", "static-key:sched_schedstats", "IPI1", nil, 1, 1},
		{"x86_64-6.12", "static-key:sched_schedstats", "CAL", []string{"sched_schedstats=on"}, 0, 0},
		// One function: 4N + 6 and 4N + 7; 4N + 13 and 6N + 13. Of the second, N wake the CPU for RCU.
		{"x86_64-6.12", "fentry", "CAL", nil, 4 + 6, 4 + 7},
		{"x86_64-7.2", "fentry", "CAL", nil, 4 + 13, 6 + 13},
		// The next function: 4 and 4; 4 and 6.
		{"x86_64-6.12", "fentry:a", "CAL", []string{"action=fentry:b"}, 4, 4},
		// Before 6.2 the common entries are changed when they call the list already; pages take two flushes.
		{"x86_64-6.1", "fentry", "CAL", nil, 3 + 6 + 2, 3 + 6 + 6 + 1 + 1},
		{"x86_64-6.1", "fexit", "CAL", nil, 3 + 6 + 2, 3 + 3 + 6 + 6 + 1 + 1},
		{"x86_64-6.1", "fentry:a", "CAL", []string{"action=fentry:b"}, 3 + 2, 4},
		{"x86_64-7.2", "fentry:a", "CAL", []string{"action=fentry:b"}, 4, 6},
		// A second program on the same function.
		{"x86_64-6.12", "fentry:a", "CAL", []string{"action=fentry:a"}, 10, 10},
		{"x86_64-7.2", "fentry:a", "CAL", []string{"action=fentry:a"}, 23, 26},
	}
	for _, n := range []int{1, 255, 256, 257, 1000} {
		b := (n + 255) / 256
		cells = append(cells,
			cell{"x86_64-6.12", fmt.Sprint("kprobe-multi:", n), "CAL", nil, 3*b + 8, 3*b + 9},
			cell{"x86_64-7.2", fmt.Sprint("kprobe-multi:", n), "CAL", nil, 3*b + 16, 3*b + 13},
			// Before 7.2.10 or 7.2.11 no image is cut off when its program goes: Debian's 7.2.9 detaches 5 with 16.
			cell{"x86_64-7.2", fmt.Sprint("tracing-multi:", n), "CAL", nil, n + 3*b + 13, 3*n + 3*b + 13})
	}
	for _, c := range cells {
		if on, off := switched(t, c.kernel, c.action, c.row, c.state...); on != c.on || off != c.off {
			t.Errorf(
				"%s, %s %s, row %s: %d and %d, measured %d and %d",
				c.kernel,
				c.action,
				c.state,
				c.row,
				on,
				off,
				c.on,
				c.off,
			)
		}
	}
}

// TestTwice: what is switched on and off again leaves nothing behind, on any kernel: the
// second time costs what the first did.
func TestTwice(t *testing.T) {
	for _, name := range Names() {
		k := mustKernel(t, name)
		if k.Facts.Hash == "" {
			continue
		}
		for _, action := range []string{"function-tracer", "function-graph", "instance", "event-group:all", "kprobe", "fentry",
			"kprobe-multi:300"} {
			r, err := k.NewReplay(nil)
			if err != nil {
				t.Fatal(err)
			}
			var sums []string
			for i := range 4 {
				lines, err := r.Switch(action, i%2 == 0)
				if err != nil {
					sums = append(sums, err.Error())
					continue
				}
				sum := map[string]int{}
				for _, l := range lines {
					sum[l.Row] += l.Rounds()
				}
				sums = append(sums, fmt.Sprint(sum))
			}
			if sums[0] != sums[2] || sums[1] != sums[3] {
				t.Errorf("%s, %s: %v", name, action, sums)
			}
		}
	}
}

// TestNotUnderstood: a mechanism that no rule covers ends the prediction, by its name.
func TestNotUnderstood(t *testing.T) {
	k := *mustKernel(t, "x86_64-6.12")
	facts := *k.Facts
	k.Facts = &facts
	facts.Recorder = nil
	r, err := k.NewReplay(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Switch("function-tracer", true); err == nil ||
		!strings.Contains(err.Error(), "command lines: no rule holds") {
		t.Error(err)
	}
	for _, tt := range []struct{ kernel, action, want string }{
		{"x86_64-7.1", "kprobe", "mechanism probe-on-record: the kernel's facts do not name it"},
		{"x86_64-6.12", "tracing-multi:3", "no bpf_trampoline_multi_attach"},
		{"x86_64-5.10", "kprobe-multi", "no bpf_kprobe_multi_link_attach"},
		{"x86_64-6.1", "kprobe-multi", "that leads to register_fprobe_ips"},
		{"arm64-5.10", "fentry", "no register_ftrace_direct"},
		{"x86_64-6.12", "static-key:sched_schedstat", "is not in the image"},
		{"x86_64-6.12", "tracepoint:sched_swich", "did you mean"},
		{"x86_64-6.12", "event-group:nothing", "no event of group"},
		{"x86_64-6.12", "function-trace", "did you mean"},
		{"x86_64-6.12", "tracepoint", "want tracepoint:[GROUP/]NAME"},
		{"x86_64-6.12", "function-tracer:vfs_*", "no table of its records"},
	} {
		r, err := mustKernel(t, tt.kernel).NewReplay(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Switch(tt.action, true); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s, %s: %v, want %s", tt.kernel, tt.action, err, tt.want)
		}
	}
}

// BenchmarkPredict is the prediction of every trace event, switched on and off.
func BenchmarkPredict(b *testing.B) {
	k, err := Named("x86_64-6.12")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("all-events", func(b *testing.B) {
		for b.Loop() {
			r, err := k.NewReplay(nil)
			if err != nil {
				b.Fatal(err)
			}
			for _, on := range []bool{true, false} {
				if _, err := r.Switch("event-group:all", on); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
