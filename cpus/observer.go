package cpus

import "time"

// Observer is told what a machine and its patchers do, by whoever does it and when
// it is over: many goroutines at the same time. Times are nanoseconds since Begun.
// All functions must be there.
type Observer struct {
	Begun time.Time
	// Round: a CPU sends a round to so many targets; none has taken it yet. Ids
	// are unique.
	Round func(id uint64, from int, cause Cause, targets int, at int64)
	// Interrupt: a target has taken it and answered.
	Interrupt func(id uint64, cpu int, cause Cause, from, until int64)
	// Trap: a CPU ran into a breakpoint; hit: an entry was found for it.
	Trap func(cpu int, from, until int64, hit bool)
	// Step: a patcher on that CPU made a step of its plan, and Batch: it
	// published so many patches, 0: none any more.
	Step  func(cpu int, name string, from, until int64)
	Batch func(at int64, fill int)
}

// Now is the time by the observer's clock.
func (o *Observer) Now() int64 { return int64(time.Since(o.Begun)) }

// Observer is who observes the machine; nil for nobody.
func (m *Machine) Observer() *Observer { return m.observer }

// watch follows one CPU for the observer.
type watch struct {
	*Observer
	began   int64 // when the interrupt or the trap did
	round   uint64
	cause   Cause
	trapped bool
}

// saw is told of each step which phase it began in.
func (w *watch) saw(r *runner, before Phase) {
	now := r.cpu.Phase
	if before == now {
		return
	}
	switch {
	case before == Interrupted && (now == Syncing || now == Answering):
		w.cause = r.cpu.Taken.Cause
		w.round = r.m.sender(r.cpu.Taken.Ticket).round // until answered, no other
	case before == Answering:
		if int(w.cause) < NumCauses {
			w.Interrupt(w.round, r.id, w.cause, w.began, w.Now())
		}
		w.began = w.Now() // another one may wait
	case now == Interrupted:
		w.began = w.Now()
	case now == Trapped:
		w.began, w.trapped = w.Now(), true
	case w.trapped && now <= lastBorder:
		w.Trap(r.id, w.began, w.Now(), before == Returning)
		w.trapped = false
	}
}
