// SPDX-License-Identifier: Apache-2.0

package tracefs

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Trial is a tracefs that writes nothing: it prints each write, one line a file, and shows in
// its own instances what a kernel would make of it. All else is read from files.
func Trial(files Files, to io.Writer) Files {
	return &trial{Files: files, to: to, filters: map[string]map[int]bool{}, tracers: map[string]string{}}
}

type trial struct {
	Files
	to      io.Writer
	filters map[string]map[int]bool // by the instance's folder, the lines that its filter holds
	tracers map[string]string
}

func (t *trial) Mkdir(name string) error {
	dir := name + "/"
	if t.filters[dir] == nil {
		t.filters[dir], t.tracers[dir] = map[int]bool{}, tracerOff
	}
	if _, err := t.Files.Read(dir + "current_tracer"); err == nil {
		return t.adopt(dir)
	}
	_, err := fmt.Fprintf(t.to, "mkdir %s\n", name)
	return err
}

// adopt begins with what an instance of the kernel's holds.
func (t *trial) adopt(dir string) error {
	i := &Instance{files: t.Files, dir: dir}
	tracer, err := t.Files.Read(dir + "current_tracer")
	if err != nil {
		return err
	}
	t.tracers[dir] = strings.TrimSpace(string(tracer))
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
		t.filters[dir][at[f]] = true
	}
	return nil
}

func (t *trial) Remove(name string) error {
	delete(t.filters, name+"/")
	delete(t.tracers, name+"/")
	_, err := fmt.Fprintf(t.to, "rmdir %s\n", name)
	return err
}

func (t *trial) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// split parts a name into an instance's folder and a file of it.
func (t *trial) split(name string) (dir, file string, ours bool) {
	at := strings.LastIndexByte(name, '/') + 1
	dir, file = name[:at], name[at:]
	_, ours = t.filters[dir]
	return dir, file, ours
}

func (t *trial) Write(name, text string, trunc bool) error {
	dir, file, ours := t.split(name)
	switch {
	case ours && file == "current_tracer":
		t.tracers[dir] = text
	case ours && file == filterFile:
		if err := t.filter(dir, text, trunc); err != nil {
			return err
		}
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
func (t *trial) filter(dir, text string, trunc bool) error {
	functions, err := t.functions()
	if err != nil {
		return err
	}
	if trunc {
		clear(t.filters[dir])
	}
	for word := range strings.FieldsSeq(text) {
		number, off := strings.CutPrefix(word, "!")
		line, err := strconv.Atoi(number)
		if err != nil || line < 1 || line > len(functions) {
			return fmt.Errorf("write %q to a filter: no function has that line", word)
		}
		if off {
			delete(t.filters[dir], line)
		} else {
			t.filters[dir][line] = true
		}
	}
	return nil
}

func (t *trial) functions() ([]string, error) {
	b, err := t.Files.Read("available_filter_functions")
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n"), err
}

func (t *trial) Read(name string) ([]byte, error) {
	dir, file, ours := t.split(name)
	switch {
	case ours && file == "current_tracer":
		return []byte(t.tracers[dir] + "\n"), nil
	case ours && file == filterFile && len(t.filters[dir]) == 0:
		return []byte("#### all functions enabled ####\n"), nil
	case ours && file == filterFile:
		functions, err := t.functions()
		if err != nil {
			return nil, err
		}
		var b strings.Builder
		for _, line := range slices.Sorted(maps.Keys(t.filters[dir])) {
			if line <= len(functions) {
				b.WriteString(functions[line-1] + "\n")
			}
		}
		return []byte(b.String()), nil
	}
	return t.Files.Read(name)
}
