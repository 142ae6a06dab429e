// SPDX-License-Identifier: Apache-2.0

package points

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/results"
)

// ErrUnfinished means that the file holds points of a run that was cut short.
var ErrUnfinished = errors.New("a run was interrupted")

// syncEvery is how often the file is synced to disk, at most, while entries come.
const syncEvery = time.Second

// Folder keeps the points of a sweep in a file of the directory that the sweep's tables go to, until they are written.
// The file outlives the program: killed, cut off or out of disk, the rows of finished points are there to be reused.
//
// The file is lines, each a CRC-32C of the rest in eight hexadecimal digits, a
// blank and a JSON object: first a [Run], then a point with its [Outcome] a line, in the order
// in which the points were finished. A line is written with one write, so that a
// killed program loses nothing. The file is synced to disk with the first entry
// of a second, and at the end: a machine that loses power loses what followed
// within that second. A death in the middle of a write leaves a torn last
// line, which is cut off; damage anywhere else is an error.
//
// The service keeps a log that is asked questions: who wants which update, in
// which order, how much to keep. A sweep's file is only ever read from its beginning to its
// end, so that a file which a person can read, copy and cut is enough.
//
// Its methods may be called from several goroutines.
type Folder struct {
	path string
	run  Run
	keys []string // of the points
	had  map[int]entry

	mu      sync.Mutex
	file    *os.File
	size    int64 // up to the end of the last whole line
	entries int
	synced  time.Time
	failed  error // that of the first write that failed
}

// OpenFolder opens the file at path, or makes it. If resume is set, points of an
// equal run that are there already are taken over. Other points are an error, so
// that no finished work is thrown away. One program at a time may have it open.
func OpenFolder(path string, run Run, keys []string, resume bool) (*Folder, error) {
	file, err := lock(path)
	if err != nil {
		return nil, err
	}
	f := &Folder{path: path, run: run.plain(), keys: keys, file: file, synced: time.Now()}
	if err := f.read(resume); err != nil {
		file.Close()
		return nil, err
	}
	return f, nil
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

// read reads the points that are there, and cuts a torn tail off.
func (f *Folder) read(resume bool) error {
	data, err := io.ReadAll(f.file)
	if err != nil {
		return fmt.Errorf("journal %s: %w", f.path, err)
	}
	run, had, whole, err := parse(f.path, data)
	switch {
	case err != nil:
		return err
	case len(had) > 0 && !resume:
		return choice.Errorf("%s: %w after %d of %d combinations: go on with %s, or remove the file to start over",
			f.path, ErrUnfinished, len(had), run.Points, choice.Name("resume"))
	case len(had) == 0:
		whole = 0 // nothing is lost with a header
	default:
		err = f.run.differs(run, "there", "here")
	}
	if err != nil {
		return choice.Errorf("%s: %s is of another run: %w", choice.Name("resume"), f.path, err)
	}
	for n, e := range had {
		if key := f.keys[n]; e.Key != key {
			return choice.Errorf("%s: combination %d was %s, and is %s", choice.Name("resume"), n, e.Key, key)
		}
	}
	f.size, f.had, f.entries = int64(whole), had, len(had)
	return f.rewind()
}

// Have implements [Keeper].
func (f *Folder) Have(n int) (Outcome[Row], bool) {
	e, is := f.had[n]
	return e.Outcome, is
}

// rewind cuts off what stands behind the last whole line.
func (f *Folder) rewind() error {
	err := f.file.Truncate(f.size)
	if err == nil {
		_, err = f.file.Seek(f.size, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("journal %s: %w", f.path, err)
	}
	return nil
}

// Put implements [Keeper]: it writes a point's outcome. After an error nothing more is written.
func (f *Folder) Put(n int, o Outcome[Row]) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil {
		f.failed = f.put(entry{n, f.keys[n], o})
	}
	return f.failed
}

func (f *Folder) put(e entry) error {
	if f.size == 0 {
		if err := f.write(f.run); err != nil {
			return err
		}
	}
	if err := f.write(e); err != nil {
		return err
	}
	f.entries++
	if time.Since(f.synced) >= syncEvery {
		return f.sync()
	}
	return nil
}

// write appends one line, or nothing.
func (f *Folder) write(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("journal %s: %w", f.path, err)
	}
	line := fmt.Appendf(nil, "%08x %s\n", crc32.Checksum(text, castagnoli), text)
	if _, err := f.file.Write(line); err != nil {
		// The part that got through is a torn line: readers would cut it off, too.
		return errors.Join(choice.Errorf("journal: %w; the finished rows are in %s: go on with %s", err, f.path, choice.Name("resume")),
			f.rewind())
	}
	f.size += int64(len(line))
	return nil
}

