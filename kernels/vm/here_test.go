// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/tracefs"
)

// standIn is a tracefs whose tracers cost 5 rounds when they go on and 2 when they go off, and the
// file that counts them.
type standIn struct {
	tracefs.Files
	file   string
	rounds int
	on     bool
	wrote  []string
	there  bool
	refuse string // what is not written
}

func (s *standIn) count() error {
	return os.WriteFile(s.file, fmt.Appendf(nil, "           CPU0       CPU1       CPU2\n"+
		"  9:          0          %d          0   IO-APIC   9-edge      acpi\n"+
		"CAL:          7         %d         %d   Function call interrupts\n", s.rounds, s.rounds, s.rounds), 0o600)
}

func (s *standIn) Mkdir(name string) (bool, error) {
	made := !s.there
	s.there = true
	return made, nil
}

func (s *standIn) Remove(string) error {
	s.there = false
	return nil
}

func (s *standIn) Write(name, text string, _ bool) error {
	name = filepath.Base(name)
	if name == s.refuse {
		return errors.New("refused")
	}
	s.wrote = append(s.wrote, name+"="+text)
	if on := text == "function"; name == "current_tracer" && on != s.on {
		if s.on = on; on {
			s.rounds += 5
		} else {
			s.rounds += 2
		}
		return s.count()
	}
	return nil
}

// TestHere: the tracer of an instance is switched on and off, between readings, and the instance goes.
func TestHere(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("threads are kept on a CPU on Linux alone")
	}
	s := &standIn{file: filepath.Join(t.TempDir(), "interrupts")}
	if err := s.count(); err != nil {
		t.Fatal(err)
	}
	h := Here{Arch: "x86_64", Action: "instance:vfs_*", Files: s, Isolated: []int{2}, Repetitions: 2, Interrupts: s.file}
	m, err := h.Measure(t.Context())
	if err != nil || m.Release == "" || !slices.Equal(m.CPUs, []cpus.Role{cpus.Busy, cpus.Busy, cpus.Isolated}) {
		t.Fatalf("%+v, %v", m, err)
	}
	want := []string{"tracing_on=0", "set_ftrace_filter=vfs_*", "current_tracer=function", "current_tracer=nop",
		"current_tracer=function", "current_tracer=nop", "current_tracer=nop"}
	if !slices.Equal(s.wrote, want) || s.there {
		t.Errorf("wrote %q, there %v", s.wrote, s.there)
	}
	var took []string
	for _, r := range m.Summaries() {
		if r.Row == "CAL" {
			took = append(took, fmt.Sprint(r.Direction, " ", r.Quietest, " ", r.Patcher, " ", r.Idle, " ", r.Repetitions))
		}
	}
	if !slices.Equal(took, []string{"enable 5 0 0 2", "disable 2 0 0 2"}) {
		t.Errorf("took %q", took)
	}
}

// TestHereDo: what somebody does counts as enabling; and what goes wrong is said, and leaves nothing.
func TestHereDo(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("threads are kept on a CPU on Linux alone")
	}
	s := &standIn{file: filepath.Join(t.TempDir(), "interrupts")}
	if err := s.count(); err != nil {
		t.Fatal(err)
	}
	h := Here{Arch: "x86_64", Action: "mine", Repetitions: 1, Interrupts: s.file, Do: func(context.Context) error {
		s.rounds++
		return s.count()
	}}
	m, err := h.Measure(t.Context())
	if err != nil || len(m.Readings) != 2 || m.Readings[0].Direction != Enable || m.Readings[1].Direction != Control ||
		!slices.Equal(m.Readings[0].Rows[1].Interrupts, []int{0, 1, 1}) {
		t.Errorf("%+v, %v", m, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	h.Do = func(context.Context) error { cancel(); return nil }
	if m, err := h.Measure(ended); !errors.Is(err, context.Canceled) || len(m.Readings) != 1 {
		t.Errorf("%+v, %v", m, err)
	}
	for name, c := range map[string]struct {
		do   func(*Here)
		want string
	}{
		"filter":   {func(h *Here) { s.refuse = "set_ftrace_filter" }, `write "" into the instance's set_ftrace_filter: refused`},
		"there":    {func(h *Here) { s.there = true }, "tracefs has instances/textpoke-measure already"},
		"tracer":   {func(h *Here) { s.refuse = "current_tracer" }, "action instance, enable: refused"},
		"failing":  {func(h *Here) { h.Do = func(context.Context) error { return errors.New("no") } }, "action instance, enable: no"},
		"no file":  {func(h *Here) { h.Interrupts += "x" }, "interruptsx"},
		"one CPU":  {func(h *Here) { write(t, s.file, "  CPU0\nCAL: 1 calls\n") }, "one CPU has no other"},
		"no CPU 1": {func(h *Here) { write(t, s.file, "  CPU0 CPU2\nCAL: 1 1 calls\n") }, "CPU 1 is offline"},
	} {
		s.refuse, s.there = "", false
		if err := s.count(); err != nil {
			t.Fatal(err)
		}
		h := Here{Arch: "x86_64", Action: "instance", Files: s, Repetitions: 1, Interrupts: s.file}
		c.do(&h)
		held := s.there
		if _, err := h.Measure(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) || s.there != held {
			t.Errorf("%s: %v, there %v", name, err, s.there)
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
