// SPDX-License-Identifier: Apache-2.0

package tracefs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Function is a function that can be traced, or a trace event, whose name is GROUP/NAME. Several functions may have one
// name: Nth counts them from 0, in the kernel's order.
type Function struct {
	Name, Module string
	Nth          int
}

func (f Function) String() string {
	if f.Module == "" {
		return f.Name
	}
	return f.Name + " [" + f.Module + "]"
}

// key is a function without its number.
func (f Function) key() Function { return Function{Name: f.Name, Module: f.Module} }

// parseFunction reads a line of available_filter_functions or set_ftrace_filter; ok is false
// for one that names no function, such as "#### all functions enabled ####".
func parseFunction(line string) (f Function, ok bool) {
	name, module, _ := strings.Cut(strings.TrimSpace(line), " ")
	if name == "" || strings.HasPrefix(name, "#") || strings.Contains(name, ":") {
		return f, false
	}
	return Function{Name: name, Module: strings.Trim(module, "[]")}, true
}

// Number gives each function its number among those of its name and module.
func Number(fs []Function) {
	seen := map[Function]int{}
	for i := range fs {
		k := fs[i].key()
		fs[i].Nth = seen[k]
		seen[k]++
	}
}

// Filter is the functions that the instance traces while its tracer is on; all is true for an
// empty filter, which means every function. One whose functions went with their modules holds none, and is not empty
// (clear_mod_from_hash, kernel/trace/ftrace.c).
func (i *Instance) Filter() (fs []Function, all bool, err error) {
	b, err := i.files.Read(i.dir + filterFile)
	if err != nil {
		return nil, false, fmt.Errorf("read the instance's filter: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		if f, ok := parseFunction(line); ok {
			fs = append(fs, f)
		}
		all = all || strings.HasPrefix(line, "#### all functions")
	}
	return fs, all, nil
}

// Held is what the instance traces; all is true where that is every function.
func (i *Instance) Held() (fs []Function, all bool, err error) {
	on, err := i.On()
	if err != nil || !on {
		return nil, false, err
	}
	return i.Filter()
}

// lines are the numbers by which a filter may be told functions: their lines in
// available_filter_functions, from 1 on. A name would be held against every record of the
// kernel, and could not tell functions of one name apart (ftrace_match_records and
// add_rec_by_index, kernel/trace/ftrace.c, since Linux 5.1).
func (i *Instance) lines() (map[Function]int, error) {
	b, err := i.files.Read("available_filter_functions")
	if err != nil {
		return nil, fmt.Errorf("read the functions that can be traced: %w", err)
	}
	at, seen, n := map[Function]int{}, map[Function]int{}, 0
	for line := range strings.Lines(string(b)) {
		n++
		f, ok := parseFunction(line)
		if !ok {
			continue
		}
		k := f.key()
		f.Nth = seen[k]
		seen[k]++
		at[f] = n
	}
	return at, nil
}

// Trace has the instance trace these functions and no others, none of them for switching the
// tracer off. It tells those that the kernel did not take: they may have gone with their
// module. The text is updated once, or twice where no function stays. A module that goes between
// the reading of lines and the writing has other functions traced: then all is done again.
func (i *Instance) Trace(want []Function) (missing []Function, err error) {
	for range tries {
		others := false
		if missing, others, err = i.trace(want); err != nil || !others {
			return missing, err
		}
	}
	return missing, fmt.Errorf("the filter holds other functions than were written, %d times: modules come and go", tries)
}

// tries is how often modules may go while a filter is written.
const tries = 5

