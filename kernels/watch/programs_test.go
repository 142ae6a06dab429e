// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"os"
	"path"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/kernels/tracefs"
)

// formats are those of events as Debian's 6.12 for x86_64 has them (events/GROUP/NAME/format of its tracefs).
func formats(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/formats-6.12.txt")
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]string{}
	for part := range strings.SplitSeq("\n\n"+string(text), "\n\nname: ") {
		name, format, _ := strings.Cut(part, "\n")
		of[name] = format
	}
	return of
}

// TestField: offsets that one reads in the file itself.
func TestField(t *testing.T) {
	of := formats(t)
	for _, c := range []struct {
		event, field string
		want         int16
	}{
		{"csd_queue_cpu", "cpu", 8}, {"csd_queue_cpu", "func", 24}, {"csd_queue_cpu", "csd", 32}, {"ipi_send_cpu", "callback",
			24},
		{"tlb_flush", "reason", 8}, {"timer_expire_entry", "function", 24}, {"hrtimer_expire_entry", "now", 16},
	} {
		if got, err := field(of[c.event], c.field); got != c.want || err != nil {
			t.Errorf("%s of %s: %d, %v, want %d", c.field, c.event, got, err, c.want)
		}
	}
	for _, text := range []string{
		of["tlb_flush"], "field:int cpus;\toffset:8;", "field:int xcpu;\toffset:8;", "field:int cpu;\toffset:70000;", "",
	} {
		if at, err := field(text, "cpu"); err == nil {
			t.Errorf("%q: %d", text, at)
		}
	}
}

// TestPrograms: the kernel of this machine accepts the program of each event, as it is attached to an event of 6.12.
func TestPrograms(t *testing.T) {
	p := &programs{}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := p.tables([]int{3, 5}); errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, syscall.EPERM) {
		t.Skipf("skipped: this kernel lets us load no programs: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	for cpu, want := range []uint32{0, 0, 0, 1, 0, 1} {
		var got uint32
		if err := p.isolated.Lookup(uint32(cpu), &got); got != want || err != nil {
			t.Errorf("CPU %d: %d, %v, want %d", cpu, got, err, want)
		}
	}
	of := formats(t)
	for i, hook := range hooks {
		code, err := p.code(i, of[path.Base(hook.name)])
		if err != nil {
			t.Errorf("%s: %v", hook.name, err)
			continue
		}
		program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.TracePoint, Instructions: code, License: "Apache-2.0"})
		if errors.Is(err, syscall.EPERM) { // a program that is refused for what it does gets EACCES
			t.Skipf("skipped: this kernel lets us load no programs: %v", err)
		}
		if err != nil {
			t.Errorf("%s: %+v", hook.name, err)
			continue
		}
		p.loaded = append(p.loaded, program)
		if _, err := p.code(i, of["nothing"]); (hook.kind == "" || hook.function != "" || hook.kind == flushes.kind) &&
			err == nil {
			t.Errorf("%s: a program without its fields", hook.name)
		}
	}
}

