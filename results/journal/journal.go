// SPDX-License-Identifier: Apache-2.0

// Package journal keeps what a sweep has finished, point by point, in a file that
// outlives the program: killed, cut off or out of disk, the rows of the points
// that were finished are there to be reused.
//
// The file is lines, each a CRC-32C of the rest in eight hexadecimal digits, a
// blank and a JSON object: first a [Header], then an [Entry] a point, in the order
// in which the points were finished. A line is written with one write, so that a
// killed program loses nothing. The file is synced to disk with the first entry
// of a second, and at the end: a machine that loses power loses what followed
// within that second. What a death in the middle of a write leaves, a torn last
// line, is cut off; damage anywhere else is an error.
//
// The service's journal is a database because it is asked questions: who wants what, in
// which order, how much to keep. A sweep's is only ever read from its beginning to its
// end, so that a file which a person can read, copy and cut is all it needs, and nobody
// who counts interrupts links a database.
package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/textpoke/textpoke/internal/choice"
)

// ErrUnfinished means that the file holds points of a run that nobody resumed.
var ErrUnfinished = errors.New("a run was interrupted")

// syncEvery is how often the file is synced to disk, at most, while entries come.
const syncEvery = time.Second

// Journal is a file of finished points, open for more. Its methods may be called
// from several goroutines.
type Journal struct {
	path   string
	header Header

	mu      sync.Mutex
	file    *os.File
	size    int64 // up to the end of the last whole line
	entries int
	synced  time.Time
	failed  error // that of the first write that failed
}

// Open opens the file at path, or makes it. The entries that are there come back
// if resume is set and they are of a run with the same header; otherwise they are
// an error: nothing that was finished is thrown away. One program at a time may
// have it open.
func Open(path string, h Header, resume bool) (*Journal, []Entry, error) {
	file, err := lock(path)
	if err != nil {
		return nil, nil, err
	}
	j := &Journal{path: path, header: h.plain(), file: file, synced: time.Now()}
	entries, err := j.read(resume)
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return j, entries, nil
}

// lock opens the file and keeps others from it. The lock goes with the process,
// however it ends.
func lock(path string) (*os.File, error) {
	for {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return nil, fmt.Errorf("journal: %w", err)
		}
		if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			file.Close()
			return nil, fmt.Errorf("journal %s: another run is writing it: %w", path, err)
		}
		mine, err1 := file.Stat()
		there, err2 := os.Stat(path)
		if err1 == nil && err2 == nil && os.SameFile(mine, there) {
			return file, nil
		}
		file.Close() // the run that had it has just ended and removed it
	}
}

// read reads what is there, and cuts a torn tail off.
func (j *Journal) read(resume bool) ([]Entry, error) {
	data, err := io.ReadAll(j.file)
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", j.path, err)
	}
	header, entries, whole, err := parse(j.path, data)
	switch {
	case err != nil:
		return nil, err
	case len(entries) > 0 && !resume:
		return nil, choice.Errorf("%s: %w after %d of %d combinations: go on with %s, or remove the file to start over",
			j.path, ErrUnfinished, len(entries), header.Points, choice.Name("resume"))
	case len(entries) > 0:
		if err := j.header.same(header); err != nil {
			return nil, choice.Errorf("%s: %s is of another run: %w", choice.Name("resume"), j.path, err)
		}
		j.entries = len(entries)
	default:
		whole = 0 // nothing is lost with a header
	}
	j.size = int64(whole)
	return entries, j.rewind()
}

// rewind cuts off what stands behind the last whole line.
func (j *Journal) rewind() error {
	err := j.file.Truncate(j.size)
	if err == nil {
		_, err = j.file.Seek(j.size, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("journal %s: %w", j.path, err)
	}
	return nil
}

// Add writes what a point came to. After an error nothing more is written.
func (j *Journal) Add(e Entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed == nil {
		j.failed = j.add(e)
	}
	return j.failed
}

func (j *Journal) add(e Entry) error {
	if j.size == 0 {
		if err := j.write(j.header); err != nil {
			return err
		}
	}
	if err := j.write(e); err != nil {
		return err
	}
	j.entries++
	if time.Since(j.synced) >= syncEvery {
		return j.sync()
	}
	return nil
}

// write appends one line, or nothing.
func (j *Journal) write(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("journal %s: %w", j.path, err)
	}
	line := fmt.Appendf(nil, "%08x %s\n", crc32.Checksum(text, castagnoli), text)
	if _, err := j.file.Write(line); err != nil {
		// What got through is a torn line: readers would cut it off, too.
		return errors.Join(choice.Errorf("journal: %w; what was finished is in %s: go on with %s", err, j.path, choice.Name("resume")),
			j.rewind())
	}
	j.size += int64(len(line))
	return nil
}

func (j *Journal) sync() error {
	j.synced = time.Now()
	if err := j.file.Sync(); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// Close syncs the file to disk and closes it. One without entries is removed.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.entries == 0 {
		return j.remove()
	}
	return errors.Join(j.sync(), j.file.Close())
}

// Remove closes and removes the file: what it held is elsewhere by now.
func (j *Journal) Remove() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.remove()
}

func (j *Journal) remove() error {
	// Removed while locked, so that nobody else has begun with it.
	return errors.Join(os.Remove(j.path), j.file.Close())
}
