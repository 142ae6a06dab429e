// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/kernels/tracefs"
	"github.com/textpoke/textpoke/results/interrupts"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sched/coordinator"
	"github.com/textpoke/textpoke/service"
)

// machine is the kernel without a service.
func (w *world) machine() *Host {
	w.t.Helper()
	m, err := Machine(w.config)(nil, zap.NewNop())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(m.Close)
	return m.(*Host)
}

// modelled lets forecasts be made by the image of a kernel with rounds for each change of the text.
func (w *world) modelled() {
	w.t.Helper()
	k, err := ledger.Open("x86_64-6.12")
	if err != nil {
		w.t.Fatal(err)
	}
	w.config.Kernel = k
}

// TestForecast: what switching some records would send, from what the instance traces; a record that is on goes off.
func TestForecast(t *testing.T) {
	w := newWorld(t)
	h := w.machine()
	if _, err := h.Cost(t.Context(), []int{0}, nil); !errors.Is(err, service.ErrNoForecast) {
		t.Errorf("without an image: %v", err)
	}
	w.modelled()
	h = w.machine()
	if _, err := h.Cost(t.Context(), []int{0}, new(sched.Buffer)); !errors.Is(err, service.ErrNoForecast) ||
		err.Error() != "another vector than the kernel's: "+service.ErrNoForecast.Error() {
		t.Error(err)
	}
	graph, event := h.cfg.Records.All.Len()*graphOps, h.cfg.Records.All.Len()*eventOps+4
	for i, c := range []struct {
		recs   []int
		enable []bool
		rounds int // an event takes 9 to come and 6 to go, a function among others 3
	}{
		{[]int{0}, []bool{true}, 43}, {[]int{0, 1}, []bool{false, true}, 3}, {[]int{event}, []bool{true}, 9},
		{[]int{event, event + 1}, []bool{false, true}, 6 + 9}, {[]int{0, event + 1}, []bool{true, false}, 3 + 6},
		{[]int{1, 0}, []bool{false, false}, 45},
	} {
		row, err := h.Cost(t.Context(), c.recs, nil)
		if err != nil || row.Patches != len(c.recs) || row.IPIsPerCPU != row.Rounds || row.IPIs != 2*row.Rounds ||
			row.Rounds != c.rounds {
			t.Errorf("%d: %+v, %v; want %d rounds to each of two other CPUs", i, row, err, c.rounds)
		}
		var changes []coordinator.Change
		for k, rec := range c.recs {
			changes = append(changes, coordinator.Change{Record: rec, Enable: c.enable[k]})
		}
		r, err := h.Apply(t.Context(), changes)
		if err != nil || r.Forecast == nil || r.Forecast.Interrupts != row.Rounds || r.Forecast.Least > row.Rounds ||
			!r.Forecast.OrMore && r.Forecast.Most < row.Rounds {
			t.Errorf("%d: %+v, %v; want %d rounds", i, r, err, row.Rounds)
		}
	}
	if _, err := h.Cost(t.Context(), []int{graph}, nil); !errors.Is(err, errGraph) ||
		err.Error() != service.ErrNoForecast.Error()+": "+errGraph.Error() {
		t.Errorf("of function_graph: %v", err)
	}
	r, err := h.Apply(t.Context(), []coordinator.Change{{Record: graph, Enable: true}})
	if err != nil || r.Forecast != nil || h.replay == nil {
		t.Errorf("of function_graph: %+v, %v", r, err)
	}
}

