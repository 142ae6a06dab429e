// SPDX-License-Identifier: Apache-2.0

package service

import "github.com/textpoke/textpoke/cpus"

// CheckText holds every site against what the journal says of its record, while no
// update runs.
func (s *Service) CheckText() []cpus.Violation {
	s.live.(*simulated).CheckAll(s.coord.Snapshot().Live)
	return s.live.Violations()
}

// Long says to run slow tests.
var Long = long
