// SPDX-License-Identifier: Apache-2.0

package tracers

import (
	"errors"
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/records"
)

// Report is what a change did: its steps, and how much work it was.
type Report struct {
	Steps  []Step  // in the order in which they were taken
	Passes []*Pass // update passes, in order

	ListChanges   int // ops put into the list or taken out of it
	Walked        int // records that the kernel's loops go over
	Compared      int // hash lookups for requested addresses before anything is done
	Hashes        int // hash tables allocated
	HashEntries   int // entries allocated
	HashCopied    int // of these, copies of entries that were there
	Regenerations int // BPF trampolines that are generated again because of a live patch
	CallTasks     int // call_rcu_tasks: later, the caller does not wait
	CallRCU       int // call_rcu: later
	Restored      int // sites written back after a failure
}

// Patches is how many sites all passes change.
func (r *Report) Patches() int {
	return spelling.Sum(spelling.Each(r.Passes, func(p *Pass) int { return len(p.Patches) }))
}

// change is one change on its way, with its report and the steps that take it back.
type change struct {
	c *Core
	Report
	touched []before
	undo    []func() error // in the order in which things were done
}

// before is a record as it was.
type before struct {
	rec   int
	flags Flags
	users []*Ops
}

// do makes a change and takes it back when it fails. A change inside another one belongs to that
// one, and is taken back by itself if it fails.
func (c *Core) do(f func(*change) error) (Report, error) {
	x := c.change
	if x != nil {
		x.mark()
		done := len(x.undo)
		err := f(x)
		if err != nil {
			err = errors.Join(err, x.takeBack(done))
		}
		return Report{}, err
	}
	x = &change{c: c}
	c.change = x
	err := f(x)
	if err != nil {
		err = errors.Join(err, x.takeBack(0))
	}
	c.change = nil
	if err == nil {
		c.release()
	}
	return x.Report, err
}

// later says how to take back what was just done. Records are put back in
// between, so that what follows may touch them again.
func (x *change) later(undo func()) {
	x.mark()
	x.undo = append(x.undo, func() error { undo(); return nil })
}

// touch remembers a record before its flags change.
func (x *change) touch(rec int) {
	x.touched = append(x.touched, before{rec, x.c.flags[rec], x.c.users[rec]})
}

// mark closes the run of records that were touched.
func (x *change) mark() {
	touched := x.touched
	if x.touched = nil; touched == nil {
		return
	}
	x.undo = append(x.undo, func() error {
		for _, b := range slices.Backward(touched) {
			x.c.flags[b.rec], x.c.users[b.rec] = b.flags, b.users
		}
		return nil
	})
}

// takeBack undoes everything down to some point, the last thing first. A site that
// cannot be written on the way back leaves the tracer dead, and the error says so.
func (x *change) takeBack(to int) error {
	if x.c.dead {
		return nil // a part of it could not be taken back, and the rest is left
	}
	x.mark()
	var failed []error
	for _, undo := range slices.Backward(x.undo[to:]) {
		if err := undo(); err != nil {
			failed = append(failed, err)
		}
	}
	x.undo = x.undo[:to]
	if len(failed) > 0 {
		x.c.dead = true
		return fmt.Errorf("not everything could be taken back: %w", errors.Join(failed...))
	}
	return nil
}

// StepKind is what a step of a change does.
type StepKind uint8

// The kinds of steps. A step's cost depends on the kernel; package ledger prices them.
const (
	StepTrampoline StepKind = iota // an ops gets a trampoline of its own
	StepAim                        // its trampoline is there already, and gets its function again
	StepFree                       // its trampoline is given back
	StepImage                      // a BPF trampoline is generated
	StepSkip                       // a program that goes is patched out of its BPF trampoline, or the trampoline cut off
	StepUpdateFunc                 // the calls in the common entries go to a function; nothing where sites have literals
	StepRecords                    // the sites of a pass, in order; package sched cuts them into batches
	StepSetOp                      // function_trace_op := the ops of the wanted function
	StepSync                       // smp_wmb and one round of interrupts that execute smp_rmb (ftrace_sync_ipi)
	StepGraphStart                 // the graph caller is enabled
	StepGraphStop                  // and disabled
	StepRude                       // a wait until every CPU has switched tasks (synchronize_rcu_tasks_rude)
	StepTasks                      // a wait until every task has scheduled, about 100 ms (synchronize_rcu_tasks)
)

var stepNames = [...]string{"make trampoline", "aim trampoline", "free trampoline", "generate image", "skip program",
	"update_ftrace_func", "patch records", "set function_trace_op", "sync", "start graph caller", "stop graph caller",
	"wait for CPUs", "wait for tasks"}

// Step is one step of a change.
type Step struct {
	Kind StepKind
	Ops  *Ops  // whose trampoline it is
	Func *Func // of StepUpdateFunc
	Pass *Pass // of StepRecords
}

