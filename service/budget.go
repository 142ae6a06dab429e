// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/sched/coordinator"
	"github.com/textpoke/textpoke/service/journal"
	"github.com/textpoke/textpoke/sim"
	"go.uber.org/zap"
)

// Window is a part of every day, by the clock of the place, as minutes since midnight. One that ends before it begins
// goes over midnight.
type Window struct{ From, Until int }

const clock = "15:04"

// ParseWindow reads 08:00-18:00.
func ParseWindow(text string) (w Window, err error) {
	from, until, _ := strings.Cut(text, "-")
	a, err := time.Parse(clock, from)
	b, bad := time.Parse(clock, until)
	if w = (Window{minute(a), minute(b)}); err != nil || bad != nil || w.From == w.Until {
		return w, fmt.Errorf("%q: want two times of a day, such as 08:00-18:00", text)
	}
	return w, nil
}

func minute(at time.Time) int { return at.Hour()*60 + at.Minute() }

func (w Window) String() string {
	return fmt.Sprintf("%02d:%02d-%02d:%02d", w.From/60, w.From%60, w.Until/60, w.Until%60)
}

// has tells whether a time is in it.
func (w Window) has(at time.Time) bool {
	now := minute(at)
	if w.From < w.Until {
		return w.From <= now && now < w.Until
	}
	return now >= w.From || now < w.Until
}

// until is the end of a window that has a time.
func (w Window) until(at time.Time) time.Time {
	return at.Truncate(time.Minute).Add(time.Duration((w.Until-minute(at)+24*60)%(24*60)) * time.Minute)
}

// Limit is the most interrupts that a CPU of a role, or any (ipis, burst), may take; or requests of a token.
type Limit struct {
	Name   string
	Max    int
	Period time.Duration // 0: for each update by itself; else together, see Limit.Fits
	Client bool          // for each client by itself; goes with Period
}

func (l Limit) String() string {
	if l.Period == 0 {
		return fmt.Sprintf("%s=%d", l.Name, l.Max)
	}
	return fmt.Sprintf("%s=%d/%v", l.Name, l.Max, l.Period)
}

// of tells whether it limits a machine with CPUs of these roles.
func (l Limit) of(roles map[string]int) bool {
	_, there := roles[l.Name]
	return there || l.Name == "ipis" || l.Name == "burst"
}

// worth is how long it takes until so many interrupts may be taken again.
func (l Limit) worth(interrupts int) time.Duration {
	return time.Duration(float64(interrupts) * float64(l.Period) / float64(max(l.Max, 1)))
}

// Fits is when interrupts fit into what is allowed: Max at once, which come again evenly within Period, as tc-tbf(8) has
// it. Until is when all of them have come again (the theoretical arrival time of ITU-T I.371, A.1). What
// is more than Max waits for all of them. A clock that was set back is waited for no longer than a Period.
func (l Limit) Fits(at, until time.Time, interrupts int) time.Time {
	return later(at, sooner(until, at.Add(l.Period)).Add(l.worth(min(interrupts, l.Max))-l.Period))
}

// Spend is until when all have come again once interrupts were taken. Those beyond all are not owed.
func (l Limit) Spend(at, until time.Time, interrupts int) time.Time {
	return sooner(later(at, until).Add(l.worth(interrupts)), at.Add(l.Period))
}

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

func sooner(a, b time.Time) time.Time { return slices.MinFunc([]time.Time{a, b}, time.Time.Compare) }

// quiet is until when nothing is switched, and why; the time itself where something is. Windows that follow each other
// are one.
func (s *Service) quiet(at time.Time) (until time.Time, why string) {
	until = at
	for range s.cfg.Quiet {
		for _, w := range s.cfg.Quiet {
			if w.has(until) {
				until, why = w.until(until), fmt.Sprintf("nothing is switched at %v", w)
			}
		}
	}
	return until, why
}

// whose are the owners of a limit's allowances: each of these clients, or everybody, who is "".
func (l Limit) whose(clients []string) []string {
	if l.Client {
		return clients
	}
	return []string{""}
}

// key names an owner's allowance.
func (l Limit) key(owner string) string {
	if l.Client {
		return l.String() + " " + owner
	}
	return l.String()
}

// waiting is until when something waits, and for what: an allowance of whose, or everybody's, who is "".
type waiting struct {
	until      time.Time
	why, whose string
}

// price is what switching records costs, and how many interrupts the CPUs of each role take together.
func (s *Service) price(ctx context.Context, records []int) (cost sim.PlanRow, roles map[string]int, err error) {
	if len(records) == 0 {
		return cost, map[string]int{}, nil
	}
	if cost, err = s.live.Cost(ctx, records, nil); err != nil {
		return cost, nil, err
	}
	roles = map[string]int{}
	for _, c := range s.live.CPUs() {
		if c.Online {
			roles[c.Role] += ofEach(cost)
		}
	}
	return cost, roles, nil
}

// ofEach is the interrupts that each CPU takes but the patcher's.
func ofEach(cost sim.PlanRow) int { return cost.IPIsPerCPU + cost.OtherIPIsPerCPU }

