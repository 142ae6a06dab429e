// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/textpoke/textpoke/kernels/tracefs"
	"github.com/textpoke/textpoke/sched/coordinator"
	"github.com/textpoke/textpoke/service"
)

// busyTrace is a trace that has something for its first readings, and counts them.
type busyTrace struct {
	left, reads int
	at          []time.Duration
	began       time.Time
}

func (b *busyTrace) Read(p []byte) (int, error) {
	b.reads++
	if b.left--; b.left < 0 {
		return 0, fmt.Errorf("pipe: %w", tracefs.ErrNothing)
	}
	b.at = append(b.at, time.Since(b.began))
	return copy(p, "x\n"), nil
}

func (b *busyTrace) Close() error { return nil }

// TestLooks: a trace is read on at once while there is something, and looked at fifty times a second while there is
// not.
func TestLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := &busyTrace{left: 3, began: time.Now()}
		p := &pipe{parser: func() parser { return tracefs.ParseLine }, log: zap.NewNop()}
		stop, done := make(chan struct{}), make(chan struct{})
		go p.read(from, stop, done)
		time.Sleep(time.Second - lookPause/2)
		close(stop)
		<-done
		if fmt.Sprint(from.at) != "[0s 0s 0s]" || from.reads != 3+50 {
			t.Errorf("%d readings, with something at %v", from.reads, from.at)
		}
	})
}

// unremovable is a tracefs whose instances stay.
type unremovable struct{ tracefs.Files }

func (unremovable) Remove(string) error { return errors.New("it stays") }

// TestStartSays: why a start failed comes first, and then what it has left behind; what is not traced yet is not told.
func TestStartSays(t *testing.T) {
	w := newWorld(t)
	w.config.Files, w.config.Interrupts = unremovable{w.files}, filepath.Join(t.TempDir(), "none")
	_, err := Machine(w.config)(nil, zap.NewNop())
	if want := "this machine's kernel: open " + w.config.Interrupts + ": no such file or directory\nit stays"; err == nil ||
		err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	w = newWorld(t)
	s, kill := w.start()
	if n := w.log.FilterMessage("the instance traces already").Len(); n != 0 {
		t.Errorf("told %d times, and nothing is traced", n)
	}
	w.do(s, "one", true, "a")
	kill()
	_, kill = w.start()
	defer kill()
	if n := w.log.FilterMessage("the instance traces already").Len(); n != 1 {
		t.Errorf("told %d times, and a is traced", n)
	}
	h := w.machine()
	h.pipe.open = func() (io.ReadCloser, error) { return nil, fmt.Errorf("pipe: %w", os.ErrNotExist) }
	if err := h.Trace(t.Context(), "function", nil, nil); !errors.Is(err, service.ErrNoTrace) {
		t.Error(err)
	}
	h.pipe.open = func() (io.ReadCloser, error) { return nil, errBroken }
	if err := h.Trace(t.Context(), "function", nil, nil); !errors.Is(err, errBroken) {
		t.Error(err)
	}
}

