// SPDX-License-Identifier: Apache-2.0

package tracefs

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestForeign: another tracer in our instance is switched off, in other instances it is named alone.
func TestForeign(t *testing.T) {
	k := kernel()
	k["current_tracer"], k["instances/other/current_tracer"] = "function_graph\n", "function\n"
	k["instances/quiet/current_tracer"] = "nop\n"
	i, files, _ := opened(t, k)
	files.instances["instances/x/"].tracer = "function_graph"
	if _, _, err := i.Held(); !errors.Is(err, ErrOther) || !strings.Contains(err.Error(), "function_graph") {
		t.Errorf("%v, want an error that names function_graph", err)
	}
	if _, err := i.Trace(nil); err != nil || files.instances["instances/x/"].tracer != tracerOff {
		t.Errorf("%v, and %s is on", err, files.instances["instances/x/"].tracer)
	}
	on, err := i.Foreign()
	if err != nil || !slices.Equal(on, []string{"other", "the top instance"}) {
		t.Errorf("%v, %v, want other and the top instance", on, err)
	}
}

// TestSettle: what keeps functions and events from being traced is told and put back, once.
func TestSettle(t *testing.T) {
	i, files, out := opened(t, kernel())
	out.Reset()
	in := files.instances["instances/x/"]
	if held, err := i.Settle(); err != nil || held != nil || out.String() != "" {
		t.Fatalf("%v %v %q, want nothing to do where the files are not there", held, err, out)
	}
	for _, s := range settings {
		in.others[s.file] = s.holds + "\n"
	}
	in.others["tracing_on"], in.others["set_ftrace_notrace"] = "0\n", "a\nb\n"
	held, err := i.Settle()
	if want := []string{"set_ftrace_notrace: a\nb", "tracing_on: 0"}; err != nil || !slices.Equal(held, want) {
		t.Errorf("%q %v, want %q", held, err, want)
	}
	if want := `"" > instances/x/set_ftrace_notrace` + "\n" + `"1" > instances/x/tracing_on` + "\n"; out.String() != want {
		t.Errorf("writes\n%s, want\n%s", out, want)
	}
}

// TestSettings: each of the files is looked at.
func TestSettings(t *testing.T) {
	for _, file := range []string{"set_ftrace_notrace", "set_ftrace_pid", "set_ftrace_notrace_pid", "set_event_pid",
		"set_event_notrace_pid", "tracing_on"} {
		i, files, _ := opened(t, kernel())
		files.instances["instances/x/"].others[file] = "7\n"
		if held, err := i.Settle(); err != nil || !slices.Equal(held, []string{file + ": 7"}) {
			t.Errorf("%s: %q %v", file, held, err)
		}
	}
}

// gone is a kernel in which a filter's functions go with their module once the tracer is on: the file is empty then.
type gone struct {
	*trial
	on bool
}

func (g *gone) Write(name, text string, trunc bool) error {
	g.on = g.on || text == functionTracer
	return g.trial.Write(name, text, trunc)
}

func (g *gone) Read(name string) ([]byte, error) {
	if g.on && strings.HasSuffix(name, filterFile) {
		return nil, nil
	}
	return g.trial.Read(name)
}

// TestGoneOnceOn: a tracer without a function is switched off, and the functions are told.
func TestGoneOnceOn(t *testing.T) {
	i, files, _ := opened(t, kernel())
	i.files = &gone{trial: files}
	missing, err := i.Trace(every[3:4])
	if err != nil || !slices.Equal(missing, every[3:4]) || files.instances["instances/x/"].tracer != tracerOff {
		t.Errorf("missing %v, %v, and %s is on", missing, err, files.instances["instances/x/"].tracer)
	}
}

// TestRelease: tracer and events are off before the instance goes.
func TestRelease(t *testing.T) {
	i, _, out := opened(t, kernel())
	if _, err := i.Events().Trace([]Function{{Name: "sched/sched_switch"}}); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := i.Release(); err != nil {
		t.Fatal(err)
	}
	if want := `"nop" > instances/x/current_tracer` + "\n" + `"0" > instances/x/events/sched/sched_switch/enable` +
		"\nrmdir instances/x\n"; out.String() != want {
		t.Errorf("writes\n%s, want\n%s", out, want)
	}
}

// TestGone: a filter whose functions went with their modules holds nothing, and is not one of all functions.
func TestGone(t *testing.T) {
	i := &Instance{files: static{"f/current_tracer": "function\n", "f/set_ftrace_filter": ""}, dir: "f/", tracer: functionTracer}
	if fs, all, err := i.Held(); len(fs) > 0 || all || err != nil {
		t.Errorf("%v %v %v, want nothing", fs, all, err)
	}
}
