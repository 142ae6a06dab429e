// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/sched/coordinator"
	"github.com/textpoke/textpoke/service/journal"
)

// recover brings the text to where the journal says it was, and carries out what
// was accepted and not answered.
func (s *Service) recover(ctx context.Context) error {
	wants, orders := s.store.Wants(), s.store.Unanswered()
	s.batch = s.store.LastBatch()
	var err error
	cfg := coordinator.Config{
		Records: s.layers() * s.cfg.Table.Len(), Apply: s.apply, Commit: s.commit,
		Queue: max(s.cfg.Queue, len(orders)+1), MaxWait: s.cfg.MaxWait, Gather: s.cfg.Gather,
		Linger: max(s.cfg.Linger, 0), Now: s.cfg.Now,
		Listener: coordinator.Listener{Began: s.began, Ended: s.tellEnd, Held: s.held, Split: func(requests int, err error) {
			s.log.Debug("merged update failed, trying its requests one by one", zap.Int("requests", requests), zap.Error(err))
		}},
	}
	if len(s.cfg.Budget)+len(s.cfg.Quiet) > 0 {
		cfg.Admit = s.room
	}
	if s.coord, err = coordinator.New(context.WithoutCancel(ctx), cfg); err != nil {
		return err
	}
	if err := s.restore(ctx, wants); err != nil {
		return fmt.Errorf("make live what was live: %w", err)
	}
	if err := s.live.Restored(ctx); err != nil {
		return err
	}
	var again []*pending
	for _, o := range orders {
		if err := s.patchable(o.Ops, o.Which, fmt.Sprintf("update %d", o.ID)); err != nil {
			return err
		}
		s.mu.Lock()
		s.count(o.Client, 1)
		s.mu.Unlock()
		again = append(again, s.enter(o.Update, o.Which, o.Over, Course{Asked: time.Now(), Handed: time.Now()}))
	}
	s.handIn(ctx)
	for _, p := range again {
		select {
		case <-p.holding:
		case <-p.done:
		case <-p.left:
			return fmt.Errorf("carry out what was accepted: %w", s.gone())
		case <-ctx.Done():
			return fmt.Errorf("carry out what was accepted: %w", context.Cause(ctx))
		}
	}
	s.log.Info("recovered", zap.Int("clients", len(wants)), zap.Int("carried out", len(again)))
	return s.brokenDown()
}

// linger is how many times an update's duration the next one waits for as many
// requests as the last one had: BenchmarkLinger compares it with less and with more
// (docs/service.md).
const linger = 4

// restore makes live with one update what the journal calls live.
func (s *Service) restore(ctx context.Context, wants []journal.Want) error {
	var rs []coordinator.Request
	for _, w := range wants {
		if err := s.patchable(w.Ops, w.Which, fmt.Sprintf("client %s, ops %s", w.Client, w.Ops)); err != nil {
			return err
		}
		rs = append(rs, coordinator.Request{Client: owner(w.Client, w.Ops), Enable: true, Records: s.numbers(w.Ops, w.Which)})
	}
	if rs == nil {
		return nil
	}
	t, err := s.coord.Submit(ctx, rs...)
	if err != nil {
		return err
	}
	<-t.Done()
	return t.Err()
}

// patchable refuses ops and records that the journal has and this machine cannot patch.
func (s *Service) patchable(ops string, which []int, whose string) error {
	if !s.served(ops) {
		return fmt.Errorf("%s of the journal: this machine has no such ops", whose)
	}
	for _, rec := range which {
		if rec >= s.cfg.Table.Len() || s.live.Patchable(ops, rec) != nil {
			return fmt.Errorf("%s: record %d of the journal cannot be patched on this machine", whose, rec)
		}
	}
	return nil
}

// apply is the coordinator's, with the points around it.
func (s *Service) apply(ctx context.Context, changes []coordinator.Change) error {
	if err := s.brokenDown(); err != nil {
		return err
	}
	s.cfg.At(BeforeApply)
	s.live.SetPacing(cpus.Paced) // CPUs that ran all the time would keep the patcher from a core
	defer s.live.SetPacing(cpus.Resting)
	s.charge(changes)
	receipt, err := s.live.Apply(ctx, changes)
	for _, p := range s.carried {
		p.receipt, p.course.Switched = receipt, time.Now()
	}
	if receipt != nil && receipt.Forecast != nil {
		s.forecasts.Add(1)
	}
	if receipt.Missed() {
		s.missed.Add(1)
	}
	s.carried = nil // the next update may be long in coming
	s.cfg.At(AfterApply)
	if errors.Is(err, ErrStuck) {
		s.breakDown(err)
	}
	return err
}

// began is the coordinator's: these are about to be carried out.
func (s *Service) began(at time.Time, ts []*coordinator.Ticket) {
	ps := s.of(ts)
	s.carried = ps
	if len(ps) == 0 { // a start makes the text live again; no update asked for it
		return
	}
	observe(s.cfg.Observer.Carried, len(ps))
	phase := &atomic.Pointer[string]{}
	phase.Store(new(string))
	s.phase.Store(phase)
	s.mu.Lock()
	s.batch++
	s.progress.batches++
	s.progress.merged += uint64(len(ps))
	s.progress.sizes = keepLast(s.progress.sizes, statusBatches, Batch{s.batch, len(ps)})
	for _, p := range ps {
		u := p.update()
		u.State, u.Batch, u.Began = journal.Running, s.batch, at.UTC()
		u.Fits, u.Phase = time.Time{}, ""
		p.now.Store(&present{Update: u, phase: phase})
		p.course.Taken = time.Now()
	}
	s.mu.Unlock()
	for _, p := range ps {
		s.tell(p.update())
	}
}

