// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"math/bits"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
)

// expander makes the successors of states. Each goroutine has its own.
type expander struct {
	m      *Model
	w      *world
	reduce Reductions
	script cpus.Script
	list   []action
	next   []uint64
	order  [MaxCPUs]uint8 // where symmetry has moved the CPUs: order[new] is old
	saved  saved
	last   []uint64 // room for read
	read   []uint64 // the words that the world was last read from; nil when it is not as they say any more

	// The successor that expand is at: its words are in next.
	action action
	full   bool // some successor had no room in its words: it was left out
}

// answers are the chooser's answers that led to the successor that expand is at;
// they are valid until the next one.
func (e *expander) answers() []uint8 { return e.script.Answers() }

// saved is what an action can change, to go back to.
type saved struct {
	cpu     [MaxCPUs]cpus.CPU
	parked  [MaxCPUs]cpus.Task
	under   [MaxCPUs]cpus.CPU
	state   state
	patcher [MaxPatchers]poke.Progress
	room    [MaxPatchers][maxBuffered]poke.StoreID
}

func newExpander(m *Model, r Reductions) *expander {
	r.Order = r.Order && !m.Code.Path.NMIs && !m.Code.Path.ComesUp // no proof says which steps commute there
	r.Single = r.Single && r.Order && len(m.Programs) == 1 && !m.Preempt && m.Refs != int3.SharedRef
	r.Symmetry = r.Symmetry && !r.Single // equal CPUs are exchanged in none of its states
	return &expander{m: m, w: newWorld(m), reduce: r, next: make([]uint64, m.layout.words)}
}

// expand goes through the successors of a state, in an order that is always the
// same, and calls f at each with the violation on the way there, or nil. Actions
// that change nothing are left out. It ends early when f is false.
func (e *expander) expand(words []uint64, f func(found *cpus.Violation) bool) {
	w := e.w
	changed, shared := w.unpackOver(e.read, words)
	e.read = nil
	e.save(changed, shared)
	e.list = w.enabled(e.list[:0])
	if e.reduce.Single {
		e.list = w.single(e.list)
	}
	if e.reduce.Order {
		e.list = w.oneByOne(e.list)
	}
	for _, a := range e.list {
		e.script.Restart(nil)
		for more := true; more; {
			w.notes, w.full = notes{}, false
			w.perform(a, &e.script)
			if e.reduce.Order {
				w.runOn(a, &e.script)
			}
			if !w.waits && !w.full {
				e.pack(words, a)
			}
			e.action = a
			e.full = e.full || w.full
			changed := w.found != nil || !w.full && !w.waits && !slices.Equal(e.next, words)
			if changed && !f(w.found) {
				return
			}
			e.restore(a)
			more = e.script.Next()
		}
	}
	e.read = append(e.last[:0], words...)
	e.last = e.read
}

// pack writes the world, which was read from words before the action, into next.
// Most steps change only the CPU that makes them.
func (e *expander) pack(words []uint64, a action) {
	w := e.w
	own, shared := w.written()
	if e.m.Preempt && !(a.kind == stepCPU && own == 1<<a.who && !shared) { // tasks move with it
		w.pack(e.next)
	} else {
		copy(e.next, words)
		for ; own != 0; own &= own - 1 {
			w.packOwn(e.next, bits.TrailingZeros(own))
		}
		if shared {
			shared := e.next[e.m.layout.own*len(e.m.Roles):]
			clear(shared)
			w.sharedFields(&packer{w: shared})
		}
	}
	// States that differ only in their numbering have the same words.
	e.canonical(e.next)
	if e.reduce.Sites && e.m.SameSites && e.w.sitesAlike() {
		e.exchangeSites(e.next)
	}
}

