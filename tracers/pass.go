// SPDX-License-Identifier: Apache-2.0

package tracers

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

// Command is the work of an update pass (FTRACE_UPDATE_CALLS and its neighbours,
// include/linux/ftrace.h).
type Command uint8

// The commands, at the kernel's bits.
const (
	UpdateCalls     Command = 1 << 0
	DisableCalls    Command = 1 << 1
	UpdateTraceFunc Command = 1 << 2
	StartFuncRet    Command = 1 << 3
	StopFuncRet     Command = 1 << 4
)

// Pass is one update pass (ftrace_run_update_code): its steps in the kernel's
// order (ftrace_modify_all_code).
type Pass struct {
	Command Command
	Patches []Patch
	Steps   []Step // as planned: a change of the common entry may find nothing to do
}

// Patch is the change of one site.
type Patch struct {
	Record    int
	Addr      records.Addr // of the site
	Decision  Decision
	From, To  Installed
	FlagsFrom Flags
	FlagsTo   Flags
}

// String prints the pass, a step a line.
func (p *Pass) String() string {
	var b strings.Builder
	for _, s := range p.Steps {
		if s.Kind != StepRecords {
			fmt.Fprintln(&b, s)
			continue
		}
		for i := range p.Patches {
			q := &p.Patches[i]
			fmt.Fprintf(&b, "%s %s: %s -> %s\n", q.Decision, q.Addr, q.From, q.To)
		}
	}
	return b.String()
}

// String is "nop" or the address that the site calls, with the literal's ops.
func (i Installed) String() string {
	s := "nop"
	if i.Decided != 0 {
		s = "call " + i.Decided.String()
		if i.Via != isa.Direct {
			s += " through the entry"
		}
	}
	if i.Literal != nil {
		s += " [" + i.Literal.Name + "]"
	}
	return s
}

// plan works an update pass out: over some records, or all if none are given. The
// records that are left out must be ones that need nothing.
func (x *change) plan(cmd Command, recs []int) (*Pass, error) {
	c := x.c
	p := &Pass{Command: cmd}
	if cmd&UpdateTraceFunc != 0 {
		p.Steps = append(p.Steps, Step{Kind: StepUpdateFunc, Func: FuncList})
	}
	if cmd&(UpdateCalls|DisableCalls) != 0 {
		x.Walked += len(c.flags)
		if c.traits.VerifyFirst {
			x.Walked += len(c.flags) // once to compare, once to queue
		}
		if err := c.planRecords(p, cmd&UpdateCalls != 0, recs); err != nil {
			return nil, err
		}
		if len(p.Patches) > 0 {
			p.Steps = append(p.Steps, Step{Kind: StepRecords, Pass: p})
		}
	}
	if cmd&UpdateTraceFunc != 0 && c.global.wanted != FuncList {
		p.Steps = append(p.Steps, Step{Kind: StepSetOp}, Step{Kind: StepSync}, Step{Kind: StepUpdateFunc,
			Func: c.global.wanted})
	}
	if cmd&StartFuncRet != 0 {
		p.Steps = append(p.Steps, Step{Kind: StepGraphStart})
	} else if cmd&StopFuncRet != 0 {
		p.Steps = append(p.Steps, Step{Kind: StepGraphStop})
	}
	return p, nil
}

// planRecords decides about records in table order (ftrace_replace_code).
func (c *Core) planRecords(p *Pass, enable bool, recs []int) error {
	one := func(rec int) error {
		d, to := Decide(c.flags[rec], enable)
		if d == Ignore {
			return nil
		}
		q := Patch{Record: rec, Addr: c.sites[rec].Addr, Decision: d, FlagsFrom: c.flags[rec], FlagsTo: to}
		var err error
		if q.From, q.To, err = c.ends(rec, d, to); err != nil {
			return err
		}
		p.Patches = append(p.Patches, q)
		return nil
	}
	if len(recs) == 0 {
		for rec := range c.flags {
			if err := one(rec); err != nil {
				return err
			}
		}
		return nil
	}
	p.Patches = slices.Grow(p.Patches, len(recs))
	for _, rec := range recs {
		if err := one(rec); err != nil {
			return err
		}
	}
	return nil
}

