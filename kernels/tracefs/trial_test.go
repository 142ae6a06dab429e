// SPDX-License-Identifier: Apache-2.0

package tracefs

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestTrialRefuses: what a kernel would not take is not taken, with the reason, and nothing of it is said to be
// written.
func TestTrialRefuses(t *testing.T) {
	_, files, out := opened(t, kernel())
	out.Reset()
	for _, c := range []struct{ name, text, want string }{
		{"instances/x/set_ftrace_filter", "0", `write "0" to a filter: no function has that line`},
		{"instances/x/set_ftrace_filter", "1\n7", `write "7" to a filter: no function has that line`},
		{"instances/x/set_ftrace_filter", "!7", `write "!7" to a filter: no function has that line`},
		{"instances/x/set_ftrace_filter", "vfs_read", `write "vfs_read" to a filter: no function has that line`},
		{"instances/x/events/no/such/enable", "1", "file does not exist"},
		{"current_tracer", "nop", "write current_tracer: it is not the instance's"},
		{"instances/y/current_tracer", "nop", "write instances/y/current_tracer: it is not the instance's"},
	} {
		if err := files.Write(c.name, c.text, false); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	if out.String() != "" {
		t.Errorf("writes %s", out)
	}
}

// TestTrialFiles: an instance is read back as it was written.
func TestTrialFiles(t *testing.T) {
	k := kernel()
	_, files, _ := opened(t, k)
	read := func(name, want string) {
		t.Helper()
		b, err := files.Read(name)
		got := string(b)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	const filter = "instances/x/set_ftrace_filter"
	read(filter, "#### all functions enabled ####\n")
	for _, c := range []struct {
		name, text string
		trunc      bool
		want       string
	}{
		{filter, "1\n6", false, "a\nd\n"},
		{filter, "2", false, "a\nb\nd\n"},
		{filter, "!2 !7", false, "a\nb\nd\n"},
		{filter, "!1", false, "d\n"},
		{filter, "5", true, "c [m]\n"},
		{filter, "", true, "#### all functions enabled ####\n"},
		{"instances/x/current_tracer", "function", true, "function\n"},
		{"instances/x/tracing_on", "0", true, "0"},
	} {
		_ = files.Write(c.name, c.text, c.trunc)
		if c.text == "!2 !7" { // what stands before the line that is refused has been carried out
			c.want = "a\nd\n"
		}
		read(c.name, c.want)
	}
	_ = files.Write(filter, "6", true)
	k["available_filter_functions"] = "a\nb\n"
	read(filter, "") // the function has gone with its module
	read("instances/x/available_tracers", kernel()["available_tracers"])
	read("instances/x/no", "open instances/x/no: file does not exist")
	read("available_tracers", kernel()["available_tracers"])
	delete(k, "available_filter_functions")
	read(filter, "open available_filter_functions: file does not exist")
}

// TestTrialOpens: nothing comes out of the pipe of an instance that is not there, and two may hold its lock.
func TestTrialOpens(t *testing.T) {
	_, files, out := opened(t, kernel())
	out.Reset()
	pipe, err := files.Open("instances/x/trace_pipe")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := pipe.Read(make([]byte, 8)); n != 0 || !errors.Is(err, ErrNothing) {
		t.Errorf("%d, %v", n, err)
	}
	if err := pipe.Close(); err != nil {
		t.Error(err)
	}
	for range 2 {
		if _, err := files.Lock("instances"); err != nil {
			t.Error(err)
		}
	}
	if made, err := files.Mkdir("instances/x"); made || err != nil || out.String() != "" {
		t.Errorf("made again: %v, %v, %s", made, err, out)
	}
	if err := files.Remove("instances/x"); err != nil || out.String() != "rmdir instances/x\n" {
		t.Errorf("%v, %s", err, out)
	}
	if made, err := files.Mkdir("instances/x"); !made || err != nil {
		t.Errorf("gone, and not made: %v, %v", made, err)
	}
}

// TestAdopted: a trial of an instance that is there begins with what it holds, and tells what of it cannot be read.
func TestAdopted(t *testing.T) {
	here := func() static {
		k := kernel()
		k["instances/x/current_tracer"], k["instances/x/set_event"] = "function\n", "sched:sched_switch\n"
		k["instances/x/set_ftrace_filter"] = "b\nc [m]\n"
		return k
	}
	i, files, out := opened(t, here())
	in := files.instances["instances/x/"]
	if got := fmt.Sprintln(in.tracer, in.filter,
		in.events); got != "function map[2:true 5:true] map[sched/sched_switch:true]\n" ||
		i.made || out.String() != "" {
		t.Errorf("%s, made %v, %s", got, i.made, out)
	}
	for _, gone := range []string{"available_filter_functions", "instances/x/set_ftrace_filter"} {
		k := here()
		delete(k, gone)
		if _, err := Open(Trial(k, io.Discard), "x"); err == nil || !strings.HasPrefix(err.Error(),
			"make instance x: read the ") ||
			!strings.HasSuffix(err.Error(), ": open "+gone+": file does not exist") {
			t.Errorf("%s: %v", gone, err)
		}
	}
	k := here()
	delete(k, "available_events")
	if names, err := EventNames(k); names != nil || err == nil ||
		err.Error() != "read the events that can be traced: open available_events: file does not exist" {
		t.Errorf("%v, %v", names, err)
	}
}
