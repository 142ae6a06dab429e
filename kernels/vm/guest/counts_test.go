// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestInterrupts: rows with a number for each CPU, and what stands behind them; rows of the whole machine and the
// header are none, and a number that is none is an error.
func TestInterrupts(t *testing.T) {
	const head, err = "           CPU0       CPU1\n", "ERR:          0\n"
	for text, want := range map[string][]row{
		head + "  4:  7  8  IO-APIC  ttyS0\nCAL:  1  2  Function call  interrupts\nMIS: 0\n" + err: {{"4",
			"IO-APIC ttyS0", []uint64{7, 8}},
			{"CAL", "Function call interrupts", []uint64{1, 2}}},
		head + "NMI:  1  2\n": {{"NMI", "", []uint64{1, 2}}}, head: nil,
	} {
		inRoot(t, map[string]string{"/proc/interrupts": text}, func(root) {
			got, err := (&counter{cpus: 2}).interrupts()
			if d := cmp.Diff(want, got); d != "" || err != nil {
				t.Errorf("%q: %v, %s", text, err, d)
			}
		})
	}
	inRoot(t, map[string]string{"/proc/interrupts": "CAL: 1 x y\n"}, func(root) {
		if rows, err := (&counter{cpus: 2}).interrupts(); rows != nil || err == nil || !strings.HasPrefix(err.Error(),
			"/proc/interrupts: row CAL: ") {
			t.Errorf("%v, %v", rows, err)
		}
	})
	inRoot(t, nil, func(root) {
		if _, err := (&counter{cpus: 2}).interrupts(); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
}

// TestCPUsOfCounters: as many as the last that is online says; without firmware that counts there is no row of it.
func TestCPUsOfCounters(t *testing.T) {
	for online, want := range map[string]int{"0-3\n": 4, "0\n": 1, "0-11\n": 12} {
		inRoot(t, map[string]string{"/sys/devices/system/cpu/online": online}, func(root) {
			if c := newCounter(); c.cpus != want || len(c.firmware) != 0 || len(c.fences()) != 0 {
				t.Errorf("%q: %+v", online, c)
			}
		})
	}
	inRoot(t, map[string]string{"/sys/devices/system/cpu/online": "0-0\n", "/sys/bus/platform/drivers/riscv-pmu-sbi": ""},
		func(root) {
			c := newCounter()
			for _, r := range c.firmware { // each that could be opened has a file a CPU
				if len(r.files) != 1 {
					t.Errorf("%+v", r)
				}
			}
		})
}

// TestRawEvents: a file, or the reason why there is none.
func TestRawEvents(t *testing.T) {
	if _, err := openRaw(1<<63|9, 4095); err == nil {
		t.Error("CPU 4095 counts")
	}
	fd, err := openRaw(1<<63|9, 0)
	if (err == nil) != (fd > 2) {
		t.Errorf("%d, %v", fd, err)
	}
	if err == nil {
		_ = syscall.Close(fd)
	}
}

// TestFences: each CPU's counter of the firmware is read anew.
func TestFences(t *testing.T) {
	var files []int
	for n := range uint64(2) {
		from, to, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer from.Close()
		if _, err := to.Write(binary.NativeEndian.AppendUint64(nil, 40+n)); err != nil {
			t.Fatal(err)
		}
		to.Close()
		files = append(files, int(from.Fd()))
	}
	c := &counter{cpus: 2, firmware: []firmwareRow{{"F", "about", files}}}
	if d := cmp.Diff([]row{{"F", "about", []uint64{40, 41}}}, c.fences()); d != "" {
		t.Error(d)
	}
}

// TestAround: rows of the kernel and, behind them, of the firmware grew by what came meanwhile.
func TestAround(t *testing.T) {
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	defer to.Close()
	for _, n := range []uint64{40, 45} {
		if _, err := to.Write(binary.NativeEndian.AppendUint64(nil, n)); err != nil {
			t.Fatal(err)
		}
	}
	inRoot(t, map[string]string{"/proc/interrupts": "CAL: 7 calls\n"}, func(r root) {
		c := &counter{cpus: 1, firmware: []firmwareRow{{"F", "about", []int{int(from.Fd())}}}}
		rows, took, err := c.around(func() error {
			r.write(t, "/proc/interrupts", "CAL: 9 calls\n")
			time.Sleep(time.Millisecond)
			return nil
		})
		want := []row{{"CAL", "calls", []uint64{2}}, {"F", "about", []uint64{5}}}
		if d := cmp.Diff(want, rows); d != "" || err != nil || took < time.Millisecond {
			t.Errorf("%v, %v, %s", took, err, d)
		}
	})
}

// TestGrowth: what grew, by how much on each CPU; a row that was not there before grew by all of it.
func TestGrowth(t *testing.T) {
	before := []row{{"A", "a", []uint64{1, 2}}, {"B", "b", []uint64{5, 5}}}
	after := []row{{"A", "a", []uint64{1, 4}}, {"B", "b", []uint64{5, 5}}, {"C", "c", []uint64{0, 3}}, {"D", "d",
		[]uint64{0, 0}}}
	want := []row{{"A", "a", []uint64{0, 2}}, {"C", "c", []uint64{0, 3}}}
	if d := cmp.Diff(want, growth(before, after)); d != "" {
		t.Error(d)
	}
}

// TestMeasures: each repetition is prepared, counted when it is switched on, again, and off, and beside that as long in
// which nothing is done; what was counted is told, and the action closed. Behind a debugger there is no control.
func TestMeasures(t *testing.T) {
	was := kinds["own"]
	defer func() { kinds["own"] = was }()
	for _, debugged := range []bool{false, true} {
		var did []string
		count := 0
		note := func(what string, file root) func() error {
			return func() error {
				did = append(did, what)
				count += len(what)
				file.write(t, "/proc/interrupts", fmt.Sprintf("CAL: 1 %d calls\nLOC: 3 3 timer\n", count))
				return nil
			}
		}
		inRoot(t, map[string]string{"/proc/interrupts": "CAL: 1 0 calls\nLOC: 3 3 timer\n"}, func(r root) {
			kinds["own"] = func(arg string) (*action, error) {
				did = append(did, "made "+arg)
				return &action{prepare: note("prepare", r), on: note("on", r), again: note("again", r), off: note("off", r),
					close: func() { did = append(did, "close") }}, nil
			}
			var err error
			start := time.Now()
			lines := heard(t, func() { err = (&counter{cpus: 2, debugged: debugged}).measure("own:x", 2) })
			rests := 2 * (3*20 + 50) * time.Millisecond // before each direction, and behind each repetition
			if !debugged {
				rests += 2 * 20 * time.Millisecond
			}
			if took := time.Since(start); took < rests {
				t.Errorf("it took %v, with rests of %v", took, rests)
			}
			once := []string{"prepare", "on", "again", "off"}
			if d := cmp.Diff(slices.Concat([]string{"made x"}, once, once, []string{"close"}), did); d != "" || err != nil {
				t.Errorf("%v, %s", err, d)
			}
			directions := []string{"enable", "again", "disable", "idle"}
			if debugged {
				directions = directions[:3]
			}
			if len(lines) != 2*len(directions) {
				t.Fatalf("%q", lines)
			}
			longest := time.Duration(0)
			for i, line := range lines {
				var told struct {
					Readings []struct {
						Action, Direction string
						Repetition        int
						Took              time.Duration
						Rows              []row
					}
				}
				if err := json.Unmarshal([]byte(line), &told); err != nil || len(told.Readings) != 1 {
					t.Fatalf("%s: %v", line, err)
				}
				got, direction := told.Readings[0], directions[i%len(directions)]
				if longest = max(longest, got.Took); direction == "idle" {
					if got.Took < longest {
						t.Errorf("%d: the control took %v, and the longest of the others %v", i, got.Took, longest)
					}
					longest = 0
				}
				grew := map[string]uint64{"enable": 2, "again": 5, "disable": 3}[direction]
				var rows []row
				if grew > 0 {
					rows = []row{{"CAL", "calls", []uint64{0, grew}}}
				}
				if got.Action != "own:x" || got.Direction != direction || got.Repetition != i/len(directions) ||
					cmp.Diff(rows, got.Rows) != "" || got.Took < 0 {
					t.Errorf("%d: %+v, want %s and %v", i, got, direction, rows)
				}
			}
		})
	}
}

// TestMeasuresFail: what fails is told by what was done; the action is closed all the same.
func TestMeasuresFail(t *testing.T) {
	was := kinds["own"]
	defer func() { kinds["own"] = was }()
	fails := errors.New("no")
	for what, want := range map[string]string{"prepare": "prepare: no", "on": "enable: no", "again": "again: no",
		"off": "disable: no", "made": "no"} {
		closed := false
		result := func(name string) func() error {
			return func() error { return map[bool]error{true: fails}[name == what] }
		}
		kinds["own"] = func(string) (*action, error) {
			if what == "made" {
				return nil, fails
			}
			return &action{prepare: result("prepare"), on: result("on"), again: result("again"), off: result("off"),
				close: func() { closed = true }}, nil
		}
		inRoot(t, map[string]string{"/proc/interrupts": "CAL: 1 0 calls\n"}, func(root) {
			lines := heard(t, func() {
				if err := (&counter{cpus: 2}).measure("own", 1); err == nil || err.Error() != want || !errors.Is(err, fails) {
					t.Errorf("%s: %v, want %s", what, err, want)
				}
			})
			if len(lines) != 0 || closed != (what != "made") {
				t.Errorf("%s: told %q, closed %v", what, lines, closed)
			}
		})
	}
	inRoot(t, nil, func(root) {
		if _, _, err := (&counter{cpus: 2}).around(func() error { return nil }); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
}

// TestWork: the job's actions are measured one by one, and what cannot be is skipped, with the reason; it ends with a
// line that says so. A guest that may use other CPUs, or has no job, does nothing.
func TestWork(t *testing.T) {
	was := kinds["own"]
	defer func() { kinds["own"] = was }()
	kinds["own"] = func(string) (*action, error) {
		return &action{on: func() error { return nil }, off: func() error { return nil }}, nil
	}
	files := map[string]string{"/job": `{"Actions":["own:idle&reload:","nothing:idle&reload:"],"Repetitions":1}`,
		"/proc/interrupts":               "",
		"/proc/self/status":              "Name:\tinit\nCpus_allowed:\t1\nCpus_allowed_list:\t0\nMems_allowed:\t1\n",
		"/proc/sys/kernel/osrelease":     "7.2.1 x\n",
		"/sys/devices/system/cpu/online": "0-1\n", "/sys/devices/virtual/workqueue/cpumask": "ff",
		"/proc/irq/default_smp_affinity": "ff"}
	// No action of these is traced: a mount would be the test's own.
	job := func(change map[string]string) (lines []string, err error) {
		all := map[string]string{}
		for name, text := range files {
			all[name] = text
		}
		for name, text := range change {
			all[name] = text
		}
		inRoot(t, all, func(r root) {
			lines = heard(t, func() { err = work() })
			if err == nil && (r.holds("/sys/devices/virtual/workqueue/cpumask") != "1" ||
				r.holds("/proc/irq/default_smp_affinity") != "1") {
				t.Error("work goes to other CPUs")
			}
		})
		return lines, err
	}
	lines, err := job(nil)
	if err != nil || len(lines) != 1+3+1+1 || lines[0] != `{"Online":"0-1","Release":"7.2.1"}` ||
		lines[5] != `{"Done":true}` ||
		lines[4] != `{"Skips":[{"Action":"nothing:idle\u0026reload:","Why":"the guest knows no action \"nothing\""}]}` {
		t.Errorf("%q, %v", lines, err)
	}
	for want, change := range map[string]map[string]string{
		"the guest may use CPUs 0-1, want 0 alone: counts would be other CPUs'":            {"/proc/self/status": "A:\nCpus_allowed_list:\t0-1\n"},
		"invalid character 'x' looking for beginning of value":                             {"/job": "x"},
		"open /a.ko: no such file or directory":                                            {"/job": `{"Modules":["a.ko"]}`},
		"busy CPU 1: no such file or directory":                                            {"/job": `{"Busy":["1"]}`},
		"mount /sys/kernel/tracing/: no such file or directory: the kernel has no tracing": {"/job": `{"Actions":["own","own:idle&reload:"]}`},
	} {
		lines, err := job(change)
		if err == nil || err.Error() != want || slices.Contains(lines, `{"Done":true}`) {
			t.Errorf("%q, %v, want %s", lines, err, want)
		}
	}
	stdin := os.Stdin
	defer func() { os.Stdin = stdin }()
	for text, want := range map[string]string{"\n": "", "": "wait for the debugger: EOF"} {
		from, to, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := to.WriteString(text); err != nil {
			t.Fatal(err)
		}
		to.Close()
		os.Stdin = from
		lines, err := job(map[string]string{"/job": `{"Actions":["own:idle&reload:"],"Repetitions":1,"Wait":true}`})
		if (err != nil) != (want != "") || err != nil && err.Error() != want || err == nil && len(lines) != 1+2+1 {
			t.Errorf("behind a debugger: %q, %v, want %s", lines, err, want) // and without a control
		}
		from.Close()
	}
	inRoot(t, nil, func(root) {
		if err := work(); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("without a job: %v", err)
		}
	})
}

// TestSmallFiles: a file is replaced or added to, and never made; its first field is read.
func TestSmallFiles(t *testing.T) {
	inRoot(t, map[string]string{"/a": "old text", "/b": "  one two\n", "/c": "\n",
		"/status": "x:\t1\nCpus_allowed_list:\t3,5-6 \nmore"}, func(r root) {
		if err := errors.Join(add("/a", "+"), add("/a", "1")); err != nil || r.holds("/a") != "old text+1" {
			t.Errorf("%q, %v", r.holds("/a"), err)
		}
		if err := write("/a", "new"); err != nil || r.holds("/a") != "new" {
			t.Errorf("%q, %v", r.holds("/a"), err)
		}
		if err := write("/none", "x"); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
		if got := field("/b") + field("/c") + field("/none"); got != "one??" {
			t.Error(got)
		}
		if got := allowed("/status") + allowed("/none"); got != "3,5-6" {
			t.Error(got)
		}
	})
	if err := pin(own, 1023); err == nil || !strings.HasPrefix(err.Error(), "pin to CPU 1023: ") {
		t.Error(err)
	}
}
