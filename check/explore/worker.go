// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"github.com/textpoke/textpoke/cpus"
)

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
