// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/tracers"
)

// did prices the steps of a change of the function tracer, in their order.
func (r *Replay) did(rep tracers.Report, err error) {
	if err != nil {
		r.fail("%w", err)
		return
	}
	r.work.add(&rep)
	skips := rep.Count(tracers.StepSkip)
	for _, s := range rep.Steps {
		if s.Kind == tracers.StepSkip && r.k.Facts.value(image.SkipBatched) > 0 {
			r.in("bpf-image", func() {
				r.batched(cpus.Trampoline, skips, "BPF trampolines from which a program that goes is patched out")
			})
			skips = 0 // the first stands for all
			continue
		}
		r.price(s)
	}
}

// batched notes pokes that are queued and finished together. Where batches are not sorted, their
// order may end some early, and no image tells it.
func (r *Replay) batched(cause cpus.Cause, pokes int, of string) {
	n, each, more := r.batches(pokes, sched.Ascending), r.mech(image.BatchRounds), 0
	if r.k.Facts.value(image.BatchSorted) == 0 && pokes > 0 {
		more = (pokes - n) * each
	}
	r.note(Entry{Cause: cause, Row: r.k.callRow, Pokes: n, RoundsPerPoke: each, More: more, Basis: r.k.Facts.code(),
		Source: fmt.Sprintf("%d %s, in %d batches", pokes, of, n)})
}

// price notes the interrupts of a step. While every CPU is stopped for the records, the
// kernel sends nothing else (ftrace_modify_all_code, kernel/trace/ftrace.c).
func (r *Replay) price(s tracers.Step) {
	switch s.Kind {
	case tracers.StepTrampoline:
		r.in("tracer-trampoline", func() {
			r.flushOrMore(r.mech(image.TrampFlushes),
				"the trampoline of "+s.Ops.Name+" is made: so many changes of protection, or more")
		})
	case tracers.StepAim:
		r.in("tracer-trampoline", func() {
			r.sent(cpus.Trampoline, r.k.callRow, 1, r.mech(image.TrampolineAims), r.k.Facts.code(),
				"the trampoline of "+s.Ops.Name+" gets its function")
		})
	case tracers.StepFree:
		r.in("tracer-trampoline", func() {
			r.flushOrMore(r.mech(image.TrampFrees), "the trampoline of "+s.Ops.Name+" is freed")
		})
	case tracers.StepImage:
		r.in("bpf-image", r.image)
	case tracers.StepSkip:
		r.in("bpf-image", r.skip)
	case tracers.StepRecords:
		r.records(s.Pass)
	case tracers.StepUpdateFunc:
		r.entries(s.Func.Name)
	case tracers.StepSync:
		if r.mech(image.UpdateStops) == 0 {
			r.in("core-sync", func() {
				r.sent(cpus.CoreSync, r.k.callRow, r.mech(image.CoreSyncs), 1, r.k.Facts.code(),
					"ftrace_sync_ipi orders what the next function is called with")
			})
		}
	case tracers.StepGraphStart, tracers.StepGraphStop:
		r.in("graph-jump", func() {
			r.sent(cpus.EntryCall, r.k.callRow, 1, r.mech(image.GraphJumps), r.k.Facts.code(), "the jump at ftrace_graph_call")
		})
	case tracers.StepTasks:
		r.waits(cpus.Quiesce, "synchronize_rcu_tasks, about 100 ms: until every task has scheduled")
	case tracers.StepRude:
		r.waits(cpus.QuiesceCPUs, "synchronize_rcu_tasks_rude: until every CPU has switched tasks")
		r.in("rcu", func() {
			n := r.mech(image.DetachWakes)
			r.note(Entry{Cause: cpus.CoreSync, Row: r.k.wakeRow(), Pokes: 1, RoundsPerPoke: n, Fewer: n, More: n, Basis: Assumed,
				Source: "each CPU is given work, and woken, once or twice; a busy one counts that as rescheduling"})
		})
	}
}

