// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/spelling"
)

// Engine executes the updates of one job.
type Engine interface {
	// Update enables or disables everything that the job is about, with one
	// update, and tells what it did. An update that failed and left every site
	// whole is an error, violations are not.
	Update(ctx context.Context, enable bool) (RunRow, error)
	// Counts are interrupts by CPU and cause since the engine was built.
	Counts() cpus.Counts
	// Violations are the first of the violations since then.
	Violations() []cpus.Violation
	// Close ends whatever runs. No update may be running.
	Close()
}

// EngineKind is which engine executes a job's plans.
type EngineKind uint8

// The engines.
const (
	LiveEngine     EngineKind = iota // goroutines and the wall clock
	TimedEngine                      // one event queue and virtual nanoseconds
	HardwareEngine                   // the CPUs of this machine
)

var engineNames = []string{"live", "timed", "hardware"}

func (k EngineKind) String() string { return engineNames[k] }

// ReplayNames lists those that a counterexample can be forced on: on a real machine
// nobody chooses what is fetched.
func ReplayNames() []string { return engineNames[:HardwareEngine] }

// ParseEngine reads an engine's name.
func ParseEngine(s string) (EngineKind, error) {
	return spelling.Number[EngineKind]("engine", s, engineNames)
}

// NewEngine builds the engine that a job is for.
func NewEngine(j *Job) (Engine, error) {
	switch j.Engine {
	case TimedEngine:
		return NewTimed(j)
	case HardwareEngine:
		return NewHardware(j)
	}
	return NewLive(j)
}
