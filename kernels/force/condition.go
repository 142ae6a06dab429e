// SPDX-License-Identifier: Apache-2.0

package force

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/textpoke/textpoke/internal/spelling"
)

// condition is what must be so of a machine that stands still.
type condition struct {
	name, takes, arg string
	n                int // arg, where that is a number
}

// symbols are the functions that a condition is about.
func (c condition) symbols() []string {
	if takes := c.takes; takes == "function" || takes == "mutex" || takes == "variable" {
		return []string{c.arg}
	}
	return nil
}

// test is how a condition is asked, whose argument is a function, a mutex, or the number of a CPU or an argument, as
// takes says.
type test struct {
	takes string // "cpu", "number", "function", "mutex", or ""
	holds func(m *machine, cpu int, c condition) (bool, error)
}

// tests are the conditions, by name.
var tests = map[string]test{
	// The CPU that has come to the place.
	"cpu": {"cpu", func(_ *machine, cpu int, c condition) (bool, error) { return cpu == c.n, nil }},
	// A bit of cpu_online_mask.
	"online":  {"cpu", (*machine).online},
	"offline": {"cpu", func(m *machine, cpu int, c condition) (bool, error) { on, err := m.online(cpu, c); return !on, err }},
	// A CPU takes interrupts.
	"interruptible": {"cpu", (*machine).interruptible},
	// The function that called the one whose entry was reached.
	"from": {"function", (*machine).calledFrom},
	// Its first argument is the address of a variable.
	"given": {"variable", func(m *machine, cpu int, c condition) (bool, error) {
		at, wrong := named(m, c)
		r, err := m.Registers(cpu)
		return err == nil && wrong == nil && r.Arg(0) == at, errors.Join(wrong, err)
	}},
	// memcpy(to, from, n) copies so many bytes: slot are the last three of them from here on.
	"copies": {"number", func(m *machine, cpu int, c condition) (bool, error) {
		r, err := m.Registers(cpu)
		if err != nil {
			return false, err
		}
		m.slot = r.Arg(0) + r.Arg(2) - 3
		return r.Arg(2) == uint64(c.n), nil
	}},
	// The argument of this number, from 0, lies in a large page that is a table of small ones now: entry and slot are its.
	"split": {"number", (*machine).split},
	// Some page of that table can be written now.
	"writable": {"", (*machine).writable},
	// The large page's entry is one of a large page now.
	"large": word("", entry, func(_ *machine, _, w uint64) bool { return w&present != 0 && w&largeBit != 0 }),
	// The table's entry names no page now: a walk that reads another page there goes on, and nothing tells.
	"no-page": word("", slot, func(_ *machine, _, w uint64) bool { return w&present == 0 }),
	// A variable of eight bytes is 0, or is not.
	"zero": word("variable", named, func(_ *machine, _, w uint64) bool { return w == 0 }),
	"set":  word("variable", named, func(_ *machine, _, w uint64) bool { return w != 0 }),
	// The head of a list (struct list_head) points elsewhere than at itself.
	"listed": word("variable", named, func(_ *machine, at, w uint64) bool { return w != at }),
	// The upper half of slot is not 0: of a descriptor's second word, its count of references (struct bp_patching_desc).
	"used": word("", slot, func(_ *machine, _, w uint64) bool { return w>>32 != 0 }),
	// A pointer is not NULL; the second word behind it is slot from here on.
	"points": word("variable", named, func(m *machine, _, w uint64) bool { m.slot = w + entrySize; return w != 0 }),
	// A task waits for a mutex, in its list or spinning.
	"waited-for": {"mutex", (*machine).waitedFor},
	// The site holds no breakpoint.
	"clear": {"", func(m *machine, cpu int, _ condition) (bool, error) {
		b, err := m.breakpoint(cpu, m.site)
		return !b, err
	}},
	// The site holds a breakpoint.
	"breakpoint": {"", func(m *machine, cpu int, _ condition) (bool, error) { return m.breakpoint(cpu, m.site) }},
	// __text_poke(func, addr, ...) is about to write behind a breakpoint: that is the site.
	"tail": {"", func(m *machine, cpu int, _ condition) (bool, error) {
		r, err := m.Registers(cpu)
		if err != nil {
			return false, err
		}
		m.site = r.Arg(1) - 1
		was, err := m.breakpoint(cpu, m.site)
		return was && err == nil, nil // no page lies in front of a module's first
	}},
}

