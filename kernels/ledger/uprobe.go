// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/kernels/uprobes"
)

// maxProcesses bounds the processes that a program is probed in (PID_MAX_LIMIT,
// include/linux/threads.h).
const maxProcesses = 4 << 20

// doUprobes probes all sites of a program. Switched on, the program itself sends the
// rounds, in each process when it first hits a site; switched off, whoever takes the
// probes away. What a release does is looked up, and the image must not contradict it.
func doUprobes(a *asked, on bool) error {
	file, number, given := strings.Cut(a.arg, "@")
	processes := 1
	if given {
		var err error
		if processes, err = strconv.Atoi(number); err != nil || processes < 1 || processes > maxProcesses {
			return fmt.Errorf("processes %q: want 1 to %d", number, maxProcesses)
		}
	}
	if a.mech(image.BatchRounds) == 0 {
		return fmt.Errorf("kernel of %s: only x86-64 replaces the breakpoints of probes", a.k.Arch)
	}
	p, err := uprobes.ReadProgram(file)
	if err != nil {
		return err
	}
	calls := a.mech(image.UprobeCalls) > 0
	some := false
	for i, sites := range p.Count() {
		insn := uprobes.Insn(i)
		b, err := uprobes.Of(a.k.Release, insn)
		switch {
		case err != nil:
			return err
		case !b.Known:
			return fmt.Errorf("release %s: nobody has measured what it does with probes on %v", a.k.Release, insn)
		case b.Refused && sites > 0:
			return fmt.Errorf("program %s: release %s refuses probes on %d sites of a %v", file, a.k.Release, sites, insn)
		}
		some = some || b.Replaces
		a.uprobes(b, insn, sites, processes, on)
	}
	if some != calls {
		return fmt.Errorf("mechanism %s: no rule holds: releases such as %s replace breakpoints: %t, and the image says %s",
			image.UprobeCalls, a.k.Release, some, a.k.Facts.Mechanisms[image.UprobeCalls].Evidence)
	}
	return nil
}

// uprobes notes what probes on sites of one instruction cost.
func (r *Replay) uprobes(b uprobes.Behaviour, insn uprobes.Insn, sites, processes int, on bool) {
	cost := b.Cost(sites, processes)
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
		}
	})
}
