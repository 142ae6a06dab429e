// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"path"
	"runtime"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/internal/sandbox"
	"github.com/textpoke/textpoke/kernels/tracefs"
)

const tracing = "/sys/kernel/tracing"

// inTracefs does something in a thread that sees the kernel's tracefs. The library that attaches programs looks for it
// once in a process: whatever attaches one does so in here.
func inTracefs(t *testing.T, do func(files tracefs.Files)) {
	t.Helper()
	err := sandbox.Mounts(func() error {
		if err := syscall.Mount("tracefs", tracing, "tracefs", 0, ""); err != nil && !errors.Is(err, syscall.EBUSY) {
			return err
		} // or it is mounted there already
		do(tracefs.At(tracing))
		return nil
	})
	if err != nil {
		t.Skipf("skipped: a tracefs of one's own: %v", err)
	}
}

// refused says whether this kernel lets us load and attach no programs.
func refused(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, errNoEvents)
}

// attachedTo are the events that programs are attached to, as the kernel says.
func attachedTo(t *testing.T, p *programs) (names []string) {
	t.Helper()
	for i, l := range p.links {
		about, err := l.Info()
		if err != nil {
			t.Fatal(err)
		}
		event := about.PerfEvent().Tracepoint()
		names = append(names, event.Tracepoint)
		of, err := p.loaded[i].Info()
		if id, known := of.ID(); err != nil || !known || id != about.Program {
			t.Errorf("%s has program %d, want %d (%v)", event.Tracepoint, about.Program, id, err)
		}
	}
	return names
}

// TestAttached: each sender of this kernel has its program, flushes have one where there is no sender, and timers where
// a CPU is isolated. Whoever closes it has given all of them back.
func TestAttached(t *testing.T) {
	symbolsAre(t, "1 T elsewhere\n")
	inTracefs(t, func(files tracefs.Files) {
		has := func(es []event) (names []string) {
			for _, e := range es {
				if _, err := files.Read("events/" + e.name + "/format"); err == nil {
					names = append(names, path.Base(e.name))
				}
			}
			return names
		}
		want := has(senders)
		if want == nil {
			want = has([]event{flushes})
		}
		for _, isolated := range [][]int{nil, {0}} {
			s, err := load(files, isolated)
			if refused(err) {
				t.Logf("skipped: this kernel lets us attach nothing: %v", err)
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			p := s.(*programs)
			if isolated != nil {
				want = append(want, has(timers)...)
			}
			if d := cmp.Diff(want, attachedTo(t, p)); d != "" {
				t.Errorf("isolated %v: %s", isolated, d)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			for i, l := range p.links {
				if _, err := l.Info(); err == nil {
					t.Errorf("%s: its program is still attached", want[i])
				}
				if _, err := p.loaded[i].Stats(); err == nil {
					t.Errorf("%s: its program is still loaded", want[i])
				}
			}
		}
	})
}

// patch attaches a program to an event that nothing else asks for, which patches the event's places in the kernel.
func patch() error {
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.TracePoint, License: "Apache-2.0",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}})
	if err != nil {
		return err
	}
	l, err := link.Tracepoint("oom", "mark_victim", program, nil)
	if err == nil {
		err = l.Close()
	}
	return errors.Join(err, program.Close())
}

// texts sums up what this thread's patching asked of CPUs, and of isolated ones.
func texts(t *testing.T, c *Causes) (sum [2]int64) {
	if _, err := c.Take(); err != nil {
		t.Error(err)
	}
	for cause, n := range c.tallies {
		if cause.Kind == "text" && cause.PID == syscall.Gettid() {
			sum = [2]int64{sum[0] + n.Times, sum[1] + n.Isolated}
		}
	}
	return sum
}

// TestSourcesAgree: programs, which come first, and trace events count the same when this thread patches the kernel:
// as much for each CPU but its own. All are isolated.
func TestSourcesAgree(t *testing.T) {
	cpus := IsolatedCPUs("/sys/devices/system/cpu/online")
	if runtime.GOARCH != "amd64" || len(cpus) < 2 {
		t.Skipf("skipped: on %s with CPUs %v patching interrupts nobody", runtime.GOARCH, cpus)
	}
	inTracefs(t, func(files tracefs.Files) {
		_, err := files.Read("events/" + senders[0].name + "/format")
		if err == nil {
			err = symbols(func(uint64, string) bool { return false })
		}
		if p := (&programs{}); err == nil {
			err = errors.Join(p.tables(nil), p.Close())
		}
		if err != nil {
			t.Logf("skipped: a kernel that tells us no functions: %v", err)
			return
		}
		var all []*Causes
		for i, by := range []string{"", "events"} {
			c, used, err := Listen(files, cpus, by)
			if err != nil || used != Sources[i] {
				t.Errorf("%s, want %s (%v)", used, Sources[i], err)
				return
			}
			defer c.Close()
			all = append(all, c)
		}
		before := [][2]int64{texts(t, all[0]), texts(t, all[1])}
		heard := before[0]
		for tries := 0; heard == before[0] && tries < 100; tries++ { // somebody else may hold the event for a moment
			if err := patch(); err != nil {
				t.Error(err)
				return
			}
			heard = texts(t, all[0])
		}
		n, others := heard[0]-before[0][0], int64(len(cpus)-1)
		if n == 0 || n%others != 0 || heard[1]-before[0][1] != n {
			t.Errorf("programs: %v, and before %v, on %d CPUs", heard, before[0], len(cpus))
		}
		if sum := texts(t, all[1]); sum[0]-before[1][0] != n || sum[1]-before[1][1] != n {
			t.Errorf("trace events: %v, and before %v; programs heard %d", sum, before[1], n)
		}
		if all[0].Ran() <= 0 || all[1].Ran() != 0 {
			t.Errorf("programs ran for %v, trace events for %v", all[0].Ran(), all[1].Ran())
		}
	})
}

// TestLostOfTables: what found no room is lost; of a table that is gone nothing is known.
func TestLostOfTables(t *testing.T) {
	p := &programs{}
	if err := p.tables(nil); err != nil {
		t.Skipf("skipped: this kernel gives us no tables: %v", err)
	}
	if err := p.lost.Put(uint32(0), uint64(7)); err != nil {
		t.Fatal(err)
	}
	if n := p.Lost(); n != 7 {
		t.Errorf("%d lost, want 7", n)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if n := p.Lost(); n != 0 {
		t.Errorf("%d lost of a table that is gone", n)
	}
}
