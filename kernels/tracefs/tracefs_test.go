// SPDX-License-Identifier: Apache-2.0

package tracefs

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// static is the files of a tracefs that was read once.
type static map[string]string

func (s static) Read(name string) ([]byte, error) {
	if text, ok := s[name]; ok {
		return []byte(text), nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}
func (s static) List(string) (names []string, err error) {
	for name := range s {
		if parts := strings.Split(name, "/"); parts[0] == "instances" {
			names = append(names, parts[1])
		}
	}
	return names, nil
}
func (s static) Write(string, string, bool) error { return errors.New("read only") }
func (s static) Mkdir(string) (bool, error)       { return false, errors.New("read only") }
func (s static) Open(string) (io.ReadCloser, error) {
	return nil, errors.New("read only")
}
func (s static) Remove(string) error            { return errors.New("read only") }
func (s static) Lock(string) (io.Closer, error) { return nil, errors.New("read only") }

// kernel has functions of one name, one of a module, and a weak one that lost.
func kernel() static {
	return static{
		"available_tracers":          "function_graph function nop\n",
		"available_filter_functions": "a\nb\n__ftrace_invalid_address___40\nb\nc [m]\nd\n",
		"available_events":           "sched:sched_switch\nirq:softirq_entry\n*:mod:later\n",
	}
}

var every = []Function{{"a", "", 0}, {"b", "", 0}, {"b", "", 1}, {"c", "m", 0}, {"d", "", 0}}

// opened is an instance of a trial.
func opened(t interface{ Fatal(...any) }, k static) (*Instance, *trial, *strings.Builder) {
	var out strings.Builder
	files := Trial(k, &out).(*trial)
	i, err := Open(files, "x")
	if err != nil {
		t.Fatal(err)
	}
	return i, files, &out
}

// TestOneWrite: each change is written with one opening, by numbers of lines, while something
// stays; a filter is never empty while the tracer is on.
func TestOneWrite(t *testing.T) {
	i, _, out := opened(t, kernel())
	for _, step := range []struct {
		want []int
		says string
	}{
		{[]int{0, 2}, "mkdir instances/x\n" + `"1\n4\n" >> instances/x/set_ftrace_filter` + "\n" +
			`"function" > instances/x/current_tracer` + "\n"},
		{[]int{0}, `"!2\n!4\n" >> instances/x/set_ftrace_filter` + "\n"},
		{[]int{0, 3}, `"5\n" >> instances/x/set_ftrace_filter` + "\n"},
		{[]int{4}, `"6\n" >> instances/x/set_ftrace_filter` + "\n" + `"!1\n!5\n" >> instances/x/set_ftrace_filter` + "\n"},
		{[]int{4}, ""},
		{nil, `"nop" > instances/x/current_tracer` + "\n"},
		{nil, ""},
		{[]int{1, 2}, `"2\n4\n!6\n" >> instances/x/set_ftrace_filter` + "\n" + `"function" > instances/x/current_tracer` + "\n"},
	} {
		var want []Function
		for _, n := range step.want {
			want = append(want, every[n])
		}
		missing, err := i.Trace(want)
		if err != nil || missing != nil {
			t.Fatalf("%v: missing %v, %v", want, missing, err)
		}
		if out.String() != step.says {
			t.Errorf("%v: writes\n%s, want\n%s", want, out, step.says)
		}
		out.Reset()
	}
}

// watched fails where a filter is empty while its tracer is on.
type watched struct {
	*trial
	t interface{ Errorf(string, ...any) }
}

func (w watched) Write(name, text string, trunc bool) error {
	err := w.trial.Write(name, text, trunc)
	for _, in := range w.instances {
		if in.tracer == functionTracer && len(in.filter) == 0 {
			w.t.Errorf("after %q to %s all functions are traced", text, name)
		}
	}
	return err
}

// TestNeverAll: whatever is wanted after whatever, exactly that is traced in the end, and never
// every function on the way. Functions go with their modules; the kernel does not take those.
func TestNeverAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := kernel()
		i, files, _ := opened(t, k)
		i.files = watched{files, t}
		for range 8 {
			here := every
			if rapid.Bool().Draw(t, "module is gone") {
				here = slices.DeleteFunc(slices.Clone(every), func(f Function) bool { return f.Module != "" })
				k["available_filter_functions"] = "a\nb\n__ftrace_invalid_address___40\nb\n"
				here = here[:3]
				in := files.instances["instances/x/"]
				in.filter = keepUpTo(in.filter, 4)
				if len(in.filter) == 0 {
					in.tracer = tracerOff // as a client of the kernel would see it: nothing is left
				}
			} else {
				k["available_filter_functions"] = kernel()["available_filter_functions"]
			}
			want := rapid.SliceOfDistinct(rapid.SampledFrom(every), func(f Function) Function { return f }).Draw(t, "want")
			missing, err := i.Trace(want)
			if err != nil {
				t.Fatal(err)
			}
			var held []Function
			for _, f := range want {
				if slices.Contains(here, f) {
					held = append(held, f)
				} else if !slices.Contains(missing, f) {
					t.Errorf("%v is not there, and not told", f)
				}
			}
			on, err := i.On()
			if err != nil || on != (len(held) > 0) {
				t.Fatalf("on: %v, %v; want %v", on, err, held)
			}
			if !on {
				continue
			}
			lines, err := i.lines()
			if err != nil {
				t.Fatal(err)
			}
			if len(files.instances["instances/x/"].filter) != len(held) {
				t.Errorf("traces lines %v, want %v", files.instances["instances/x/"].filter, held)
			}
			for _, f := range held {
				if !files.instances["instances/x/"].filter[lines[f]] {
					t.Errorf("%v is not traced", f)
				}
			}
		}
	})
}

