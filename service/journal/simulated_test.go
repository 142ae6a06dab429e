// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	histories = flag.Int("histories", 0, "how many histories TestSimulated goes through (default 1,000, a million with -long)")
	from      = flag.Uint64("from", 1, "the first history that TestSimulated goes through")
	seed      = flag.Uint64("seed", 0, "the one history that TestSimulated goes through")
)

// TestSimulated lets random clients use a journal on a disk that tears, loses and delays what is
// not synced, whose syncs fail, that has no room, whose power is cut and whose process is killed
// at any point, by a clock that jumps; and on one that lies. What was acknowledged is there
// afterwards, what was refused is not, and nothing is served that was never written. A history
// follows from its seed.
func TestSimulated(t *testing.T) {
	n := 1_000
	if *long {
		n = 1_000_000
	}
	if *histories > 0 {
		n = *histories
	}
	if testing.Short() {
		n = min(n, 200)
	}
	if *seed > 0 {
		if err := history(*seed); err != nil {
			t.Fatal(err)
		}
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(1000)) // hardly anything is kept: half the time went there
	var next, failed atomic.Uint64
	next.Store(*from - 1)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for s := next.Add(1); s < *from+uint64(n) && failed.Load() == 0; s = next.Add(1) {
				if err := history(s); err != nil {
					failed.Add(1)
					t.Errorf("-seed %d: %v", s, err)
				}
			}
		})
	}
	group.Wait()
}

// outcome is what is known of something that was asked for.
type outcome int

const (
	unknown outcome = iota // the process ended, or the disk failed, before there was an answer
	done
)

// simUpdate is an update as its client knows it.
type simUpdate struct {
	Order
	ends  []Update // that it may have: the last one asked for, and whether it is certain
	ended outcome
	turn  int  // of its end among all ends
	soft  bool // a cut of the power may take it
	spent *Spent
}

// act is an update that has ended, or a client's renewal of its lease.
type act struct {
	turn   int
	id     int64 // 0: of a renewal
	client string
	at     time.Time
}

// world is clients, a clock and a disk.
type world struct {
	rng     *rand.Rand
	disk    *simDisk
	store   *Store
	clock   time.Time
	known   map[int64]*simUpdate
	maybe   []Order  // asked for, and no answer
	acts    []act    // that changed what is wanted
	unsure  *act     // a renewal that had no answer
	names   []string // of the records, in the order of the table; nil: they are not known
	gone    int64    // updates that have ended, up to this one, may be forgotten
	digests int
	turns   int
	cut     bool  // the power was cut since the last look
	synced  bool  // all that was written is on the disk
	wrong   error // an answer that no client may get
}

// history goes through one. Its error is what was wrong.
func history(seed uint64) (err error) {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := &world{rng: rng, disk: newSimDisk(rng), clock: time.Unix(1_700_000_000, 0).UTC(), known: map[int64]*simUpdate{}}
	if rng.IntN(4) == 0 {
		w.names = numbered(100)
	}
	for range 3 + rng.IntN(4) {
		if err := w.life(); err != nil {
			return err
		}
	}
	if rng.IntN(2) == 0 {
		return w.lied()
	}
	return nil
}

// life is one process, from its start to its end.
func (w *world) life() error {
	w.disk.flaky = false
	if w.rng.IntN(3) == 0 {
		w.disk.until = w.rng.IntN(12) // while it starts
	}
	if w.names != nil && w.rng.IntN(3) == 0 { // the same records elsewhere
		slices.Reverse(w.names)
	}
	err := w.guarded(w.start)
	switch {
	case errors.Is(err, errStopped):
		w.end()
		return nil
	case err != nil:
		return fmt.Errorf("refused: %w", err)
	}
	if err := w.look(nil); err != nil {
		return err
	}
	w.disk.flaky = w.rng.IntN(2) == 0
	w.disk.until = -1
	if w.rng.IntN(4) > 0 {
		w.disk.until = w.rng.IntN(150)
	}
	for range w.rng.IntN(40) {
		if err := w.guarded(w.act); err != nil && !errors.Is(err, errStopped) {
			return err
		} else if err != nil || w.store.Trouble() != nil && !Passing(w.store.Trouble()) {
			break
		}
	}
	w.end()
	return nil
}

var errStopped = errors.New("the process has ended")

// guarded does something, in a process that may end in the middle of it.
func (w *world) guarded(do func() error) (err error) {
	defer func() {
		switch r := recover(); r.(type) {
		case nil:
		case stopped:
			err = errStopped
		default:
			panic(r)
		}
	}()
	return do()
}

// end is how a process ends: killed, or with the power.
func (w *world) end() {
	if w.rng.IntN(2) == 0 {
		w.cut = true
		w.disk.cut()
	} else {
		w.disk.kill()
	}
}

func (w *world) start() error {
	id := someone
	if w.names != nil {
		id.Names, id.Hash = w.names, w.names[0]
	}
	s, err := open(context.Background(), w.disk, id, func() (older, error) { return nil, nil })
	if err == nil {
		s.segment = int64(w.rng.IntN(3000))
		w.store = s
	}
	return err
}