// TestTake: what grew since the last time is told, by the names of functions and the senders' kinds.
func TestTake(t *testing.T) {
	symbolsAre(t, "1 T elsewhere\n")
	p := &programs{last: map[key]uint64{}, names: map[uint64]string{0: "", 1: "do_sync_core", 2: emptiesQueue}}
	if err := p.tables(nil); err != nil {
		t.Skipf("skipped: this kernel gives us no tables: %v", err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	task := [16]byte{'a', ' ', 'b'}
	put := func(k key, n uint64) {
		if err := p.counts.Put(k, n); err != nil {
			t.Fatal(err)
		}
	}
	put(key{Function: 1, PID: 12, Task: task}, 5)
	put(key{Function: 1, PID: 12, Task: task, Isolated: 1}, 2)
	put(key{Function: 2, PID: 12, Task: task}, 9) // a queue is emptied: its functions are told
	put(key{Function: 1, PID: 13, Task: task}, 0) // another CPU has just begun it
	put(key{Event: 1, Task: [16]byte{'s', 'w'}}, 1)
	put(key{Function: 1, PID: noPID, Task: task}, 3)
	put(key{Function: 7, Event: 3, Isolated: 1}, 4)
	c := Causes{source: p}
	calls, err := c.Take()
	if want := "do_sync_core 10"; calls != want || err != nil {
		t.Errorf("%q, %v, want %q", calls, err, want)
	}
	want := map[Cause][3]int64{
		{"text", "do_sync_core", "a b", 12}: {7, 2, 7}, {"text", "do_sync_core", "a b", 0}: {3, 0, 3},
		{"reschedule", "", "<idle>", 0}: {1, 0, 1}, {"timer", "0x7", "", 0}: {4, 4, 4},
	}
	hold := func() {
		t.Helper()
		got := map[Cause][3]int64{}
		for _, tally := range c.Tallies() {
			got[tally.Cause] = [3]int64{tally.Times, tally.Isolated, tally.Now}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	}
	hold()
	put(key{Function: 1, PID: 12, Task: task}, 6)
	if calls, err = c.Take(); calls != "do_sync_core 1" || err != nil {
		t.Errorf("%q, %v", calls, err)
	}
	for cause, n := range want {
		n[2] = 0
		if cause.PID == 12 {
			n[0], n[2] = 8, 1
		}
		want[cause] = n
	}
	hold()
}

// symbolsAre puts other symbols in the place of this kernel's, until the test ends.
func symbolsAre(t *testing.T, text string) {
	t.Helper()
	was := symbolFile
	t.Cleanup(func() { symbolFile = was })
	symbolFile = t.TempDir() + "/kallsyms"
	if err := os.WriteFile(symbolFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestSymbols: names of functions by their addresses; where no address is told, that is an error, and not a name.
func TestSymbols(t *testing.T) {
	symbolsAre(t, "0000000000000000 A fixed\nffff0010 T ipi_mb\nffff0010 t alias\nffff0020 t other [m]\n")
	p := &programs{names: map[uint64]string{0: ""}}
	if err := p.name(map[key]uint64{{Function: 0xffff0010}: 1, {Function: 0xffff0030}: 1}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[uint64]string{0: "", 0xffff0010: "ipi_mb", 0xffff0030: "0xffff0030"}, p.names); d != "" {
		t.Error(d)
	}
	symbolsAre(t, "0000000000000000 A fixed\n0000000000000000 T ipi_mb\n")
	if _, err := load(nil, nil); err == nil || !strings.Contains(err.Error(), "kptr_restrict") {
		t.Errorf("%v, want the cause", err)
	}
}

// failing is something that cannot be closed.
type failing string

func (f failing) Close() error { return errors.New(string(f)) }

// TestCloseTellsAll: whatever cannot be given back is told, in the order in which it was tried.
func TestCloseTellsAll(t *testing.T) {
	const none = 1 << 30 // no file has this number
	p := &programs{measured: failing("measuring"), counts: table(none), lost: table(none)}
	err := p.Close()
	if err == nil || err.Error() != "measuring\n"+syscall.EBADF.Error()+"\n"+syscall.EBADF.Error() {
		t.Errorf("%v", err)
	}
	if err := (&programs{}).Close(); err != nil {
		t.Errorf("nothing: %v", err)
	}
}

// formatted is a tracefs that has the formats of some events.
type formatted struct {
	tracefs.Files
	of map[string]string
}

func (f formatted) Read(name string) ([]byte, error) {
	text, ok := f.of[name]
	if !ok {
		return nil, os.ErrNotExist
	}
	return []byte(text), nil
}

// TestLoads: a kernel without the events is told so, and one whose event has another format, by the event's name;
// whatever was attached so far is given back. A program that cannot be attached is an error, and no link.
func TestLoads(t *testing.T) {
	symbolsAre(t, "1 T elsewhere\n")
	p := &programs{}
	if err := p.tables(nil); err != nil {
		t.Skipf("skipped: this kernel gives us no tables: %v", err)
	}
	t.Cleanup(func() { _ = p.Close() })
	for _, c := range []struct {
		of   map[string]string
		want string
	}{
		{nil, errNoEvents.Error()},
		{map[string]string{"events/csd/csd_queue_cpu/format": "no fields"}, "csd/csd_queue_cpu: its format has no field cpu"},
		{map[string]string{"events/tlb/tlb_flush/format": "no fields"}, "tlb/tlb_flush: its format has no field reason"},
		{map[string]string{"events/timer/timer_expire_entry/format": "no fields"}, errNoEvents.Error()}, // no CPU is isolated
	} {
		if s, err := load(formatted{of: c.of}, nil); s != nil || err == nil || err.Error() != c.want {
			t.Errorf("%v: %v, %v, want %s", c.of, s, err, c.want)
		}
	}
	of := map[string]string{"events/timer/timer_expire_entry/format": "no fields"}
	if _, err := load(formatted{of: of}, []int{1}); err == nil ||
		err.Error() != "timer/timer_expire_entry: its format has no field function" {
		t.Error(err)
	}
	if err := p.attach(0, "no fields"); err == nil {
		t.Error("a program without its fields")
	}
}