// of are the updates of tickets. Tickets of a start, which makes the text live again, have none.
func (s *Service) of(ts []*coordinator.Ticket) (out []*pending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range ts {
		if p := s.open[t.Requests()[0].ID]; p != nil {
			out = append(out, p)
		}
	}
	return out
}

// commit is the coordinator's: these have ended, and it goes in the journal before
// anybody hears of it. An end that comes of closing is none.
func (s *Service) commit(end coordinator.End) error {
	ps := s.of(end.Tickets)
	if err := s.brokenDown(); err != nil {
		return err
	}
	if len(ps) == 0 || errors.Is(end.Err, coordinator.ErrClosed) {
		return nil
	}
	now := s.cfg.Now().UTC()
	us := make([]Update, len(ps))
	for i, p := range ps {
		us[i] = p.update()
		us[i].Ended, us[i].Phase, us[i].Receipt, us[i].Fits = now, "", p.receipt, time.Time{}
		us[i].State, us[i].Error = stateOf(end.Err)
		p.end = &us[i]
	}
	s.cfg.At(BeforeAnswer)
	if err := s.answer(us, s.spent(now)); err != nil {
		s.breakDown(err)
		return err
	}
	s.cfg.At(AfterAnswer)
	return nil
}

// answer writes down how updates ended. While the journal has no room, or another cause that may
// pass keeps it from writing, answer tries again until it succeeds or the service loses patience.
// Meanwhile no client gets an answer, and the service is not ready.
func (s *Service) answer(us []Update, spent *journal.Spent) error {
	for {
		err := s.store.Answer(us, spent)
		if err == nil || !journal.Passing(err) {
			return err
		}
		s.log.Error("how updates ended cannot be written yet", zap.Int("updates", len(us)), zap.Error(err))
		select {
		case <-s.cfg.Retry():
		case <-s.patience.Done():
			return err
		}
	}
}

// stateOf is how an update ended.
func stateOf(err error) (State, string) {
	switch {
	case err == nil:
		return journal.Live, ""
	case errors.Is(err, coordinator.ErrCancelled):
		return journal.Cancelled, err.Error()
	case errors.Is(err, coordinator.ErrExpired):
		return journal.Expired, err.Error()
	}
	return journal.Failed, err.Error()
}

// tellEnd is the coordinator's: everybody may hear now how updates ended.
func (s *Service) tellEnd(end coordinator.End) {
	if errors.Is(end.Err, coordinator.ErrClosed) || errors.Is(end.Err, coordinator.ErrUncommitted) {
		return
	}
	ps := s.of(end.Tickets)
	s.mu.Lock()
	for _, p := range ps {
		p.now.Store(&present{Update: *p.end})
		delete(s.open, p.end.ID)
		s.count(p.end.Client, -1)
	}
	s.progress.answered += uint64(len(ps))
	s.mu.Unlock()
	s.ends.Add(1)
	for _, p := range ps {
		p.course.Update, p.course.Told = *p.end, time.Now()
		observe(s.cfg.Observer.Ended, p.course)
		s.tell(*p.end)
		close(p.done)
	}
}

// pending is an update on its way.
type pending struct {
	now     atomic.Pointer[present]
	which   []int
	ticket  chan *coordinator.Ticket // holds one once the coordinator has it
	done    chan struct{}            // closed when its end is in the journal
	left    chan struct{}            // closed when it is left for the next start
	holding chan struct{}            // closed when it is held for the first time
	ends    bool                     // a lease, which is over

	leave, hold func() // end the waiting for it; for its end

	course  Course           // of the goroutine that has the update
	receipt *journal.Receipt // what its update of the text took; the coordinator's
	end     *Update          // how it ended, once that is in the journal; the coordinator's
}

// present is an update as it is now, and the name of the step that the text's
// update is through with, which all have in common that it carries out.
type present struct {
	Update
	phase *atomic.Pointer[string]
	alone bool // it is held for its own client's allowance
}

func newPending(u Update, which []int, ends bool) *pending {
	p := &pending{which: which, ends: ends, ticket: make(chan *coordinator.Ticket, 1), done: make(chan struct{}),
		left: make(chan struct{}), holding: make(chan struct{})}
	p.leave, p.hold = sync.OnceFunc(func() { close(p.left) }), sync.OnceFunc(func() { close(p.holding) })
	p.now.Store(&present{Update: u})
	return p
}

// update is the update as clients see it.
func (p *pending) update() Update {
	now := p.now.Load()
	u := now.Update
	if now.phase != nil {
		u.Phase = *now.phase.Load()
	}
	return u
}

// pending is what is on its way, in the order of acceptance.
func (s *Service) pending() []*pending {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.open), func(a, b *pending) int { return int(a.now.Load().ID - b.now.Load().ID) })
}

// owner is who the coordinator's requests are of: a client with one of its ops.
func owner(client, ops string) string { return client + "\x00" + ops }
