// SPDX-License-Identifier: Apache-2.0

// Package journal keeps what a service has promised, in one SQLite file: updates as
// they were accepted and answered, what every client wants, and the results of
// runs. What a method has returned from is on the disk.
//
// Whoever writes waits for the one writer, which takes up all that wait and
// commits them with one transaction (group commit, as in PostgreSQL's
// commit_delay and MySQL's binlog): k clients pay for one sync of the disk.
package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	_ "modernc.org/sqlite" // the driver
)

// FileName is the file's name in its directory.
const FileName = "textpoke.db"

// Identity is what a file is about. One about another table is brought to this one where
// the names of both are known, and refused otherwise.
type Identity struct {
	Records string   // name of the table
	Hash    string   // of its records
	Count   int      // records
	Names   []string // of the records, of which several may have one; nil: not known
}

// same tells whether two are of one table.
func (id Identity) same(as Identity) bool {
	return id.Records == as.Records && id.Hash == as.Hash && id.Count == as.Count
}

// Store is the open file. All methods may be called by many at the same time.
type Store struct {
	file  string
	count int      // records of the table
	lock  *os.File // the directory
	read  *sql.DB
	write *sql.DB

	tip  *tip
	last head // run's alone, once it runs

	insert, finish, want, forget *sql.Stmt // the writer's, of what is written all the time

	jobs  chan *job
	ended chan struct{}

	closing sync.RWMutex // guards jobs' closing against senders
	closed  bool

	remapped []Update // see Remapped

	opened  os.FileInfo           // the file, as it was opened
	trouble atomic.Pointer[error] // what the last transaction failed with
	fault   atomic.Pointer[func() error]
	written atomic.Pointer[func(time.Duration)]
}

// LockedError refuses a file that somebody else has open.
type LockedError struct{ File string }

func (e *LockedError) Error() string {
	return fmt.Sprintf("%s: another server has it open; stop that one, or choose another directory", e.File)
}

// DamagedError refuses a file that is not as it was written.
type DamagedError struct{ File, Why string }

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s: damaged: %s; put a copy of the whole directory back, or move it away to begin with nothing",
		e.File, e.Why)
}

// ForeignError refuses a file that is whole and somebody else's.
type ForeignError struct{ File, Why string }

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s: %s; choose another directory, or move the file away to begin with nothing", e.File, e.Why)
}

// ErrClosed is the answer of a store that is closed, or about to be.
var ErrClosed = errors.New("closed: nothing more is accepted")

// Open opens the file in a directory, and makes both where they are missing. A
// file that is refused is left as it is.
func Open(ctx context.Context, dir string, id Identity) (*Store, error) {
	s := &Store{file: filepath.Join(dir, FileName), count: id.Count, jobs: make(chan *job, 1024),
		ended: make(chan struct{})}
	if err := s.open(ctx, dir, id); err != nil {
		_ = s.release() // the first error is the one to tell
		return nil, explain(s.file, err)
	}
	go s.run()
	return s, nil
}

func (s *Store) open(ctx context.Context, dir string, id Identity) error {
	if err := s.takeLock(dir); err != nil {
		return err
	}
	if _, err := os.Stat(s.file); errors.Is(err, os.ErrNotExist) {
		if err := alone(dir); err != nil {
			return err
		}
		if err := create(ctx, s.file, id); err != nil {
			return err
		}
	}
	if err := upgrade(ctx, s.file); err != nil {
		return err
	}
	var err error
	if s.tip, err = openTip(dir); err != nil {
		return err
	}
	if s.opened, err = os.Stat(s.file); err != nil {
		return err
	}
	if s.write, err = connect(s.file, 1, writePragmas); err != nil {
		return err
	}
	if s.read, err = connect(s.file, readers, readPragmas); err != nil {
		return err
	}
	if err := s.check(ctx, id); err != nil {
		return err
	}
	return s.prepare(ctx)
}

func (s *Store) prepare(ctx context.Context) (err error) {
	for _, p := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&s.insert, `INSERT INTO updates (client, key, ops, enable, records, which, digest, state, submitted, deadline,
			asked, told) VALUES (?, NULLIF(?, ''), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`},
		{&s.finish, "UPDATE updates SET state=?, batch=?, error=?, began=?, ended=?, told=? WHERE id=? AND state='queued'"},
		{&s.want, "REPLACE INTO wants VALUES (?, ?, ?, ?)"},
		{&s.forget, "DELETE FROM wants WHERE client=? AND ops=?"},
	} {
		if *p.stmt, err = s.write.PrepareContext(ctx, p.text); err != nil {
			return s.unsound(ctx, err)
		}
	}
	return nil
}

// alone refuses a directory whose database is gone while what belongs to it is there:
// SQLite would take the log of the old one for that of a new one.
func alone(dir string) error {
	for _, name := range []string{FileName + "-wal", FileName + "-shm", HeadName} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err == nil && info.Size() > 0 {
			return &DamagedError{filepath.Join(dir, FileName), "it is gone, and " + name + ", which belongs to it, is there"}
		}
	}
	return nil
}

// takeLock makes the directory this process's own. The directory and not the file:
// closing any descriptor of that one would drop the locks that SQLite itself holds
// (fcntl(2); https://www.sqlite.org/howtocorrupt.html, 2.2).
func (s *Store) takeLock(dir string) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if s.lock, err = os.Open(dir); err != nil {
		return err
	}
	switch err := syscall.Flock(int(s.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return &LockedError{s.file}
	case err != nil:
		return fmt.Errorf("lock %s: %w", dir, err)
	}
	return nil
}

// readers is how many goroutines read at the same time; the others wait.
const readers = 4

// MostFiles is how many open files a Store has at most: the lock, the head, and for the writer
// and each reader the database, its log and the log's index (*.db, -wal, -shm).
const MostFiles = 2 + 3*(1+readers)

// synchronous=FULL syncs the journal with every commit, so that none is lost with
// the power either (https://www.sqlite.org/pragma.html#pragma_synchronous).
const (
	writePragmas = "_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=foreign_keys(1)&_txlock=immediate" +
		"&_pragma=journal_size_limit(16777216)" // what readers have made longer is cut again
	readPragmas = "_pragma=query_only(1)&_pragma=cache_size(-1024)"
)

func connect(file string, conns int, pragmas string) (*sql.DB, error) {
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: file}).EscapedPath(), RawQuery: "_pragma=busy_timeout(10000)&" +
		pragmas}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

// Close ends the writer once it has written what waits, and closes the file.
func (s *Store) Close() error {
	s.closing.Lock()
	again := s.closed
	s.closed = true
	if !again {
		close(s.jobs)
	}
	s.closing.Unlock()
	if again {
		return ErrClosed
	}
	<-s.ended
	return s.release()
}

// failed is why the file could not be read: it may be closed by now.
func (s *Store) failed(err error) error {
	s.closing.RLock()
	defer s.closing.RUnlock()
	if s.closed {
		return ErrClosed
	}
	return explain(s.file, err)
}

// release closes whatever is open, the lock last.
func (s *Store) release() error {
	var errs []error
	if s.read != nil {
		errs = append(errs, s.read.Close())
	}
	if s.write != nil {
		errs = append(errs, s.write.Close())
	}
	if s.tip != nil && s.tip.out != nil {
		errs = append(errs, s.tip.out.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}