// TestSince: rows of interrupts that CPUs send each other, by CPU; one that came meanwhile has nothing.
func TestSince(t *testing.T) {
	read := func(text string) interrupts.Snapshot {
		s, err := interrupts.Parse("f", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := read(" CPU0 CPU2\nCAL: 5 7 Function call interrupts\nRES: 1 1 Rescheduling interrupts\nLOC: 1 1 Local timer interrupts\n")
	after := read(" CPU0 CPU1 CPU2\nCAL: 6 9 10 Function call interrupts\nRES: 1 2 3 Rescheduling interrupts\n" +
		"LOC: 9 9 9 Local timer interrupts\nTLB: 4 5 6 TLB shootdowns\nIWI: 0 0 0 IRQ work interrupts\nSTP: 1 0 0 CPU stop interrupts\nERR: 7\n")
	want := map[string][]int64{"CAL": {1, 0, 3}, "RES": {0, 0, 2}, "TLB": {0, 0, 0}, "IWI": {0, 0, 0}, "STP": {0, 0, 0}}
	if diff := cmp.Diff(want, since(before, after)); diff != "" {
		t.Error(diff)
	}
}

// broken is a tracefs of which one operation fails, counted from 1.
type broken struct {
	tracefs.Files
	left int
	at   string
}

var errBroken = errors.New("broken")

func (b *broken) fails(what, name string) error {
	if b.left--; b.left == 0 {
		b.at = what + " " + name
		return errBroken
	}
	return nil
}

func (b *broken) Read(name string) ([]byte, error) {
	if err := b.fails("read", name); err != nil {
		return nil, err
	}
	return b.Files.Read(name)
}

func (b *broken) List(name string) ([]string, error) {
	if err := b.fails("list", name); err != nil {
		return nil, err
	}
	return b.Files.List(name)
}

func (b *broken) Mkdir(name string) (bool, error) {
	if err := b.fails("mkdir", name); err != nil {
		return false, err
	}
	return b.Files.Mkdir(name)
}

func (b *broken) Lock(name string) (io.Closer, error) {
	if err := b.fails("lock", name); err != nil {
		return nil, err
	}
	return b.Files.Lock(name)
}

// TestStartFails: whichever operation fails at the start, the start fails with it, and an instance that was made is
// gone.
func TestStartFails(t *testing.T) {
	failures := 0
	for n := 1; ; n++ {
		w := newWorld(t)
		var said strings.Builder
		b := &broken{Files: tracefs.Trial(w.kernel, &said), left: n}
		w.config.Files = b
		m, err := Machine(w.config)(nil, zap.NewNop())
		if b.at == "" {
			m.Close()
			break
		}
		if err == nil { // whether others trace is only looked at
			if b.at != "read current_tracer" && b.at != "read set_event" {
				t.Errorf("%s: nothing is said", b.at)
			}
			m.Close()
			continue
		}
		failures++
		if !errors.Is(err, errBroken) || !strings.HasPrefix(err.Error(), "this machine's kernel: ") {
			t.Errorf("%s: %v", b.at, err)
		}
		if made := strings.Contains(said.String(), "mkdir"); made != strings.Contains(said.String(), "rmdir") {
			t.Errorf("%s: %s", b.at, &said)
		}
	}
	if failures < 5 {
		t.Errorf("%d failures were tried", failures)
	}
}

// TestStuck: an update that can neither be carried out nor taken back says both.
func TestStuck(t *testing.T) {
	w := newWorld(t)
	h := w.machine()
	if err := h.Restored(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Apply(t.Context(), []coordinator.Change{{Record: 0, Enable: true}, {Record: 1,
		Enable: true}}); err != nil {
		t.Fatal(err)
	}
	w.files.writes = 0
	_, err := h.Apply(t.Context(), []coordinator.Change{{Record: 0}, {Record: 1}})
	if !errors.Is(err, service.ErrStuck) && w.traced() == "" || err == nil {
		t.Errorf("%v, traces %q", err, w.traced())
	}
	w.files.writes = 1
	w.kernel["available_filter_functions"] = "a\nb\n__ftrace_invalid_address___1\nd\n"
	_, err = h.Apply(t.Context(), []coordinator.Change{{Record: 2, Enable: true}, {Record: 3, Enable: true}})
	w.files.writes = -1
	if !errors.Is(err, service.ErrStuck) || !strings.Contains(err.Error(),
		"the kernel did not take 1 of 2 functions: c [m]") ||
		!strings.Contains(err.Error(), "the state before could not be brought back: ") {
		t.Errorf("%v", err)
	}
}

// TestPlain: what a kernel that is served cannot tell, or do.
func TestPlain(t *testing.T) {
	w := newWorld(t)
	h := w.machine()
	tallies, err := h.Tallies(t.Context())
	if len(tallies) != 3 || err != nil || h.Violations() != nil {
		t.Errorf("%v, %v, %v", tallies, err, h.Violations())
	}
	h.SetPacing(cpus.Pacing(0))
	var field *service.FieldError
	if err := h.Plug(t.Context(), 1, true); !errors.As(err, &field) || field.Field != "id" ||
		field.Reason != "it is this machine's own: unplug it in "+w.config.CPUs {
		t.Error(err)
	}
	var out bytes.Buffer
	text, _ := os.ReadFile(w.config.Interrupts)
	if err := h.Interrupts(&out); err != nil || !bytes.Equal(out.Bytes(), text) {
		t.Errorf("%q, %v", &out, err)
	}
	if a, b := h.Now(), h.Now(); a <= 0 || b < a {
		t.Errorf("%d, then %d", a, b)
	}
	for i, want := range []string{"<nil>", "it is a trace event: want the ops event", "<nil>",
		"it is a function: want the ops function or graph"} {
		if err := h.Patchable([]string{"function", "graph", "event", "event"}[i], []int{3, 4, 4,
			3}[i]); fmt.Sprint(err) != want {
			t.Errorf("%d: %v, want %s", i, err, want)
		}
	}
	if err := os.Remove(w.config.Interrupts); err != nil {
		t.Fatal(err)
	}
	if err := h.Interrupts(io.Discard); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	var got []string
	for _, c := range h.CPUs() {
		got = append(got, fmt.Sprintf("%d %v %v %d", c.ID, c.Role, c.Online, len(c.Taken)))
	}
	if diff := cmp.Diff([]string{"0 busy false 0", "1 busy false 0", "2 isolated false 0"}, got); diff != "" {
		t.Error(diff)
	}
	if r, err := h.receipt(interrupts.Snapshot{}, 0); r != nil || err != nil {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := h.Apply(t.Context(), nil); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestRead: functions with their addresses, and behind them the events; each list that is missing is told.
func TestRead(t *testing.T) {
	const functions, addresses, events = "available_filter_functions", "available_filter_functions_addrs",
		"available_events"
	for i, c := range []struct {
		files map[string]string
		want  string
	}{
		{map[string]string{functions: "a\n", addresses: "ffffffff81000010 a\nffffffffc0000010 c [m]\n", events: "x:y\n"},
			"a c x/y"},
		{map[string]string{functions: "a\n", addresses: "ffffffff81000010 a\n", events: ""}, "a"},
		{map[string]string{addresses: "ffffffff81000010 a\n", events: "x:y\n"},
			"the kernel has no dynamic ftrace: it needs CONFIG_FUNCTION_TRACER and CONFIG_DYNAMIC_FTRACE"},
		{map[string]string{functions: "a\n", addresses: "ffffffff81000010 a\n"},
			"read the events that can be traced: open DIR/available_events: no such file or directory"},
		{map[string]string{functions: "no_such_function_of_any_kernel\n", events: ""}, "the functions of this kernel: "},
	} {
		dir := t.TempDir()
		for name, text := range c.files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r, err := Read(t.Context(), dir, tracefs.At(dir))
		got := ""
		if err != nil {
			got = strings.ReplaceAll(err.Error(), dir, "DIR")
		} else {
			for n := range r.All.Len() {
				got += r.All.Symbol(n) + " "
			}
			got = strings.TrimSpace(got)
		}
		if got != c.want && (c.want[len(c.want)-1] != ' ' || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%d: %s, want %s", i, got, c.want)
		}
	}
}

// TestFew: three names, and how many more.
func TestFew(t *testing.T) {
	fs := []tracefs.Function{{Name: "a"}, {Name: "b", Module: "m"}, {Name: "c"}, {Name: "d"}, {Name: "e"}}
	for n, want := range []string{"", "a", "a, b [m]", "a, b [m], c", "a, b [m], c, and 1 more",
		"a, b [m], c, and 2 more"} {
		if got := few(fs[:n]); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	if got := both(fs[:3], fs[1:]); len(got) != 2 || got[0] != fs[1] || got[1] != fs[2] {
		t.Errorf("%v", got)
	}
}

// TestHeld: what is held and not wanted, wanted and not held, gone, or all.
func TestHeld(t *testing.T) {
	fs := []tracefs.Function{{Name: "a"}, {Name: "b"}, {Name: "b", Nth: 1}, {Name: "c"}}
	p := &part{all: fs, want: map[int]bool{0: true, 1: true, 3: true}, gone: fs[3:]}
	for i, c := range []struct {
		held []tracefs.Function
		all  bool
		want bool
	}{
		{fs[:2], false, true}, {[]tracefs.Function{fs[2], fs[0]}, false, true}, {fs[:2], true, false}, {fs[:1], false, false},
		{fs[:3], false, false}, {fs, false, false}, {nil, false, false},
	} {
		if got := p.holds(c.held, c.all); got != c.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}