// unloading is a module that goes just before the tracer is switched on.
type unloading struct{ *trial }

func (u unloading) Write(name, text string, trunc bool) error {
	if text == functionTracer {
		clear(u.instances["instances/x/"].filter)
	}
	return u.trial.Write(name, text, trunc)
}

// TestEmptiedBeforeOn: a filter that becomes empty between its reading and the tracer's start is not traced with.
func TestEmptiedBeforeOn(t *testing.T) {
	i, files, _ := opened(t, kernel())
	i.files = unloading{files}
	missing, err := i.Trace(every[3:4])
	if err != nil || !slices.Equal(missing, every[3:4]) {
		t.Errorf("missing %v, %v, want %v", missing, err, every[3:4])
	}
	if on, err := i.On(); on || err != nil {
		t.Errorf("on: %v, %v, with an empty filter", on, err)
	}
}

// keepUpTo forgets lines behind the last.
func keepUpTo(lines map[int]bool, last int) map[int]bool {
	kept := map[int]bool{}
	for line := range lines {
		if line <= last {
			kept[line] = true
		}
	}
	return kept
}

// TestRefused: what cannot be traced with is refused in one line.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		files static
		name  string
		says  string
	}{
		{kernel(), "../events", `instance "../events": want at most 63 letters, digits, and ._-`},
		{kernel(), "", `instance "": want at most 63 letters, digits, and ._-`},
	} {
		if _, err := Open(Trial(c.files, io.Discard), c.name); err == nil || err.Error() != c.says {
			t.Errorf("%v, want %s", err, c.says)
		}
	}
}

// shifting is a kernel of which a module goes just before a filter is written.
type shifting struct {
	*trial
	goes func()
}

func (s *shifting) Write(name, text string, trunc bool) error {
	if goes := s.goes; goes != nil {
		s.goes = nil
		goes()
	}
	return s.trial.Write(name, text, trunc)
}

// TestLinesShift: lines that were read before a module went name other functions, and none of
// those is traced in the end.
func TestLinesShift(t *testing.T) {
	k := kernel()
	k["available_filter_functions"] = "a\nc [m]\nd\n"
	i, files, _ := opened(t, k)
	i.files = &shifting{files, func() { k["available_filter_functions"] = "a\nd\n" }}
	missing, err := i.Trace([]Function{{"a", "", 0}, {"c", "m", 0}})
	if err != nil || !slices.Equal(missing, []Function{{"c", "m", 0}}) {
		t.Errorf("missing %v, %v; want c", missing, err)
	}
	if held, _, err := i.Filter(); err != nil || !slices.Equal(held, []Function{{"a", "", 0}}) {
		t.Errorf("traces %v, %v; want a", held, err)
	}
}

// FuzzFilter: whatever a filter's file holds, reading it ends.
func FuzzFilter(f *testing.F) {
	f.Add("vfs_read\nvfs_write [ext4]\n#### all functions enabled ####\n")
	f.Add("a:stacktrace:unlimited\n\n [x]\n")
	f.Fuzz(func(t *testing.T, text string) {
		i := &Instance{files: static{"f/set_ftrace_filter": text}, dir: "f/"}
		fs, all, err := i.Filter()
		if err != nil || all && !strings.Contains(text, "#### all functions") {
			t.Errorf("%v %v %v", fs, all, err)
		}
		for _, fn := range fs {
			if fn.Name == "" {
				t.Errorf("%q: a function without a name", text)
			}
		}
	})
}

