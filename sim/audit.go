// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
)

// audited is an engine's machine, as far as it is looked at when an update is over.
type audited interface {
	Peek(site int) isa.Text
	Literal(site int) uint64
	Report(cpus.Violation)
}

// audit holds what an update has left against what it was to do.
type audit struct {
	machine  audited
	len      int // patchable bytes of a site
	literals bool
}

// checkSites holds every site against what the update was to leave there.
func (a audit) checkSites(patches []poke.Patch) {
	for i := range patches {
		p := &patches[i]
		if got := a.machine.Peek(int(p.Site)); got != p.New {
			a.machine.Report(cpus.Violation{
				Property: cpus.BrokenSite, CPU: -1, Site: int(p.Site), Addr: p.Addr,
				Bytes: got.Format(a.len), Why: "the update is over and left this instead of " + p.New.Format(a.len),
			})
		}
		if got := a.machine.Literal(int(p.Site)); a.literals && got != p.NewOps {
			a.machine.Report(cpus.Violation{
				Property: cpus.BrokenSite, CPU: -1, Site: int(p.Site), Addr: p.Addr,
				Bytes: fmt.Sprintf("%#x",
					got), Why: fmt.Sprintf("the update is over and left this ops in the literal instead of %#x", p.NewOps),
			})
		}
	}
}

// checkRounds holds the ledger against the plan and against itself: interrupts
// taken are targets sent, rounds sent are rounds planned, and every CPU takes or
// sends each round. Only isolated CPUs may miss some, and only lazy ones: as many
// as found them in user space, which nobody knows beforehand.
func (a audit) checkRounds(j *Job, row *RunRow) {
	c := row.Counts
	a.checkConserved(c)
	want, lazy := row.planned()
	for k, rounds := range want {
		cause := cpus.Cause(k)
		if got := c.TotalRounds(cause); got != uint64(rounds) {
			a.unconserved("cause %s: %d rounds were sent, the plan has %d", cause, got, rounds)
		}
		for cpu, role := range j.Roles {
			least := rounds
			switch role {
			case cpus.Isolated:
				least -= lazy[k]
			case cpus.Offline:
				continue
			}
			taken, sent := c.Taken[cpu][k], c.Rounds[cpu][k]
			if n := int(taken + sent); n < least || n > rounds {
				a.unconserved("cause %s: %s cpu %d took %d interrupts and sent %d rounds of %d, of which at most %d may leave it out",
					cause, role, cpu, taken, sent, rounds, rounds-least)
			}
		}
	}
	if row.Lazy > 0 { // the plan's is the least that there can be
		row.IPIs = 0
		for k := range cpus.NumCauses {
			row.IPIs += int(c.TotalTaken(cpus.Cause(k)))
		}
	}
}

// checkDeferred holds what lazy rounds left out against what they sent: every CPU that
// is online is a target, left out, or the sender.
func (a audit) checkDeferred(j *Job, row *RunRow) {
	var rounds, sent uint64
	for k := range cpus.NumCauses {
		rounds += row.Counts.TotalRounds(cpus.Cause(k))
		sent += row.Counts.Sent[k]
	}
	if want := rounds * uint64(j.Online()-1); sent+row.Modelled.Deferred != want {
		a.unconserved("%d targets and %d left out of %d rounds to %d CPUs: want %d", sent,
			row.Modelled.Deferred, rounds, j.Online()-1, want)
	}
}

// checkCalls holds the calls that were begun against those that ended.
func (a audit) checkCalls(row *RunRow) {
	var sum cpus.Tally
	for _, t := range row.Tallies {
		sum = sum.Add(t)
	}
	if begun := sum[cpus.Begun]; begun != row.Calls+sum[cpus.Broken] {
		a.unconserved("%d calls were begun, %d ended", begun, row.Calls+sum[cpus.Broken])
	}
}

// unconserved records counts that differ and must not: a violation that is no single CPU's.
func (a audit) unconserved(format string, args ...any) {
	a.machine.Report(cpus.Violation{Property: cpus.Conservation, CPU: -1, Site: -1, Why: fmt.Sprintf(format, args...)})
}

// checkConserved holds the interrupts taken against those sent.
func (a audit) checkConserved(c cpus.Counts) {
	if cause, ok := c.Conserved(); !ok {
		a.unconserved("cause %s: %d interrupts taken, %d sent", cause, c.TotalTaken(cause), c.Sent[cause])
	}
}