// flush is changes of protection of pages. How many flushes they take is not in an image:
// up to seenMore above the least were seen where pages that were freed before are flushed too.
func (r *Replay) flush(n int, source string) {
	r.note(Entry{Cause: cpus.PageAttributes, Row: r.k.callRow, Pokes: n, RoundsPerPoke: r.mech(image.PageFlushes),
		More: seenMore, Basis: Assumed, Source: source})
}

const seenMore = 2

// flushOrMore is a flush with an unknown number of large pages that are split, too: as many again were seen.
func (r *Replay) flushOrMore(n int, source string) {
	each := r.mech(image.PageFlushes)
	r.note(Entry{Cause: cpus.PageAttributes, Row: r.k.callRow, Pokes: n, RoundsPerPoke: each, More: n * each, OrMore: true,
		Basis: Assumed, Source: source})
}

// entries lets the calls in the common entries go to a function (update_ftrace_func).
func (r *Replay) entries(to string) {
	if r.mech(image.UpdateStops) > 0 {
		return
	}
	r.in("entry-calls", func() {
		r.sent(cpus.EntryCall, r.k.callRow, r.mech(image.EntryCalls), r.mech(image.EntryRounds), r.k.Facts.code(),
			"the calls in the common entries go to "+to)
	})
}

// image makes a BPF trampoline: the protection of pages changes, or the buffer in which it
// is built is freed.
func (r *Replay) image() {
	r.flush(r.mech(image.DirectFlushes), "a BPF trampoline: "+r.k.Facts.Mechanisms[image.DirectFlushes].Evidence)
	if r.mech(image.BatchRounds) == 0 {
		r.sent(cpus.CoreSync, r.k.SyncRow, 1, r.mech(image.DirectSyncs), r.k.Facts.code(),
			"a BPF trampoline is copied to its place: "+r.k.Facts.Mechanisms[image.DirectSyncs].Evidence)
	}
}

// skip changes a BPF trampoline that others may execute: a program that goes is patched out
// of it, or the whole trampoline is.
func (r *Replay) skip() {
	const why = "a program that goes is patched out of its BPF trampoline, or the trampoline cut off"
	r.sent(cpus.Trampoline, r.k.callRow, 1, r.mech(image.BatchRounds), r.k.Facts.code(), why)
	if r.mech(image.BatchRounds) == 0 {
		r.sent(cpus.Stop, r.k.StopRow, 1, r.mech(image.SkipStops), r.k.Facts.code(), why)
	}
}

// records is the update of the records themselves. It is noted even if it sends nothing.
func (r *Replay) records(p *tracers.Pass) {
	for _, name := range []string{image.UpdateRounds, image.UpdateStops, image.UpdateFences, image.RecordFences, image.BatchRounds} {
		r.mech(name)
	}
	n, rec := len(p.Patches), r.k.Records
	batches := r.batches(n, func(i int) records.Addr { return p.Patches[i].Addr })
	l := Line{
		Records: n, Batches: batches, pass: p,
		Entry: Entry{Part: "records", Cause: rec.Cause, Row: r.k.RowOf(rec.Cause), Pokes: n,
			Basis: r.k.Facts.code(), Source: rec.Source},
	}
	l.Sent = rec.Rounds(batches, n)
	if rec.PerBatch > 0 {
		l.Source = fmt.Sprintf("%d batches; %s", batches, l.Source)
	}
	r.lines = append(r.lines, l)
}

// batches cuts records as the kernel does that queues them; 0 where it queues none. One needs no
// vector whose size is known.
func (r *Replay) batches(n int, at func(i int) records.Addr) int {
	switch {
	case r.mech(image.BatchRounds) == 0:
		return 0
	case n <= 1:
		return n
	}
	if r.k.Facts.value(image.BatchSorted) > 0 {
		at = sched.Ascending
	}
	return sched.Batches(n, at, sched.Buffer{Slots: max(1, r.mech(image.BatchSlots))})
}
