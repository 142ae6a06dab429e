// SPDX-License-Identifier: Apache-2.0

package poke

// Count is what follows from a plan alone, before anything runs.
type Count struct {
	Steps  int
	Rounds int // Sync steps
	Lazy   int // of these, and of Stops, those that leave out CPUs in user space
	Stops  int // StopMachine steps
	Writes int // stores
	Graces int // GracePeriod steps
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
