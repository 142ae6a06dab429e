// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/kernels/uprobes"
)

// doUprobes probes all sites of a program. When it is switched on, the program itself sends the
// rounds, in each process at the first hit of a site; when it is switched off, the task that
// removes the probes sends them. A table holds the behaviour of each release, and the image must
// not contradict it.
func doUprobes(a *asked, on bool) error {
	if a.mech(image.BatchRounds) == 0 {
		return fmt.Errorf("kernel of %s: only x86-64 replaces the breakpoints of probes", a.k.Arch)
	}
	p, processes, err := uprobes.OpenTarget(a.arg)
	if err != nil {
		return err
	}
	nop := a.mech(image.UprobeCalls)
	for i, sites := range p.Count() {
		insn := uprobes.Insn(i)
		b, err := uprobes.OfImage(a.k.Release, nop, insn)
		switch {
		case err != nil:
			return err
		case !b.Known:
			return fmt.Errorf("mechanism %s: no rule holds: no measurement shows how releases such as %s treat probes "+
				"where the image says: %s", image.UprobeCalls, a.k.Release, a.k.Facts.Mechanisms[image.UprobeCalls].Evidence)
		case b.Refused && sites > 0:
			return fmt.Errorf("program %s: release %s refuses probes on %d sites of a %v", p.File, a.k.Release, sites, insn)
		}
		a.uprobes(b, insn, sites, processes, on)
	}
	return nil
}

// uprobes notes what probes on sites of one instruction cost.
func (r *Replay) uprobes(b uprobes.Behaviour, insn uprobes.Insn, sites, processes int, on bool) {
	cost := b.Cost(sites, processes)
	if r.k.Facts.value(uprobeBatched) > 0 {
		together := b.Cost(min(1, sites), processes)
		if cost.FirstHit = together.FirstHit; b.Restores {
			cost.Disable = together.Disable
		}
	}
	const each = uprobes.Rounds
	r.in("uprobe", func() {
		switch {
		case on:
			r.sent(cpus.Sync, r.k.callRow, cost.FirstHit/each, each, r.k.Facts.code(),
				fmt.Sprintf("%d sites of a %v become calls in %d processes, each when it is first hit", sites, insn, processes))
		case b.Restores:
			r.sent(cpus.Sync, r.k.callRow, cost.Disable/each, each, r.k.Facts.code(),
				fmt.Sprintf("%d sites of a %v are put back in %d processes", sites, insn, processes))
		default:
			r.sent(cpus.CoreSync, r.k.callRow, cost.Disable, 1, Assumed,
				fmt.Sprintf("RCU, once for each of %d probes that go", sites))
			woken := b.Woken(sites)
			r.note(Entry{Cause: cpus.CoreSync, Row: r.k.callRow, Pokes: woken, RoundsPerPoke: 1, Fewer: woken, More: (sites + 3) / 4,
				Basis: Assumed, Source: "grace periods of RCU tasks wake idle CPUs, for every other probe once more; an isolated one is let alone"})
		}
	})
}
