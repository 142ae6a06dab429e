// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/sched/coordinator"
	"github.com/textpoke/textpoke/service/journal"
)

// Request is what a client asks for: records to be enabled or disabled for one of
// its ops.
type Request struct {
	Client  string
	Key     string // the same key and request again are the same update; "" for none
	Ops     string
	Enable  bool
	Set     bool     // the client wants these records with the ops, and no others; goes with Enable
	Match   string   // what Tag must be, with nothing of client and ops on its way; "" for whatever it is
	Lease   int64    // seconds for which this is wanted unless the client renews it; 0: for ever
	Filter  []string // expressions of records.ParseFilter; records that cannot be patched are left out
	Records []string // or each by itself: symbol, or address with 0x
	// Deadline is when the update expires unless it is being carried out; the zero
	// time for none. It is no part of what Key stands for.
	Deadline time.Time
	// Waits is for a client that is told nothing before Wait has returned. Its update is carried out
	// while it gets on the disk, and one sync does for both its acceptance and its end.
	Waits bool      `json:"-"`
	Hold  bool      `json:"-"` // over a budget it waits until it fits; else it is refused
	over  time.Time // see journal.Order.Over
	// Parent is of the client's trace; no part of what Key stands for.
	Parent Parent `json:"-"`
}

// Bounds of a request.
const (
	maxName     = 128    // bytes of a client, a key or ops
	maxSelected = 100000 // filters or records
	maxLease    = 366 * 24 * 3600
)

// check says what is impossible without looking at the records.
func (s *Service) check(r *Request) error {
	if !s.served(r.Ops) {
		return &FieldError{"ops", fmt.Sprintf("%q: this machine has %s", inputs.Clip(r.Ops, maxName), strings.Join(s.cfg.Ops, ", "))}
	}
	for _, f := range []struct {
		name, value string
		empty       bool
	}{{"client", r.Client, false}, {"key", r.Key, true}, {"ops", r.Ops, false}} {
		switch {
		case f.value == "" && !f.empty:
			return &FieldError{f.name, "is missing"}
		case len(f.value) > maxName:
			return &FieldError{f.name, fmt.Sprintf("has %d bytes, at most %d are allowed", len(f.value), maxName)}
		case !utf8.ValidString(f.value) || strings.ContainsFunc(f.value, func(r rune) bool { return !unicode.IsPrint(r) }):
			return &FieldError{f.name, fmt.Sprintf("%q: not all of it is printable UTF-8", f.value)}
		}
	}
	switch {
	case r.Lease < 0 || r.Lease > maxLease:
		return &FieldError{"lease", fmt.Sprintf("%d seconds, want 1 to %d", r.Lease, maxLease)}
	case r.Lease > 0 && !r.Enable:
		return &FieldError{"lease", "goes with enable alone"}
	case len(r.Filter) > 0 && len(r.Records) > 0:
		return &FieldError{"records", "goes without filter"}
	case len(r.Filter) == 0 && len(r.Records) == 0 && !r.Set:
		return &FieldError{"records", "is missing, and so is filter"}
	case len(r.Filter)+len(r.Records) > maxSelected:
		return &FieldError{"records", fmt.Sprintf("more than %d", maxSelected)}
	}
	return nil
}

