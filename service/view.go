// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/records"
)

// RecordQuery chooses records, in the table's order.
type RecordQuery struct {
	Filter []string // expressions of records.ParseFilter; none for all
	After  int      // only greater indexes; -1 from the first on
	Limit  int      // 0: 100
}

// Record is one record and who wants it.
type Record struct {
	Index          int // in the table, from 0
	Addr           records.Addr
	Symbol, Module string
	Group          int
	Enabled        bool
	Users          int // client and ops that want it
}

// Records lists records with their present state, all as of one moment: what the
// journal has, so that a restart takes back nothing that is shown here.
func (s *Service) Records(ctx context.Context, q RecordQuery) ([]Record, error) {
	which, err := s.match(ctx, q.Filter)
	if err != nil {
		return nil, err
	}
	if q.Limit == 0 {
		q.Limit = 100
	}
	t := s.cfg.Sim.Table
	var out []Record
	for _, i := range which {
		if i > q.After && len(out) < q.Limit {
			out = append(out, Record{Index: i, Addr: t.Addr(i), Symbol: t.Symbol(i), Module: t.Module(i)})
		}
	}
	now, group := s.coord.Snapshot(), 0
	for i := range out {
		for out[i].Index >= t.Groups()[group].Last {
			group++
		}
		out[i].Group = group
		out[i].Users = now.Users(out[i].Index)
		out[i].Enabled = out[i].Users > 0
	}
	return out, nil
}

// CPU is one CPU and what it has done since the machine was built.
type CPU struct {
	ID                       int
	Role                     string
	Online                   bool
	Taken                    map[string]uint64 // interrupts by cause; causes without any are left out
	RoundsSent, Traps, Calls uint64
}

// CPUs looks at every CPU, one after the other: each is stopped for a moment
// between two calls, and one that the patcher sits on is waited for.
func (s *Service) CPUs(ctx context.Context) ([]CPU, error) {
	ctx, cancel := s.whileAlive(ctx)
	defer cancel()
	tallies, err := s.live.Tallies(ctx)
	if err != nil {
		return nil, err
	}
	c := s.live.Counts()
	out := make([]CPU, len(tallies))
	for i := range out {
		out[i] = CPU{
			ID: i, Role: s.cfg.Sim.Roles[i].String(), Online: s.live.Online(i), Taken: map[string]uint64{},
			Traps: tallies[i][cpus.Trap], Calls: tallies[i].Calls(),
		}
		for k := range cpus.NumCauses {
			out[i].RoundsSent += c.Rounds[i][k]
			if n := c.Taken[i][k]; n > 0 {
				out[i].Taken[cpus.Cause(k).String()] = n
			}
		}
	}
	return out, nil
}

// Unplug takes a CPU out, and Plug brings it back; one that is so already stays so. It is not remembered: after a
// restart all CPUs have the roles that they were given.
func (s *Service) Unplug(ctx context.Context, cpu int) error {
	return s.plug(ctx, cpu, false)
}

// Plug is the other half of Unplug.
func (s *Service) Plug(ctx context.Context, cpu int) error { return s.plug(ctx, cpu, true) }

// Interrupts prints the interrupts of the CPUs that are online, laid out as
// /proc/interrupts.
func (s *Service) Interrupts(w io.Writer) error { return s.live.WriteInterrupts(w) }

// Violations are the first of the promises that the machine has seen broken.
func (s *Service) Violations() []cpus.Violation { return s.live.Violations() }

// Stats counts what the service has done since it was started.
type Stats struct {
	Requests   uint64 // answered, in any way
	Merged     uint64 // taken up by batches; a batch that failed is tried again one by one
	Batches    uint64 // taken up together
	Updates    uint64 // of the text
	Failed     uint64 // of these
	Changes    uint64 // records switched
	Rounds     uint64 // of interrupts
	IPIs       uint64 // taken
	Violations int    // seen, at most as many as are kept
	Queued     int    // updates on their way
	Enabled    int    // records
	Ready      bool   // see Service.Ready
	Journal    int64  // bytes of the file, without SQLite's own log
}

// Stats reads the counters.
func (s *Service) Stats() Stats {
	c := s.coord.Stats()
	out := Stats{
		Requests: c.Requests, Updates: c.Updates, Failed: c.Failed, Changes: c.Changes,
		Merged: s.merged.Load(), Batches: s.batches.Load(), Violations: len(s.live.Violations()),
	}
	counts := s.live.Counts()
	for k := range cpus.NumCauses {
		out.Rounds += counts.TotalRounds(cpus.Cause(k))
		out.IPIs += counts.TotalTaken(cpus.Cause(k))
	}
	out.Ready = s.Ready() == nil
	out.Journal = s.store.Size()
	s.mu.Lock()
	defer s.mu.Unlock()
	out.Queued, out.Enabled = s.total, s.coord.Snapshot().Enabled()
	return out
}

func (s *Service) plug(ctx context.Context, cpu int, in bool) error {
	if cpu < 0 || cpu >= len(s.cfg.Sim.Roles) {
		return &FieldError{"cpu", fmt.Sprintf("%d: there are %d", cpu, len(s.cfg.Sim.Roles))}
	}
	do := s.live.Unplug
	if in {
		do = s.live.Plug
	}
	ctx, cancel := s.whileAlive(ctx)
	defer cancel()
	switch err := do(ctx, cpu); {
	case errors.Is(err, cpus.ErrAlready): // whoever asked first has done it
		return nil
	case err != nil:
		return err
	}
	now := s.live.Now()
	s.events.add(Event{Kind: Plugged, CPU: cpu, Hit: in, FromNS: now, UntilNS: now})
	return nil
}

// whileAlive is ctx, ended by Close too: nobody waits for a machine that has gone.
func (s *Service) whileAlive(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.alive, func() { cancel(ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
