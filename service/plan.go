// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"slices"

	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sched/coordinator"
	"github.com/textpoke/textpoke/sim"
)

// Plan is what an update would cost if it came now and alone.
type Plan struct {
	Records int `json:"records"` // that it is about
	Changes int `json:"changes"` // records that would be switched
	Others  int `json:"others"`  // clients and ops, beside its own, that want any of its records
	Waiting int `json:"waiting"` // updates on their way, with which it may share an update of the text
	// What an update of the text costs that switches the changes.
	Flushes    int `json:"flushes"`
	Rounds     int `json:"rounds"`
	IPIs       int `json:"ipis"`
	IPIsPerCPU int `json:"ipis_per_cpu"`
	// Roles is the interrupts that the CPUs of each role would take together, if the patcher
	// sat on none of them.
	Roles map[string]int `json:"roles"`
}

// Plan counts what a request would cost, and does nothing of it.
func (s *Service) Plan(ctx context.Context, r Request) (p Plan, err error) {
	if err := s.check(&r); err != nil {
		return p, err
	}
	which, err := s.choose(ctx, &r)
	if err != nil {
		return p, err
	}
	return s.plan(ctx, &r, which)
}

func (s *Service) plan(ctx context.Context, r *Request, which []int) (p Plan, err error) {
	for _, w := range s.store.WantedBy(which) {
		if w.Client != r.Client || w.Ops != r.Ops {
			p.Others++
		}
	}
	s.mu.Lock()
	p.Waiting = s.total
	s.mu.Unlock()
	changes := s.changes(r, which)
	cost, roles, err := s.price(ctx, changes)
	p.Records, p.Changes, p.Roles = len(which), len(changes), roles
	p.Flushes, p.Rounds, p.IPIs, p.IPIsPerCPU = cost.Flushes, cost.Rounds, cost.IPIs, cost.IPIsPerCPU
	return p, err
}

// changes is the records that a request switches now.
func (s *Service) changes(r *Request, which []int) []int {
	var mine []int
	for _, w := range s.store.WantsOf(r.Client) {
		if w.Ops == r.Ops {
			mine = w.Which
		}
	}
	return switched(s.coord.Snapshot(), s.numbers(r.Ops, which), s.numbers(r.Ops, mine), r)
}

// switched is the records that a request switches: its client is their first user, or the last.
func switched(now *coordinator.Snapshot, which, mine []int, r *Request) (changes []int) {
	on := which
	if !r.Enable {
		on = nil
	}
	for _, rec := range on {
		if now.Users(rec) == 0 {
			changes = append(changes, rec)
		}
	}
	for _, rec := range mine {
		_, named := slices.BinarySearch(which, rec)
		if off := r.Set && !named || !r.Enable && named; off && now.Users(rec) == 1 {
			changes = append(changes, rec)
		}
	}
	slices.Sort(changes)
	return changes
}

// Compare counts the cost of one update that switches everything that is enabled now, vector by
// vector. Nothing is executed.
func (s *Service) Compare(ctx context.Context, buffers []sched.Buffer) (rows []sim.PlanRow, err error) {
	enabled := slices.Collect(s.coord.Snapshot().Records())
	for _, b := range buffers {
		row, err := s.live.Cost(ctx, enabled, &b)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}
