// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/kernels/tracefs"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/service"
	"github.com/textpoke/textpoke/service/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kernel is the files of a tracefs that are read alone.
type kernel map[string]string

func (k kernel) Read(name string) ([]byte, error) {
	if text, ok := k[name]; ok {
		return []byte(text), nil
	}
	return nil, fs.ErrNotExist
}
func (kernel) List(string) ([]string, error)    { return nil, nil }
func (kernel) Write(string, string, bool) error { return errors.ErrUnsupported }
func (kernel) Mkdir(string) (bool, error)       { return false, errors.ErrUnsupported }
func (kernel) Remove(string) error              { return errors.ErrUnsupported }
func (kernel) Open(string) (io.ReadCloser, error) {
	return nil, errors.ErrUnsupported
}
func (kernel) Lock(string) (io.Closer, error) { return nil, errors.ErrUnsupported }

// failing refuses writes while it is told to.
type failing struct {
	tracefs.Files
	writes int // that succeed before the next fails; below 0: all
	locks  int
	during func() // is called by each write
}

func (f *failing) Lock(name string) (io.Closer, error) {
	f.locks++
	return f.Files.Lock(name)
}

func (f *failing) Write(name, text string, trunc bool) error {
	if f.writes == 0 {
		return errors.New("no space left on device")
	}
	f.writes--
	f.during()
	return f.Files.Write(name, text, trunc)
}

// world is a kernel of four functions with a directory for the journal.
type world struct {
	t      *testing.T
	kernel kernel
	files  *failing
	config Config
	data   string
	log    *observer.ObservedLogs
}

