// SPDX-License-Identifier: Apache-2.0

package tracefs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Instance is an instance of tracefs with the function tracer.
type Instance struct {
	files Files
	dir   string
}

var instanceName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$`)

// Open makes the instance of that name, unless it is there.
func Open(files Files, name string) (*Instance, error) {
	if !instanceName.MatchString(name) {
		return nil, fmt.Errorf("instance %q: want at most 63 letters, digits, and ._-", name)
	}
	have, err := files.Read("available_tracers")
	if err != nil {
		return nil, fmt.Errorf("read the tracers that the kernel has: %w", err)
	}
	if !containsWord(string(have), tracerOn) {
		return nil, fmt.Errorf("the kernel has no function tracer, only %s (it needs CONFIG_FUNCTION_TRACER and "+
			"CONFIG_DYNAMIC_FTRACE)", strings.TrimSpace(string(have)))
	}
	i := &Instance{files, "instances/" + name + "/"}
	if err := files.Mkdir("instances/" + name); err != nil {
		return nil, fmt.Errorf("make instance %s: %w", name, err)
	}
	return i, nil
}

// The texts of current_tracer.
const (
	tracerOn  = "function"
	tracerOff = "nop"
)

func containsWord(text, word string) bool {
	for f := range strings.FieldsSeq(text) {
		if f == word {
			return true
		}
	}
	return false
}

// On tells whether the instance traces, and with the tracer that is ours.
func (i *Instance) On() (bool, error) {
	b, err := i.files.Read(i.dir + "current_tracer")
	if err != nil {
		return false, fmt.Errorf("read the instance's tracer: %w", err)
	}
	switch name := strings.TrimSpace(string(b)); name {
	case tracerOn:
		return true, nil
	case tracerOff:
		return false, nil
	default:
		return false, fmt.Errorf("%scurrent_tracer: %q, which somebody else switched on: want %s or %s", i.dir, name, tracerOn, tracerOff)
	}
}

func (i *Instance) turn(tracer string) error {
	if err := i.files.Write(i.dir+"current_tracer", tracer, true); err != nil {
		return fmt.Errorf("switch the instance's tracer to %s: %w", tracer, err)
	}
	return nil
}

// Release switches the tracer off and removes the instance.
func (i *Instance) Release() error {
	err := i.turn(tracerOff)
	if err == nil {
		err = i.files.Remove(strings.TrimSuffix(i.dir, "/"))
	}
	if err != nil {
		return fmt.Errorf("release %s: %w", strings.TrimSuffix(i.dir, "/"), err)
	}
	return nil
}

// Foreign names the other instances with a tracer that is on, the top one by "the top instance".
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
		if dir == i.dir {
			continue
		}
		b, err := i.files.Read(dir + "current_tracer")
		if err == nil && strings.TrimSpace(string(b)) != tracerOff { // one that cannot be read has gone
			on = append(on, name)
		}
	}
	slices.Sort(on)
	return on, nil
}
