// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/kernels/tracefs"
	"github.com/textpoke/textpoke/service"
	"github.com/textpoke/textpoke/service/journal"
)

// holds is what a file of tracefs has, in one line; "" where it is not there.
func (w *world) holds(file string) string {
	b, err := w.files.Read("instances/" + file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatal(err)
	}
	return strings.Join(strings.Split(strings.TrimSpace(string(b)), "\n"), " ")
}

// TestOps: each ops has its own state in the kernel, a later server takes over all of it, and what is not for an ops is
// refused.
func TestOps(t *testing.T) {
	w := newWorld(t)
	s, kill := w.start()
	want := func(functions, graph, events string) {
		t.Helper()
		g := ""
		if w.holds("x.graph/current_tracer") == "function_graph" {
			g = w.holds("x.graph/set_ftrace_filter")
		}
		if f, e := w.traced(), w.holds("x/set_event"); f != functions || g != graph || e != events {
			t.Errorf("function %q, graph %q, event %q; want %q, %q, %q", f, g, e, functions, graph, events)
		}
	}
	w.with(s, "one", "graph", true, "a", "d")
	want("", "a d", "")
	w.with(s, "one", "function", true, "a")
	w.with(s, "two", "event", true, "sched/sched_switch")
	want("a", "a d", "sched:sched_switch")
	if r, err := s.Records(t.Context(), service.RecordQuery{Filter: []string{"a"}, After: -1}); err != nil || len(r) != 1 || r[0].Users != 2 {
		t.Errorf("%+v, %v: want a, which two want", r, err)
	}
	for ops, record := range map[string]string{"function": "sched/sched_switch", "event": "a", "kprobe": "a"} {
		if _, err := s.Submit(t.Context(), service.Request{Client: "one", Ops: ops, Enable: true, Records: []string{record}}); err == nil {
			t.Errorf("%s is accepted with the ops %s", record, ops)
		}
	}
	if u, err := s.Submit(t.Context(), service.Request{Client: "all", Ops: "event", Enable: true, Filter: []string{"*"}}); err != nil ||
		u.Records != 2 {
		t.Errorf("%+v, %v: want both events and no function", u, err)
	} else if _, err := s.Wait(t.Context(), u.ID); err != nil {
		t.Error(err)
	}
	want("a", "a d", "irq:softirq_entry sched:sched_switch")
	kill()
	if err := w.files.Write("instances/x/events/irq/softirq_entry/enable", "0", true); err != nil { // somebody else
		t.Fatal(err)
	}
	s, kill = w.start()
	want("a", "a d", "irq:softirq_entry sched:sched_switch")
	w.with(s, "all", "event", false, "irq/softirq_entry", "sched/sched_switch")
	want("a", "a d", "sched:sched_switch")
	w.with(s, "one", "graph", false, "a", "d")
	want("a", "", "sched:sched_switch")
	w.files.writes = 1 // the function's filter, and no event
	if u := w.with(s, "two", "event", false, "sched/sched_switch"); u.State != journal.Live {
		t.Errorf("%+v", u)
	}
	w.files.writes = -1
	want("a", "", "")
	kill()
}

// TestNoGraph: on a kernel whose instances cannot have function_graph, the update says so, and wishes of an earlier kernel
// do not keep the server from starting.
func TestNoGraph(t *testing.T) {
	w := newWorld(t)
	s, kill := w.start()
	w.with(s, "one", "graph", true, "a")
	w.with(s, "one", "function", true, "b")
	kill()
	w.kernel["available_tracers"] = "function nop\n" // another kernel was booted
	w.files = &failing{tracefs.Trial(w.kernel, io.Discard), -1, 0, func() {}}
	w.config.Files = w.files
	s, kill = w.start()
	defer kill()
	if got := w.traced(); got != "b" {
		t.Errorf("traces %q, want b", got)
	}
	if u := w.with(s, "one", "graph", true, "d"); u.State != journal.Failed || u.Error != errAbsent.Error() {
		t.Errorf("%s, %q; want failed, %v", u.State, u.Error, errAbsent)
	}
}

// TestAbandoned: a start that fails leaves no instance that was not there.
func TestAbandoned(t *testing.T) {
	for _, there := range []bool{false, true} {
		w := newWorld(t)
		var said strings.Builder
		if there {
			w.kernel["instances/x/current_tracer"], w.kernel["instances/x/set_ftrace_filter"] = "nop\n", "#### all functions enabled ####\n"
		}
		w.config.Files, w.config.Interrupts = tracefs.Trial(w.kernel, &said), "/no/such/file"
		if _, err := Machine(w.config)(nil, zap.NewNop()); err == nil {
			t.Fatal("it starts without interrupts")
		}
		if want := map[bool]string{false: "mkdir instances/x\nrmdir instances/x\n", true: ""}[there]; said.String() != want {
			t.Errorf("there %v: %q, want %q", there, &said, want)
		}
	}
}
