// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
)

// DivergedError says where two engines did not do the same.
type DivergedError struct {
	Step      int // from 1
	Do        string
	What      string
	Want, Got string
}

func (e *DivergedError) Error() string {
	text := fmt.Sprintf("step %d, %s: %s", e.Step, e.Do, e.What)
	if e.Got == "" && e.Want == "" {
		return text
	}
	return fmt.Sprintf("%s: %q, the trace says %q", text, e.Got, e.Want)
}

// Stepped is an engine whose CPUs and patchers make their steps one by one, on command, so
// that it can be forced to follow a trace.
type Stepped interface {
	// CPU is what a CPU is about; see cpus.Lockstep for this one and those that follow.
	CPU(cpu int) cpus.CPU
	Change(cpu int, f func(c *cpus.CPU))
	Step(cpu int, ch cpus.Chooser) cpus.Event
	Park(cpu int)
	Unpark(cpu, from int)
	Tick(cpu int)
	NMI(cpu int)

	// Sit lets a patcher take a CPU over; Ground is what it then works on, and Stopping
	// tells whether it has the machine stopped.
	Sit(patcher, cpu int)
	Ground(patcher int) poke.Ground
	Stopping(patcher int) bool

	Peek(site int) isa.Text
	Pending(cpu int, masked bool) bool
	Violations() (total uint64, first []cpus.Violation)
}

// liveStepped is the live machine: its atomics and tables, without its goroutines.
type liveStepped struct {
	*liveMachine
	*cpus.Lockstep
}

// Sit implements Stepped; so do the other two.
func (l liveStepped) Sit(patcher, cpu int)           { l.executors[patcher].Sit(l.Lease(cpu)) }
func (l liveStepped) Ground(patcher int) poke.Ground { return l.executors[patcher] }
func (l liveStepped) Stopping(patcher int) bool      { return l.executors[patcher].Stopping() }

// Replay forces a trace on the live machine: its atomics, boxes and tables,
// one step at a time as the trace says. It must come to the same violation; where
// it does not, or does something else on the way, the error is a *DivergedError.
func Replay(m *Model, t *Trace) (*cpus.Violation, error) {
	l, err := m.live(nil, 1)
	if err != nil {
		return nil, err
	}
	return ReplayOn(m, t, liveStepped{l, l.Lockstep()})
}

// ReplayOn is Replay on any engine that has the model's sites, ops and CPUs, at rest.
func ReplayOn(m *Model, t *Trace, on Stepped) (*cpus.Violation, error) {
	if _, err := Conform(m, t); err != nil {
		return nil, err
	}
	if err := m.fits(t); err != nil {
		return nil, err
	}
	r := &replay{m: m, on: on, sits: make([]bool, len(m.Programs))}
	for _, p := range m.Programs {
		r.patchers = append(r.patchers, new(p.patcher(m.Code)))
	}
	for n := range t.Steps {
		s := &t.Steps[n]
		if err := r.step(s); err != nil {
			err.Step, err.Do = n+1, s.Do
			return nil, err
		}
	}
	v, want := r.violation(&t.Violation), t.Violation
	last := t.Steps[len(t.Steps)-1].Do
	if v == nil {
		return nil, &DivergedError{Step: len(t.Steps), Do: last, What: "violation", Want: string(want.Property)}
	}
	if v.Property != want.Property || v.CPU != want.CPU || v.Site != want.Site || v.Bytes != want.Bytes {
		return nil, &DivergedError{Step: len(t.Steps), Do: last, What: "violation", Want: want.String(), Got: v.String()}
	}
	return v, nil
}

// fits tells whether every step of a trace names the contents of each of the model's sites
// behind it, and each CPU's state and the versions that it may fetch there.
func (m *Model) fits(t *Trace) error {
	if len(t.Steps) == 0 {
		return errors.New("the trace has no steps")
	}
	for n := range t.Steps {
		s := &t.Steps[n]
		if got, want := len(s.Sites), len(m.Code.Sites); got != want {
			return fmt.Errorf("step %d, %s: %d sites: want %d", n+1, s.Do, got, want)
		}
		if got, want := len(s.CPUs), len(m.Roles); got != want {
			return fmt.Errorf("step %d, %s: %d CPUs: want %d", n+1, s.Do, got, want)
		}
		for i := range s.Sites {
			if got, want := len(s.Sites[i].Fetch), len(m.Roles); got != want {
				return fmt.Errorf("step %d, %s: site %d: what %d CPUs may fetch: want %d", n+1, s.Do, i, got, want)
			}
		}
	}
	return nil
}

