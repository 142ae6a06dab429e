// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sched/coordinator"
	"github.com/textpoke/textpoke/service/journal"
	"github.com/textpoke/textpoke/sim"
)

// Want is what a client wants with one ops of its own.
type Want struct {
	Client  string `json:"client"`
	Ops     string `json:"ops"`
	Records int    `json:"records"` // how many
	ETag    string `json:"etag"`    // see Quoted
	// Lease is the seconds that a renewal adds, and Until when it is over; none: for ever.
	Lease int64     `json:"lease,omitempty"`
	Until time.Time `json:"until,omitzero"`
}

// Quoted is a tag as a header has it (RFC 9110, 8.8.3).
func Quoted(tag string) string { return `"` + tag + `"` }

func wants(list []journal.Want) []Want {
	return append([]Want{}, spelling.Each(list, func(w journal.Want) Want {
		return Want{w.Client, w.Ops, len(w.Which), Quoted(w.Tag), w.Lease.Seconds, w.Lease.Until}
	})...)
}

// WantedBy is the records of a symbol or an address, and how many of them each client wants.
func (s *Service) WantedBy(name string) (found []Record, who []Want, err error) {
	which := slices.Sorted(slices.Values(s.names.find(name)))
	if which == nil {
		return nil, nil, fmt.Errorf("%q: no such symbol or address: %w", inputs.Clip(name, maxName), ErrNotFound)
	}
	return s.records(which), wants(s.store.WantedBy(which)), nil
}

// Client lists a client's wishes, by ops, and its updates on their way. A client that has never
// asked for anything wants nothing.
func (s *Service) Client(client string) ([]Want, []Update) {
	open := []Update{}
	for _, p := range s.pending() {
		if u := p.update(); u.Client == client {
			open = append(open, u)
		}
	}
	return wants(s.store.WantsOf(client)), open
}

// Clients lists who wants something, by client and ops, behind one of them.
func (s *Service) Clients(client, ops string, limit int) []Want {
	return wants(s.store.WantsAfter(client, ops, limit))
}

// Attend renews a client's leases until ctx ends, each before half of it is over.
func (s *Service) Attend(ctx context.Context, client string) {
	s.every(ctx, leaseTick/4, "renewal", func(ctx context.Context) error {
		if !s.store.HalfOver(client, s.cfg.Now()) {
			return nil
		}
		return s.Renew(ctx, client)
	})
}

// Renew has the leases of a client begin again. An update that ends one, and has not begun, is withdrawn: it may be
// held for long. Renew waits for one that has begun: its records are not the client's any more.
func (s *Service) Renew(ctx context.Context, client string) error {
	if err := s.store.Renew(client, s.cfg.Now()); err != nil {
		return err
	}
	for _, p := range s.pending() {
		if u := p.update(); u.Client == client && p.ends {
			_, err := s.Cancel(ctx, u.ID)
			if errors.Is(err, ErrTooLate) {
				_, err = s.Wait(ctx, u.ID)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// jumped is how far the clock was set since the last call.
func (s *Service) jumped() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.ahead
	s.ahead = s.cfg.Now().Sub(time.Unix(0, 0)) - s.cfg.Steady()
	return s.ahead - before
}

// EndLeases takes away what clients want by leases that are over: an update of theirs, as if they
// had asked for it. One that cannot be accepted now is tried again by the next call. Where the clock was set, or
// the machine slept, it tells nothing of how long a client was silent: all leases begin again.
func (s *Service) EndLeases(ctx context.Context) error {
	now := s.cfg.Now()
	if by := s.jumped(); by.Abs() > leaseTick {
		s.log.Warn("the clock was set: all leases begin again", zap.Duration("by", by))
		if err := s.store.Renew("", now); err != nil {
			return err
		}
	}
	if _, why := s.quiet(now); why != "" { // they are over afterwards, too
		return nil
	}
	var errs []error
	for _, w := range s.store.Over(now) {
		u, err := s.Submit(ctx, Request{Client: w.Client, Ops: w.Ops, Enable: true, Set: true, Match: w.Tag, over: now})
		switch {
		case err == nil:
			s.log.Info("lease over", zap.String("client", w.Client), zap.String("ops", w.Ops), zap.Int64("update", u.ID))
		case !errors.Is(err, ErrChanged): // it has been renewed, or is on its way
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Ops is what a client wants with one ops, and its tag.
func (s *Service) Ops(client, ops string) (found []Record, tag string) {
	for _, w := range s.store.WantsOf(client) {
		if w.Ops == ops {
			return s.records(w.Which), w.Tag
		}
	}
	return []Record{}, s.store.Tag(client, ops)
}

// Plan is what an update would cost if it came now and alone.
type Plan struct {
	Records int `json:"records"` // that it is about
	Changes int `json:"changes"` // records that would be switched
	Others  int `json:"others"`  // clients and ops, beside its own, that want any of its records
	Waiting int `json:"waiting"` // updates on their way, with which it may share an update of the text
	// The price of an update of the text that switches the changes.
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
	p.Others = spelling.Count(s.store.WantedBy(which), func(w journal.Want) bool {
		return w.Client != r.Client || w.Ops != r.Ops
	})
	s.mu.Lock()
	p.Waiting = s.total
	s.mu.Unlock()
	changes := s.changes(&r, which)
	cost, roles, err := s.price(ctx, changes)
	p.Records, p.Changes, p.Roles = len(which), len(changes), roles
	p.Flushes, p.Rounds, p.IPIs, p.IPIsPerCPU = cost.Flushes, cost.Rounds, cost.IPIs, cost.IPIsPerCPU
	return p, err
}

// changes is the records that a request switches now.
func (s *Service) changes(r *Request, which []int) []int {
	mine := spelling.First(s.store.WantsOf(r.Client), func(w journal.Want) bool { return w.Ops == r.Ops }).Which
	return switched(s.coord.Snapshot(), s.numbers(r.Ops, which), s.numbers(r.Ops, mine), r)
}

// switched is the records that a request switches: its client is their first user, or the last.
func switched(now *coordinator.Snapshot, which, mine []int, r *Request) (changes []int) {
	if r.Enable {
		changes = spelling.Where(which, func(rec int) bool { return now.Users(rec) == 0 })
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
func (s *Service) Compare(ctx context.Context, buffers []sched.Buffer) ([]sim.PlanRow, error) {
	enabled := slices.Collect(s.coord.Snapshot().Records())
	return spelling.ReadEach(buffers, func(b sched.Buffer) (sim.PlanRow, error) {
		return s.live.Cost(ctx, enabled, &b)
	})
}