// digest is what a key stands for: the request without key and deadline.
func (r *Request) digest() string {
	c := *r
	c.Key, c.Match, c.Deadline, c.over = "", "", time.Time{}, time.Time{}
	text, err := json.Marshal(c)
	if err != nil { // the types rule it out
		panic(err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Submit accepts an update: when it returns without error the update is in the
// journal and will be carried out, whatever happens to this process. Where the
// client has used its key before, for the same request, it returns that update.
func (s *Service) Submit(ctx context.Context, r Request) (Update, error) {
	course := Course{Parent: r.Parent, Waits: r.Waits, Asked: time.Now()}
	if err := s.check(&r); err != nil {
		return Update{}, err
	}
	digest := r.digest()
	if r.Key != "" { // a client that asks again is never refused, for a full queue or its deadline
		u, err := s.store.ByKey(ctx, r.Client, r.Key, digest)
		if err == nil {
			return s.again(ctx, &r, u)
		}
		if !errors.Is(err, ErrNotFound) {
			return u, err
		}
	}
	now := s.cfg.Now()
	if !r.Deadline.IsZero() && !r.Deadline.After(now) {
		return Update{}, &FieldError{"deadline", "is over already"}
	}
	which, err := s.choose(ctx, &r)
	if err != nil {
		return Update{}, err
	}
	if err := s.afford(ctx, &r, which); err != nil {
		return Update{}, err
	}
	if err := s.admit(&r); err != nil {
		return Update{}, err
	}
	s.cfg.At(BeforeAccept)
	order := journal.Order{Which: which, Digest: digest, Match: r.Match, Over: r.over, Unsynced: r.Waits, Update: Update{
		Client: r.Client, Key: r.Key, Ops: r.Ops, Enable: r.Enable, Set: r.Set, Lease: r.Lease,
		Records: len(which), Submitted: now.UTC(), Deadline: r.Deadline,
	}}
	var p *pending
	course.Handed = time.Now()
	u, err := s.store.Accept(order, func(u Update) { p = s.enter(u, which, order.Over, course) })
	if p == nil {
		s.dismiss(r.Client)
		if err != nil {
			return u, s.refused(err)
		}
		return s.again(ctx, &r, u)
	}
	s.cfg.At(AfterAccept)
	s.handIn(ctx)
	return p.update(), nil
}

// again is the update that a client asks for once more, and that may not be on the disk yet.
func (s *Service) again(ctx context.Context, r *Request, u Update) (Update, error) {
	if !r.Waits {
		if err := s.store.Sync(); err != nil {
			return u, err
		}
	}
	return s.now(ctx, u)
}

// observe tells an observer, where there is one.
func observe[T any](tell func(T), v T) {
	if tell != nil {
		tell(v)
	}
}

// refused words the error that a client gets for an update that the journal has not accepted.
// Nothing is lost with it. Unless the cause may pass, a second try fails as well.
func (s *Service) refused(err error) error {
	if err == nil || errors.Is(err, ErrKeyReused) || errors.Is(err, ErrChanged) || errors.Is(err, ErrClosed) {
		return err
	}
	if s.store.Trouble() != nil && !journal.Passing(err) {
		s.breakDown(err)
	}
	return err
}

// admit makes room for one more update, and dismiss gives it back. Each client's wishes are kept in
// memory, so admit refuses a new client when there are as many as allowed. It counts every update
// on its way as if it came from a new client.
func (s *Service) admit(r *Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.broken != nil:
		return s.broken
	case s.closed:
		return ErrClosed
	case s.total >= s.cfg.Queue:
		return ErrQueueFull
	case s.clients[r.Client] >= s.cfg.PerClient:
		return ErrClientQueueFull
	case r.Enable && s.coord.Clients()+s.total >= s.cfg.Clients && !s.store.HasWants(r.Client, r.Ops):
		return ErrTooManyClients
	}
	s.count(r.Client, 1)
	return nil
}

// dismiss is the other half of admit.
func (s *Service) dismiss(client string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(client, -1)
}

// count counts a client's updates on their way; mu is held.
func (s *Service) count(client string, n int) {
	s.total += n
	if s.clients[client] += n; s.clients[client] == 0 {
		delete(s.clients, client)
	}
}

// enter notes an update that the journal has and that has no answer yet.
func (s *Service) enter(u Update, which []int, over time.Time, course Course) *pending {
	p := newPending(u, which, !over.IsZero())
	p.course, p.course.Written = course, time.Now()
	s.mu.Lock()
	s.open[u.ID] = p
	s.accepted = append(s.accepted, p)
	s.progress.updates = keepLast(s.progress.updates, statusUpdates, p)
	s.mu.Unlock()
	s.tell(u)
	return p
}

// handIn hands all accepted updates to the coordinator in one go: those that shared a transaction
// of the journal then share an update of the text. The first caller does it for all, in the order
// of acceptance; the others wait until it is done. A closed coordinator leaves them to the next
// start.
func (s *Service) handIn(ctx context.Context) {
	s.handing.Lock()
	defer s.handing.Unlock()
	s.mu.Lock()
	ps := s.accepted
	s.accepted = nil
	s.mu.Unlock()
	if len(ps) == 0 {
		return
	}
	rs := make([]coordinator.Request, len(ps))
	for i, p := range ps {
		u := p.update()
		rs[i] = coordinator.Request{Client: owner(u.Client, u.Ops), Enable: u.Enable, Set: u.Set, Records: s.numbers(u.Ops, p.which), ID: u.ID,
			Deadline: u.Deadline}
	}
	ts, err := s.coord.SubmitEach(context.WithoutCancel(ctx), rs...)
	for i, t := range ts {
		ps[i].ticket <- t
	}
	for _, p := range ps[len(ts):] {
		s.log.Info("left for the next start", zap.Int64("update", p.update().ID), zap.Error(err))
		p.leave()
	}
}

// find is an update that is on its way, or else as it has ended. An update may be in the journal
// and not entered yet; the next writer comes after its entry.
func (s *Service) find(ctx context.Context, id int64) (*pending, Update, error) {
	if p := s.pendingOf(id); p != nil {
		return p, p.update(), nil
	}
	u, err := s.store.Update(ctx, id)
	if err != nil || u.State.Final() {
		return nil, u, err
	}
	if err := s.store.Sync(); err != nil {
		return nil, u, err
	}
	if p := s.pendingOf(id); p != nil {
		return p, p.update(), nil
	}
	u, err = s.store.Update(ctx, id)
	if err == nil && !u.State.Final() {
		err = s.gone()
	}
	return nil, u, err
}

func (s *Service) pendingOf(id int64) *pending {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[id]
}

// Wait waits until an update has ended, and that is in the journal. When ctx ends
// first, or the service is closed, the update comes with an error, and is on the disk unless that is another one.
func (s *Service) Wait(ctx context.Context, id int64) (Update, error) {
	p, u, err := s.find(ctx, id)
	if p == nil {
		return u, err
	}
	select {
	case <-p.done:
		return p.update(), nil
	case <-p.left:
		err = s.gone()
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if failed := s.store.Sync(); failed != nil && !errors.Is(err, ErrBroken) {
		err = failed
	}
	return p.update(), err
}

// Update is the present state of the update of that ID. It looks among the updates on their
// way before it looks into the journal: one that has left the former has its end in the
// latter. So the answer is never older than one before.
func (s *Service) Update(ctx context.Context, id int64) (Update, error) {
	p := s.pendingOf(id)
	s.cfg.At(DuringLook)
	if p != nil {
		return p.update(), nil
	}
	return s.store.Update(ctx, id)
}

// now is the present state of an update that the journal has shown.
func (s *Service) now(ctx context.Context, u Update) (Update, error) {
	if u.State.Final() {
		return u, nil
	}
	return s.Update(ctx, u.ID)
}

// Updates lists updates. Those that cannot be read are left out, and told in the log and by
// Damage.
func (s *Service) Updates(ctx context.Context, q Query) ([]Update, error) {
	if q.State == journal.Queued || q.State == journal.Held || q.State == journal.Running {
		return s.onTheirWay(q), nil
	}
	us, damaged, err := s.store.Updates(ctx, q)
	if len(damaged) > 0 {
		s.log.Error("damaged", zap.Int64s("updates", damaged))
	}
	s.cfg.At(DuringLook)
	for i := range us {
		if err == nil {
			us[i], err = s.now(ctx, us[i])
		}
	}
	return us, err
}

// onTheirWay lists updates of a state that only this process knows.
func (s *Service) onTheirWay(q Query) (out []Update) {
	if q.Limit == 0 {
		q.Limit = 100
	}
	for _, p := range s.pending() {
		u := p.update()
		if u.State == q.State && u.ID > q.After && (q.Before == 0 || u.ID < q.Before) && (q.Client == "" || u.Client == q.Client) &&
			(q.Ops == "" || u.Ops == q.Ops) {
			out = append(out, u)
		}
	}
	if q.Newest {
		slices.Reverse(out)
	}
	return out[:min(len(out), q.Limit)]
}

// Cancel withdraws an update that no batch has taken up; ErrTooLate otherwise.
func (s *Service) Cancel(ctx context.Context, id int64) (Update, error) {
	p, u, err := s.find(ctx, id)
	switch {
	case err != nil:
		return u, err
	case p == nil:
		return u, ErrTooLate
	}
	select {
	case t := <-p.ticket:
		p.ticket <- t
		if !t.Cancel() {
			return p.update(), ErrTooLate
		}
		return s.Wait(ctx, id) // by now it is answered, unless the journal broke down
	case <-p.left:
		return p.update(), s.gone()
	case <-ctx.Done():
		return p.update(), context.Cause(ctx)
	}
}

// gone is why an update is left to the next start.
func (s *Service) gone() error {
	if err := s.brokenDown(); err != nil {
		return err
	}
	return ErrClosed
}
