// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/kernels/record"
)

// machine is what CPUs may do meanwhile, by the rules of the model: a CPU answers each round once; the sender goes on
// when all have; a CPU runs into a breakpoint that was there since it last fetched afresh, and goes on as the new
// instruction; the machine's text changes while it is stopped only when everybody stands still.
func (c *checker) machine(batches []*record.Batch) error {
	m := &machine{checker: c, synced: make([]int, c.r.CPUs), rounds: map[int]*round{}, stands: map[int]bool{},
		trapped: map[int][]*handler{}, begun: map[int][]string{}, standsSeen: c.r.Watches(record.Stand),
		breakpoints: map[uint64]*breakpoint{}, going: map[uint64]*breakpoint{}, of: map[uint64][]change{},
		text: map[uint64]byte{}, found: map[string]int{}}
	for _, b := range batches {
		for n := range b.Sites {
			s := &b.Sites[n]
			m.of[s.Addr] = append(m.of[s.Addr], change{b, s})
		}
	}
	for i := range c.r.Steps {
		s := &c.r.Steps[i]
		if s.Kind == record.Stop && m.halted {
			return fmt.Errorf("%s: step %d: %s: another stop of the machine is not over: whose stores follow cannot be told",
				c.r.Name(), i+1, s)
		}
		m.step(i, s)
	}
	return nil
}

type machine struct {
	*checker
	synced      []int          // by CPU: the step in which it last fetched afresh
	rounds      map[int]*round // by sender
	halted      bool
	stands      map[int]bool       // by CPU
	standsSeen  bool               // who stands still is recorded
	trapped     map[int][]*handler // by CPU: those that have not returned
	begun       map[int][]string   // by CPU: the functions that have begun and not returned
	text        map[uint64]byte    // of the kernel itself: the stored bytes
	found       map[string]int     // where handlers find a batch: stores since it was published there
	breakpoints map[uint64]*breakpoint
	going       map[uint64]*breakpoint // those that are being replaced
	of          map[uint64][]change    // by site
}

// handler is one of a breakpoint, with its reference on the batch.
type handler struct {
	trap        int // its step
	took, given bool
}

// change is one batch's change of a site.
type change struct {
	b    *record.Batch
	site *record.Site
}

// round is one that a CPU has sent. Its task may be on another one by now.
type round struct {
	step     int
	sender   int
	name     string
	answered []bool
}

// breakpoint is one that was stored.
type breakpoint struct {
	stands   bool
	by       int // the CPU that replaces it: a store is recorded when its function begins
	replaced int // the step before which that was over; 0 for not yet
}

func (m *machine) step(i int, s *record.Step) {
	switch s.Kind {
	case record.Round, record.Unpublish, record.End:
		if m.rounds[s.CPU] != nil {
			m.goesOn(i, s)
		}
	}
	switch s.Kind {
	case record.Store, record.Round, record.End, record.Resume:
		for at, b := range m.going {
			if b.by == s.CPU {
				b.replaced = i
				delete(m.going, at)
			}
		}
	}
	switch s.Kind {
	case record.Store:
		m.store(i, s)
	case record.Begin, record.End:
		m.encloses(i, s)
	case record.Round:
		m.Rounds++
		if s.Name == record.Firmware && !m.r.Words() {
			m.misfit(i, "no firmware answers rounds of %s", m.r.Arch)
		}
		m.rounds[s.CPU] = &round{i, s.CPU, s.Name, make([]bool, m.r.CPUs)}
	case record.Answer:
		m.answer(i, s)
	case record.Done:
		if m.rounds[s.CPU] == nil {
			m.misfit(i, "the CPU waits for no round")
		}
		m.goesOn(i, s)
	case record.Publish, record.Unpublish:
		m.publishes(i, s)
	case record.Take, record.Give:
		m.refers(i, s)
	case record.Trap:
		m.trap(i, s)
	case record.Leave, record.Pass:
		m.handled(i, s)
		m.synced[s.CPU] = i
	case record.Move:
		m.move(s)
	case record.Stop:
		m.halted = true
	case record.Resume:
		m.halted = false
	case record.Stand:
		if m.stands[s.CPU] {
			m.misfit(i, "the CPU stands still already")
		}
		m.stands[s.CPU] = true
	case record.Go:
		if !m.stands[s.CPU] {
			m.misfit(i, "the CPU does not stand still")
		}
		delete(m.stands, s.CPU)
		m.halted = m.halted && len(m.stands) > 0 // once all have left the stop is over, whenever its task goes on
		m.synced[s.CPU] = i
	case record.Change:
		m.misfit(i, "no recorded store did it")
	}
}

