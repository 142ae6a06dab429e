// SPDX-License-Identifier: Apache-2.0

package uprobes

import (
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/internal/release"
)

// Rounds is what replacing one site in one process takes: the breakpoint or the tail
// first, the rest, the first byte, a round after each (int3_update in
// arch/x86/kernel/uprobes.c, tip ba2bfc97b462, 2025-08).
const Rounds = 3

// Behaviour is what a kernel does with a probe on an instruction.
type Behaviour struct {
	Known    bool // what follows was measured on a release of the same line
	Refused  bool // the probe cannot be set (errno 524, ENOTSUPP)
	Replaces bool // the first hit in each process replaces the breakpoint by a call
	Restores bool // removing the last probe puts the instruction back, in the same way
	RCU      bool // removing a probe interrupts every CPU once, for RCU
	Wakes    bool // removing probes wakes idle CPUs for grace periods of RCU tasks
	Source   string
}

// line is a run of releases that do the same, both ends in it.
type line struct {
	from, to release.Numbers
	of       [insns]Behaviour
}

// measured names where lines come from.
const measured = "Debian kernels in an emulator, 4 CPUs, row CAL of an idle isolated one"

var (
	old     = Behaviour{Known: true, RCU: true, Source: measured}
	stays   = Behaviour{Known: true, Source: measured}
	refused = Behaviour{Known: true, Refused: true, Source: measured}
	call    = Behaviour{Known: true, Replaces: true, Source: measured}

	oldWakes   = Behaviour{Known: true, RCU: true, Wakes: true, Source: measured}
	staysWakes = Behaviour{Known: true, Wakes: true, Source: measured}
	callWakes  = Behaviour{Known: true, Replaces: true, Wakes: true, Source: measured}

	callBack = Behaviour{Known: true, Replaces: true, Restores: true, Source: measured}
)

// lines are in ascending order. They leave out the releases between 7.1.3 and 7.1.7: since one of
// these the kernel puts the nop back when a probe goes. Since 7.2 it leaves a nop5 alone and
// optimises a nop10 instead, whose lea steps over the program's red zone (linux-next 554ba38456da).
var lines = []line{
	{release.Numbers{0}, release.Numbers{6, 15, release.Last}, [insns]Behaviour{old, old, old, refused}},
	{release.Numbers{6, 16}, release.Numbers{6, 17, release.Last}, [insns]Behaviour{oldWakes, oldWakes, oldWakes, refused}},
	{release.Numbers{6, 18}, release.Numbers{6, 19, release.Last}, [insns]Behaviour{staysWakes, staysWakes, callWakes, refused}},
	{release.Numbers{7, 0}, release.Numbers{7, 1, 3}, [insns]Behaviour{stays, stays, call, refused}},
	{release.Numbers{7, 1, 7}, release.Numbers{7, 1, release.Last}, [insns]Behaviour{stays, stays, callBack, refused}},
	{release.Numbers{7, 2}, release.Numbers{7, 3, release.Last}, [insns]Behaviour{stays, stays, stays, callBack}},
}

// Of tells how an x86-64 kernel of some release, such as 7.2 or 6.12.48+deb13-amd64, treats a probe
// on an instruction. Known is false for a release that was not measured.
func Of(name string, i Insn) (Behaviour, error) {
	r, err := release.Of(name)
	if err != nil {
		return Behaviour{}, err
	}
	if i >= insns {
		return Behaviour{}, fmt.Errorf("instruction %v: want one of %s", i, strings.Join(insnNames[:], ", "))
	}
	for _, l := range lines {
		if !r.Before(l.from) && !l.to.Before(r) {
			return l.of[i], nil
		}
	}
	return Behaviour{}, nil
}

// OfImage is the same for a kernel whose image shows that a nop of so many bytes may become
// a call; 0 for none. Distributions carry what later releases do: Ubuntu's 7.0.0-43 does
// what 7.2 does. Known is false where the image speaks against the release, and not for
// one of the others alone.
func OfImage(name string, nop int, i Insn) (b Behaviour, err error) {
	if b, err = Of(name, i); err != nil {
		return b, err
	}
	r, err := release.Of(name)
	var alike []line
	for _, l := range lines {
		switch {
		case l.nop() != nop:
		case !r.Before(l.from) && !l.to.Before(r):
			return b, err
		default:
			alike = append(alike, l)
		}
	}
	if len(alike) != 1 || nop == 0 {
		return Behaviour{}, err
	}
	return alike[0].of[i], err
}

// nop is how long the nop is that may become a call, 0 for none.
func (l *line) nop() int {
	for i, b := range l.of {
		if b.Replaces {
			return Insn(i).Len()
		}
	}
	return 0
}

// Cost is what one other CPU takes, in interrupts. The sender is the probed program
// at the first hit, and who removes the probe at the end.
type Cost struct{ FirstHit, Disable int }

// Cost is what probes on some sites cost that some processes have each hit. Processes
// that were forked after the hit have the call already, and count once more when it
// is taken back.
func (b Behaviour) Cost(sites, processes int) (c Cost) {
	n := Rounds * sites * processes
	if b.Replaces {
		c.FirstHit = n
	}
	switch {
	case b.Restores:
		c.Disable = n
	case b.RCU:
		c.Disable = sites
	}
	return c
}

// Woken is how often an idle CPU is woken when so many probes go, besides what every CPU
// takes: in all, 3 were counted for 2 probes and 8 or 9 for 5, from 6.16 to 6.19
// (synchronize_rcu_tasks_trace and synchronize_srcu, kernel/events/uprobes.c).
func (b Behaviour) Woken(probes int) int {
	if !b.Wakes {
		return 0
	}
	return (3*probes+1)/2 - b.Cost(probes, 1).Disable
}
