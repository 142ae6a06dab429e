package sim

import (
	"time"

	"github.com/textpoke/textpoke/cpus"
)

// observe begins a run on the job's timeline, if it has one, and lets a live
// machine tell it what happens; else its own observer, if it has one.
func observe(j *Job) *cpus.Observer {
	t := j.Timeline
	if t == nil {
		return j.Observer
	}
	t.Machine(j.Roles)
	t.Run(j.String(), 0)
	return &cpus.Observer{
		Begun: time.Now(), Round: t.Round, Interrupt: t.Interrupt, Trap: t.Trap, Step: t.Step, Batch: t.Batch,
	}
}