// replay is an engine that follows a trace.
type replay struct {
	m        *Model
	on       Stepped
	patchers []*poke.Patcher
	sits     []bool // by patcher: it has begun, and is not over
	last     action
	ended    bool  // an update, with the last patcher's step
	err      error // of the last patcher's step
	waits    bool  // it changed nothing
}

// step makes one action happen, and compares what came of it.
func (r *replay) step(s *Step) *DivergedError {
	a, given, err := parseAction(s.Do)
	if err != nil {
		return &DivergedError{What: err.Error()}
	}
	ch := cpus.Repeat(given)
	r.last, r.waits = a, false
	event, after := r.act(a, ch)
	switch {
	case !ch.Fits():
		return &DivergedError{What: "the chooser was asked something else"}
	case event.String() != s.Event:
		return &DivergedError{What: "event", Want: s.Event, Got: event.String()}
	case after != s.After:
		return &DivergedError{What: "state", Want: s.After, Got: after}
	}
	for i, site := range s.Sites {
		if got := r.on.Peek(i).Format(r.m.Code.Len); got != site.Bytes {
			return &DivergedError{What: fmt.Sprintf("site %d", i), Want: site.Bytes, Got: got}
		}
	}
	return nil
}

func (r *replay) act(a action, ch cpus.Chooser) (event cpus.Event, after string) {
	cpu := int(a.who)
	if a.byPatcher() {
		return cpus.Nothing, r.actPatcher(a, ch)
	}
	switch a.kind {
	case stepCPU:
		if c := r.on.CPU(cpu); r.leased(cpu) && c.BetweenCalls() {
			r.on.Change(cpu, (*cpus.CPU).Repoll)
		}
		event = r.on.Step(cpu, ch)
	case park:
		r.on.Park(cpu)
	case unpark:
		r.on.Unpark(cpu, int(a.arg))
	case skip:
		r.on.Change(cpu, (*cpus.CPU).SkipPoll)
	case attend:
		r.on.Change(cpu, (*cpus.CPU).Repoll)
	case nmi:
		r.on.NMI(cpu)
	case tick:
		r.on.Tick(cpu)
	}
	c := r.on.CPU(cpu)
	return event, stateOf(&c)
}

func (r *replay) actPatcher(a action, ch cpus.Chooser) (after string) {
	i := int(a.who)
	p, home := r.patchers[i], r.m.homes[i]
	switch a.kind {
	case begin:
		if c := r.on.CPU(home); !c.Preemptible() {
			r.on.Park(home)
		}
		r.on.Change(home, (*cpus.CPU).Repoll)
		r.on.Sit(i, home)
		r.sits[i] = true
	case drain:
		p.Drain(int(a.arg), r.on.Ground(i))
	case stepPatcher:
		at, done, stage := p.Place()
		choosing := p.Between()
		_, r.err = p.Step(context.Background(), r.on.Ground(i), ch)
		at2, done2, stage2 := p.Place()
		r.waits = at == at2 && done == done2 && stage == stage2
		if r.ended = p.Between() && !choosing; r.ended {
			r.on.Change(home, (*cpus.CPU).Repoll)
			r.sits[i] = false
		}
	}
	return placeOf(p)
}

// leased tells whether a patcher sits on a CPU.
func (r *replay) leased(cpu int) bool {
	for i := range r.patchers {
		if r.m.homes[i] == cpu && r.sits[i] {
			return true
		}
	}
	return false
}

