// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/cpus/x86_64"
)

// Count is what follows from a plan alone, before anything runs.
type Count struct {
	Steps  int
	Rounds int // Sync steps
	Lazy   int // of these, and of Stops, those that leave out CPUs in user space
	Stops  int // StopMachine steps
	Writes int // stores
	Graces int // GracePeriod steps
}

// RoundsOfBatch is how many rounds a batch takes whose longest site has so many patchable bytes.
func (p *Protocol) RoundsOfBatch(t isa.Traits, length int) int {
	var n Count
	one := func(yield func(Range) bool) { yield(Range{To: 1}) }
	p.Unfold(Shape{Traits: t, Len: length, Patches: 1}, one, n.Add)
	return n.Rounds
}

// RoundsPerBatch is what a batch takes that patches calls on x86_64, by the plan of the kernel's
// protocol: one round each after the breakpoints, the tails and the first bytes.
func RoundsPerBatch() int {
	return shipped()["breakpoint"].RoundsOfBatch(x86_64.Arch.Traits(), x86_64.SiteLen)
}

// Add counts one step.
func (c *Count) Add(s Step) {
	c.Steps++
	switch s.Op {
	case Sync:
		c.Rounds++
		if s.Lazy {
			c.Lazy++
		}
	case StopMachine:
		c.Stops++
		if s.Lazy {
			c.Lazy++
		}
	case Write:
		c.Writes += int(s.To - s.From)
	case GracePeriod:
		c.Graces++
	}
}

// IPIs is how many interrupts CPUs take, of which so many are online, and so many
// of these isolated: every round has all online CPUs but the sender as targets,
// and so has the waking of the stoppers. Lazy rounds are counted as if isolated
// CPUs stayed in user space throughout, the fewest that there can be; no sender
// is isolated.
func (c *Count) IPIs(online, isolated int) int {
	return (c.Rounds+c.Stops)*(online-1) - c.Lazy*isolated
}
