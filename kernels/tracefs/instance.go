// SPDX-License-Identifier: Apache-2.0

package tracefs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// Instance is an instance of tracefs with a tracer of functions.
type Instance struct {
	files       Files
	dir, tracer string
	made        bool // by Open
}

var instanceName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$`)

// Open makes the instance of that name for the function tracer, unless it is there.
func Open(files Files, name string) (i *Instance, err error) {
	if !instanceName.MatchString(name) {
		return nil, fmt.Errorf("instance %q: want at most 63 letters, digits, and ._-", name)
	}
	i = &Instance{files: files, dir: "instances/" + name + "/", tracer: functionTracer}
	i.made, err = i.Make()
	return i, err
}

// Make makes the instance where it is not there.
func (i *Instance) Make() (made bool, err error) {
	if made, err = i.files.Mkdir(i.path()); err != nil {
		return false, fmt.Errorf("make instance %s: %w", i.Name(), err)
	}
	return made, nil
}

// Abandon removes the instance if Open has made it: nothing was done with it.
func (i *Instance) Abandon() error {
	if !i.made {
		return nil
	}
	return i.files.Remove(i.path())
}

// Graph is the instance NAME.graph, for the function_graph tracer. It is made when it traces first. ok is false where
// the kernel lets the top instance alone have that tracer, as it does before Linux 6.11 (trace_ok_for_array,
// kernel/trace/trace.c).
func (i *Instance) Graph() (g *Instance, ok bool, err error) {
	have, err := i.files.Read(i.dir + tracersFile)
	if err != nil {
		return nil, false, fmt.Errorf("read the tracers that an instance can have: %w", err)
	}
	g = &Instance{files: i.files, dir: i.path() + ".graph/", tracer: graphTracer}
	return g, slices.Contains(strings.Fields(string(have)), graphTracer), nil
}

const (
	tracersFile = "available_tracers"
	filterFile  = "set_ftrace_filter"
	eventsFile  = "set_event"
)

// The texts of current_tracer.
const (
	functionTracer = "function"
	graphTracer    = "function_graph"
	tracerOff      = "nop"
)

// Name is the instance's name.
func (i *Instance) Name() string { return strings.TrimPrefix(i.path(), "instances/") }

func (i *Instance) path() string { return strings.TrimSuffix(i.dir, "/") }

// ErrOther is a tracer that somebody else switched on in the instance.
var ErrOther = errors.New("somebody else switched it on in the instance")

// On tells whether the instance traces. One that is not there does not; one that has another tracer fails with ErrOther.
func (i *Instance) On() (bool, error) {
	b, err := i.files.Read(i.dir + "current_tracer")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read the instance's tracer: %w", err)
	}
	switch name := strings.TrimSpace(string(b)); name {
	case i.tracer:
		return true, nil
	case tracerOff:
		return false, nil
	default:
		return false, fmt.Errorf("the tracer %s: %w", name, ErrOther)
	}
}

func (i *Instance) turn(tracer string) error {
	if err := i.files.Write(i.dir+"current_tracer", tracer, true); err != nil {
		return fmt.Errorf("switch the instance's tracer to %s: %w", tracer, err)
	}
	if tracer == graphTracer {
		return i.timed()
	}
	return nil
}

// graphTime has lines of function_graph begin with their time.
const graphTime = "options/funcgraph-abstime"

// timed switches it on where it is the instance's own. In older kernels all instances have one, which stays as it was.
func (i *Instance) timed() error {
	top, err := i.files.Read(graphTime)
	if err != nil || string(top) != "0\n" || i.files.Write(i.dir+graphTime, "1", true) != nil {
		return nil // a kernel without it
	}
	if top, err = i.files.Read(graphTime); err == nil && string(top) != "0\n" {
		err = i.files.Write(i.dir+graphTime, "0", true)
	}
	if err != nil {
		return fmt.Errorf("leave %s as it was: %w", graphTime, err)
	}
	return nil
}

// settings are files of an instance that can keep enabled functions and events from being traced. holds is their text when
// they do not, and write sets it (kernel/trace/ftrace.c, trace.c, trace_events.c). A kernel may lack some.
var settings = []struct{ file, holds, write string }{
	{"set_ftrace_notrace", "#### no functions disabled ####", ""},
	{"set_ftrace_pid", "no pid", ""},
	{"set_ftrace_notrace_pid", "no pid", ""},
	{"set_event_pid", "", ""},
	{"set_event_notrace_pid", "", ""},
	{"tracing_on", "1", "1"},
}

// Settle puts back what somebody else has set in such files, and tells what they held.
func (i *Instance) Settle() (held []string, err error) {
	for _, s := range settings {
		b, err := i.files.Read(i.dir + s.file)
		text := strings.TrimSpace(string(b))
		if errors.Is(err, fs.ErrNotExist) || err == nil && (text == "" || text == s.holds) {
			continue
		}
		if err == nil {
			err = i.files.Write(i.dir+s.file, s.write, true)
		}
		if err != nil {
			return held, fmt.Errorf("put the instance's %s right: %w", s.file, err)
		}
		held = append(held, s.file+": "+text)
	}
	return held, nil
}

// Pipe opens what the instance traces: reading takes it away. It has one reader at a time.
func (i *Instance) Pipe() (io.ReadCloser, error) { return i.files.Open(i.dir + "trace_pipe") }

// Release switches the tracer off and removes the instance, with its events. One that is not there is released.
func (i *Instance) Release() error {
	if _, err := i.files.Read(i.dir + "current_tracer"); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	err := i.turn(tracerOff)
	if err == nil {
		_, err = i.Events().Trace(nil) // while somebody reads the trace, the instance cannot be removed
	}
	if err == nil {
		err = i.files.Remove(i.path())
	}
	if err != nil {
		return fmt.Errorf("release %s: %w", i.path(), err)
	}
	return nil
}

// Busy tells whether a tracer or an event is on in an instance's folder, which ends with a slash.
func Busy(files Files, dir string) bool {
	tracer, err := files.Read(dir + "current_tracer")
	events, _ := files.Read(dir + eventsFile)
	return err == nil && (strings.TrimSpace(string(tracer)) != tracerOff || len(parseEvents(string(events))) > 0)
}

// Foreign names the other instances in which something is on, the top one by "the top instance".
func (i *Instance) Foreign() (on []string, err error) {
	others, err := i.files.List("instances")
	if err != nil {
		return nil, fmt.Errorf("list the instances of tracefs: %w", err)
	}
	dirs := map[string]string{"the top instance": ""}
	for _, name := range others {
		dirs[name] = "instances/" + name + "/"
	}
	for name, dir := range dirs {
		if dir != i.dir && dir != i.path()+".graph/" && Busy(i.files, dir) {
			on = append(on, name)
		}
	}
	slices.Sort(on)
	return on, nil
}
