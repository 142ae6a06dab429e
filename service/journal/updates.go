// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"
)

// ErrKeyReused refuses a client's key that it has used for another request.
var ErrKeyReused = errors.New("the key is used for another request of this client")

// ErrNotFound says that there is no such thing, or no more.
var ErrNotFound = errors.New("not found")

// Accept writes an update down, which is given its ID. Once it is on the disk (but see Order.Unsynced), and
// before anything else is written, entered is called with it. Where the client has
// used its key before, for the same request, entered is not called, and that update
// is returned.
func (s *Store) Accept(o Order, entered func(Update)) (u Update, err error) {
	fresh, records := false, newWhich(o.Which)
	err = s.commit(&job{
		soft: o.Unsynced,
		then: func() {
			if fresh {
				entered(u)
			}
		},
		do: func(tx *txn) (err error) {
			u, err = s.known(tx, &o)
			if fresh = errors.Is(err, ErrNotFound); !fresh {
				return err
			}
			if err := matches(tx, &o); err != nil {
				fresh = false
				return err
			}
			if err := records.below(tx.Count); err != nil { // the next start would refuse the log
				fresh = false
				return err
			}
			tx.update++
			u = o.Update
			u.ID, u.State = tx.update, Queued
			if o.Key != "" {
				tx.keys[hashOf(o.Client, o.Key)] = int64(len(tx.entries))
			}
			tx.add(entry{Accept: &accepted{u, records, o.Digest, o.Over}})
			return nil
		},
	})
	return u, err
}

// ErrChanged refuses an update whose Match is not what there is.
var ErrChanged = errors.New("what this client wants with this ops is not what it was, or is being changed")

// matches looks whether an order's Match holds, also behind those that it shares the transaction
// with.
func matches(tx *txn, o *Order) error {
	if o.Match == "" {
		return nil
	}
	who := owner{o.Client, o.Ops}
	if l := tx.lease[who]; !o.Over.IsZero() && (l.Seconds == 0 || l.Until.After(o.Over)) {
		return ErrChanged
	}
	for _, a := range tx.open {
		if a.Client == who.client && a.Ops == who.ops {
			return ErrChanged
		}
	}
	for _, e := range tx.entries {
		if e.Accept != nil && e.Accept.Client == who.client && e.Accept.Ops == who.ops {
			return ErrChanged
		}
	}
	if tagOf(tx.wants[who]) != o.Match {
		return ErrChanged
	}
	return nil
}

// known is the update for which a client has used its key, also within this transaction.
func (s *Store) known(tx *txn, o *Order) (Update, error) {
	if o.Key == "" {
		return Update{}, ErrNotFound
	}
	if i, ok := tx.keys[hashOf(o.Client, o.Key)]; ok {
		return sameRequest(tx.entries[i].Accept, o.Client, o.Key, o.Digest)
	}
	return s.ByKey(context.Background(), o.Client, o.Key, o.Digest)
}

// sameRequest is an update if that is of a client's key and request.
func sameRequest(a *accepted, client, key, digest string) (Update, error) {
	switch {
	case a.Client != client || a.Key != key:
		return Update{}, ErrNotFound
	case a.Digest != digest:
		return a.Update, ErrKeyReused
	}
	return a.Update, nil
}

// Sync returns when everything that was written before is on the disk.
func (s *Store) Sync() error { return s.commit(&job{do: func(*txn) error { return nil }}) }

// Answer writes down how updates ended, in final states, and the allowances spent on them; nil
// for none. Live ones change their clients' wants.
func (s *Store) Answer(us []Update, spent *Spent) error {
	return s.change(func(tx *txn) error {
		for _, u := range us {
			if tx.open[u.ID] == nil {
				return fmt.Errorf("update %d is answered already", u.ID)
			}
			tx.add(entry{End: &ending{Spent: spent, Update: Update{ID: u.ID, State: u.State, Batch: u.Batch, Error: u.Error,
				Began: u.Began, Ended: u.Ended, Receipt: u.Receipt}}})
			spent = nil
		}
		return nil
	})
}

// Spent is until when each allowance is spent.
func (s *Store) Spent() map[string]time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.Clone(s.state.Spent)
}

// LastBatch is the greatest number of a batch that was ever answered.
func (s *Store) LastBatch() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.state.Batch
}

// Unanswered is what was accepted and has not ended, in that order.
func (s *Store) Unanswered() (out []Order) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, id := range slices.Sorted(maps.Keys(s.state.open)) {
		a := s.state.open[id]
		out = append(out, Order{Update: a.Update, Which: a.Which.numbers(), Digest: a.Digest, Over: a.Over})
	}
	return out
}

