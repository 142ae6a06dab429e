// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/textpoke/textpoke/cpus"
)

// listen begins a run on the job's timeline, if it has one, and is who is told what
// happens: the timeline and the job's own listener.
func listen(j *Job) *cpus.Listener {
	if j.Timeline == nil {
		return j.Listener
	}
	j.Timeline.Machine(j.Roles)
	j.Timeline.Run(j.String(), 0)
	return cpus.Tee(j.Timeline.Listener(), j.Listener)
}