// String is the step, with the function that the common entries are to call.
func (s Step) String() string {
	if s.Kind == StepUpdateFunc {
		return stepNames[s.Kind] + " " + s.Func.Name
	}
	return stepNames[s.Kind]
}

// step notes a step that was taken.
func (x *change) step(kind StepKind, o *Ops) { x.Steps = append(x.Steps, Step{Kind: kind, Ops: o}) }

// Count is how many steps of a kind a change took.
func (r *Report) Count(kind StepKind) int {
	return spelling.Count(r.Steps, func(s Step) bool { return s.Kind == kind })
}

// each goes through the records that a filter chooses, in table order, and leaves
// out those that are disabled (__ftrace_hash_rec_update). It counts what the
// kernel's loop walks over: all records, or up to the last one that the filter
// names.
func (x *change) each(filter Functions, f func(rec int)) {
	c := x.c
	if len(filter) == 0 {
		x.Walked += len(c.flags)
		x.touched = slices.Grow(x.touched, len(c.flags))
		for rec := range c.flags {
			if !c.flags[rec].has(Disabled) {
				f(rec)
			}
		}
		return
	}
	last := -1
	for _, rec := range filter {
		if !c.flags[rec].has(Disabled) {
			last = rec
			f(rec)
		}
	}
	x.Walked += last + 1
	if last < 0 { // the kernel's count of matches never gets there
		x.Walked += len(c.flags) - last - 1
	}
}

// account counts the functions that an ops wants, or no longer wants, and says
// whether any site has to change for it.
func (x *change) account(o *Ops, filter Functions, inc bool) (update bool, err error) {
	c := x.c
	x.each(filter, func(rec int) {
		if err != nil {
			return
		}
		x.touch(rec)
		if inc && c.flags[rec].Count() == RefMax {
			err = refuse(EINVAL, o, "the record's count is at its maximum",
				"__ftrace_hash_rec_update, 7.1 (warns and goes on uncounted)").at(c.Records[rec])
			return
		}
		if inc {
			c.users[rec] = append(c.users[rec], o) // behind what an undo may put back
			c.flags[rec] = c.included(rec, o)
		} else {
			c.users[rec] = without(c.users[rec], o)
			c.flags[rec] = c.excluded(rec, o)
		}
		d, _ := Decide(c.flags[rec], true)
		update = update || d != Ignore
	})
	return update, err
}

// without is users but for one, in a slice that an undo's may share.
func without(users []*Ops, o *Ops) []*Ops {
	switch i := slices.Index(users, o); i {
	case -1:
		return users
	case 0:
		return users[1:]
	default:
		return slices.Concat(users[:i], users[i+1:])
	}
}

// included is a record's flags once an ops more counts on it.
func (c *Core) included(rec int, o *Ops) Flags {
	f := c.flags[rec] + 1
	if o.has(OpsDirect) {
		f |= Direct
	}
	f = f.with(Tramp, f.Count() == 1 && o.Trampoline != 0)
	if o.has(OpsSaveRegs) {
		f |= Regs
	}
	return c.callOps(f, o)
}

// excluded is a record's flags once an ops less counts on it.
func (c *Core) excluded(rec int, o *Ops) Flags {
	f := c.flags[rec] - 1
	if o.has(OpsDirect) {
		f &^= Direct
	}
	others := c.users[rec]
	if f.Count() > 0 && f.has(Regs) && o.has(OpsSaveRegs) {
		// While a filter changes, the ops is still in the list with its old one and finds itself:
		// the flag stays though no ops needs it any more.
		f = f.with(Regs, o.alive == attached || slices.ContainsFunc(others,
			func(u *Ops) bool { return u.has(OpsSaveRegs) }))
	}
	f = f.with(Tramp, f.Count() == 1 && slices.ContainsFunc(others, func(u *Ops) bool { return u.Trampoline != 0 }))
	return c.callOps(f, o)
}

// callOps decides whether the literal may name the only ops: it is asked of the
// ops that comes or goes, also where it is the one that goes and another stays.
// So the kernel does, and a guarded ops that stays alone is then called without
// its guard.
func (c *Core) callOps(f Flags, o *Ops) Flags {
	return f.with(CallOps, c.traits.CallOps && f.Count() == 1 && o.Effective() == o.Func)
}

// targets are what a record may be made to call, with the ops that has it for
// itself.
func (c *Core) targets(rec int, own *Ops) Targets {
	t := Targets{Direct: c.direct[rec], Entry: c.Places.Entry, RegsEntry: c.Places.RegsEntry}
	if own != nil {
		t.Trampoline = own.Trampoline
	}
	return t
}

// now is what a record's site calls by its flags.
func (c *Core) now(rec int) (records.Addr, bool) {
	candidates := c.users[rec]
	if m := c.modifying; m != nil && !slices.Contains(candidates, m) {
		candidates = append(slices.Clip(candidates), m)
	}
	return c.targets(rec, TrampolineNow(rec, c.removed, candidates)).Current(c.flags[rec])
}
