package timed

import "github.com/textpoke/textpoke/cpus"

// burstWindow is the length of the bins in which bursts are counted.
const burstWindow Nanos = 1e6

// ledger counts interrupts, as cpus.Ledger does, by the machine's clock: what was
// sent and what was taken each by itself, so that conservation is a check.
type ledger struct {
	counts cpus.Counts
	bin    []Nanos // by CPU: the burstWindow that inBin counts
	inBin  []int64
	last   []Nanos // by CPU: the last interrupt, or the beginning
	gap    []Nanos // by CPU: the longest time without one
	life   []Life  // by CPU; all else is of one update
}

// open starts a new page: counts are of one update.
func (l *ledger) open(cpuCount int, now Nanos) {
	if l.life == nil {
		l.life = make([]Life, cpuCount)
	}
	*l = ledger{
		life:   l.life,
		counts: cpus.NewCounts(cpuCount),
		bin:    make([]Nanos, cpuCount), inBin: make([]int64, cpuCount),
		last: make([]Nanos, cpuCount), gap: make([]Nanos, cpuCount),
	}
	for i := range l.last {
		l.last[i], l.bin[i] = now, -1
	}
}

// take counts an interrupt taken.
func (l *ledger) take(cpu int, cause cpus.Cause, now Nanos) {
	l.counts.Taken[cpu][cause]++
	if bin := now / burstWindow; bin != l.bin[cpu] {
		l.bin[cpu], l.inBin[cpu] = bin, 0
	}
	l.inBin[cpu]++
	l.counts.Burst[cpu] = max(l.counts.Burst[cpu], l.inBin[cpu])
	l.quiet(cpu, now)
	l.life[cpu].took(now, l.inBin[cpu])
}

// quiet ends a stretch without interrupts.
func (l *ledger) quiet(cpu int, now Nanos) {
	l.gap[cpu] = max(l.gap[cpu], now-l.last[cpu])
	l.last[cpu] = now
}

// pause ends it for all CPUs, and goOn begins another one: what is between them is
// no part of the update.
func (l *ledger) pause(now Nanos) {
	for i := range l.last {
		l.quiet(i, now)
	}
}

func (l *ledger) goOn(now Nanos) {
	for i := range l.last {
		l.last[i] = now
	}
}

// round counts a round sent.
func (l *ledger) round(from int, cause cpus.Cause, targets int) {
	l.counts.Rounds[from][cause]++
	l.counts.Sent[cause] += uint64(targets)
}