// move notes that a task has moved to another CPU, with its round and its breakpoints.
func (m *machine) move(s *record.Step) {
	from := s.From()
	if r := m.rounds[from]; r != nil {
		delete(m.rounds, from)
		m.rounds[s.CPU] = r
	}
	for _, b := range m.going {
		if b.by == from {
			b.by = s.CPU
		}
	}
	m.begun[s.CPU], m.begun[from] = append(m.begun[s.CPU], m.begun[from]...), nil
}

// encloses is a function that begins or returns. One that begins again on its CPU has lost its end, and with it what
// its batch should have done. Locks keep two tasks from patching at a time (text_mutex, and ftrace_lock where
// arch_ftrace_update_code begins a batch, Linux 6.1 to 7.3).
func (m *machine) encloses(i int, s *record.Step) {
	n := slices.Index(m.begun[s.CPU], s.Name)
	for cpu := range m.r.CPUs {
		if b := m.begun[cpu]; s.Kind == record.Begin && cpu != s.CPU && len(b) > 0 {
			m.misfit(i, "CPU %d has begun %s, and not ended it", cpu, b[len(b)-1])
		}
	}
	switch {
	case s.Kind == record.Begin && n >= 0:
		m.misfit(i, "it has begun before on this CPU, and its end is not recorded")
	case s.Kind == record.Begin:
		m.begun[s.CPU] = append(m.begun[s.CPU], s.Name)
	case n >= 0:
		m.begun[s.CPU] = slices.Delete(m.begun[s.CPU], n, n+1)
	default:
		m.misfit(i, "it has not begun on this CPU")
	}
}

// publishes is a patcher that has handlers find its batch, or find it no more.
func (m *machine) publishes(i int, s *record.Step) {
	stores, found := m.found[s.Name]
	switch {
	case s.Kind == record.Publish && found:
		m.misfit(i, "a batch is published already")
	case s.Kind == record.Publish:
		m.found[s.Name] = 0
	case !found:
		m.misfit(i, "no batch is published")
	case stores == 0:
		m.misfit(i, "nothing was stored since the batch was published")
	}
	if s.Kind == record.Unpublish {
		delete(m.found, s.Name)
	}
}

// handler is the innermost one that a CPU is in; nil for none.
func (m *machine) handler(cpu int) *handler {
	if n := len(m.trapped[cpu]); n > 0 {
		return m.trapped[cpu][n-1]
	}
	return nil
}

// refers is a handler that takes its reference, or gives it back. Where two CPUs store to the count at a time, one step
// of the two is not seen.
func (m *machine) refers(i int, s *record.Step) {
	t := m.handler(s.CPU)
	switch {
	case t == nil:
		m.misfit(i, "the CPU is in no handler")
	case t.given || t.took && s.Kind == record.Take:
		m.misfit(i, "its handler has done so already")
	default:
		t.took, t.given = true, s.Kind == record.Give
	}
}

// trap is a CPU that has run into a breakpoint. Of a place that no batch changes nothing is known.
func (m *machine) trap(i int, s *record.Step) {
	m.Traps++
	m.trapped[s.CPU] = append(m.trapped[s.CPU], &handler{trap: i})
	b, of := m.breakpoints[s.At], m.of[s.At]
	switch {
	case b == nil && len(of) > 0 && !m.traps(of[0].site.Old):
		m.misfit(i, "no breakpoint was stored there")
	case b != nil && !b.stands && b.replaced > 0 && b.replaced <= m.synced[s.CPU]:
		m.misfit(i, "the breakpoint is gone, and the CPU has synchronised since, in step %d", m.synced[s.CPU]+1)
	}
}