// TestFound: what an earlier server, or somebody else, has left in the instance is told, and where.
func TestFound(t *testing.T) {
	for _, c := range []struct {
		change func(w *world) error
		want   []string
	}{
		{func(*world) error { return nil }, nil},
		{func(w *world) error { return w.files.Write("instances/x/current_tracer", "function_graph", true) },
			[]string{"the instance was changed by somebody else map[error:the tracer function_graph: somebody else switched it on in " +
				"the instance ops:function]"}},
		{func(w *world) error { return w.files.Write("instances/x/current_tracer", "function", true) },
			[]string{"the instance traces every function: somebody else emptied its filter map[ops:function]"}},
		{func(w *world) error {
			return errors.Join(w.files.Write("instances/x/set_ftrace_filter", "1\n2", false),
				w.files.Write("instances/x/current_tracer", "function", true),
				w.files.Write("instances/x/events/sched/sched_switch/enable", "1", true))
		}, []string{"the instance traces already map[functions:2 ops:function]",
			"the instance traces already map[functions:1 ops:event]"}},
		{func(w *world) error { w.kernel["current_tracer"] = "function\n"; return nil },
			[]string{"other tracers are on: their interrupts are counted too map[instances:[the top instance]]"}},
		{func(w *world) error { return w.files.Remove("instances/x") }, nil},
	} {
		w := newWorld(t)
		if _, err := w.files.Mkdir("instances/x"); err != nil {
			t.Fatal(err)
		}
		if err := c.change(w); err != nil {
			t.Fatal(err)
		}
		core, seen := observer.New(zap.InfoLevel)
		m, err := Machine(w.config)(nil, zap.New(core))
		if err != nil {
			t.Fatal(err)
		}
		m.Close()
		var got []string
		for _, e := range seen.All() {
			got = append(got, fmt.Sprint(e.Message, " ", e.ContextMap()))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// TestRoles: CPUs are what sysfs says, and a list that is none is refused.
func TestRoles(t *testing.T) {
	w := newWorld(t)
	m, err := Machine(w.config)(nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := os.WriteFile(w.config.Interrupts,
		[]byte("      CPU0 CPU2\nCAL: 15 9 Function call interrupts\nLOC: 9 9 Local timer interrupts\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	for _, c := range m.CPUs() {
		fmt.Fprintln(&got, c.ID, c.Role, c.Online, c.Taken)
	}
	if want := "0 busy true map[CAL:10]\n1 busy false map[]\n2 isolated true map[CAL:2]\n"; got.String() != want {
		t.Errorf("%s, want\n%s", &got, want)
	}
	for _, text := range []string{"a", "3-1", "-1", "1-", "0-99999999", "1,,2", ""} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "possible"), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := roles(dir); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}

// TestApplySays: an update before the end of the start tells what the kernel has lost; two reasons not to begin are
// both told.
func TestApplySays(t *testing.T) {
	w := newWorld(t)
	core, seen := observer.New(zap.WarnLevel)
	m, err := Machine(w.config)(nil, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	w.kernel["available_filter_functions"] = "a\nb\n__ftrace_invalid_address___1\nd\n"
	for range 2 {
		if _, err := m.Apply(t.Context(), []coordinator.Change{{Record: 0, Enable: true}, {Record: 2,
			Enable: true}}); err != nil {
			t.Fatal(err)
		}
	}
	var told []string
	for _, e := range seen.All() {
		told = append(told, fmt.Sprint(e.Message, " ", e.ContextMap()))
	}
	want := []string{"wanted, and not in the kernel any more map[functions:1 ops:function such as:c [m]]"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
	if err := errors.Join(os.Remove(w.config.Interrupts), os.WriteFile(w.config.Enabled, []byte("0\n"),
		0o600)); err != nil {
		t.Fatal(err)
	}
	_, err = m.Apply(t.Context(), nil)
	if want := "open " + w.config.Interrupts + ": no such file or directory\nthe kernel patches no function: sysctl " +
		"kernel.ftrace_enabled is 0, want 1"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// halves is a trace whose lines come in pieces.
type halves struct{ pieces []string }

func (h *halves) Read(p []byte) (int, error) {
	if len(h.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, h.pieces[0])
	h.pieces = h.pieces[1:]
	return n, nil
}

func (h *halves) Close() error { return nil }

// TestPieces: a line that comes in pieces is one, with what stands before and behind it.
func TestPieces(t *testing.T) {
	var got []string
	p := &pipe{log: zap.NewNop(), followers: map[*follower]bool{}, parser: func() parser {
		return func(text string) tracefs.Line { got = append(got, text); return tracefs.Line{} }
	}}
	p.read(&halves{[]string{"on", "e\ntw", "o", "\nthree\n", "four\nfi", "ve\n"}}, make(chan struct{}), make(chan struct{}))
	if diff := cmp.Diff([]string{"one", "two", "three", "four", "five"}, got); diff != "" {
		t.Error(diff)
	}
}
