// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/textpoke/textpoke/service/journal"
)

// TestOtherTracer: somebody else's tracer in the instance is told and replaced by the next look, by an update and by a start.
func TestOtherTracer(t *testing.T) {
	w := newWorld(t)
	other := func() {
		t.Helper()
		if err := w.files.Write("instances/x/current_tracer", "function_graph", true); err != nil {
			t.Fatal(err)
		}
	}
	s, kill := w.start()
	w.do(s, "one", true, "a")
	other()
	if u := w.do(s, "one", true, "d"); u.State != journal.Live || w.traced() != "a d" {
		t.Errorf("%+v, traces %q", u, w.traced())
	}
	kill()
	other()
	_, kill = w.start()
	if w.traced() != "a d" || w.log.FilterMessageSnippet("changed by somebody else").Len() == 0 {
		t.Errorf("traces %q, want a d, and somebody told", w.traced())
	}
	kill()
	other()
	m, err := Machine(w.config)(nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.Agree(t.Context()); err != nil || w.traced() != "" {
		t.Errorf("%v, traces %q, and nothing is wanted", err, w.traced())
	}
}

// TestSettings: files of both instances that keep functions from being traced are put right by the next look, and told.
func TestSettings(t *testing.T) {
	w := newWorld(t)
	s, kill := w.start()
	w.with(s, "one", "graph", true, "a")
	kill()
	core, seen := observer.New(zap.InfoLevel)
	m, err := Machine(w.config)(nil, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, name := range []string{"x", "x.graph"} {
		file := "instances/" + name + "/tracing_on"
		if err := w.files.Write(file, "0\n", true); err != nil {
			t.Fatal(err)
		}
		if err := m.Agree(t.Context()); err != nil {
			t.Fatal(err)
		}
		on, err := w.files.Read(file)
		told := seen.FilterMessage("the instance was changed by somebody else").FilterField(zap.String("instance", name)).Len()
		if err != nil || string(on) != "1" || told != 1 {
			t.Errorf("%s: %q, %v, told %d times; want 1 and once", name, on, err, told)
		}
	}
}

// TestDisabled: a kernel that patches no function is not said to trace any.
func TestDisabled(t *testing.T) {
	w := newWorld(t)
	s, kill := w.start()
	defer kill()
	for i, state := range []journal.State{journal.Failed, journal.Live} {
		enabled := fmt.Sprintln(i)
		if err := os.WriteFile(w.config.Enabled, []byte(enabled), 0o600); err != nil {
			t.Fatal(err)
		}
		u := w.do(s, strings.TrimSpace(enabled), true, "a")
		if told := strings.Contains(u.Error, "kernel.ftrace_enabled is 0"); u.State != state || told != (state == journal.Failed) {
			t.Errorf("%q: %s, %q; want %s", enabled, u.State, u.Error, state)
		}
	}
}

// TestRemoved: an instance that somebody removed is made anew, with its lock, and traces what is wanted.
func TestRemoved(t *testing.T) {
	w := newWorld(t)
	s, kill := w.start()
	defer kill()
	w.do(s, "one", true, "a")
	locks := w.files.locks
	if err := w.files.Remove("instances/x"); err != nil {
		t.Fatal(err)
	}
	w.do(s, "one", true, "d")
	if w.traced() != "a d" || w.files.locks != locks+1 {
		t.Errorf("traces %q with %d locks more, want a d and one", w.traced(), w.files.locks-locks)
	}
}
