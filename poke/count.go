package poke

// Count is what follows from a plan alone, before anything runs.
type Count struct {
	Steps  int
	Rounds int // Sync steps
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
	case StopMachine:
		c.Stops++
	case Write:
		c.Writes += int(s.To - s.From)
	case GracePeriod:
		c.Graces++
	}
}

// IPIs is how many interrupts CPUs take: every round has all online CPUs but
// the sender as targets, and so has the waking of the stoppers.
func (c *Count) IPIs(online int) int { return (c.Rounds + c.Stops) * (online - 1) }
