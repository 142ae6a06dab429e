// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/textpoke/textpoke/kernels/tracefs"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results/interrupts"
	"github.com/textpoke/textpoke/sched/coordinator"
	"github.com/textpoke/textpoke/service"
	"github.com/textpoke/textpoke/service/journal"
)

// TestFewerCPUs: interrupts of a CPU behind the last that may be there do not count, and an isolated CPU there does not
// either.
func TestFewerCPUs(t *testing.T) {
	w := newWorld(t)
	for name, text := range map[string]string{"possible": "0-1", "isolated": "1-2", "nohz_full": "2"} {
		if err := os.WriteFile(filepath.Join(w.config.CPUs, name), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := w.machine()
	if err := os.WriteFile(w.config.Interrupts, []byte("      CPU0 CPU1 CPU2\nCAL: 6 8 9 Function call interrupts\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range h.CPUs() {
		got = append(got, fmt.Sprintf("%d %v %v %v", c.ID, c.Role, c.Online, c.Taken))
	}
	if diff := cmp.Diff([]string{"0 busy true map[CAL:1]", "1 isolated true map[CAL:2]"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestRolesSay: the file that lists the CPUs is named when it lists none, and when it is no list.
func TestRolesSay(t *testing.T) {
	for text, want := range map[string]string{"": "no CPU", "x": `"x"`} {
		dir := t.TempDir()
		file := filepath.Join(dir, "possible")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := roles(dir); err == nil || !strings.HasPrefix(err.Error(), file+": ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s: %s", text, err, file, want)
		}
	}
}

// TestTaken: a receipt has the CPUs that were there before and behind an update, and names the patcher's where it is
// known.
func TestTaken(t *testing.T) {
	w := newWorld(t)
	h := w.machine()
	for i, c := range []struct {
		before, after string
		cpu           int
		want          []journal.Taken
	}{
		{"CPU0 CPU2\nCAL: 1 2", "CPU0 CPU1 CPU2\nCAL: 4 9 7", -1,
			[]journal.Taken{{CPU: 0, Interrupts: 3}, {CPU: 2, Interrupts: 5}}},
		{"CPU0 CPU1 CPU2\nCAL: 1 2 3", "CPU0 CPU2\nCAL: 4 7", 0,
			[]journal.Taken{{CPU: 0, Interrupts: 3, Others: 3}, {CPU: 2, Interrupts: 4}}},
	} {
		before, err := interrupts.Parse("before", strings.NewReader(" "+c.before+" Function call interrupts\n"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(w.config.Interrupts, []byte(" "+c.after+" Function call interrupts\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		want := &journal.Receipt{Row: "CAL", Taken: c.want}
		if c.cpu >= 0 {
			want.Patcher = &c.cpu
		}
		r, err := h.receipt(before, c.cpu)
		if diff := cmp.Diff(want, r); diff != "" || err != nil {
			t.Errorf("%d: %v, %s", i, err, diff)
		}
	}
}

// TestForecastAfterGraph: there is no forecast of an update that switches function_graph on or off, and there is one of
// the next. An event that the image lacks ends all forecasts.
func TestForecastAfterGraph(t *testing.T) {
	w := newWorld(t)
	w.modelled()
	h := w.machine()
	apply := func(record int, enable, forecast bool) {
		t.Helper()
		r, err := h.Apply(t.Context(), []coordinator.Change{{Record: record, Enable: enable}})
		if err != nil || (r.Forecast != nil) != forecast {
			t.Errorf("%d, %v: %+v, %v", record, enable, r, err)
		}
	}
	graph := h.cfg.Records.All.Len() * graphOps
	apply(0, true, true)
	apply(graph, true, false)
	apply(1, true, false) // beside function_graph
	apply(graph, false, false)
	apply(1, false, true)
	if h.replay == nil {
		t.Fatal("no replay is left")
	}
	h.replay.events[4].Name = "no_such_event"
	apply(h.cfg.Records.All.Len()*eventOps+4, true, false)
	if h.replay != nil {
		t.Error("a replay that failed goes on")
	}
	apply(1, true, false)
}

// TestUndoSays: why an update failed comes first, and then why it could not be taken back.
func TestUndoSays(t *testing.T) {
	why := errors.New("no space")
	p := &part{tracer: refusing{errBroken}}
	err := new(Host).undo([]*part{p}, why)
	want := service.ErrStuck.Error() + ": no space, and the state before could not be brought back: broken"
	if err == nil || err.Error() != want || !errors.Is(err, service.ErrStuck) {
		t.Errorf("%v, want %s", err, want)
	}
	p.tracer = refusing{}
	if err := new(Host).undo([]*part{p, p}, why); err != why {
		t.Errorf("%v, want %v", err, why)
	}
}

// refusing is a tracer that says one thing of everything.
type refusing struct{ err error }

func (r refusing) Held() ([]tracefs.Function, bool, error)              { return nil, false, r.err }
func (r refusing) Trace([]tracefs.Function) ([]tracefs.Function, error) { return nil, r.err }

// TestAllSay: the faults of each of the ops are told, in their order.
func TestAllSay(t *testing.T) {
	w := newWorld(t)
	h := w.machine()
	h.parts[functionOps].tracer, h.parts[eventOps].tracer = refusing{errors.New("first")}, refusing{errors.New("second")}
	for what, do := range map[string]func(context.Context) error{"agree": h.Agree, "restored": h.Restored} {
		if err := do(t.Context()); err == nil || err.Error() != "first\nsecond" {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := os.WriteFile(w.config.Enabled, []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.Agree(t.Context()); err == nil || !strings.Contains(err.Error(), "ftrace_enabled is 0") {
		t.Error(err)
	}
}

// TestTellFails: a follower that cannot be told ends, at the begin and later; why reading failed comes before why
// that could not be told.
func TestTellFails(t *testing.T) {
	w := newWorld(t)
	f := &feed{Files: w.files, held: map[string]string{}}
	w.config.Files = f
	h := w.machine()
	all := func(*service.Line) bool { return true }
	for left, want := range []string{"client", "client", "pipe\nclient"} {
		f.fails = nil
		if left == 2 {
			f.fails, left = errors.New("pipe"), 1
		} else {
			f.put(instancePipe, line("a"))
		}
		err := h.Trace(t.Context(), "function", all, func([]service.Line, int) error {
			if left--; left < 0 {
				return errors.New("client")
			}
			return nil
		})
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if f.opened != 0 {
			t.Errorf("%d pipes stay open", f.opened)
		}
	}
}

// noted is a trace that tells when it is read.
type noted struct {
	halves
	reads func()
}

func (n *noted) Read(b []byte) (int, error) {
	n.reads()
	return n.halves.Read(b)
}

// TestFirstLines: the first who follows gets what the pipe held before: it is known when reading begins.
func TestFirstLines(t *testing.T) {
	known := make(chan int, 2)
	p := &pipe{log: zap.NewNop(), parser: func() parser { return tracefs.ParseLine }}
	p.open = func() (io.ReadCloser, error) {
		return &noted{halves{[]string{line("a")}}, func() { known <- len(p.followers) }}, nil
	}
	f := &follower{keep: func(*service.Line) bool { return true }, more: make(chan struct{}, 1)}
	joined := make(chan error)
	p.mu.Lock() // so that no follower comes meanwhile
	go func() { joined <- p.join(f) }()
	if n := <-known; n != 1 {
		t.Errorf("%d followers at the first reading, want 1", n)
	}
	p.mu.Unlock()
	if err := <-joined; err != nil {
		t.Fatal(err)
	}
	<-p.done // the pipe has ended
	if len(f.lines) != 1 || f.failed == nil {
		t.Errorf("%d lines and %v, want 1 and the end", len(f.lines), f.failed)
	}
	p.leave(f)
}

// TestOnlyKept: a follower is told nothing of lines that it does not keep.
func TestOnlyKept(t *testing.T) {
	f := &follower{keep: func(l *service.Line) bool { return l.Name == "a" }, more: make(chan struct{}, 1)}
	p := &pipe{followers: map[*follower]bool{f: true}}
	for text, want := range map[string]int{"": 0, line("b"): 0, line("b") + line("a") + line("a"): 1} {
		f.lines, f.more = nil, make(chan struct{}, 1)
		p.hand([]byte(text), tracefs.ParseLine)
		if len(f.more) != want || len(f.lines) != 2*want {
			t.Errorf("%q: woken %d times for %d lines, want %d", text, len(f.more), len(f.lines), want)
		}
	}
}

// TestLongLine: a line that no buffer takes is handed on in pieces, and one that would only be the buffer's last is
// kept whole.
func TestLongLine(t *testing.T) {
	const buffer = 1 << 16
	long, short := strings.Repeat("x", buffer), strings.Repeat("y", buffer/2)
	for _, c := range []struct {
		pieces []string
		want   []int
	}{
		{[]string{long, "x\n"}, []int{buffer, 1}},
		{[]string{short + "\n", short[1:], "y\n"}, []int{len(short), len(short)}},
	} {
		core, seen := observer.New(zap.ErrorLevel)
		var got []int
		p := &pipe{log: zap.New(core), followers: map[*follower]bool{}, parser: func() parser {
			return func(text string) tracefs.Line { got = append(got, len(text)); return tracefs.Line{} }
		}}
		p.read(&halves{c.pieces}, make(chan struct{}), make(chan struct{}))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Error(diff)
		}
		if seen.Len() != 1 || seen.All()[0].Message != "read the trace" {
			t.Errorf("told %+v, want that reading ended", seen.All())
		}
	}
}

// TestJoin: the events are a group behind those of the functions, where there are any; functions of one name are told
// apart by their places.
func TestJoin(t *testing.T) {
	table, err := records.New("some", "x86_64", []records.Raw{{Addr: 16, Symbol: "a"}, {Addr: 32, Symbol: "a"},
		{Addr: 48, Symbol: "b"}})
	if err != nil {
		t.Fatal(err)
	}
	for n, events := range [][]string{nil, {"x/y"}} {
		r, err := join(table, events)
		if err != nil {
			t.Fatal(err)
		}
		if r.Functions != table || r.All.Name() != table.Name() || r.All.Arch() != table.Arch() ||
			len(r.All.Groups()) != 1+n || r.All.Len() != 3+n {
			t.Errorf("%s of %s with %d groups of %d records", r.All.Name(), r.All.Arch(), len(r.All.Groups()), r.All.Len())
		}
	}
	want := []tracefs.Function{{Name: "a"}, {Name: "a", Nth: 1}, {Name: "b"}}
	if diff := cmp.Diff(want, functions(table)); diff != "" {
		t.Error(diff)
	}
}
