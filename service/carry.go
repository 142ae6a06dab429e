package service

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/service/journal"
)

// recover brings the text to where the journal says it was, and carries out what
// was accepted and not answered.
func (s *Service) recover(ctx context.Context) error {
	wants, err := s.store.Wants(ctx)
	if err != nil {
		return err
	}
	orders, err := s.store.Unanswered(ctx)
	if err != nil {
		return err
	}
	if s.batch, err = s.store.LastBatch(ctx); err != nil {
		return err
	}
	s.coord = sched.NewCoordinator(context.WithoutCancel(ctx), s.cfg.Sim.Table.Len(), s.apply, sched.Config{
		Queue: max(s.cfg.Queue, len(orders)+1), MaxWait: s.cfg.MaxWait, Gather: s.cfg.Gather,
		Began: s.began, Answered: s.answered,
	}, s.log)
	if err := s.restore(ctx, wants); err != nil {
		return fmt.Errorf("make live what was live: %w", err)
	}
	s.live.Fault(s.cfg.Fault)
	var again []*pending
	for _, o := range orders {
		if err := s.patchable(o.Which, fmt.Sprintf("update %d", o.ID)); err != nil {
			return err
		}
		s.mu.Lock()
		s.count(o.Client, 1)
		s.mu.Unlock()
		again = append(again, s.enter(o.Update, o.Which))
	}
	for _, p := range again {
		s.submit(ctx, p)
	}
	for _, p := range again {
		if _, err := s.Wait(ctx, p.update().ID); err != nil {
			return fmt.Errorf("carry out what was accepted: %w", err)
		}
	}
	s.log.Info("recovered", zap.Int("clients", len(wants)), zap.Int("carried out", len(again)))
	return s.brokenDown()
}

// restore makes live with one update what the journal calls live.
func (s *Service) restore(ctx context.Context, wants []journal.Want) error {
	var rs []sched.Request
	for _, w := range wants {
		r := sched.Request{Client: owner(w.Client, w.Ops), Enable: true, Records: w.Which}
		if err := s.wants.Check(r); err != nil {
			return err
		}
		if err := s.patchable(w.Which, fmt.Sprintf("client %s, ops %s", w.Client, w.Ops)); err != nil {
			return err
		}
		s.wants.Add(r)
		s.show(w.Which)
		rs = append(rs, r)
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

// patchable refuses records that the journal has and this machine cannot patch.
func (s *Service) patchable(which []int, whose string) error {
	for _, rec := range which {
		if rec >= s.cfg.Sim.Table.Len() || !s.live.Patchable(rec) {
			return fmt.Errorf("%s: record %d of the journal cannot be patched with %s", whose, rec, s.cfg.Sim.Protocol)
		}
	}
	return nil
}

// apply is the coordinator's, with the points around it.
func (s *Service) apply(ctx context.Context, changes []sched.Change) error {
	if err := s.brokenDown(); err != nil {
		return err
	}
	s.cfg.At(BeforeApply)
	err := s.live.Apply(ctx, changes)
	s.cfg.At(AfterApply)
	var failed *poke.Error
	if errors.As(err, &failed) && failed.State == poke.Stuck {
		s.breakDown(err)
	}
	return err
}

// began is the coordinator's: these are about to be carried out.
func (s *Service) began(ts []*sched.Ticket) {
	now := time.Now().UTC()
	s.mu.Lock()
	s.batch++
	batch := s.batch
	s.mu.Unlock()
	s.merged.Add(uint64(len(ts)))
	s.batches.Add(1)
	phase := &atomic.Pointer[string]{}
	phase.Store(new(string))
	s.phase.Store(phase)
	for _, p := range s.of(ts) {
		u := p.update()
		u.State, u.Batch, u.Began = journal.Running, batch, now
		p.now.Store(&present{u, phase})
		s.tell(u)
	}
}

// of are the updates of tickets. What was live before has none.
func (s *Service) of(ts []*sched.Ticket) (out []*pending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range ts {
		if p := s.open[t.Requests()[0].ID]; p != nil {
			out = append(out, p)
		}
	}
	return out
}

// answered is the coordinator's: these have ended, and it goes in the journal
// before anybody hears of it. An end that comes of closing is none.
func (s *Service) answered(ts []*sched.Ticket, err error) {
	ps := s.of(ts)
	if len(ps) == 0 || errors.Is(err, sched.ErrClosed) || s.brokenDown() != nil {
		return
	}
	now := time.Now().UTC()
	us := make([]Update, len(ps))
	for i, p := range ps {
		us[i] = p.update()
		us[i].Ended, us[i].Phase = now, ""
		us[i].State, us[i].Error = stateOf(err)
	}
	s.cfg.At(BeforeAnswer)
	if err := s.store.Answer(us, s.wanted(ps, err)); err != nil {
		s.breakDown(err)
		return
	}
	s.cfg.At(AfterAnswer)
	s.settle(ps, us)
}

// stateOf is how an update ended.
func stateOf(err error) (State, string) {
	switch {
	case err == nil:
		return journal.Live, ""
	case errors.Is(err, sched.ErrCancelled):
		return journal.Cancelled, err.Error()
	case errors.Is(err, sched.ErrExpired):
		return journal.Expired, err.Error()
	}
	return journal.Failed, err.Error()
}

// wanted is what the clients of updates that are live want now.
func (s *Service) wanted(ps []*pending, err error) (out []journal.Want) {
	if err != nil {
		return nil
	}
	for _, p := range ps {
		u := p.update()
		s.wants.Add(sched.Request{Client: owner(u.Client, u.Ops), Enable: u.Enable, Records: p.which})
	}
	seen := map[string]bool{}
	for _, p := range ps {
		u := p.update()
		if who := owner(u.Client, u.Ops); !seen[who] {
			seen[who] = true
			out = append(out, journal.Want{Client: u.Client, Ops: u.Ops, Which: s.wants.Of(who)})
		}
	}
	return out
}

// settle tells everybody how updates ended.
func (s *Service) settle(ps []*pending, us []Update) {
	s.mu.Lock()
	for i, p := range ps {
		if us[i].State == journal.Live {
			s.show(p.which)
		}
		p.now.Store(&present{Update: us[i]})
		delete(s.open, us[i].ID)
		s.count(us[i].Client, -1)
	}
	s.mu.Unlock()
	for i, p := range ps {
		s.tell(us[i])
		close(p.done)
	}
}

// show lets everybody see how many want records, which the journal knows now; mu is
// held, or nobody is there yet. Only the coordinator's goroutine gets here with
// records that a client wants or wants no more.
func (s *Service) show(which []int) {
	for _, rec := range which {
		s.users[rec] = int32(s.wants.Users(rec))
	}
}
