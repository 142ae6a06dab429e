// SPDX-License-Identifier: Apache-2.0

package timed

import "github.com/textpoke/textpoke/cpus"

// burstWindow is the length of the bins in which bursts are counted.
const burstWindow Nanos = 1e6

// ledger counts interrupts, as cpus.Ledger does, by the machine's clock: what was
// sent and what was taken each by itself, so that conservation is a check.
type ledger struct {
	sent cpus.Counts // rounds and their targets; what was taken is in pages
	page []page      // by CPU
	life []Life      // by CPU, as of the beginning of the update
}

// page is what the ledger says of one CPU in the update that is under way: what an
// interrupt of a round changes is in one cache line.
type page struct {
	bin   Nanos // the burstWindow that inBin counts
	inBin int64
	burst int64 // most of them
	last  Nanos // the last interrupt, or the beginning
	gap   Nanos // the longest time without one
	taken [cpus.NumCauses]uint64

	// Of all its life, in which nothing is a pause.
	since Nanos // the last interrupt
	quiet Nanos // the longest time without one
}

// open starts a new page: counts are of one update.
func (l *ledger) open(cpuCount int, now Nanos) {
	if l.life == nil {
		l.life, l.page = make([]Life, cpuCount), make([]page, cpuCount)
	}
	l.sent = cpus.NewCounts(cpuCount)
	for i := range l.page {
		p := &l.page[i]
		l.life[i] = p.addTo(l.life[i])
		*p = page{bin: -1, last: now, since: p.since, quiet: p.quiet}
	}
}

// counts is what the ledger says of all CPUs, gaps the longest times without an
// interrupt.
func (l *ledger) counts() (c cpus.Counts, gaps []Nanos) {
	c, gaps = l.sent, make([]Nanos, len(l.page))
	for i := range l.page {
		p := &l.page[i]
		c.Taken[i], c.Burst[i], gaps[i] = p.taken, p.burst, p.gap
	}
	return c, gaps
}

// addTo is a CPU's life with what the page says.
func (p *page) addTo(l Life) Life {
	for _, n := range p.taken {
		l.Taken += n
	}
	l.Burst = max(l.Burst, p.burst)
	l.Quiet = p.quiet
	return l
}

// take counts an interrupt taken.
func (l *ledger) take(cpu int, cause cpus.Cause, now Nanos) {
	p := &l.page[cpu]
	p.taken[cause]++
	if bin := now / burstWindow; bin != p.bin {
		p.bin, p.inBin = bin, 0
	}
	p.inBin++
	p.burst = max(p.burst, p.inBin)
	p.pause(now)
	p.quiet, p.since = max(p.quiet, now-p.since), now
}

// pause ends a stretch without interrupts.
func (p *page) pause(now Nanos) {
	p.gap = max(p.gap, now-p.last)
	p.last = now
}

// pause ends it for all CPUs, and goOn begins another one: what is between them is
// no part of the update.
func (l *ledger) pause(now Nanos) {
	for i := range l.page {
		l.page[i].pause(now)
	}
}

func (l *ledger) goOn(now Nanos) {
	for i := range l.page {
		l.page[i].last = now
	}
}

// round counts a round sent.
func (l *ledger) round(from int, cause cpus.Cause, targets int) {
	l.sent.Rounds[from][cause]++
	l.sent.Sent[cause] += uint64(targets)
}
