// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"context"
	"fmt"
	"math"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

// nanos is a time, or a point in time, in nanoseconds. Times only order what happens.
type nanos int64

// batch is one update: how long the stores before each of its rounds take.
type batch []nanos

// takes is how long the update takes, stores and rounds.
func (b batch) takes(round nanos) nanos {
	sum := nanos(len(b)) * round
	for _, stores := range b {
		sum += stores
	}
	return sum
}

// slots is what the kernel queues before it sends rounds: TP_VEC_MAX, a page of entries of
// 16 bytes (arch/x86/kernel/alternative.c, Linux 6.12).
const slots = 256

// batches compiles what the kernel does on a machine, once for each number of clients
// up to most whose patches are queued together, in address order.
func batches(ctx context.Context, m experiments.Machine, most, patches int) ([]batch, error) {
	arch, err := m.ISA()
	if err != nil {
		return nil, err
	}
	table, err := records.Open(ctx, fmt.Sprintf("gen:n=%d,order=sorted", most*patches), records.Options{})
	if err != nil {
		return nil, err
	}
	job, err := sim.NewJob(sim.Config{Arch: arch, Table: table, Roles: m.Busy(), Buffer: sched.Buffer{Slots: slots}})
	if err != nil {
		return nil, err
	}
	which := make([]int, most*patches)
	for i := range which {
		which[i] = i
	}
	out := make([]batch, most+1) // none of them for no client
	for n := 1; n <= most && ctx.Err() == nil; n++ {
		plan, err := job.Of(which[:n*patches], job.Buffer).Plan()
		if err != nil {
			return nil, err
		}
		if out[n] = compiled(plan, m.Costs.Store); len(out[n]) == 0 {
			return nil, fmt.Errorf("calibration %s: updates on %s send no rounds that could be shared", m, m.Arch)
		}
	}
	return out, ctx.Err()
}

// compiled is the batch that a plan is, where one store takes so many nanoseconds.
func compiled(plan []poke.Step, store float64) (b batch) {
	stores := 0
	for _, s := range plan {
		switch s.Op {
		case poke.Write:
			stores += int(s.To - s.From)
		case poke.Sync:
			b = append(b, nanos(math.Round(float64(stores)*store)))
			stores = 0
		}
	}
	return b
}
