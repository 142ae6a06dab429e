// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/record"
	"github.com/textpoke/textpoke/poke"
)

// follower goes along a batch's steps and its plan.
type follower struct {
	*checker
	b      *record.Batch
	items  []item
	next   int             // of items
	text   map[uint64]byte // what the batch's places hold
	stored bool            // since the last round
	others bool            // another handler knows the breakpoints: kprobes'
	told   map[string]bool // CPUs whose references were stored to, while the plan's Publish or Unpublish goes on
}

// follow takes all steps of the batch, and says which one does not fit.
func (f *follower) follow() {
	for _, i := range f.b.Steps {
		s := &f.r.Steps[i]
		if s.Kind == record.End {
			break
		}
		if !f.tells(i, s.Kind) || !f.step(i, s) {
			return
		}
	}
	at := f.b.Steps[len(f.b.Steps)-1]
	if !f.ended(f.b) || !f.tells(at, "") {
		return
	}
	if f.b.By == "" {
		at++ // what follows came too early
	}
	for ; f.next < len(f.items); f.next++ {
		if t := &f.items[f.next]; !f.mayMiss(t) {
			f.misfit(at, "the plan's step %s is missing before it", t)
			return
		}
	}
	if f.b.By == "" || f.r.Steps[f.b.Steps[0]].Kind == record.Stop {
		return
	}
	for _, s := range f.b.Sites {
		if f.traps(s.New) {
			f.misfit(at, "a breakpoint stays at %#x", s.Addr)
			return
		}
	}
}

// ended tells whether the batch is over: a machine may have ended within one.
func (c *checker) ended(b *record.Batch) bool {
	kind := c.r.Steps[b.Steps[len(b.Steps)-1]].Kind
	return b.By == "" || kind == record.End || kind == record.Resume
}

// step takes one step; false if it does not fit.
func (f *follower) step(i int, s *record.Step) bool {
	for n := f.next; n < len(f.items); n++ {
		t := &f.items[n]
		if f.does(t, s) {
			f.SkippedRounds += spelling.Count(f.items[f.next:n], func(left item) bool {
				return left.Op == poke.Sync && !left.moot
			})
			f.next = n + 1
			f.told = nil
			f.took(s)
			return true
		}
		if !f.mayMiss(t) {
			break
		}
	}
	switch s.Kind {
	case record.Round:
		f.ExtraRounds++
		return true
	case record.Stop:
		f.ExtraHalts++
		return true
	case record.Resume: // all fetch afresh
		f.stored = false
		return true
	case record.Publish, record.Unpublish: // of one CPU after the other
		if f.next > 0 && f.does(&f.items[f.next-1], s) {
			f.told[s.Name] = true
			return true
		}
	}
	want := "nothing more"
	for n := f.next; n < len(f.items); n++ {
		if t := &f.items[n]; !f.mayMiss(t) {
			want = t.String()
			break
		}
	}
	f.misfit(i, "the plan has %s here", want)
	return false
}

// does tells whether a recorded step is one of the plan.
func (f *follower) does(t *item, s *record.Step) bool {
	switch t.Op {
	case poke.Write:
		return s.Kind == record.Store && s.At == t.at && string(s.New) == string(t.bytes)
	case poke.Sync:
		return s.Kind == record.Round
	case poke.StopMachine:
		return s.Kind == record.Stop
	case poke.Resume:
		return s.Kind == record.Resume
	case poke.Publish:
		return s.Kind == record.Publish
	case poke.Unpublish:
		return s.Kind == record.Unpublish
	}
	return false
}

// took is what comes of a step.
func (f *follower) took(s *record.Step) {
	switch s.Kind {
	case record.Store:
		f.stored = true
		for i, b := range s.New {
			f.text[s.At+uint64(i)] = b
		}
	case record.Round, record.Resume:
		f.stored = false
	case record.Publish, record.Unpublish:
		f.told = map[string]bool{s.Name: true}
	}
}

// tells looks, before a step of another kind, whether a batch was published, or given up, on every CPU where each has
// references of its own.
func (f *follower) tells(i int, next record.Kind) bool {
	n := len(f.told)
	if next == record.Publish || next == record.Unpublish || n == 0 || f.told[""] || n == f.r.CPUs {
		return true
	}
	f.misfit(i, "the plan's step %s is done for %d of %d CPUs", f.items[f.next-1].Name(), n, f.r.CPUs)
	return false
}

// mayMiss tells whether a step of the plan may be missing: it cannot be seen, or nothing would come of it.
func (f *follower) mayMiss(t *item) bool {
	switch t.Op {
	case poke.Write:
		for i, b := range t.bytes {
			if f.text[t.at+uint64(i)] != b {
				return false
			}
		}
		return true
	case poke.Sync:
		return !f.stored || t.moot
	case poke.StopMachine, poke.Resume:
		return false
	case poke.Publish, poke.Unpublish:
		return !f.published || f.others
	}
	return true
}