// save notes what has changed since it last did so: which CPUs, one bit each, and
// whether what they share has.
func (e *expander) save(changed uint, shared bool) {
	w, n := e.w, len(e.m.Roles)
	for i := range n {
		if changed>>i&1 != 0 {
			e.saved.cpu[i] = w.cpu[i]
		}
	}
	if e.m.Preempt {
		copy(e.saved.parked[:n], w.parked[:n])
	}
	if e.m.Code.Path.NMIs {
		copy(e.saved.under[:n], w.under[:n])
	}
	e.saved.state = w.state // holds the CPUs' boxes too
	if !shared {
		return
	}
	for i := range e.m.Programs {
		e.saved.patcher[i] = w.patcher[i].Progress(e.saved.room[i][:0])
	}
}

func (e *expander) restore(a action) {
	w, n := e.w, len(e.m.Roles)
	if e.m.Code.Path.NMIs {
		copy(w.under[:n], e.saved.under[:n])
	}
	copy(w.cpu[:n], e.saved.cpu[:n])
	if e.m.Preempt {
		copy(w.parked[:n], e.saved.parked[:n])
	}
	w.state = e.saved.state
	if a.kind == stepPatcher || a.kind == drain {
		w.patcher[a.who].Resume(e.saved.patcher[a.who])
	}
}

// initial is the state before anything has happened.
func (e *expander) initial() []uint64 {
	words := make([]uint64, e.m.layout.words)
	newWorld(e.m).pack(words)
	e.canonical(words)
	return words
}

// houses tells whether some patcher sits on a CPU.
func (m *Model) houses(cpu int) bool {
	return slices.Contains(m.homes[:len(m.Programs)], cpu)
}

// worker looks at states of one level.
type worker struct {
	s     *search
	e     *expander
	out   []slab
	free  []slab // room of states that were looked at
	batch arrivals
}

// arrivals are states that wait to be looked up together: the processor then asks for
// the memory of several at once, where it would wait for each.
type arrivals struct {
	words []uint64
	fps   []uint64
	fresh []bool // which of them are new, once they were looked up
	order []uint16
}

// batchStates is how many successors wait: some dozens for each segment of the set.
const batchStates = 2048

func newWorker(s *search) *worker {
	return &worker{s: s, e: newExpander(s.m, s.o.Reduce)}
}

// slab looks at some states.
func (w *worker) slab(b slab) {
	n := w.s.m.layout.words
	states := int64(len(b) / n)
	var transitions uint64
	for ; len(b) > 0; b = b[n:] {
		w.e.expand(b[:n], func(found *cpus.Violation) bool {
			transitions++
			if found != nil {
				w.s.found(found)
				return true
			}
			w.batch.fps = append(w.batch.fps, fingerprint(w.e.next))
			w.batch.words = append(w.batch.words, w.e.next...)
			return true
		})
		if len(w.batch.fps) >= batchStates {
			w.flush()
		}
	}
	if w.e.full {
		w.s.stop(w.s.m.noRoom())
	}
	w.s.transitions.Add(transitions)
	w.s.queued.Add(-states)
}

// flush looks up what waits, and keeps what is new in the order in which it came.
func (w *worker) flush() {
	n, b := w.s.m.layout.words, &w.batch
	w.s.seen.insertAll(b)
	var isNew uint64
	for i, fresh := range b.fresh {
		if !fresh {
			continue
		}
		isNew++
		w.out = w.s.appendState(w.out, b.words[i*n:(i+1)*n], &w.free)
	}
	w.s.states.Add(isNew)
	w.s.queueBytes.Add(isNew * uint64(8*n))
	b.words, b.fps = b.words[:0], b.fps[:0]
}

// appendState puts a state into the last slab, or a new one, which may be one of
// those that are free.
func (s *search) appendState(list []slab, words []uint64, free *[]slab) []slab {
	room := slabStates * s.m.layout.words
	if len(list) == 0 || len(list[len(list)-1]) == room {
		fresh := slab(nil)
		if n := len(*free); n > 0 {
			fresh, *free = (*free)[n-1], (*free)[:n-1]
		}
		if cap(fresh) < room {
			fresh = make(slab, 0, room)
		}
		list = append(list, fresh)
	}
	last := &list[len(list)-1]
	*last = append(*last, words...)
	return list
}
