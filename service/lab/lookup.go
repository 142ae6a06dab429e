// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/service/journal"
)

// Result is one run, as it stands.
func (l *Lab) Result(ctx context.Context, id int64) (Result, error) {
	if r, ok := l.present(id); ok {
		return r, nil
	}
	kept, files, err := l.cfg.Store.Run(ctx, id)
	if err != nil {
		return Result{}, err
	}
	r := l.result(kept)
	r.Files = files
	for _, f := range files {
		if f.Name != summaryName {
			continue
		}
		if f, err = l.cfg.Store.File(ctx, id, f.Name); err != nil {
			return r, err
		}
		if err := json.Unmarshal(f.Data, &r.Summary); err != nil {
			return r, fmt.Errorf("%s of run %d: %w", f.Name, id, err)
		}
	}
	return r, nil
}

// present is one that has not ended.
func (l *Lab) present(id int64) (Result, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if x := l.active[id]; x != nil {
		return x.Result, true
	}
	return Result{}, false
}

// result is what the list of runs says of one.
func (l *Lab) result(kept journal.Run) Result {
	r := Result{ID: kept.ID, Name: kept.Name, State: kept.State, Error: kept.Error, Submitted: kept.Began, Ended: kept.Ended}
	if r.State == journal.Live { // as earlier versions call it
		r.State = journal.Done
	}
	return r
}

// Query chooses results, in the order of submission.
type Query struct {
	Name          string // of the experiment; "" for all
	State         State  // "" for all
	After, Before int64  // only those between; Before 0 for all
	Newest        bool   // the other way round
	Limit         int
}

// Results lists runs, without files, and those that have ended without summaries.
func (l *Lab) Results(q Query) (out []Result) {
	all := l.cfg.Store.Runs()
	if q.Newest {
		slices.Reverse(all)
	}
	for _, kept := range all {
		r, ok := l.present(kept.ID)
		if !ok {
			r = l.result(kept)
		}
		if kept.ID > q.After && (q.Before == 0 || kept.ID < q.Before) && (q.Name == "" || r.Name == q.Name) &&
			(q.State == "" || r.State == q.State) && len(out) < q.Limit {
			out = append(out, r)
		}
	}
	return out
}

// Wait returns a run when it has ended, or as it stands when ctx has.
func (l *Lab) Wait(ctx context.Context, id int64) (Result, error) {
	l.mu.Lock()
	x := l.active[id]
	l.mu.Unlock()
	if x != nil {
		select {
		case <-x.done:
		case <-ctx.Done():
		}
	}
	return l.Result(context.WithoutCancel(ctx), id)
}

// File is one of a run's files.
func (l *Lab) File(ctx context.Context, id int64, name string) (journal.File, error) {
	return l.cfg.Store.File(ctx, id, name)
}

// Cancel ends a run that has not ended, and tells whether there was one. It keeps the finished
// results.
func (l *Lab) Cancel(id int64) bool {
	l.mu.Lock()
	x := l.active[id]
	waits := -1
	if x != nil {
		x.withdrawn = true
		x.cancel()
		if waits = slices.Index(l.queue, x); waits >= 0 {
			l.queue = slices.Delete(l.queue, waits, waits+1)
		}
	}
	l.mu.Unlock()
	if waits >= 0 {
		l.carryOut(x) // which finds it cancelled
	}
	return x != nil
}