// violation is the property that the last step has broken: the machine has reported it, or it
// shows only from outside of the machine.
func (r *replay) violation(want *cpus.Violation) *cpus.Violation {
	if _, first := r.on.Violations(); len(first) > 0 {
		return &first[0]
	}
	v := *want
	if want.Property == cpus.StuckUpdate || want.Property == cpus.StuckCPU {
		if r.stuck() {
			return &v
		}
		return nil
	}
	i := int(r.last.who)
	if r.last.kind != stepPatcher {
		return nil
	}
	switch {
	case want.Property == cpus.BrokenSite && r.err != nil:
		return &v
	case want.Property == cpus.BrokenSite && r.ended:
		text, ops := r.on.Peek(want.Site).Format(r.m.Code.Len), r.on.Ground(i).Literal(want.Site)
		if want.Bytes == text || want.Bytes == fmt.Sprintf("%#x", ops) {
			return &v
		}
	case want.Property == cpus.Deadlock && r.hangs(i):
		return &v
	}
	return nil
}

// hangSteps is how often everybody is let try to move before a machine is said to
// hang: many times what a round takes.
const hangSteps = 1000

// hangs tells whether a patcher does not get on whatever anybody does.
func (r *replay) hangs(i int) bool {
	if r.ended { // it has left the machine stopped
		return r.on.Stopping(i)
	}
	if !r.waits {
		return false
	}
	for range hangSteps {
		if r.everybody(i) {
			return false
		}
	}
	return true
}

// stuck tells whether some update is not over, or some CPU not back, however often
// everybody moves.
func (r *replay) stuck() bool {
	for range hangSteps {
		well := true
		for k := range r.patchers {
			well = well && !r.sits[k]
		}
		for cpu := range r.m.Roles {
			c := r.on.CPU(cpu)
			well = well && c.BetweenCalls()
		}
		if well {
			return false
		}
		r.everybody(-1)
	}
	return true
}

// everybody makes a step, as far as they can, and tells whether that patcher has got on.
func (r *replay) everybody(patcher int) (gotOn bool) {
	zero := &cpus.Script{}
	for cpu := range r.m.Roles {
		if !r.leased(cpu) || r.on.Pending(cpu, false) {
			r.act(action{kind: stepCPU, who: uint8(cpu)}, zero)
			zero.Restart(nil)
		}
	}
	for k := range r.patchers {
		if !r.sits[k] {
			continue
		}
		if c := r.on.CPU(r.m.homes[k]); !c.BetweenCalls() { // interrupted, or standing still
			continue
		}
		r.actPatcher(action{kind: stepPatcher, who: uint8(k)}, zero)
		zero.Restart(nil)
		if k == patcher && !r.waits {
			return true
		}
	}
	return false
}

// Conform takes a trace through the checker's own semantics: every step must be
// possible there, and come to the same. It returns how many steps did.
func Conform(m *Model, t *Trace) (int, error) {
	w := newWorld(m)
	for n := range t.Steps {
		s := &t.Steps[n]
		a, given, err := parseAction(s.Do)
		if err != nil {
			return n, fmt.Errorf("step %d: %w", n+1, err)
		}
		diverged := &DivergedError{Step: n + 1, Do: s.Do}
		if int(a.who) >= len(m.Roles) || a.byPatcher() && int(a.who) >= len(m.Programs) {
			diverged.What = "no CPU or patcher has that number"
			return n, diverged
		}
		if !w.may(a) {
			diverged.What = "this cannot happen now"
			return n, diverged
		}
		ch := cpus.Repeat(given)
		w.perform(a, ch)
		switch after := w.after(a); {
		case !ch.Fits():
			diverged.What = "the chooser was asked something else"
		case w.event.String() != s.Event:
			diverged.What, diverged.Want, diverged.Got = "event", s.Event, w.event.String()
		case s.After != "" && s.After != after:
			diverged.What, diverged.Want, diverged.Got = "state", s.After, after
		default:
			continue
		}
		return n, diverged
	}
	return len(t.Steps), nil
}

// may tells whether an action is one that can happen next.
func (w *world) may(a action) bool {
	if a.kind == tick {
		return !w.leased(int(a.who))
	}
	if slices.Contains(w.enabled(nil), a) {
		return true
	}
	return a.kind == skip || a.kind == attend
}
