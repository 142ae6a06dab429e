// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// job is what somebody wants written: entries that come together.
type job struct {
	do   func(tx *txn) error // an error refuses this job, and none of the others
	soft bool                // no sync is waited for: see Order.Unsynced
	then func()              // the writer calls it when it is written; nil for nothing
	err  error
	done chan struct{} // closed when it is on the disk, or err says why not
}

// txn is what one sync brings to the disk.
type txn struct {
	*state      // as it was before
	entries     []entry
	update, run int64            // the last IDs
	keys        map[uint64]int64 // index into entries, of clients' keys
}

func (tx *txn) add(e entry) { tx.entries = append(tx.entries, e) }

// maxGroup bounds a transaction.
const maxGroup = 512

// change has something written.
func (s *Store) change(do func(tx *txn) error) error { return s.commit(&job{do: do}) }

// commit hands a job to the writer, and returns when it is on the disk. The writer writes it even
// if the caller stops waiting.
func (s *Store) commit(j *job) error {
	j.done = make(chan struct{})
	s.closing.RLock()
	if s.closed {
		s.closing.RUnlock()
		return ErrClosed
	}
	s.jobs <- j
	s.closing.RUnlock()
	<-j.done
	return j.err
}

// run is the writer.
func (s *Store) run() {
	defer close(s.ended)
	for first := range s.jobs {
		group := []*job{first}
		for more := min(len(s.jobs), maxGroup-1); more > 0; more-- {
			group = append(group, <-s.jobs)
		}
		s.carryOut(group)
		for _, j := range group {
			close(j.done)
		}
	}
}

// carryOut writes a group with one sync. A disk that cannot be written is everybody's trouble.
func (s *Store) carryOut(group []*job) {
	tx := &txn{state: s.state, update: s.state.Update, run: s.state.LastRun, keys: map[uint64]int64{}}
	for _, j := range group {
		entries, update, run := len(tx.entries), tx.update, tx.run
		if j.err = j.do(tx); j.err != nil {
			tx.entries, tx.update, tx.run = tx.entries[:entries], update, run
		}
	}
	hard := slices.ContainsFunc(group, func(j *job) bool { return !j.soft })
	if err := s.write(tx.entries, hard); err != nil {
		for _, j := range group {
			if j.err == nil {
				j.err = err
			}
		}
		return
	}
	for _, j := range group {
		if j.err == nil && j.then != nil {
			j.then()
		}
	}
	s.grow()
}

// write puts entries on the disk, and shows them. After an error that will not pass nothing is
// written any more: only the next start can tell which entries are on the disk.
func (s *Store) write(entries []entry, sync bool) error {
	clean := len(entries) == 0 && (!sync || s.log.synced == s.log.next)
	if err := s.Trouble(); clean || err != nil && !Passing(err) {
		return err
	}
	return s.note(s.append(entries, sync))
}

func (s *Store) append(entries []entry, sync bool) error {
	if f := s.fault.Load(); f != nil && *f != nil {
		if err := (*f)(); err != nil {
			return err
		}
	}
	start := time.Now()
	at, err := s.log.write(entries, sync)
	if err != nil {
		return err
	}
	if f := s.written.Load(); sync && f != nil && *f != nil {
		(*f)(time.Since(start))
	}
	return s.take(entries, at)
}

// grow begins a segment where the last one is long enough. If it cannot, no client hears of it:
// their frames are on the disk, and the next job tries again.
func (s *Store) grow() {
	broken := s.Trouble() != nil && !Passing(s.Trouble())
	if !broken && s.log.end-s.log.fresh > max(s.segment, 2*s.log.fresh) {
		_ = s.note(s.rotate(nil)) // Trouble says it
	}
}

// OnCommit has f told how long each transaction takes to get on the disk; it must not
// block.
func (s *Store) OnCommit(f func(time.Duration)) { s.written.Store(&f) }

// frames makes frames of entries, one behind the other.
type frames struct {
	next   uint64
	link   link
	synced uint64
	at     place // where the next one comes
	text   []byte
}

// put appends the frame of an entry and says where it will be.
func (f *frames) put(e *entry) (at place, err error) {
	payload, err := json.Marshal(e)
	if err == nil && len(payload) > maxPayload {
		err = fmt.Errorf("%d bytes in one frame, at most %d can be read again", len(payload), maxPayload)
	}
	if err != nil {
		return at, err
	}
	f.link = f.link.after(f.next, payload)
	before := len(f.text)
	f.text = appendFrame(f.text, frame{number: f.next, synced: f.synced, link: f.link, payload: payload})
	f.next++
	at = f.at
	f.at.at += int64(len(f.text) - before)
	return at, nil
}