// Update is the update of that ID.
func (s *Store) Update(_ context.Context, id int64) (Update, error) {
	a, err := s.find(id)
	if err != nil {
		return Update{}, err
	}
	return a.Update, nil
}

// find is an update that is open, or has ended.
func (s *Store) find(id int64) (*accepted, error) {
	s.mu.RLock()
	r, a := s.state.row(id), s.state.open[id]
	var at row
	if r != nil {
		at = *r
	}
	s.mu.RUnlock()
	switch {
	case a != nil:
		return a, nil
	case r == nil || at.state == "" && id <= s.gone():
		return nil, fmt.Errorf("update %d: %w", id, ErrNotFound)
	}
	return s.readRow(id, at)
}

func (s *Store) gone() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.state.Gone
}

// readRow reads an update that has ended.
func (s *Store) readRow(id int64, at row) (a *accepted, err error) {
	if (at.accept == place{} || at.end == place{}) {
		return nil, &DamagedError{s.file, fmt.Sprintf("update %d: its frame is not as it was written", id)}
	}
	first, err := s.log.read(at.accept)
	if err != nil {
		return nil, s.unreadable(id, err)
	}
	last, err := s.log.read(at.end)
	if err != nil {
		return nil, s.unreadable(id, err)
	}
	if first.Accept == nil || first.Accept.ID != id || last.End == nil || last.End.ID != id {
		return nil, &DamagedError{s.file, fmt.Sprintf("update %d: another frame is where its own was", id)}
	}
	a, e := first.Accept, last.End
	a.State, a.Batch, a.Error, a.Began, a.Ended, a.Receipt = e.State, e.Batch, e.Error, e.Began, e.Ended, e.Receipt
	return a, nil
}

// unreadable is why a row cannot be read: it may have been removed meanwhile.
func (s *Store) unreadable(id int64, err error) error {
	if errors.Is(err, fs.ErrNotExist) && id <= s.gone() {
		return fmt.Errorf("update %d: %w", id, ErrNotFound)
	}
	return fmt.Errorf("update %d: %w", id, explain(s.file, err))
}

// ByKey is the update for which a client has used a key; ErrKeyReused if that was
// another request.
func (s *Store) ByKey(_ context.Context, client, key, digest string) (Update, error) {
	s.mu.RLock()
	id := s.state.keys[hashOf(client, key)] // 0 is none
	s.mu.RUnlock()
	a, err := s.find(id)
	if err != nil {
		return Update{}, err
	}
	return sameRequest(a, client, key, digest)
}

// Updates lists updates. Those that cannot be read any more it names in damaged.
func (s *Store) Updates(ctx context.Context, q Query) (out []Update, damaged []int64, err error) {
	after := q.After
	for q.Limit = cmp.Or(q.Limit, 100); len(out) < q.Limit; {
		ids := s.choose(q, q.Limit-len(out))
		if len(ids) == 0 {
			return out, damaged, nil
		}
		for _, id := range ids {
			u, err := s.Update(ctx, id)
			var harmed *DamagedError
			switch {
			case errors.As(err, &harmed):
				damaged = append(damaged, id)
			case errors.Is(err, ErrNotFound):
			case err != nil:
				return nil, nil, err
			case (q.Client == "" || u.Client == q.Client) && (q.Ops == "" || u.Ops == q.Ops) && (q.State == "" || u.State == q.State):
				out = append(out, u)
			}
		}
		if last := ids[len(ids)-1]; q.Newest {
			q.Before = last
		} else {
			q.After = last
		}
		if q.Newest && q.Before <= after+1 || ctx.Err() != nil {
			return out, damaged, context.Cause(ctx)
		}
	}
	return out, damaged, nil
}

// choose is the next IDs that a query may be for, in its order.
func (s *Store) choose(q Query, most int) (ids []int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	client := uint64(0)
	if q.Client != "" {
		client = hashOf(q.Client)
	}
	from, to := max(q.After+1, s.state.first), s.state.first+int64(len(s.state.rows))
	if q.Before > 0 {
		to = min(to, q.Before)
	}
	for i := range max(to-from, 0) {
		id := from + i
		if q.Newest {
			id = to - 1 - i
		}
		r := s.state.row(id)
		mayBe := (q.State == "" || r.state == q.State) && (client == 0 || r.client == client)
		if r.state == "" && id > s.state.Gone || r.state != "" && mayBe { // a damaged update may be any client's
			if ids = append(ids, id); len(ids) == most {
				break
			}
		}
	}
	return ids
}

// nanos is a time in nanoseconds since 1970; 0 for the zero time. Only times of this server's
// own clock are written so: a client's deadline may be beyond what they reach.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
