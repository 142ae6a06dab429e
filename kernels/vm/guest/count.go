// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// facts are fields of the host's types (console.go), and their values.
type facts map[string]any

// say sends one line to the host: a mark, a checksum of what follows, and in JSON what is told. The blank line before it
// ends what the kernel may be printing.
func say(what facts) {
	text, _ := json.Marshal(what) // texts and numbers always can be
	fmt.Printf("\n@vm %08x %s\n", crc32.ChecksumIEEE(text), text)
}

// row is one row of /proc/interrupts, or a counter of the firmware.
type row struct {
	Name, About string
	Interrupts  []uint64 // by CPU
}

// counter reads all rows.
type counter struct {
	cpus     int
	firmware []firmwareRow
	debugged bool // a debugger stops the machine: there is no control, which would take as long as all its stops
}

type firmwareRow struct {
	name, about string
	files       []int // one a CPU
}

// firmwareEvents are those of RISC-V's SBI specification (chapter "Performance Monitoring Unit
// Extension", section "Event: Firmware Events"). The kernel's perf makes raw events with bit 63 set of them
// (drivers/perf/riscv_pmu_sbi.c).
var firmwareEvents = []struct {
	code        uint64
	name, about string
}{
	{9, "FW_FENCE_I_RECVD", "Firmware: remote fence.i received"},
	{11, "FW_SFENCE_VMA_RECVD", "Firmware: remote sfence.vma received"},
	{13, "FW_SFENCE_VMA_ASID_RECVD", "Firmware: remote sfence.vma with ASID received"},
}

func newCounter() *counter {
	c := &counter{cpus: runtime.NumCPU()}
	online := strings.Split(field("/sys/devices/system/cpu/online"), "-")
	if last, err := strconv.Atoi(online[len(online)-1]); err == nil {
		c.cpus = last + 1
	}
	if _, err := os.Stat("/sys/bus/platform/drivers/riscv-pmu-sbi"); err != nil {
		return c
	}
	for _, e := range firmwareEvents {
		r := firmwareRow{name: e.name, about: e.about}
		for cpu := range c.cpus {
			fd, err := openRaw(1<<63|e.code, cpu)
			if err != nil {
				break
			}
			r.files = append(r.files, fd)
		}
		if len(r.files) == c.cpus {
			c.firmware = append(c.firmware, r)
		}
	}
	return c
}

// openRaw opens a raw event of perf (PERF_TYPE_RAW, include/uapi/linux/perf_event.h) on one CPU.
func openRaw(config uint64, cpu int) (int, error) {
	var attr [112]byte
	binary.NativeEndian.PutUint32(attr[0:], 4)
	binary.NativeEndian.PutUint32(attr[4:], uint32(len(attr)))
	binary.NativeEndian.PutUint64(attr[8:], config)
	fd, _, e := syscall.Syscall6(syscall.SYS_PERF_EVENT_OPEN, uintptr(unsafe.Pointer(&attr)), ^uintptr(0), uintptr(cpu),
		^uintptr(0), 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(fd), nil
}

// fences reads the firmware's counters. Reading one of another CPU interrupts it, so it is done outside of the
// readings of /proc/interrupts.
func (c *counter) fences() []row {
	var out []row
	for _, f := range c.firmware {
		r := row{Name: f.name, About: f.about, Interrupts: make([]uint64, len(f.files))}
		for i, fd := range f.files {
			var b [8]byte
			if _, err := syscall.Read(fd, b[:]); err == nil {
				r.Interrupts[i] = binary.NativeEndian.Uint64(b[:])
			}
		}
		out = append(out, r)
	}
	return out
}

// interrupts reads /proc/interrupts.
func (c *counter) interrupts() ([]row, error) {
	b, err := os.ReadFile("/proc/interrupts")
	if err != nil {
		return nil, err
	}
	var rows []row
	for line := range strings.Lines(string(b)) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		f := strings.Fields(rest)
		if !ok || len(f) < c.cpus {
			continue // the header, and rows that count for the whole machine
		}
		r := row{Name: name, About: strings.Join(f[c.cpus:], " ")}
		for _, x := range f[:c.cpus] {
			n, err := strconv.ParseUint(x, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("/proc/interrupts: row %s: %w", name, err)
			}
			r.Interrupts = append(r.Interrupts, n)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// around counts what every CPU takes while f is done.
func (c *counter) around(f func() error) (rows []row, took time.Duration, err error) {
	fences := c.fences()
	before, err := c.interrupts()
	if err != nil {
		return nil, 0, err
	}
	start := time.Now()
	if err := f(); err != nil {
		return nil, 0, err
	}
	took = time.Since(start)
	after, err := c.interrupts()
	return append(growth(before, after), growth(fences, c.fences())...), took, err
}

// growth is what rows grew by, those that did.
func growth(before, after []row) []row {
	old := map[string][]uint64{}
	for _, r := range before {
		old[r.Name] = r.Interrupts
	}
	var out []row
	for _, r := range after {
		grew := false
		for i := range r.Interrupts {
			if b := old[r.Name]; b != nil {
				r.Interrupts[i] -= b[i]
			}
			grew = grew || r.Interrupts[i] != 0
		}
		if grew {
			out = append(out, r)
		}
	}
	return out
}

// measure does an action so many times, each with a control: as long with nothing switched, CPU 0 busy. A
// repetition is told when it is over, since the console interrupts too.
func (c *counter) measure(name string, repetitions int) error {
	a, err := newAction(name)
	if err != nil {
		return err
	}
	if a.close != nil {
		defer a.close()
	}
	for i := range repetitions {
		var readings []facts
		longest := time.Duration(0)
		control := func() error { idle(longest); return nil }
		if c.debugged {
			control = nil
		}
		if a.prepare != nil {
			if err := a.prepare(); err != nil {
				return fmt.Errorf("prepare: %w", err)
			}
		}
		for _, d := range []struct {
			name string
			do   func() error
		}{
			{"enable", a.on}, {"again", a.again}, {"disable", a.off}, {"idle", control},
		} {
			if d.do == nil {
				continue
			}
			time.Sleep(20 * time.Millisecond) // deferred work of the last one ends
			rows, took, err := c.around(d.do)
			if err != nil {
				return fmt.Errorf("%s: %w", d.name, err)
			}
			longest = max(longest, took)
			readings = append(readings, facts{"Action": name, "Direction": d.name, "Repetition": i, "Took": took, "Rows": rows})
		}
		for i := range readings {
			say(facts{"Readings": readings[i : i+1]})
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}

func idle(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
	}
}
