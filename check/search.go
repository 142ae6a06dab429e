// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/internal/choice"
)

// Search says how questions are searched: what a search may cost, and leave out. Commands and experiments declare these
// choices by its fields.
type Search struct {
	Reduce      string
	Exact       bool
	Jobs        int
	LimitStates uint64
	LimitMemory uint64 // MiB
	LimitTime   time.Duration
}

// maxMemory is the highest limit on memory, in MiB.
const maxMemory = 1 << 40

// Fields are the choices, with their defaults.
func (s *Search) Fields() []*choice.Field {
	return []*choice.Field{
		choice.One(&s.Reduce, "reduce", "all", "`parts` that the search may leave out", choice.OneOf(explore.ReductionNames())),
		choice.Flag(&s.Exact, "exact", "keep whole states, not fingerprints of 64 bits: slower and larger, but never wrong"),
		choice.Count(&s.Jobs, "jobs", runtime.GOMAXPROCS(0), "`number` of cores to search on", 1, 1<<16),
		choice.One(&s.LimitStates, "limit-states", "",
			"stop at this `number` of states, at the end of a level; 0 for none",
			choice.UpTo(math.MaxUint64, "a number, or 0 for none")),
		choice.One(&s.LimitMemory, "limit-memory", "4096",
			"stop when states and queue take so many `MiB`; 0 for no limit",
			choice.UpTo(maxMemory, fmt.Sprintf("at most %d MiB, or 0 for no limit", maxMemory))),
		choice.Time(&s.LimitTime, "limit-time", 0, "stop after this `time`, such as 10m; 0 for none", 0),
	}
}

// Options are those of the checker.
func (s *Search) Options() (explore.Options, error) {
	reduce, err := explore.ParseReductions(s.Reduce)
	return explore.Options{
		Reduce: reduce, Exact: s.Exact, Workers: s.Jobs,
		LimitStates: s.LimitStates, LimitTime: s.LimitTime, LimitMemory: s.LimitMemory << 20,
	}, err
}