func (m *machine) store(i int, s *record.Step) {
	if s.Fresh() {
		m.Fresh++
		if m.r.Text.Has(s.At, len(s.New)) {
			m.misfit(i, "%s stores over the kernel's own text", s.Name)
		}
		return
	}
	m.Stores++
	if r := m.rounds[s.CPU]; r != nil {
		m.goesOn(i, s)
	}
	if n := len(m.stands); m.halted && m.standsSeen && n < m.r.CPUs {
		m.misfit(i, "the machine is stopped, and %d of %d CPUs stand still", n, m.r.CPUs)
	}
	for name := range m.found {
		m.found[name]++
	}
	for n, b := range s.Old {
		at := s.At + uint64(n)
		if was, known := m.text[at]; known && was != b {
			m.misfit(i, "at %#x %02x stands there, and %02x was stored", at, b, was)
		}
		if m.r.Text.Has(at, 1) {
			m.text[at] = s.New[n]
		}
	}
	if m.traps(s.New) {
		m.breakpoints[s.At] = &breakpoint{stands: true}
	} else if b := m.breakpoints[s.At]; b != nil && b.stands {
		b.stands, b.by = false, s.CPU
		m.going[s.At] = b
	}
}

// answer is a CPU that synchronises because somebody has asked for it.
func (m *machine) answer(i int, s *record.Step) {
	m.Answers++
	m.synced[s.CPU] = i
	if len(m.trapped[s.CPU]) > 0 { // it holds interrupts back
		m.misfit(i, "the CPU is in the handler of a breakpoint")
	}
	for n := range m.r.CPUs { // its own round first
		if r := m.rounds[(s.CPU+n)%m.r.CPUs]; r != nil && r.name == s.Name && !r.answered[s.CPU] {
			r.answered[s.CPU] = true
			return
		}
	}
	m.misfit(i, "it answers a round that was not sent, or answers twice")
}

// goesOn is the sender of a round that waits no more. Where sites are no words it is on_each_cpu's, which answers
// itself, too (kernel/smp.c, Linux 6.1 to 7.3).
func (m *machine) goesOn(i int, s *record.Step) {
	r := m.rounds[s.CPU]
	delete(m.rounds, s.CPU)
	if r == nil || r.name == record.Firmware {
		return
	}
	for cpu, answered := range r.answered {
		if !answered && (cpu != r.sender || !m.r.Words()) {
			m.misfit(i, "CPU %d has not answered the round of step %d", cpu, r.step+1)
			return
		}
	}
}

// handled is a CPU that a breakpoint's handler lets go on: as the new instruction where it knows the breakpoint.
func (m *machine) handled(i int, s *record.Step) {
	t := m.handler(s.CPU)
	if t == nil {
		m.misfit(i, "the CPU has run into no breakpoint")
		return
	}
	trap := t.trap
	m.trapped[s.CPU] = m.trapped[s.CPU][:len(m.trapped[s.CPU])-1]
	at, loose := m.r.Steps[trap].At, false
	for _, c := range m.of[at] {
		steps := c.b.Steps
		if trap < steps[0] || m.ended(c.b) && trap > steps[len(steps)-1] || c.b.By == "" {
			loose = loose || c.b.By == ""
			continue
		}
		switch b := m.breakpoints[at]; {
		case s.Kind == record.Pass && b != nil && b.stands:
			m.misfit(i, "the handler does not know a breakpoint that stands there")
		case s.Kind == record.Leave && !m.acts(c.site, s.At):
			m.misfit(i, "the instruction that is new at %#x, % x, does not lead there", at, c.site.New)
		}
		return
	}
	if s.Kind == record.Leave && !loose {
		m.misfit(i, "no batch that changes %#x is under way", at)
	}
}

// acts tells whether an instruction leads to where a CPU goes on.
func (m *machine) acts(s *record.Site, to uint64) bool {
	switch insn := m.decode(s); insn.Kind {
	case isa.Call, isa.Jump:
		return uint64(insn.Target) == to
	case isa.Nop:
		return to == s.Addr+uint64(insn.Len)
	}
	return true // a branch that depends, a return: where it leads is not seen
}
