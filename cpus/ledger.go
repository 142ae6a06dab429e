// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"sync/atomic"
	"time"
)

// burstWindow is the length of the bins in which bursts are counted.
const burstWindow = time.Millisecond

// Ledger counts interrupts: for every CPU and cause how many it took and how
// many rounds it sent, and for every cause how many targets those rounds had.
// Takers and senders count independently, so that conservation is a check and
// not a definition.
type Ledger struct {
	start time.Time
	cpus  []account
	sent  [NumCauses]atomic.Uint64 // targets
}

// account is one CPU's page of the ledger. Each counter has one writer at a
// time.
type account struct {
	taken  [NumCauses]atomic.Uint64
	rounds [NumCauses]atomic.Uint64
	bin    atomic.Int64 // burstWindow that inBin counts
	inBin  atomic.Int64
	burst  atomic.Int64
	_      [40]byte // to a multiple of a cache line
}

// take counts one interrupt taken.
func (l *Ledger) take(cpu int, cause Cause) {
	a := &l.cpus[cpu]
	a.taken[cause].Add(1)
	bin := int64(time.Since(l.start) / burstWindow)
	if a.bin.Swap(bin) != bin {
		a.inBin.Store(0)
	}
	if n := a.inBin.Add(1); n > a.burst.Load() {
		a.burst.Store(n)
	}
}

// Counts is a reading of a Ledger.
type Counts struct {
	Taken  [][NumCauses]uint64 // interrupts by CPU and cause
	Rounds [][NumCauses]uint64 // rounds sent by CPU and cause
	Sent   [NumCauses]uint64   // targets of all rounds by cause
	Burst  []int64             // most interrupts in one millisecond by CPU, since ForgetBursts
}

// NewCounts is the reading of a ledger of so many CPUs in which nothing stands.
func NewCounts(cpus int) Counts {
	return Counts{
		Taken:  make([][NumCauses]uint64, cpus),
		Rounds: make([][NumCauses]uint64, cpus),
		Burst:  make([]int64, cpus),
	}
}

// ForgetBursts starts the bursts anew.
func (l *Ledger) ForgetBursts() {
	for i := range l.cpus {
		l.cpus[i].burst.Store(0)
		l.cpus[i].inBin.Store(0)
	}
}

// Read reads the ledger. While a round is in flight its targets are ahead of
// what was taken.
func (l *Ledger) Read() Counts {
	c := NewCounts(len(l.cpus))
	for i := range l.cpus {
		a := &l.cpus[i]
		for k := range NumCauses {
			c.Taken[i][k] = a.taken[k].Load()
			c.Rounds[i][k] = a.rounds[k].Load()
		}
		c.Burst[i] = a.burst.Load()
	}
	for k := range NumCauses {
		c.Sent[k] = l.sent[k].Load()
	}
	return c
}

// Since is what happened between an earlier reading and this one.
func (c Counts) Since(before Counts) Counts {
	return c.with(before, func(a, b uint64) uint64 { return a - b })
}

// Plus is what happened by this reading and by another one that follows it.
func (c Counts) Plus(next Counts) Counts {
	sum := c.with(next, func(a, b uint64) uint64 { return a + b })
	sum.Burst = next.Burst
	return sum
}

// with combines two readings number by number; bursts are those of c.
func (c Counts) with(d Counts, f func(a, b uint64) uint64) Counts {
	out := NewCounts(len(c.Taken))
	out.Burst = c.Burst
	for k := range NumCauses {
		out.Sent[k] = f(c.Sent[k], d.Sent[k])
		for i := range c.Taken {
			out.Taken[i][k] = f(c.Taken[i][k], d.Taken[i][k])
			out.Rounds[i][k] = f(c.Rounds[i][k], d.Rounds[i][k])
		}
	}
	return out
}

// TotalTaken and TotalRounds sum over CPUs.
func (c Counts) TotalTaken(cause Cause) (n uint64) {
	for i := range c.Taken {
		n += c.Taken[i][cause]
	}
	return n
}

// TotalRounds is the number of rounds of one cause.
func (c Counts) TotalRounds(cause Cause) (n uint64) {
	for i := range c.Rounds {
		n += c.Rounds[i][cause]
	}
	return n
}

// Conserved tells whether, for every cause, the interrupts taken are the
// targets sent; otherwise which cause differs.
func (c Counts) Conserved() (Cause, bool) {
	for k := range NumCauses {
		if c.TotalTaken(Cause(k)) != c.Sent[k] {
			return Cause(k), false
		}
	}
	return 0, true
}