func newWorld(t *testing.T) *world {
	dir := t.TempDir()
	put := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	k := kernel{"available_tracers": "function_graph function nop\n", "available_filter_functions": "a\nb\nc [m]\nd\n",
		"available_events": "sched:sched_switch\nirq:softirq_entry\n"}
	table, err := records.Open(t.Context(), put("available_filter_functions_addrs", "ffffffff81000010 a\nffffffff81000020 b\n"+
		"ffffffffc0000010 c [m]\nffffffff81000030 d\n"), records.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := join(table, []string{"irq/softirq_entry", "sched/sched_switch"})
	if err != nil {
		t.Fatal(err)
	}
	put("possible", "0-2\n")
	put("isolated", "2\n")
	w := &world{t: t, kernel: k, files: &failing{tracefs.Trial(k, io.Discard), -1, 0, func() {}}, data: t.TempDir()}
	w.config = Config{Enabled: put("ftrace_enabled", "1\n"), Files: w.files, Instance: "x", Records: all, CPUs: dir, Interrupts: put("interrupts",
		"      CPU0 CPU1 CPU2\nLOC: 7 7 7 Local timer interrupts\nCAL: 5 6 7 Function call interrupts\n")}
	return w
}

// start starts a service on the kernel; the function ends it as a kill does.
func (w *world) start() (*service.Service, func()) {
	w.t.Helper()
	st, err := journal.Open(w.t.Context(), w.data, service.Identity(w.config.Records.All))
	if err != nil {
		w.t.Fatal(err)
	}
	core, seen := observer.New(zap.InfoLevel)
	w.log = seen
	s, err := service.Start(w.t.Context(), service.Config{Table: w.config.Records.All, Machine: Machine(w.config), Ops: Ops(),
		Store: st, Log: zap.New(core)})
	if err != nil {
		w.t.Fatal(errors.Join(err, st.Close()))
	}
	return s, func() {
		if err := errors.Join(s.Close(), st.Close()); err != nil {
			w.t.Error(err)
		}
	}
}

// traced is what the instance traces.
func (w *world) traced() string {
	w.t.Helper()
	tracer, err := w.files.Read("instances/x/current_tracer")
	if err != nil {
		w.t.Fatal(err)
	}
	if string(tracer) == "nop\n" {
		return ""
	}
	filter, err := w.files.Read("instances/x/set_ftrace_filter")
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.Join(strings.Split(strings.TrimSpace(string(filter)), "\n"), " ")
}

func (w *world) do(s *service.Service, client string, enable bool, names ...string) service.Update {
	w.t.Helper()
	return w.with(s, client, "function", enable, names...)
}

func (w *world) with(s *service.Service, client, ops string, enable bool, names ...string) service.Update {
	w.t.Helper()
	u, err := s.Submit(w.t.Context(), service.Request{Client: client, Ops: ops, Enable: enable, Records: names})
	if err == nil {
		u, err = s.Wait(w.t.Context(), u.ID)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return u
}

// TestMerged: the instance traces what clients want together, nothing once none does, and a
// later server takes over what an earlier one left.
func TestMerged(t *testing.T) {
	w := newWorld(t)
	s, kill := w.start()
	want := func(traced string) {
		t.Helper()
		if got := w.traced(); got != traced {
			t.Errorf("traces %q, want %q", got, traced)
		}
	}
	u := w.do(s, "one", true, "a", "d")
	want("a d")
	if r := u.Receipt; r == nil || r.Row != "CAL" || r.Forecast != nil || !slices.Equal(r.Taken, []journal.Taken{{CPU: 0}, {CPU: 1}, {CPU: 2}}) {
		t.Errorf("receipt %+v, want CAL, 0 of each CPU and no forecast", r)
	}
	if kept, err := s.Update(t.Context(), u.ID); err != nil || kept.Receipt == nil || !slices.Equal(kept.Receipt.Taken, u.Receipt.Taken) {
		t.Errorf("%+v, %v: the journal has another receipt", kept.Receipt, err)
	}
	w.do(s, "two", true, "a", "c")
	want("a c [m] d")
	w.do(s, "one", false, "a", "d")
	want("a c [m]")
	kill()
	want("a c [m]")
	if err := w.files.Write("instances/x/set_ftrace_filter", "2\n!1\n", false); err != nil { // somebody else
		t.Fatal(err)
	}
	s, kill = w.start()
	want("a c [m]")
	w.do(s, "two", false, "a", "c")
	want("")
	kill()
	if err := errors.Join(w.files.Write("instances/x/set_ftrace_filter", "2\n", false),
		w.files.Write("instances/x/current_tracer", "function", true)); err != nil {
		t.Fatal(err)
	}
	_, kill = w.start()
	want("") // nobody wants it
	kill()
}

// TestReceiptOthers: what the patcher's CPU took is others'; without a forecast nothing is known of the other CPUs.
func TestReceiptOthers(t *testing.T) {
	w := newWorld(t)
	s, kill := w.start()
	defer kill()
	w.files.during = func() {
		if err := os.WriteFile(w.config.Interrupts, []byte("      CPU0 CPU1 CPU2\nCAL: 7 9 11 Function call interrupts\n"), 0o600); err != nil {
			t.Error(err)
		}
	}
	r := w.do(s, "one", true, "a").Receipt
	want := []journal.Taken{{CPU: 0, Interrupts: 2}, {CPU: 1, Interrupts: 3}, {CPU: 2, Interrupts: 4}}
	if r.Patcher != nil && *r.Patcher < len(want) {
		want[*r.Patcher].Others = want[*r.Patcher].Interrupts
	}
	if !slices.Equal(r.Taken, want) || r.Missed() {
		t.Errorf("%+v, missed %v; want %+v", r, r.Missed(), want)
	}
	if cpu := thisCPU(); runtime.GOOS == "linux" && cpu < 0 {
		t.Errorf("this thread is on CPU %d", cpu)
	}
}

// TestTakenWhileStopping: an update that is under way when the server is told to stop gets its receipt, though files of
// requests are read no more.
func TestTakenWhileStopping(t *testing.T) {
	w := newWorld(t)
	s, kill := w.start()
	defer kill()
	ctx, stop := context.WithCancel(t.Context())
	inputs.Until(ctx)
	defer inputs.Until(context.Background())
	stop()
	if u := w.do(s, "one", true, "a"); u.State != journal.Live || u.Receipt == nil || len(u.Receipt.Taken) != 3 {
		t.Errorf("%s %s, receipt %+v", u.State, u.Error, u.Receipt)
	}
}

// TestOthers: an update sends no more than its forecast, where that has an end, and none to the patcher's CPU.
func TestOthers(t *testing.T) {
	upTo, orMore := &journal.Forecast{Most: 5}, &journal.Forecast{Most: 5, OrMore: true}
	for _, c := range []struct {
		taken    journal.Taken
		forecast *journal.Forecast
		want     int64
	}{
		{journal.Taken{CPU: 1, Interrupts: 8}, upTo, 8},
		{journal.Taken{CPU: 2, Interrupts: 8}, upTo, 3},
		{journal.Taken{CPU: 2, Interrupts: 4}, upTo, 0},
		{journal.Taken{CPU: 2, Interrupts: 8}, orMore, 0},
		{journal.Taken{CPU: 2, Interrupts: 8}, nil, 0},
	} {
		if got := others(c.taken, 1, c.forecast); got != c.want {
			t.Errorf("%+v of %+v: %d, want %d", c.taken, c.forecast, got, c.want)
		}
	}
}

// TestNotTaken: a function that went with its module ends the update that wants it, and nothing
// of that update stays; clients who wanted it before keep the others.
func TestNotTaken(t *testing.T) {
	w := newWorld(t)
	s, kill := w.start()
	defer kill()
	w.kernel["available_filter_functions"] = "a\nb\n__ftrace_invalid_address___1\nd\n"
	u := w.do(s, "one", true, "b", "c")
	if want := "the kernel did not take 1 of 2 functions: c [m]"; u.State != journal.Failed || u.Error != want {
		t.Errorf("%s, %q; want failed, %q", u.State, u.Error, want)
	}
	if got := w.traced(); got != "" {
		t.Errorf("traces %q, want nothing", got)
	}
	if u := w.do(s, "one", true, "b"); u.State != journal.Live {
		t.Errorf("%+v, want it live", u)
	}
}

// TestTakenBack: a write that fails ends the update and leaves what was.
func TestTakenBack(t *testing.T) {
	w := newWorld(t)
	s, kill := w.start()
	defer kill()
	w.do(s, "one", true, "a")
	w.files.writes = 1
	if u := w.do(s, "one", true, "b"); u.State != journal.Live {
		t.Fatalf("%+v, want it live with a single write", u)
	}
	w.files.writes = 0
	u, err := s.Submit(t.Context(), service.Request{Client: "one", Ops: "function", Enable: true, Records: []string{"d"}})
	if err != nil {
		t.Fatal(err)
	}
	u, err = s.Wait(t.Context(), u.ID)
	if err == nil && u.State != journal.Failed {
		t.Errorf("%+v, %v, want it failed", u, err)
	}
	if got := w.traced(); got != "a b" {
		t.Errorf("traces %q, want a b", got)
	}
	w.files.writes = -1
}

// TestAgree: what somebody else does to the instance is told and put right.
func TestAgree(t *testing.T) {
	w := newWorld(t)
	core, seen := observer.New(zap.WarnLevel)
	m, err := Machine(w.config)(nil, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	h := m.(*Host)
	h.parts[functionOps].want = map[int]bool{0: true, 3: true}
	if err := h.Agree(t.Context()); err != nil || w.traced() != "a d" {
		t.Errorf("%v: traces %q", err, w.traced())
	}
	if err := w.files.Write("instances/x/current_tracer", "nop", true); err != nil {
		t.Fatal(err)
	}
	if err := h.Agree(t.Context()); err != nil || w.traced() != "a d" {
		t.Errorf("%v: traces %q", err, w.traced())
	}
	if n := seen.FilterField(zap.String("ops", "function")).Len(); n != 2 {
		t.Errorf("%d warnings name the ops, want 2", n)
	}
	if err := h.Agree(t.Context()); err != nil || seen.Len() != 2 {
		t.Errorf("%v: %d warnings, want 2: of nothing traced, and of the tracer", err, seen.Len())
	}
}

// TestAgreeOnOthers: one function in another's place is put right, too; of a module's function that went the
// log tells once, and it is traced again when the module is back.
func TestAgreeOnOthers(t *testing.T) {
	w := newWorld(t)
	core, seen := observer.New(zap.WarnLevel)
	m, err := Machine(w.config)(nil, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	h := m.(*Host)
	agree := func(want string, warnings int) {
		t.Helper()
		if err := h.Agree(t.Context()); err != nil || w.traced() != want || seen.Len() != warnings {
			t.Errorf("%v: traces %q and warns %d times, want %q and %d", err, w.traced(), seen.Len(), want, warnings)
		}
	}
	h.parts[functionOps].want = map[int]bool{0: true, 3: true}
	agree("a d", 1)
	if err := w.files.Write("instances/x/set_ftrace_filter", "2\n!4\n", false); err != nil {
		t.Fatal(err)
	}
	agree("a d", 2)
	h.parts[functionOps].want[2] = true
	agree("a c [m] d", 3)
	functions := w.kernel["available_filter_functions"]
	w.kernel["available_filter_functions"] = "a\nb\n__ftrace_invalid_address___1\nd\n"
	if err := w.files.Write("instances/x/set_ftrace_filter", "!3\n", false); err != nil {
		t.Fatal(err)
	}
	agree("a d", 5) // changed, and what is lost
	lost := seen.FilterField(zap.String("such as", "c [m]")).FilterField(zap.String("ops", "function"))
	if lost.FilterField(zap.Int("functions", 1)).Len() != 1 {
		t.Errorf("%d warnings tell of c", lost.Len())
	}
	agree("a d", 5)
	w.kernel["available_filter_functions"] = functions
	agree("a c [m] d", 5)
	agree("a c [m] d", 5)
}