// fits is when so many interrupts of each CPU fit into all allowances, and into which they do not fit now.
func (s *Service) fits(at time.Time, each int, roles map[string]int, clients []string) (w waiting) {
	w.until = at
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.cfg.Budget {
		if l.Period == 0 || !l.of(roles) || each == 0 {
			continue
		}
		for _, owner := range l.whose(clients) {
			if t := l.Fits(at, s.spentBy[l.key(owner)], each); t.After(w.until) {
				w = waiting{t, fmt.Sprintf("%v, of which it takes %d", l, each), owner}
			}
		}
	}
	if until, quiet := s.quiet(w.until.In(at.Location())); quiet != "" {
		return waiting{until, quiet, w.whose}
	}
	return w
}

// afford refuses an update that would cost too much if it came alone: one that never fits, and one that does not
// fit now, behind those that are held, and is not to be held. An update that ends a lease may cost anything.
func (s *Service) afford(ctx context.Context, r *Request, which []int) error {
	if len(s.cfg.Budget)+len(s.cfg.Quiet) == 0 || !r.over.IsZero() {
		return nil
	}
	now, changes := s.cfg.Now(), s.changes(r, which)
	if len(changes) == 0 {
		return nil
	}
	if until, why := s.quiet(now); why != "" && !r.Hold {
		return &HeldError{until, why}
	}
	if len(s.cfg.Budget) == 0 {
		return nil
	}
	cost, roles, err := s.price(ctx, changes)
	if err != nil {
		return err
	}
	each := ofEach(cost)
	for _, l := range s.cfg.Budget {
		if l.of(roles) && each > l.Max {
			return fmt.Errorf("%w: %v, and each would take %d interrupts", ErrBudget, l, each)
		}
	}
	w := s.fits(now, each, roles, []string{r.Client})
	for _, h := range s.pending() {
		if u := h.now.Load(); u.State == journal.Held && each > 0 && (!u.alone || u.Client == r.Client) {
			w = waiting{later(w.until, u.Fits), fmt.Sprintf("update %d is held and comes first", u.ID), ""}
		}
	}
	if w.until.After(now) && !r.Hold {
		return &HeldError{w.until, w.why}
	}
	return nil
}

// HeldError refuses an update that does not fit now, and is not to be held.
type HeldError struct {
	Fits time.Time
	Why  string
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%v: %s: it fits at %s", ErrBudget, e.Why, e.Fits.UTC().Format(time.RFC3339Nano))
}

// Unwrap is ErrBudget.
func (e *HeldError) Unwrap() error { return ErrBudget }

// room is the coordinator's: how many of the waiting tickets fit now, together. A client that waits for an allowance
// of its own does not hold up others.
func (s *Service) room(at time.Time, ts []*coordinator.Ticket, changes func(n int) []coordinator.Change) (n int, until time.Time, alone bool) {
	when := func(n int) time.Time {
		ps := s.of(ts[:n])
		if len(ps) == 0 { // a start makes the text live again
			return at
		}
		cost, roles, err := s.price(s.alive, switches(changes(n)))
		if err != nil {
			s.log.Error("no forecast", zap.Error(err))
		}
		s.waitsFor = s.fits(at, ofEach(cost), roles, clientsOf(ps))
		return s.waitsFor.until
	}
	n = sort.Search(len(ts), func(i int) bool { return when(i + 1).After(at) })
	if n < len(ts) {
		until = when(n + 1)
		next := s.of(ts[n : n+1])
		alone = len(next) > 0 && next[0].now.Load().Client == s.waitsFor.whose
	}
	return n, until, alone
}

// charge notes what an update of the text takes from allowances.
func (s *Service) charge(changes []coordinator.Change) {
	if !slices.ContainsFunc(s.cfg.Budget, func(l Limit) bool { return l.Period > 0 }) {
		return
	}
	cost, roles, err := s.price(s.alive, switches(changes))
	if err != nil {
		s.log.Error("no forecast", zap.Error(err))
		return
	}
	now := s.cfg.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.cfg.Budget {
		if l.Period == 0 || !l.of(roles) {
			continue
		}
		for _, owner := range l.whose(clientsOf(s.carried)) {
			key := l.key(owner)
			s.spentBy[key] = l.Spend(now, s.spentBy[key], ofEach(cost))
			s.fresh[key] = s.spentBy[key].UTC()
		}
	}
}

// spent is what the journal is to note of allowances; nil for nothing.
func (s *Service) spent(at time.Time) *journal.Spent {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.fresh) == 0 {
		return nil
	}
	fresh := s.fresh
	s.fresh = map[string]time.Time{}
	return &journal.Spent{At: at, Until: fresh}
}

// held is the coordinator's: these wait, and fit at a time.
func (s *Service) held(ts []*coordinator.Ticket, until time.Time) {
	for _, p := range s.of(ts) {
		u, was := p.update(), p.now.Load().alone
		alone := u.Client == s.waitsFor.whose
		if u.State == journal.Held && u.Fits.Equal(until) && alone == was {
			continue
		}
		u.State, u.Fits, u.Phase = journal.Held, until.UTC(), s.waitsFor.why
		p.now.Store(&present{Update: u, alone: alone})
		p.hold()
		s.tell(u)
	}
}

func switches(changes []coordinator.Change) []int {
	return spelling.Each(changes, func(c coordinator.Change) int { return c.Record })
}

func clientsOf(ps []*pending) []string {
	names := spelling.Each(ps, func(p *pending) string { return p.now.Load().Client })
	slices.Sort(names)
	return slices.Compact(names)
}
