// SPDX-License-Identifier: Apache-2.0

package tracefs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Trial is a tracefs that writes nothing: it prints each write, one line a file, and shows in
// its own instances what a kernel would make of it. All else is read from files.
func Trial(files Files, to io.Writer) Files {
	return &trial{Files: files, to: to, instances: map[string]*tried{}}
}

type trial struct {
	Files
	to        io.Writer
	instances map[string]*tried // by the folder
}

// tried is an instance of a trial.
type tried struct {
	filter map[int]bool // the lines that it holds
	tracer string
	events map[string]bool
	others map[string]string // what other files hold
}

func (t *trial) Mkdir(name string) (made bool, err error) {
	dir := name + "/"
	if t.instances[dir] != nil {
		return false, nil
	}
	t.instances[dir] = &tried{map[int]bool{}, tracerOff, map[string]bool{}, map[string]string{}}
	if _, err := t.Files.Read(dir + "current_tracer"); err == nil {
		return false, t.adopt(dir)
	}
	_, err = fmt.Fprintf(t.to, "mkdir %s\n", name)
	return true, err
}

// adopt begins with the state of an instance in the kernel.
func (t *trial) adopt(dir string) error {
	i := &Instance{files: t.Files, dir: dir}
	tracer, err := t.Files.Read(dir + "current_tracer")
	if err != nil {
		return err
	}
	in := t.instances[dir]
	in.tracer = strings.TrimSpace(string(tracer))
	at, err := i.lines()
	if err != nil {
		return err
	}
	now, _, err := i.Filter()
	if err != nil {
		return err
	}
	Number(now)
	for _, f := range now {
		in.filter[at[f]] = true
	}
	held, _, err := i.Events().Held()
	for _, f := range held {
		in.events[f.Name] = true
	}
	return err
}

func (t *trial) Remove(name string) error {
	delete(t.instances, name+"/")
	_, err := fmt.Fprintf(t.to, "rmdir %s\n", name)
	return err
}

// Open has nothing to hand out: nothing is traced.
func (t *trial) Open(string) (io.ReadCloser, error) { return silent{}, nil }

type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, ErrNothing }
func (silent) Close() error             { return nil }

func (t *trial) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// split parts a name into an instance and a file of it; the instance is nil where it is not ours.
func (t *trial) split(name string) (in *tried, file string) {
	for dir, in := range t.instances {
		if file, ok := strings.CutPrefix(name, dir); ok {
			return in, file
		}
	}
	return nil, name
}

func (t *trial) Write(name, text string, trunc bool) error {
	in, file := t.split(name)
	event, isEvent := strings.CutPrefix(strings.TrimSuffix(file, "/enable"), "events/")
	switch {
	case in != nil && file == "current_tracer":
		in.tracer = text
	case in != nil && file == filterFile:
		if err := t.filter(in, text, trunc); err != nil {
			return err
		}
	case in != nil && isEvent:
		names, err := EventNames(t.Files)
		if err == nil && !slices.Contains(names, event) {
			err = fs.ErrNotExist
		}
		if err != nil {
			return err
		}
		in.events[event] = text == "1"
	case in != nil:
		in.others[file] = text
	default:
		return fmt.Errorf("write %s: it is not the instance's", name)
	}
	sign := ">>"
	if trunc {
		sign = ">"
	}
	_, err := fmt.Fprintf(t.to, "%q %s %s\n", text, sign, name)
	return err
}

// filter does what the kernel does with lines of numbers; it refuses one that no function has.
func (t *trial) filter(in *tried, text string, trunc bool) error {
	functions, err := t.functions()
	if err != nil {
		return err
	}
	if trunc {
		clear(in.filter)
	}
	for word := range strings.FieldsSeq(text) {
		number, off := strings.CutPrefix(word, "!")
		line, err := strconv.Atoi(number)
		if err != nil || line < 1 || line > len(functions) {
			return fmt.Errorf("write %q to a filter: no function has that line", word)
		}
		if off {
			delete(in.filter, line)
		} else {
			in.filter[line] = true
		}
	}
	return nil
}

func (t *trial) functions() ([]string, error) {
	b, err := t.Files.Read("available_filter_functions")
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n"), err
}

func (t *trial) Read(name string) ([]byte, error) {
	in, file := t.split(name)
	switch {
	case in == nil:
		return t.Files.Read(name)
	case file == "current_tracer":
		return []byte(in.tracer + "\n"), nil
	case file == eventsFile:
		var b strings.Builder
		for _, event := range slices.Sorted(maps.Keys(in.events)) {
			if in.events[event] {
				b.WriteString(strings.Replace(event, "/", ":", 1) + "\n")
			}
		}
		return []byte(b.String()), nil
	case file == filterFile && len(in.filter) == 0:
		return []byte("#### all functions enabled ####\n"), nil
	case file == filterFile:
		functions, err := t.functions()
		if err != nil {
			return nil, err
		}
		var b strings.Builder
		for _, line := range slices.Sorted(maps.Keys(in.filter)) {
			if line <= len(functions) {
				b.WriteString(functions[line-1] + "\n")
			}
		}
		return []byte(b.String()), nil
	}
	if text, ok := in.others[file]; ok {
		return []byte(text), nil
	}
	b, err := t.Files.Read(name)
	if errors.Is(err, fs.ErrNotExist) && file == tracersFile { // an instance that is to be made can have what the top one can
		b, err = t.Files.Read(file)
	}
	return b, err
}
