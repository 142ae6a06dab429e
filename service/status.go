// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/service/journal"
)

// Stats counts what the service has done since it was started.
type Stats struct {
	Requests   uint64 `json:"requests"`   // answered, in any way
	Merged     uint64 `json:"merged"`     // taken up by batches; a batch that failed is tried again one by one
	Batches    uint64 `json:"batches"`    // taken up together
	Updates    uint64 `json:"updates"`    // of the text
	Failed     uint64 `json:"failed"`     // of these
	Changes    uint64 `json:"changes"`    // records switched
	Rounds     uint64 `json:"rounds"`     // of interrupts
	IPIs       uint64 `json:"ipis"`       // taken
	Forecasts  uint64 `json:"forecasts"`  // updates of the text that were forecast
	Missed     uint64 `json:"missed"`     // of these, forecasts that did not hold (journal.Receipt.Missed)
	Violations int    `json:"violations"` // seen, at most as many as are kept
	Queued     int    `json:"queued"`     // updates that were accepted and have not ended
	Enabled    int    `json:"enabled"`    // records
	Ready      bool   `json:"ready"`      // see Service.Ready
	Journal    int64  `json:"journal"`    // bytes of the log
	Lost       int    `json:"lost"`       // records that were wanted, at the start, and are not in the table any more
	Damaged    int    `json:"damaged"`    // parts of the journal's past that could not be read at the start; see Service.Damage
}

// CPU is one CPU and what it has done since the machine was built.
type CPU struct {
	ID         int               `json:"id"`
	Role       string            `json:"role"`
	Online     bool              `json:"online"`
	Taken      map[string]uint64 `json:"taken"` // interrupts by cause; causes without any are left out
	RoundsSent uint64            `json:"rounds_sent"`
	Traps      uint64            `json:"traps"`
	Calls      uint64            `json:"calls"`
}

// Batch is updates that were taken up together.
type Batch struct {
	ID       int64 `json:"id"`
	Requests int   `json:"requests"`
}

// Status is what a screen shows of a service, all as of one moment.
type Status struct {
	Stats   Stats    `json:"stats"`
	CPUs    []CPU    `json:"cpus"`    // their traps and calls are of the last moment when all CPUs could be stopped
	Updates []Update `json:"updates"` // the last since the start and those that are held, the youngest first
	Batches []Batch  `json:"batches"` // likewise, the oldest first
}

// How much of the past a Status has.
const (
	statusUpdates = 20
	statusHeld    = 20
	statusBatches = 40
)

// progress counts what a service has done so far. Service.mu guards all of it, so that a reader
// sees one moment.
type progress struct {
	answered, merged, batches uint64 // see Stats
	updates                   []*pending
	sizes                     []Batch
}

// keepLast appends, and forgets what is older than the last n.
func keepLast[T any](list []T, n int, v T) []T {
	return append(list, v)[max(0, len(list)+1-n):]
}

// Stats reads the counters.
func (s *Service) Stats() Stats {
	ready, size := s.Ready() == nil, s.store.Size()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats(ready, size, s.live.CPUs())
}

// stats is called with mu held, and asks neither for that nor for the disk.
func (s *Service) stats(ready bool, size int64, each []CPU) Stats {
	c := s.coord.Stats()
	out := Stats{
		Requests: s.progress.answered, Merged: s.progress.merged, Batches: s.progress.batches,
		Updates: c.Updates, Failed: c.Failed, Changes: c.Changes, Violations: len(s.live.Violations()),
		Queued: len(s.open), Enabled: s.coord.Snapshot().Enabled(), Ready: ready, Journal: size,
		Forecasts: s.forecasts.Load(), Missed: s.missed.Load(), Lost: s.lost, Damaged: len(s.store.Damage()),
	}
	for _, c := range each {
		out.Rounds += c.RoundsSent
		for _, n := range c.Taken {
			out.IPIs += n
		}
	}
	return out
}

// CPUs looks at every CPU, one after the other: each is stopped for a moment
// between two calls, and one that the patcher sits on is waited for.
func (s *Service) CPUs(ctx context.Context) ([]CPU, error) {
	tallies, err := s.tallies(ctx)
	if err != nil {
		return nil, err
	}
	return s.cpus(tallies), nil
}

// Status is everything that a screen shows at once, so that no number of it disagrees
// with another. It does not wait for the patcher.
func (s *Service) Status(ctx context.Context) (Status, error) {
	tallies, err := s.talliesSoon(ctx)
	if err != nil {
		return Status{}, err
	}
	ready, size := s.Ready() == nil, s.store.Size()
	s.mu.Lock()
	defer s.mu.Unlock()
	each := s.cpus(tallies)
	out := Status{s.stats(ready, size, each), each, []Update{}, append([]Batch{}, s.progress.sizes...)}
	out.Updates = append(out.Updates, spelling.Each(s.progress.updates, (*pending).update)...)
	out.Updates = append(out.Updates, s.longHeld(out.Updates)...)
	slices.SortFunc(out.Updates, func(a, b Update) int { return cmp.Compare(b.ID, a.ID) })
	return out, nil
}

// longHeld is those that are held for longer than the last updates go back: the first that fit.
func (s *Service) longHeld(last []Update) (held []Update) {
	for id, p := range s.open {
		if u := p.update(); u.State == journal.Held && !slices.ContainsFunc(last, func(l Update) bool { return l.ID == id }) {
			held = append(held, u)
		}
	}
	slices.SortFunc(held, func(a, b Update) int { return cmp.Or(a.Fits.Compare(b.Fits), cmp.Compare(a.ID, b.ID)) })
	return held[:min(len(held), statusHeld)]
}

func (s *Service) tallies(ctx context.Context) ([]cpus.Tally, error) {
	ctx, cancel := s.whileAlive(ctx)
	defer cancel()
	all, err := s.live.Tallies(ctx)
	if err == nil {
		s.tallied.Store(&all)
	}
	return all, err
}

// glance is how long a screen waits for CPUs to be between two calls.
const glance = 20 * time.Millisecond

// talliesSoon is the tallies of now, or of the last time when no patcher sat on a CPU for
// long.
func (s *Service) talliesSoon(ctx context.Context) ([]cpus.Tally, error) {
	soon, cancel := context.WithTimeout(ctx, glance)
	defer cancel()
	all, err := s.tallies(soon)
	if err == nil || ctx.Err() != nil || s.alive.Err() != nil {
		return all, err
	}
	if last := s.tallied.Load(); last != nil {
		return *last, nil
	}
	return make([]cpus.Tally, len(s.live.CPUs())), nil
}

// cpus is every CPU, with its traps and calls.
func (s *Service) cpus(tallies []cpus.Tally) []CPU {
	out := s.live.CPUs()
	for i := range out {
		out[i].Traps, out[i].Calls = tallies[i][cpus.Trap], tallies[i].Calls()
	}
	return out
}
