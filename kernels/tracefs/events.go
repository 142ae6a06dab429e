// SPDX-License-Identifier: Apache-2.0

package tracefs

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
)

// Events are the trace events of an instance, each with a switch of its own (Documentation/trace/events.rst).
type Events struct{ of *Instance }

// Events are those of the instance.
func (i *Instance) Events() *Events { return &Events{i} }

// EventNames are all events that can be switched, sorted. The kernel writes GROUP:NAME.
func EventNames(files Files) (names []string, err error) {
	b, err := files.Read("available_events")
	if err != nil {
		return nil, fmt.Errorf("read the events that can be traced: %w", err)
	}
	names = spelling.Each(parseEvents(string(b)), func(f Function) string { return f.Name })
	slices.Sort(names)
	return slices.Compact(names), nil
}

// parseEvents reads lines such as sched:sched_switch. Events of modules that are still to come stand behind :mod:.
func parseEvents(text string) (fs []Function) {
	for line := range strings.Lines(text) {
		group, name, ok := strings.Cut(strings.TrimSpace(line), ":")
		if ok && group != "" && name != "" && !strings.ContainsAny(name, ": ") {
			fs = append(fs, Function{Name: group + "/" + name})
		}
	}
	return fs
}

// Held is the events that are on; all is never true.
func (e *Events) Held() (held []Function, all bool, err error) {
	b, err := e.of.files.Read(e.of.dir + eventsFile)
	if errors.Is(err, fs.ErrNotExist) { // no instance, no events
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read the instance's events: %w", err)
	}
	return parseEvents(string(b)), false, nil
}

// Trace has these events on and no others, and tells those that the kernel does not have any more. Each that changes is
// one write.
func (e *Events) Trace(want []Function) (missing []Function, err error) {
	held, _, err := e.Held()
	if err == nil && len(want) > 0 {
		_, err = e.of.Make()
	}
	if err != nil {
		return nil, err
	}
	for _, f := range want {
		if slices.Contains(held, f) {
			continue
		}
		switch err := e.turn(f, "1"); {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, f)
		case err != nil:
			return missing, err
		}
	}
	for _, f := range held {
		if !slices.Contains(want, f) {
			if err := e.turn(f, "0"); err != nil {
				return missing, err
			}
		}
	}
	return missing, nil
}

func (e *Events) turn(f Function, on string) error {
	if err := e.of.files.Write(e.of.dir+"events/"+f.Name+"/enable", on, true); err != nil {
		return fmt.Errorf("switch event %s: %w", f.Name, err)
	}
	return nil
}
