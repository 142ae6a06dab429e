package service

import (
	"slices"

	"github.com/textpoke/textpoke/cpus"
)

// CheckText holds every site against what the journal says of its record, while no
// update runs.
func (s *Service) CheckText() []cpus.Violation {
	s.mu.Lock()
	users := slices.Clone(s.users)
	s.mu.Unlock()
	s.live.CheckAll(func(rec int) bool { return users[rec] > 0 })
	return s.Violations()
}

// Long says to run slow tests.
var Long = long