func (f *Folder) sync() error {
	f.synced = time.Now()
	if err := f.file.Sync(); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// Close ends it. The file is removed where the tables hold all of it by now, or it holds nothing; otherwise it is synced
// to disk.
func (f *Folder) Close(complete bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if complete || f.entries == 0 {
		// Removed while locked, so that no other run has begun with it.
		return errors.Join(os.Remove(f.path), f.file.Close())
	}
	return errors.Join(f.sync(), f.file.Close())
}

// Row is a row of the table, with its rows of another table and its text.
type Row struct {
	Cells  Cells   `json:"cells"`
	Others []Cells `json:"beside,omitempty"` // rows of the other table
	Text   string  `json:"text,omitempty"`   // for people, above the tables
}

// Cells is a row's cells; in JSON they keep their kinds.
type Cells []results.Value

// MarshalJSON writes the cells so that reading gives the same ones.
func (c Cells) MarshalJSON() ([]byte, error) {
	texts := make([]string, len(c))
	for i, v := range c {
		texts[i] = v.Exact()
	}
	return json.Marshal(texts)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *Cells) UnmarshalJSON(data []byte) error {
	var texts []string
	if err := json.Unmarshal(data, &texts); err != nil {
		return err
	}
	var err error
	*c, err = spelling.ReadEach(texts, results.ParseExact)
	return err
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// entry is a line of a folder's file: a point and its outcome.
type entry struct {
	Point int    `json:"point"` // its number, from 0
	Key   string `json:"key"`   // what it is
	Outcome[Row]
}

// parse reads the text of a folder's file. whole is the length up to the end of the last
// whole line.
func parse(path string, data []byte) (h Run, entries map[int]entry, whole int, err error) {
	entries = map[int]entry{}
	for n := 1; ; n++ {
		end := bytes.IndexByte(data[whole:], '\n')
		if end < 0 {
			return h, entries, whole, nil // nothing, or a torn line
		}
		last := whole+end+1 == len(data)
		text, reason := unwrap(data[whole : whole+end])
		if reason == nil && n == 1 {
			reason = json.Unmarshal(text, &h)
		} else if reason == nil {
			var e entry
			if reason = json.Unmarshal(text, &e); reason == nil {
				reason = e.check(h, entries)
			}
			entries[e.Point] = e
		}
		switch {
		case reason != nil && last && errors.Is(reason, errSum):
			return h, entries, whole, nil // torn, by a machine that lost power
		case reason != nil:
			return h, nil, 0, fmt.Errorf("journal %s:%d: %w: the file is damaged; remove it to start over", path, n, reason)
		}
		whole += end + 1
	}
}

// errSum means that a line is not what was written.
var errSum = errors.New("the checksum is wrong")

// unwrap checks a line's sum, which stands in front.
func unwrap(line []byte) ([]byte, error) {
	sum, text, ok := bytes.Cut(line, []byte(" "))
	want, err := strconv.ParseUint(string(sum), 16, 32)
	if !ok || err != nil || uint32(want) != crc32.Checksum(text, castagnoli) {
		return nil, errSum
	}
	return text, nil
}

// check refuses what this program would not write.
func (e *entry) check(h Run, seen map[int]entry) error {
	if e.Point < 0 || e.Point >= h.Points {
		return fmt.Errorf("combination %d of %d", e.Point, h.Points)
	}
	if _, is := seen[e.Point]; is {
		return fmt.Errorf("combination %d: a second time", e.Point)
	}
	return nil
}
