// SPDX-License-Identifier: Apache-2.0

// Package points goes through the points of a sweep, and keeps their outcomes.
//
// A [Sweep] knows its points by key and does them. [Sweep.Run] takes their items in the order of the points. This
// process does them on several cores, or workers do that take them from a queue (package queue). A [Keeper] keeps what
// points came to, so that no point is done twice: a [Folder] is one, in a file beside the tables. A [Shard] is every
// n-th point, for machines that know nothing of each other; [Merge] puts what they have written together again.
//
// A [Run] says what all of a sweep's points have in common. Points of runs that differ are never mixed.
package points

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrNo is the answer no. A point that ends with it ends with it also where another process did the point.
var ErrNo = errors.New("the answer is no")

// LostError is that no worker came to an end with a point. It is done again when the run is submitted again.
type LostError struct{ Key, Why string }

func (e *LostError) Error() string { return fmt.Sprintf("%s: %s", e.Key, e.Why) }

// Stopped tells whether an error means that the caller's context ended the run, and not that something is wrong.
func Stopped(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Outcome is the result of a point: its items, or an error.
type Outcome[T any] struct {
	Items  []T      `json:"rows"`
	Wrong  string   `json:"wrong,omitempty"`  // its error, for people
	Broken []string `json:"broken,omitempty"` // the properties that this breaks
}

// Keeper keeps what points came to, by their numbers.
type Keeper[T any] interface {
	Have(n int) (Outcome[T], bool)
	Put(n int, o Outcome[T]) error
}

// Sweep is points. Each point gives items.
type Sweep[T any] struct {
	// Keys say what each point is.
	Keys []string
	// Single tells that nothing may run beside a point.
	Single bool
	// Point does the n-th point, and gives each item as soon as it is there.
	Point func(ctx context.Context, n int, give func(T)) (wrong string, broken []string, err error)
}

// Way is how a sweep's points are gone through.
type Way[T any] struct {
	// Workers is how many points are done at a time.
	Workers int
	// Await waits for what another process makes of a point, which is what [Sweep.Do] returned there; nil: this
	// process does the points.
	Await func(ctx context.Context, n int) ([]byte, error)
	// Keeper has what points came to before, and keeps what others come to; nil for none.
	Keeper Keeper[T]
	// Take takes each item, in the order of the points, and tells whether it was kept from before. An error ends the
	// sweep.
	Take func(n int, item T, kept bool) error
	// Wrong takes what is wrong with a point, after its items; nil where nothing can be.
	Wrong func(n int, wrong string, broken []string)
}

// piece is an item on its way, or what is wrong with the point behind its items.
type piece[T any] struct {
	n      int
	item   T
	kept   bool
	wrong  string
	broken []string
	lost   *LostError
}

// Run goes through all points. The points that no worker came to an end with are lost; the others are done. An error of
// a point ends the sweep, and the items before it are the same for any number of workers.
func (s *Sweep[T]) Run(ctx context.Context, w Way[T]) (lost []*LostError, err error) {
	err = inOrder(ctx, len(s.Keys), w.Workers, func(ctx context.Context, n int, give func(piece[T])) error {
		return s.point(ctx, n, &w, give)
	}, func(p piece[T]) error {
		switch {
		case p.lost != nil:
			lost = append(lost, p.lost)
		case p.wrong != "":
			w.Wrong(p.n, p.wrong, p.broken)
		default:
			return w.Take(p.n, p.item, p.kept)
		}
		return nil
	})
	return lost, err
}

// point gives the items of a point, which it does now, awaits or has from before.
func (s *Sweep[T]) point(ctx context.Context, n int, w *Way[T], give func(piece[T])) (err error) {
	var o Outcome[T]
	kept := false
	if w.Keeper != nil {
		o, kept = w.Keeper.Have(n)
	}
	switch {
	case kept:
	case w.Await != nil:
		o, err = s.await(ctx, n, w.Await)
		if l := new(LostError); errors.As(err, &l) {
			give(piece[T]{lost: l})
			return nil
		}
	default:
		o, err = s.do(ctx, n, func(item T) { give(piece[T]{n: n, item: item}) })
	}
	if kept || w.Await != nil {
		for _, item := range o.Items {
			give(piece[T]{n: n, item: item, kept: kept})
		}
	}
	if o.Wrong != "" {
		give(piece[T]{n: n, wrong: o.Wrong, broken: o.Broken})
	}
	if err == nil && !kept && w.Keeper != nil {
		err = w.Keeper.Put(n, o)
	}
	return err
}

// do does a point here.
func (s *Sweep[T]) do(ctx context.Context, n int, give func(T)) (o Outcome[T], err error) {
	o.Wrong, o.Broken, err = s.Point(ctx, n, func(item T) {
		o.Items = append(o.Items, item)
		give(item)
	})
	return o, err
}

// message is a point's outcome, on its way between two processes.
type message[T any] struct {
	Made  Outcome[T] `json:"made"`
	Error string     `json:"error,omitempty"` // why it came to nothing more
	No    bool       `json:"no,omitempty"`    // the error is ErrNo
}

// remote is an error of a point that another process did.
type remote struct {
	text string
	no   bool
}

func (r remote) Error() string        { return r.text }
func (r remote) Is(target error) bool { return r.no && target == ErrNo }

// Do does a point for another process. The error is that the point was cut short; any other error of the point is part
// of the answer.
func (s *Sweep[T]) Do(ctx context.Context, n int) ([]byte, error) {
	made, err := s.do(ctx, n, func(T) {})
	switch {
	case Stopped(err):
		return nil, err
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	m := message[T]{Made: made}
	if err != nil {
		m.Error, m.No = err.Error(), errors.Is(err, ErrNo)
	}
	return json.Marshal(m)
}

func (s *Sweep[T]) await(ctx context.Context, n int, await func(context.Context, int) ([]byte, error)) (o Outcome[T],
	err error) {
	data, err := await(ctx, n)
	if err != nil {
		return o, err
	}
	var m message[T]
	if err := json.Unmarshal(data, &m); err != nil {
		return o, fmt.Errorf("point %d: %w", n, err)
	}
	if m.Error != "" {
		err = remote{m.Error, m.No}
	}
	return m.Made, err
}

// Key is what the n-th point is.
func (s *Sweep[T]) Key(n int) (string, error) {
	if n < 0 || n >= len(s.Keys) {
		return "", fmt.Errorf("point %d of %d", n, len(s.Keys))
	}
	return s.Keys[n], nil
}

// Alone tells whether nothing may run beside a point.
func (s *Sweep[T]) Alone() bool { return s.Single }