func (i *Instance) trace(want []Function) (missing []Function, others bool, err error) {
	on, err := i.On()
	if errors.Is(err, ErrOther) {
		err = i.turn(tracerOff)
	}
	if err != nil {
		return nil, false, err
	}
	if len(want) == 0 {
		if on {
			err = i.turn(tracerOff)
		}
		return nil, false, err
	}
	if !on {
		if _, err := i.Make(); err != nil {
			return nil, false, err
		}
	}
	at, err := i.lines()
	if err != nil {
		return nil, false, err
	}
	now, _, err := i.Filter()
	if err != nil {
		return nil, false, err
	}
	d := differ(now, want, at)
	if err := i.change(d, on); err != nil {
		return nil, false, err
	}
	if d.kept+len(d.add) == 0 { // every one of them has gone
		if on {
			err = i.turn(tracerOff)
		}
		return d.gone, false, err
	}
	missing, others, err = i.holds(want)
	if err == nil && !on && !others {
		if err = i.turn(i.tracer); err == nil { // a module may have gone in between
			missing, others, err = i.holds(want)
		}
	}
	return missing, others, err
}

// difference is how a filter becomes another one.
type difference struct {
	add, remove []int // lines
	kept        int
	gone        []Function // wanted, and not among the kernel's
}

// differ compares a filter with the wanted functions. A filter's lines do not tell functions of one
// name apart: where not all of them are wanted, those that it may hold are set anew.
func differ(now, want []Function, at map[Function]int) (d difference) {
	has, wants := map[Function]int{}, map[Function]int{}
	for _, f := range now {
		has[f.key()]++
	}
	for _, f := range want {
		if at[f] == 0 {
			d.gone = append(d.gone, f)
			continue
		}
		wants[f.key()]++
	}
	named := map[Function]int{}
	for f := range at {
		named[f.key()]++
	}
	sure := func(k Function) bool { return has[k] == 0 || has[k] == named[k] }
	for _, f := range want {
		switch k := f.key(); {
		case at[f] == 0:
		case sure(k) && has[k] > 0:
			d.kept++
		default:
			d.add = append(d.add, at[f])
		}
	}
	wanted := map[int]bool{}
	for _, f := range want {
		wanted[at[f]] = true
	}
	for f, line := range at {
		if has[f.key()] > 0 && !wanted[line] {
			d.remove = append(d.remove, line)
		}
	}
	slices.Sort(d.add)
	slices.Sort(d.remove)
	return d
}

// change writes a filter's difference. Where no function stays and the tracer is on, it writes and
// closes the new ones first, so that the filter is never empty.
func (i *Instance) change(d difference, on bool) error {
	var add, remove strings.Builder
	for _, line := range d.add {
		fmt.Fprintf(&add, "%d\n", line)
	}
	for _, line := range d.remove {
		fmt.Fprintf(&remove, "!%d\n", line)
	}
	var texts []string
	switch {
	case !on && d.kept+len(d.add) == 0:
		return nil // an empty filter would mean all functions, later
	case on && d.kept == 0 && len(d.add) == 0:
		return nil // the caller switches the tracer off
	case on && d.kept == 0 && len(d.remove) > 0:
		texts = []string{add.String(), remove.String()}
	case len(d.add)+len(d.remove) > 0:
		texts = []string{add.String() + remove.String()}
	}
	for _, text := range texts {
		if err := i.files.Write(i.dir+filterFile, text, false); err != nil {
			return fmt.Errorf("change the instance's filter: %w", err)
		}
	}
	return nil
}

// holds reads the filter back: the wanted functions that it lacks, and whether it has others. If it is empty, because all
// functions went with their modules, holds switches the tracer off.
func (i *Instance) holds(want []Function) (missing []Function, others bool, err error) {
	now, all, err := i.Filter()
	if err != nil {
		return nil, false, err
	}
	if all || len(now) == 0 {
		return want, false, i.turn(tracerOff)
	}
	has := map[Function]int{}
	for _, f := range now {
		has[f.key()]++
	}
	for _, f := range want {
		k := f.key()
		if has[k]--; has[k] < 0 {
			missing = append(missing, f)
		}
	}
	for _, n := range has {
		others = others || n > 0
	}
	return missing, others, nil
}