// write puts entries into the log, all or none, and says where they are. Without sync they survive a
// kill, and a power cut only once a later write or flush has synced them.
func (l *log) write(entries []entry, sync bool) (at []place, err error) {
	f := frames{next: l.next, link: l.link, synced: l.synced, at: place{l.last(), l.end}}
	for i := range entries {
		where, err := f.put(&entries[i])
		if err != nil {
			return nil, err
		}
		at = append(at, where)
	}
	name := segmentName(l.last())
	if _, err := l.out.WriteAt(f.text, l.end); err != nil {
		return nil, l.takeBack(err)
	}
	if sync {
		if err := l.out.Sync(); err != nil {
			return nil, &TroubleError{name, ErrBroken, err}
		}
	}
	if err := l.disk.Same(name, l.out); err != nil {
		return nil, l.takeBack(err)
	}
	l.next, l.link, l.end = f.next, f.link, f.at.at
	if sync {
		err = l.acknowledge()
	}
	return at, err
}

// flush has on the disk what was written without a sync.
func (l *log) flush() error {
	if l.synced == l.next {
		return nil
	}
	if err := l.out.Sync(); err != nil {
		return &TroubleError{segmentName(l.last()), ErrBroken, err}
	}
	return l.acknowledge()
}

// acknowledge notes that all frames are on the disk.
func (l *log) acknowledge() error {
	l.synced = l.next
	if err := l.head.put(l.next-1, l.link); err != nil {
		return &TroubleError{headName, ErrBroken, err}
	}
	return nil
}

// takeBack removes a frame that was written and then refused: its client is told that it was not
// accepted, so the next start must not find it.
func (l *log) takeBack(why error) error {
	err := l.out.Truncate(l.end)
	if err == nil {
		err = l.out.Sync()
	}
	if err != nil {
		return &TroubleError{segmentName(l.last()), ErrBroken, errors.Join(why, err)}
	}
	return why
}

// emitter hands entries to each, one by one.
type emitter func(each func(*entry) error) error

// chunk is how much of a segment is written at a time.
const chunk = 1 << 20

// fill writes the frames of a segment or a backup into a file and has it on the disk.
func (f *frames) fill(out Handle, emit emitter, placed func(*entry, place) error) error {
	written := int64(0)
	flush := func() error {
		_, err := out.WriteAt(f.text, written)
		written += int64(len(f.text))
		f.text = f.text[:0]
		return err
	}
	err := emit(func(e *entry) error {
		at, err := f.put(e)
		if err == nil && len(f.text) > chunk {
			err = flush()
		}
		if err == nil {
			err = placed(e, at)
		}
		return err
	})
	if err == nil {
		err = flush()
	}
	if err == nil {
		err = out.Sync()
	}
	return err
}

// rotate begins a segment with entries, which are the present state, and says where each
// is. It has its name once it is on the disk.
func (l *log) rotate(emit emitter, placed func(*entry, place) error) error {
	if err := l.flush(); err != nil { // the next segment's frames say that it is on the disk
		return err
	}
	name := segmentName(l.next)
	out, err := l.disk.Create(name + unfinished)
	if err != nil {
		return err
	}
	f := frames{next: l.next, link: l.link, synced: l.next, at: place{segment: l.next}}
	if err := f.fill(out, emit, placed); err != nil {
		return errors.Join(err, out.Close(), l.disk.Remove(name+unfinished))
	}
	if err = l.disk.Rename(name+unfinished, name); err == nil {
		err = l.disk.Sync()
	}
	if err != nil { // it may have its name or not
		return errors.Join(&TroubleError{name, ErrBroken, err}, out.Close())
	}
	if l.out != nil {
		err = l.out.Close()
		l.sizes = append(l.sizes, l.end)
	}
	l.segments, l.out = append(l.segments, l.next), out
	l.next, l.link, l.end, l.fresh = f.next, f.link, f.at.at, f.at.at
	return errors.Join(err, l.acknowledge())
}

// removeBefore removes the segments before one that is kept.
func (l *log) removeBefore(segment uint64) error {
	for len(l.segments) > 1 && l.segments[1] <= segment {
		if err := l.disk.Remove(segmentName(l.segments[0])); err != nil {
			return err
		}
		l.segments, l.sizes = l.segments[1:], l.sizes[1:]
	}
	return nil
}

// read is the entry at a place, which was looked at when it was written or at the start.
func (l *log) read(at place) (e entry, err error) {
	name := segmentName(at.segment)
	f, err := l.disk.Open(name)
	if err != nil {
		return e, err
	}
	defer f.Close()
	b := make([]byte, 1024) // most frames have less
	n, err := f.ReadAt(b, at.at)
	if more := frameLen(b[:n]); more > n {
		b = make([]byte, more)
		n, err = f.ReadAt(b, at.at)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return e, err
	}
	got, ok := parseFrame(b[:n])
	if !ok {
		return e, &DamagedError{name, (&harm{name, at.at, "a frame is damaged"}).String()}
	}
	return decodeEntry(got.payload)
}

func (l *log) close() (err error) {
	if l.out != nil {
		err = l.out.Close()
	}
	if l.head != nil {
		err = errors.Join(err, l.head.Close())
	}
	return err
}