// ends are the texts of a site before a change and after it. New and current targets are
// worked out before the flags change, the literal after.
func (c *Core) ends(rec int, d Decision, to Flags) (from, then Installed, err error) {
	from, then = c.nop(rec), c.nop(rec)
	if d != MakeNop {
		target, ok := c.targets(rec, TrampolineThen(rec, c.users[rec])).New(c.flags[rec])
		if !ok {
			return from, then, fmt.Errorf("record %s: flags %s promise a target that is not there", c.Records[rec],
				c.flags[rec])
		}
		if then, err = c.call(rec, target); err != nil {
			return from, then, err
		}
		if c.traits.CallOps {
			then.Literal = c.ListOps
			if only := Unique(rec, c.users[rec]); to.has(CallOpsEn) && only != nil {
				then.Literal = only
			}
		}
	}
	if d != MakeCall {
		target, ok := c.now(rec)
		if !ok {
			return from, then, fmt.Errorf("record %s: flags %s say what the text cannot have", c.Records[rec],
				c.flags[rec])
		}
		if from, err = c.call(rec, target); err != nil {
			return from, then, err
		}
		from.Literal = c.text[rec].Literal // the kernel does not look at it
	}
	return from, then, nil
}

// call is the text of a site that calls a target.
func (c *Core) call(rec int, target records.Addr) (Installed, error) {
	text, via, err := c.Arch.Enabled(c.sites[rec], isa.Destination{Target: target, Entry: c.Places.Entry})
	if err != nil {
		return Installed{}, &Error{Errno: EINVAL, Record: c.Records[rec], Why: "no call reaches the target",
			Source: "ftrace_find_callable_addr, arch/arm64/kernel/ftrace.c, 7.1", Err: err}
	}
	return Installed{Decided: target, Via: via, Text: text}, nil
}

// run plans a pass and executes it. Records are those that may need a patch; none
// are all.
func (x *change) run(cmd Command, recs []int) error {
	x.mark()
	p, err := x.plan(cmd, recs)
	if err != nil {
		return err
	}
	x.Passes = append(x.Passes, p)
	return x.execute(p)
}

// execute takes a pass's steps one by one, and notes those that did something.
func (x *change) execute(p *Pass) error {
	c := x.c
	done := 0
	was := c.global
	x.undo = append(x.undo, func() error {
		err := x.restore(p.Patches[:done]) // first: the pair below is made for the ops that remain
		c.pair(was.patched, was.passed)
		return err
	})
	for _, s := range p.Steps {
		switch s.Kind {
		case StepUpdateFunc:
			if !c.retarget(s.Func) {
				continue
			}
		case StepRecords:
			x.Steps = append(x.Steps, s)
			n, err := c.writeAll(p.Patches)
			if done = n; err != nil {
				return err
			}
			continue
		case StepSetOp:
			c.pair(c.global.patched, c.global.op)
		}
		x.Steps = append(x.Steps, s)
	}
	return nil
}

// writeAll makes patches in their order, and says how many it made.
func (c *Core) writeAll(patches []Patch) (done int, err error) {
	for i := range patches {
		if err := c.compare(&patches[i]); err != nil {
			return 0, err
		}
	}
	for i := range patches {
		q := &patches[i]
		c.flags[q.Record] = q.FlagsTo // as the kernel: before the text
		if err := c.write(q); err != nil {
			c.flags[q.Record] = q.FlagsFrom
			return i, err
		}
	}
	return len(patches), nil
}

// compare compares a site with the text that it must hold.
func (c *Core) compare(q *Patch) error {
	now := &c.text[q.Record]
	if now.Text == q.From.Text {
		return nil
	}
	n := int(c.sites[q.Record].Len)
	return &Error{Errno: EINVAL, Record: q.Addr, Source: "ftrace_bug, 7.1",
		Why: fmt.Sprintf("the site holds %s and not %s", now.Text.Format(n), q.From.Text.Format(n))}
}

// write stores one patch, if the site holds what it must.
func (c *Core) write(q *Patch) error {
	if err := c.compare(q); err != nil {
		return err
	}
	if c.Stores.Site != nil {
		if err := c.Stores.Site(q); err != nil {
			e := &Error{Errno: EPERM, Record: q.Addr, Why: "the site could not be written", Source: "ftrace_bug, 7.1",
				Err: err}
			errors.As(err, &e.Errno)
			return e
		}
	}
	c.text[q.Record] = q.To
	return nil
}

// restore writes patches back, the last one first.
func (x *change) restore(done []Patch) error {
	var failed []error
	for i := range slices.Backward(done) {
		q := done[i]
		q.From, q.To, q.FlagsFrom, q.FlagsTo = q.To, q.From, q.FlagsTo, q.FlagsFrom
		if err := x.c.write(&q); err != nil { // undoing is a patch like any other and may fail
			failed = append(failed, err)
			continue
		}
		x.c.flags[q.Record] = q.FlagsTo
		x.Restored++
	}
	return errors.Join(failed...)
}
