// SPDX-License-Identifier: Apache-2.0

package points

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/results"
)

// Run is what all points of a sweep have in common.
type Run struct {
	Version  string            `json:"version"`
	Revision string            `json:"revision"`
	Request  choice.Request    `json:"request"` // with the choices that rows depend on
	Inputs   map[string]string `json:"inputs"`  // SHA-256 of each file that is read, by its name
	Columns  string            `json:"columns"` // of all tables, by name
	Points   int               `json:"points"`
}

// NewRun is the run whose tables are to be written with a manifest. The ignored choices say how points are done, and
// rows do not depend on them.
func NewRun(m *results.Manifest, tables []results.Table, n int, ignored ...string) Run {
	r := Run{Version: m.Version, Revision: m.Revision, Request: choice.ParseArgs(m.Args).Without(ignored...), Points: n,
		Inputs: maps.Clone(m.Inputs)}
	if r.Inputs == nil {
		r.Inputs = map[string]string{}
	}
	for _, t := range tables {
		for _, c := range t.Columns {
			r.Columns += t.Name + "." + c.Name + " "
		}
	}
	return r
}

// written is the run whose tables a manifest describes.
func written(m *results.Manifest, ignored ...string) Run {
	var tables []results.Table
	for _, f := range m.Files {
		tables = append(tables, results.Table{Name: strings.TrimSuffix(f.Name, ".csv"), Columns: f.Columns})
	}
	n := 0
	if m.Part != nil {
		n = m.Part.Points
	}
	return NewRun(m, tables, n, ignored...)
}

// plain is the run after writing and reading: names of files need not be text.
func (r Run) plain() (out Run) {
	data, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		return r // the types rule it out
	}
	return out
}

// facts are the run's parts, by their names for people.
func (r Run) facts() map[any]string {
	f := map[any]string{"version": r.Version, "revision": r.Revision, "command": r.Request.Name, "columns": r.Columns,
		"combinations": strconv.Itoa(r.Points)}
	for name, texts := range r.Request.Config {
		f[choice.Name(name)] = strings.Join(texts, ",")
	}
	for name, sum := range r.Inputs {
		f["SHA-256 of "+name] = sum
	}
	return f
}

// differs says how another run differs from this one; inThere and inHere name the two. It is nil for equal runs.
func (r Run) differs(there Run, inThere, inHere string) error {
	is, was := r.facts(), there.facts()
	both := maps.Clone(is)
	maps.Copy(both, was)
	var errs []error
	for _, what := range slices.SortedFunc(maps.Keys(both), func(a, b any) int {
		return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
	}) {
		if is[what] != was[what] {
			errs = append(errs, choice.Errorf("%s: %s %s, %s %s", what, cmp.Or(was[what], "none"), inThere,
				cmp.Or(is[what], "none"), inHere))
		}
	}
	return errors.Join(errs...)
}

const (
	// aheadPerWorker is how many points a worker may be ahead of the one that
	// everything waits for: enough to keep all busy where points differ, few
	// enough that what waits takes no memory to speak of.
	aheadPerWorker = 16
	// itemsPerTurn is how many items a point can make before it waits for its turn.
	itemsPerTurn = 4
)

// turn is a point's place in the order.
type turn[T any] struct {
	items chan T
	err   error // valid once items is closed
}

// inOrder makes n points on up to workers goroutines. This goroutine takes the items
// in the order of the points: at once from the one whose turn it is, later from those
// behind it.
//
// After a point fails no more are begun, and no item behind it is taken, so that the
// taken items are the same for any number of workers. When ctx ends, the points that
// were finished all the same are taken, too. No goroutine is left behind.
func inOrder[T any](ctx context.Context, n, workers int, point func(ctx context.Context, i int, give func(T)) error,
	take func(T) error) error {
	if workers == 1 {
		return oneByOne(ctx, n, point, take)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	turns := make(chan *turn[T], aheadPerWorker*workers)
	var begun sync.WaitGroup
	begun.Go(func() {
		defer close(turns)
		begin(ctx, n, workers, turns, point)
	})
	defer begun.Wait()
	var refused, failed, cut error
	taken := 0
	for t := range turns {
		for item := range t.items {
			if refused != nil || failed != nil {
				continue // points must not wait for ever
			}
			if refused = take(item); refused != nil {
				cancel()
			}
		}
		taken++
		if Stopped(t.err) {
			cut = cmp.Or(cut, t.err)
		} else {
			failed = cmp.Or(failed, t.err)
		}
	}
	if taken < n {
		cut = cmp.Or(cut, ctx.Err())
	}
	return cmp.Or(refused, failed, cut)
}

// oneByOne is inOrder on this goroutine alone: nothing runs beside a point, and
// none is begun before the rows of the last are out.
func oneByOne[T any](ctx context.Context, n int, point func(ctx context.Context, i int, give func(T)) error,
	take func(T) error) error {
	for i := range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		var refused error
		err := point(ctx, i, func(item T) {
			if refused == nil {
				refused = take(item)
			}
		})
		if err = cmp.Or(refused, err); err != nil {
			return err
		}
	}
	return nil
}

// begin begins the points in their order, until one fails.
func begin[T any](ctx context.Context, n, workers int, turns chan<- *turn[T], point func(ctx context.Context, i int,
	give func(T)) error) {
	var group errgroup.Group
	group.SetLimit(workers)
	var failed atomic.Bool
	for i := range n {
		t := &turn[T]{items: make(chan T, itemsPerTurn)}
		if failed.Load() || ctx.Err() != nil {
			break
		}
		turns <- t // taken as long as there are any
		group.Go(func() error {
			defer close(t.items)
			if t.err = point(ctx, i, func(item T) { t.items <- item }); t.err != nil {
				failed.Store(true)
			}
			return nil
		})
	}
	_ = group.Wait() // errors are in the turns
}
