// SPDX-License-Identifier: Apache-2.0

package force

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/textpoke/textpoke/kernels/gdb"
	"github.com/textpoke/textpoke/kernels/image"
)

// machine is a booted kernel that stands still, with the addresses that its schedule has found.
type machine struct {
	*gdb.Client
	image *image.Kernel
	tell  func(string)

	site        uint64 // the call site that the steps are about
	entry, slot uint64 // where the entry of a large page lies, and the table's, in the map of all memory
}

// notReached is a place to which no CPU came.
type notReached struct{ why string }

func (e *notReached) Error() string { return e.why }

// errOtherwise is a look that saw something else.
var errOtherwise = errors.New("it is not so")

// carry carries steps out, up to the one that lets all CPUs go on. The number of the step is given beside an error. After
// some time nothing is begun again.
func (m *machine) carry(ctx context.Context, steps []Step, last time.Time) (at int, err error) {
	back := 0
	for at = 0; at < len(steps) && steps[at].kind != letGo; at++ {
		st := &steps[at]
		if st.kind == runTo && st.who == everybody {
			back = at
		}
		m.tell(fmt.Sprintf("step %d: %s", at+1, st.Text))
		err := m.step(ctx, st)
		var late *notReached
		switch {
		case errors.As(err, &late) && st.again && time.Now().Before(last):
			m.tell(err.Error() + ": again")
			if err := m.Continue(); err != nil {
				return at + 1, err
			}
			if _, err := m.WaitFor(breath); err != nil {
				return at + 1, err
			}
			at = back - 1
		case err != nil:
			return at + 1, err
		}
	}
	return at + 1, nil
}

// breath is for how long all CPUs run before a schedule begins again: somebody may have waited for one that was held.
const breath = 200 * time.Millisecond

func (m *machine) step(ctx context.Context, st *Step) error {
	switch st.kind {
	case runFor:
		var late *notReached
		if err := m.until(ctx, st); !errors.As(err, &late) {
			return err
		}
		return nil
	case look:
		ok, err := m.all(st.when, 0)
		if err == nil && !ok {
			err = errOtherwise
		}
		return err
	}
	if st.access == lastRead {
		return m.lastRead(ctx, st)
	}
	return m.to(ctx, st)
}

func (m *machine) run(who int) error {
	if who == everybody {
		return m.Continue()
	}
	return m.Only(who)
}

// point is what stops a CPU at the step's place.
func (m *machine) point(st *Step) (p gdb.Point, err error) {
	switch st.access {
	case entryWrite:
		return gdb.Stores(m.entry, entrySize), nil
	case slotWrite:
		return gdb.Stores(m.slot, entrySize), nil
	}
	at, err := symbol(m.image, st.place)
	if st.access == variable {
		return gdb.Loads(at, entrySize), err
	}
	return gdb.Breakpoint(at), err
}

// to runs until a CPU comes to the step's place, and all is as it says there.
func (m *machine) to(ctx context.Context, st *Step) error {
	p, err := m.point(st)
	if err == nil {
		err = m.Insert(p)
	}
	if err != nil {
		return err
	}
	err = m.until(ctx, st)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(err, m.Remove(p))
}

// slice is for how long a CPU runs before the one that answers interrupts gets its turn.
const slice = 5 * time.Millisecond

// glance is for how long a CPU runs before it is asked whether it can come to its place at all.
const glance = 100 * time.Millisecond

func (m *machine) until(ctx context.Context, st *Step) error {
	var held *hold
	if st.answers != everybody {
		r, err := m.Registers(st.answers)
		if err != nil {
			return err
		}
		held = &hold{m, st.answers, r.PC(), r.SP()}
	}
	for deadline := time.Now().Add(st.limit); ; {
		if err := m.run(st.who); err != nil {
			return err
		}
		wait := time.Until(deadline)
		switch {
		case held != nil:
			wait = min(wait, slice)
		case st.unless != nil:
			wait = min(wait, glance)
		}
		stop, err := m.WaitFor(max(wait, time.Millisecond))
		if err != nil {
			return err
		}
		if !stop.Interrupted {
			ok, err := m.all(st.when, stop.CPU)
			if err != nil || ok {
				return err
			}
			if st.access == "" { // one that stopped at an access is behind it
				err = m.Step(stop.CPU)
			}
			if err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if time.Now().After(deadline) {
			return m.late(fmt.Sprintf("not within %v", st.limit))
		}
		if stuck, err := m.all(st.unless, st.who); err != nil {
			return err
		} else if stuck && st.unless != nil {
			return m.late(fmt.Sprintf("%s is %s", st.unless[0].arg, st.unless[0].name))
		}
		if held != nil {
			if err := held.answer(); err != nil {
				return err
			}
		}
	}
}

// late says where the CPUs stand.
func (m *machine) late(why string) error {
	e := &notReached{why}
	for cpu := range 2 {
		r, err := m.Registers(cpu)
		if err != nil {
			return err
		}
		e.why += fmt.Sprintf("; CPU %d stands in %s", cpu, m.image.Name(r.PC()))
	}
	return e
}

// hold is a CPU whose task stays at an instruction: it takes interrupts there, and comes back.
type hold struct {
	m      *machine
	cpu    int
	pc, sp uint64
}

// answer lets the CPU take what interrupts there are. One that does not come back in time stays where it is until the
// next call: it waits for somebody else.
func (h *hold) answer() (err error) {
	held := gdb.Breakpoint(h.pc)
	if err := h.m.Insert(held); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.m.Remove(held)) }()
	for deadline := time.Now().Add(slice); time.Now().Before(deadline); {
		if err := h.m.Only(h.cpu); err != nil {
			return err
		}
		stop, err := h.m.WaitFor(slice)
		if err != nil || stop.Interrupted {
			return err
		}
		r, err := h.m.Registers(h.cpu)
		if err != nil || r.SP() == h.sp {
			return err
		}
		if err := h.m.Step(h.cpu); err != nil { // another task has come there
			return err
		}
	}
	return nil
}

// lastRead has a CPU that stands at the entry of a function read the large page's entry, and stops it before it reads the
// table's. The compiler decides how often the first is read: the CPU carries the function out once to count, and gets
// back the registers that it had: the function only reads.
func (m *machine) lastRead(ctx context.Context, st *Step) (err error) {
	before, err := m.Registers(st.who)
	if err != nil {
		return err
	}
	for _, p := range []gdb.Point{gdb.Loads(m.entry, entrySize), gdb.Loads(m.slot, entrySize)} {
		if err := m.Insert(p); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, m.Remove(p)) }()
	}
	const most = 100
	reads := 0
	for ; reads < most; reads++ {
		at, err := m.access(st)
		if err != nil {
			return err
		}
		if at == m.slot {
			break
		}
	}
	if reads == 0 || reads == most {
		return fmt.Errorf("the entry of the large page is read %d times before the table's", reads)
	}
	if err := m.SetRegisters(st.who, before); err != nil {
		return err
	}
	for range reads {
		if _, err := m.access(st); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// access runs a CPU up to its next access of those that are watched, and tells which it was.
func (m *machine) access(st *Step) (at uint64, err error) {
	if err := m.Only(st.who); err != nil {
		return 0, err
	}
	stop, err := m.WaitFor(st.limit)
	if err == nil && stop.Interrupted {
		err = m.late(fmt.Sprintf("not within %v", st.limit))
	}
	return stop.Watched, err
}