// act is one transaction of some clients, or what a server does for itself.
func (w *world) act() error {
	w.clock = w.clock.Add(time.Duration(w.rng.IntN(1000)) * time.Millisecond)
	switch w.rng.IntN(12) {
	case 0:
		w.clock = w.clock.Add(time.Duration(w.rng.Int64N(1e17)-5e16) * 2) // years, to and fro
		return nil
	case 1:
		return w.compact()
	case 2:
		if _, err := open(context.Background(), w.disk, someone, nil); err == nil {
			return errors.New("a second server has opened it")
		}
		return nil
	}
	if w.rng.IntN(8) == 0 {
		return w.renew([]string{"a", "b"}[w.rng.IntN(2)])
	}
	var asks []func() error
	var then []func(error)
	for range 1 + w.rng.IntN(4) {
		ask, f := w.accept()
		if open := w.unanswered(); len(open) > 0 && w.rng.IntN(2) == 0 {
			ask, f = w.answer(open[w.rng.IntN(len(open))])
		}
		asks, then = append(asks, ask), append(then, f)
	}
	if w.rng.IntN(8) == 0 {
		asks, then = append(asks, w.store.Sync), append(then, func(err error) { w.synced = w.synced || err == nil })
	}
	errs, err := w.serve(asks...)
	for i, f := range then {
		f(errs[i])
	}
	if err == nil && w.wrong != nil { // clients of a process that has ended hear nothing
		return w.wrong
	}
	w.wrong = nil
	w.harden()
	return err
}

// harden notes that all that was written is on the disk, if it is.
func (w *world) harden() {
	for _, k := range w.known {
		k.soft = k.soft && !w.synced
	}
	w.synced = false
}

// serve is the writer: what clients ask for at the same time shares a transaction. It returns
// their answers, and errStopped where the process has ended.
func (w *world) serve(asks ...func() error) (errs []error, err error) {
	answers := make([]chan error, len(asks))
	var group []*job
	for i, ask := range asks {
		answers[i] = make(chan error, 1)
		go func() { answers[i] <- ask() }()
		group = append(group, <-w.store.jobs)
	}
	write := func(group ...*job) {
		if err == nil {
			err = w.guarded(func() error {
				w.store.carryOut(group)
				return nil
			})
		}
		for _, j := range group {
			j.err = cmp.Or(j.err, err)
			close(j.done)
		}
	}
	write(group...)
	for _, answer := range answers {
		for more := true; more; {
			select {
			case e := <-answer:
				errs, more = append(errs, e), false
			case j := <-w.store.jobs: // the second step of one that has two
				write(j)
			}
		}
	}
	return errs, err
}

func (w *world) unanswered() (ids []int64) {
	for _, id := range slices.Sorted(maps.Keys(w.known)) {
		if len(w.known[id].ends) == 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

func (w *world) compact() error {
	keep := Keep{Updates: w.rng.IntN(8), Age: time.Duration(w.rng.IntN(5)) * time.Second}
	last, _ := w.store.state.outdated(w.clock, keep)
	before := w.haveEnded()
	removed := int64(0)
	errs, err := w.serve(func() (err error) {
		removed, err = w.store.Compact(context.Background(), w.clock, keep, nil)
		return err
	})
	if after := w.haveEnded(); errs[0] == nil && keep.Updates > 0 && keep.Age == 0 && after != min(before, keep.Updates) {
		return fmt.Errorf("of %d that have ended %d are kept, want %d", before, after, keep.Updates)
	}
	if removed > 0 || !Passing(errs[0]) { // it may have been forgotten, and the segments not be removed
		w.gone = max(w.gone, last)
	}
	return err
}

// haveEnded is how many that have ended the journal keeps.
func (w *world) haveEnded() (n int) {
	for _, r := range w.store.state.rows {
		if r.state != "" && r.state.Final() {
			n++
		}
	}
	return n
}

// lied lets a disk that is at rest lie, once. The start is refused, and nothing is changed; or
// what cannot be read is named, and all else is as it was.
func (w *world) lied() error {
	before := map[string][]byte{}
	for name, f := range w.disk.names {
		before[name] = slices.Clone(f.cache)
	}
	w.disk.flaky = false
	if err := w.guarded(w.start); err != nil {
		return fmt.Errorf("refused: %w", err)
	}
	if err := w.look(nil); err != nil {
		return err
	}
	for range 5 {
		if err := w.act(); err != nil {
			return err
		}
	}
	w.disk.kill()
	what := w.disk.lie(before)
	left := w.disk.content()
	var damaged *DamagedError
	switch err := w.guarded(w.start); {
	case errors.As(err, &damaged):
		if now := w.disk.content(); now != left {
			return fmt.Errorf("%s: what was refused has changed", what)
		}
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := w.look(map[int64]bool{}); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	_, ids, _ := w.store.Updates(context.Background(), Query{Limit: 1 << 20})
	if said := fmt.Sprint(w.store.Damage()); len(ids) > 0 && !strings.Contains(said, ranges(ids)) {
		return fmt.Errorf("%s: %v cannot be read, and the start said %s", what, ids, said)
	}
	return nil
}