// Where a condition's word lies.
func entry(m *machine, _ condition) (uint64, error) { return m.entry, nil }
func slot(m *machine, _ condition) (uint64, error)  { return m.slot, nil }
func named(m *machine, c condition) (uint64, error) { return symbol(m.image, []string{c.arg}) }

// word is a test of eight bytes, given where they lie and what they are.
func word(takes string, where func(*machine, condition) (uint64, error), is func(m *machine, at, w uint64) bool) test {
	return test{takes, func(m *machine, cpu int, c condition) (bool, error) {
		at, err := where(m, c)
		if err != nil {
			return false, err
		}
		w, err := m.Word(cpu, at)
		return err == nil && is(m, at, w), err
	}}
}

// conditions reads "NAME ARG and NAME".
func (w *words) conditions() (list []condition, err error) {
	for {
		c := condition{name: w.next()}
		t, ok := tests[c.name]
		if !ok {
			return nil, fmt.Errorf("condition %q: %w", c.name, spelling.NotOneOf(c.name, slices.Sorted(maps.Keys(tests))))
		}
		if t.takes != "" {
			if c.arg = w.next(); c.arg == "" {
				return nil, fmt.Errorf("condition %s: want a %s", c.name, t.takes)
			}
		}
		if t.takes == "cpu" || t.takes == "number" {
			n, err := strconv.ParseUint(c.arg, 10, 4)
			if c.n = int(n); err != nil {
				return nil, fmt.Errorf("condition %s: %q: want a number", c.name, c.arg)
			}
		}
		c.takes = t.takes
		if list = append(list, c); !w.take("and") {
			return list, nil
		}
	}
}

// all tells whether every condition holds for a CPU that stands at a place.
func (m *machine) all(when []condition, cpu int) (bool, error) {
	for _, c := range when {
		if ok, err := tests[c.name].holds(m, cpu, c); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

const breakpoint = 0xcc

func (m *machine) breakpoint(cpu int, at uint64) (bool, error) {
	b, err := m.Read(cpu, at, 1)
	return err == nil && b[0] == breakpoint, err
}

func (m *machine) online(_ int, c condition) (bool, error) {
	mask, err := m.variable(0, "__cpu_online_mask")
	return mask>>c.n&1 != 0, err
}

// variable reads one.
func (m *machine) variable(cpu int, name string) (uint64, error) {
	at, err := symbol(m.image, []string{name})
	if err != nil {
		return 0, err
	}
	return m.Word(cpu, at)
}

// interruptible looks at a CPU's flag IF (Intel SDM, volume 1, 3.4.3).
func (m *machine) interruptible(_ int, c condition) (bool, error) {
	const enabled = 1 << 9
	r, err := m.Registers(c.n)
	return err == nil && r.Flags()&enabled != 0, err
}

// calledFrom reads where the function that is being entered returns to.
func (m *machine) calledFrom(cpu int, c condition) (bool, error) {
	r, err := m.Registers(cpu)
	if err != nil {
		return false, err
	}
	back, err := m.Word(cpu, r.SP())
	if err != nil {
		return false, err
	}
	f, _, ok := m.image.Symbol(back)
	return ok && f.Name == c.arg, nil
}

// waitedFor reads struct mutex (include/linux/mutex_types.h, Linux 7.2): the owner, whose lowest bit says that a task
// waits, and behind it a lock and the queue of tasks that spin.
func (m *machine) waitedFor(cpu int, c condition) (bool, error) {
	at, err := symbol(m.image, []string{c.arg})
	if err != nil {
		return false, err
	}
	owner, err := m.Word(cpu, at)
	if err != nil {
		return false, err
	}
	queue, err := m.Word(cpu, at+8)
	return owner&1 != 0 || queue>>32 != 0, err
}