// TestEvents: each event that changes is one write; one that the kernel does not have is told; what somebody else
// switched is seen.
func TestEvents(t *testing.T) {
	k := kernel()
	if names, err := EventNames(k); err != nil || !slices.Equal(names, []string{"irq/softirq_entry", "sched/sched_switch"}) {
		t.Errorf("%v, %v", names, err)
	}
	i, _, out := opened(t, k)
	e := i.Events()
	event := func(names ...string) (fs []Function) {
		for _, n := range names {
			fs = append(fs, Function{Name: n})
		}
		return fs
	}
	for _, step := range []struct {
		want, missing, held []Function
		says                string
	}{
		{event("sched/sched_switch", "no/such"), event("no/such"), event("sched/sched_switch"),
			"mkdir instances/x\n" + `"1" > instances/x/events/sched/sched_switch/enable` + "\n"},
		{event("irq/softirq_entry"), nil, event("irq/softirq_entry"), `"1" > instances/x/events/irq/softirq_entry/enable` + "\n" +
			`"0" > instances/x/events/sched/sched_switch/enable` + "\n"},
		{event("irq/softirq_entry"), nil, event("irq/softirq_entry"), ""},
		{nil, nil, nil, `"0" > instances/x/events/irq/softirq_entry/enable` + "\n"},
	} {
		missing, err := e.Trace(step.want)
		held, all, bad := e.Held()
		if err != nil || bad != nil || all || !slices.Equal(missing, step.missing) || !slices.Equal(held, step.held) {
			t.Errorf("%v: missing %v, holds %v, %v %v", step.want, missing, held, err, bad)
		}
		if out.String() != step.says {
			t.Errorf("%v: writes\n%s, want\n%s", step.want, out, step.says)
		}
		out.Reset()
	}
}

// TestGraph: the function_graph tracer has an instance of its own, made when it traces first, where the kernel lets
// instances have it.
func TestGraph(t *testing.T) {
	k := kernel()
	i, _, out := opened(t, k)
	out.Reset()
	g, ok, err := i.Graph()
	if err != nil || !ok || out.String() != "" {
		t.Fatalf("%v %v %q", ok, err, out)
	}
	if _, err := g.Trace(every[:1]); err != nil {
		t.Fatal(err)
	}
	if want := "mkdir instances/x.graph\n" + `"1\n" >> instances/x.graph/set_ftrace_filter` + "\n" +
		`"function_graph" > instances/x.graph/current_tracer` + "\n"; out.String() != want {
		t.Errorf("writes\n%s, want\n%s", out, want)
	}
	if held, all, err := g.Held(); err != nil || all || !slices.Equal(held, every[:1]) {
		t.Errorf("holds %v %v %v", held, all, err)
	}
	k["instances/y/current_tracer"], k["instances/y/"+tracersFile] = "nop\n", "function nop\n"
	k["instances/y/"+filterFile] = "#### all functions enabled ####\n"
	older, err := Open(Trial(k, io.Discard), "y")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := older.Graph(); ok || err != nil {
		t.Errorf("%v %v, though its instances cannot have function_graph", ok, err)
	}
}

// oneOption is a tracefs whose instances share an option, as those of older kernels do.
type oneOption struct {
	*trial
	is string
}

func (o *oneOption) Read(name string) ([]byte, error) {
	if name == graphTime {
		return []byte(o.is + "\n"), nil
	}
	return o.trial.Read(name)
}

func (o *oneOption) Write(name, text string, trunc bool) error {
	if strings.HasSuffix(name, graphTime) {
		o.is = text
	}
	return o.trial.Write(name, text, trunc)
}

// TestGraphTime: lines of the graph get their time where that is an option of the instance; one that all instances share is
// left as it was.
func TestGraphTime(t *testing.T) {
	k := kernel()
	k[graphTime] = "0\n"
	var out strings.Builder
	own := Trial(k, &out)
	shared := &oneOption{trial: Trial(k, io.Discard).(*trial), is: "0"}
	on := &oneOption{trial: Trial(k, &out).(*trial), is: "1"}
	for _, files := range []Files{own, shared, on} {
		i, err := Open(files, "x")
		if err != nil {
			t.Fatal(err)
		}
		g, _, err := i.Graph()
		if err == nil {
			_, err = g.Trace(every[:1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := `"1" > instances/x.graph/` + graphTime; strings.Count(out.String(), want) != 1 {
		t.Errorf("writes\n%s, want %s once", out.String(), want)
	}
	if shared.is != "0" || on.is != "1" {
		t.Errorf("the option that is shared is %s and %s, was 0 and 1", shared.is, on.is)
	}
}
