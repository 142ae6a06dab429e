// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"

	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sched"
)

// Count tells what the update that enables everything would cost, by counting
// alone: nothing is executed, and nothing grows with the number of steps.
func (j *Job) Count(ctx context.Context) (PlanRow, error) {
	row := j.planRow()
	var (
		count poke.Count
		cost  int3.Cost
		buf   int3.Batch
	)
	batches := func(yield func(sched.Batch) bool) {
		for b := range j.batches(len(j.queue), j.at) {
			if ctx.Err() != nil {
				return
			}
			row.flush(b.Flush)
			if j.protocol.Traps {
				cost.Add(int3.CostOf(j.Lookup, j.lookupBatch(b.Range, &buf)))
			}
			if !yield(b) {
				return
			}
		}
	}
	if err := j.compile(len(j.queue), false, batches, j.entries(), count.Add); err != nil {
		return row, err
	}
	row.Rounds, row.Stops = count.Rounds, count.Stops
	row.Lazy = count.Lazy
	row.IPIs = count.IPIs(j.Online(), j.Isolated())
	if j.Online() > 1 {
		row.perCPU(count.Rounds, count.Stops)
	}
	row.Lookup = cost
	return row, ctx.Err()
}

// planRow is the part of a row that the request says itself.
func (j *Job) planRow() PlanRow {
	row := PlanRow{
		Config:  &j.Config,
		Records: j.Table.Len(), Groups: len(j.Table.Groups()),
		Patches: len(j.queue), Skipped: j.skipped,
		Buffered: j.protocol.Batching == poke.Buffered,
	}
	if row.Buffered {
		row.BufferBytes, row.BufferPages = j.Buffer.Size(len(j.queue))
	}
	return row
}

// Rounds is how many rounds the update sends that enables everything, with what a
// scenario sends besides.
func (j *Job) Rounds() int {
	var count poke.Count
	batches := j.batches(len(j.queue), j.at)
	if j.compile(len(j.queue), false, batches, j.entries(), count.Add) != nil {
		return 0
	}
	rounds := count.Rounds
	if others, err := j.otherRounds(true); err == nil {
		for _, n := range others {
			rounds += n
		}
	}
	return rounds
}

// Of is the job for some of its records, which the table's numbers name in any
// order, with another vector.
func (j *Job) Of(which []int, b sched.Buffer) *Job {
	wanted := make(map[int]bool, len(which))
	for _, rec := range which {
		wanted[rec] = true
	}
	some := *j
	some.Buffer, some.queue = b, nil
	for _, rec := range j.queue { // which is in order
		if wanted[rec] {
			some.queue = append(some.queue, rec)
		}
	}
	some.shape.Patches = len(some.queue)
	return &some
}
