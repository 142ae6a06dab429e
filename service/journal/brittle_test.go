// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"
)

// brittle is a disk one of whose operations fails, or all from that one on, and which knows how many of its files are
// open.
type brittle struct {
	*simDisk
	until  int    // operations until the one that fails
	gone   bool   // the next ones do, too
	errno  error  // with which
	failed string // which one did first
	open   int
}

func (d *brittle) op(format string, args ...any) error {
	if d.until--; d.until >= 0 || d.until < -1 && !d.gone {
		return nil
	}
	what := fmt.Sprintf(format, args...)
	if d.failed == "" {
		d.failed = what
	}
	return &fs.PathError{Op: "use", Path: fmt.Sprintf("%s <%d>", what, -d.until), Err: d.errno}
}

func (d *brittle) handle(name string, h Handle, err error) (Handle, error) {
	if err != nil {
		return nil, err
	}
	d.open++
	return &brittleHandle{Handle: h, d: d, name: name}, nil
}

func (d *brittle) Create(name string) (Handle, error) {
	if err := d.op("create %s", name); err != nil {
		return nil, err
	}
	h, err := d.simDisk.Create(name)
	return d.handle(name, h, err)
}

func (d *brittle) Open(name string) (Handle, error) {
	if err := d.op("open %s", name); err != nil {
		return nil, err
	}
	h, err := d.simDisk.Open(name)
	return d.handle(name, h, err)
}

func (d *brittle) Rename(from, to string) error {
	return errors.Join(d.op("rename %s", from), d.simDisk.Rename(from, to)) // it may have its name or not
}

func (d *brittle) Remove(name string) error {
	if err := d.op("remove %s", name); err != nil {
		return err
	}
	return d.simDisk.Remove(name)
}

func (d *brittle) List() ([]string, error) {
	if err := d.op("list"); err != nil {
		return nil, err
	}
	return d.simDisk.List()
}

func (d *brittle) Sync() error {
	if err := d.op("sync"); err != nil {
		return err
	}
	return d.simDisk.Sync()
}

func (d *brittle) Lock() error {
	if err := d.op("lock"); err != nil {
		return err
	}
	return d.simDisk.Lock()
}

func (d *brittle) Same(name string, h Handle) error {
	if err := d.op("same %s", name); err != nil {
		return err
	}
	return d.simDisk.Same(name, h.(*brittleHandle).Handle)
}

type brittleHandle struct {
	Handle
	d      *brittle
	name   string
	wrote  bool
	closed bool
}

func (h *brittleHandle) ReadAt(b []byte, at int64) (int, error) {
	if err := h.d.op("read %s", h.name); err != nil {
		return 0, err
	}
	return h.Handle.ReadAt(b, at)
}

func (h *brittleHandle) WriteAt(b []byte, at int64) (int, error) {
	h.wrote = true
	if err := h.d.op("write %s", h.name); err != nil {
		n, _ := h.Handle.WriteAt(b[:len(b)/2], at)
		return n, err
	}
	return h.Handle.WriteAt(b, at)
}

func (h *brittleHandle) Size() (int64, error) {
	if err := h.d.op("size of %s", h.name); err != nil {
		return 0, err
	}
	return h.Handle.Size()
}

func (h *brittleHandle) Truncate(size int64) error {
	if err := h.d.op("truncate %s", h.name); err != nil {
		return err
	}
	return h.Handle.Truncate(size)
}

func (h *brittleHandle) Sync() error {
	if err := h.d.op("sync %s", h.name); err != nil {
		return err
	}
	return h.Handle.Sync()
}

func (h *brittleHandle) Close() error {
	if h.closed {
		return fs.ErrClosed
	}
	h.closed = true
	h.d.open--
	if !h.wrote { // then nothing is lost
		return nil
	}
	return h.d.op("close %s", h.name)
}

var nothingBefore = func() (older, error) { return nil, nil }

// tableOf is a table of a few records with names.
func tableOf(hash string, names ...string) Identity {
	return Identity{Records: "table " + hash, Hash: hash, Count: len(names), Names: names}
}

// youngest is how many ended updates are left at the end of a day.
const youngest = 3

// day is what a server does with a journal from its start until its end: it returns the updates that it acknowledged,
// and each error that it was told.
func day(t *testing.T, d Disk, id Identity) (acknowledged []Update, wrong []error) {
	s, err := open(t.Context(), d, id, nothingBefore)
	if err != nil {
		return nil, []error{err}
	}
	go s.run()
	s.segment = 600 // so that there are several
	note := func(err error) bool {
		if err != nil {
			wrong = append(wrong, err)
		}
		return err == nil
	}
	for i := range 6 {
		o := order(fmt.Sprint("client", i%2), fmt.Sprint("key", i, id.Hash), 1)
		o.Unsynced = i%3 == 1
		u, err := s.Accept(o, func(Update) {})
		if !note(err) {
			continue
		}
		acknowledged = append(acknowledged, u)
		note(s.Trouble()) // a segment that could not be begun
		if u.State, u.Ended = Live, someTime; i < 4 && note(s.Answer([]Update{u}, nil)) {
			acknowledged[len(acknowledged)-1] = u
		}
		note(s.Trouble())
		_, err = s.Update(t.Context(), u.ID)
		note(err)
	}
	if r, err := s.AddRun("jump-label", "", someTime); note(err) && note(s.BeginRun(r.ID)) &&
		note(s.EndRun(r.ID, Done, "", someTime, []File{{"a.csv", "text/csv", []byte("entries\n4\n")}})) {
		f, err := s.File(t.Context(), r.ID, "a.csv")
		if note(err) && string(f.Data) != "entries\n4\n" {
			t.Errorf("a file has %q", f.Data)
		}
	}
	_, err = s.Compact(t.Context(), someTime, Keep{Updates: youngest}, func() {})
	note(err)
	note(s.Check(t.Context()))
	note(s.Close())
	return acknowledged, wrong
}

// TestEachOperationFails: whichever operation of the disk fails, once and with whatever error, somebody is told so, by
// its kind; no file stays open and the lock is given back; and on the disk is all that was acknowledged.
func TestEachOperationFails(t *testing.T) {
	before, after := tableOf("one", "f", "g"), tableOf("two", "g", "f", "h")
	for errno, kind := range map[error]error{syscall.ENOSPC: ErrFull, syscall.EIO: ErrBroken} {
		for n := range 10_000 {
			d := &brittle{simDisk: newSimDisk(rand.New(rand.NewPCG(1, 1))), until: n, errno: errno}
			acknowledged, wrong := day(t, d, before)
			if wrong == nil {
				var more []Update
				more, wrong = day(t, d, after)
				acknowledged = append(acknowledged, more...)
			}
			err := errors.Join(wrong...)
			if d.failed == "" {
				if err != nil || len(acknowledged) != 12 || n < 100 {
					t.Errorf("%v, %d acknowledged in %d operations", err, len(acknowledged), n)
				}
				break
			}
			what := fmt.Sprintf("%s (%d): %v", d.failed, n, errno)
			if err = explain("file", err); err == nil || !errors.Is(err, errno) && !errors.Is(err, kind) {
				t.Errorf("%s: told as %v", what, err)
			}
			if d.open != 0 || d.lock {
				t.Errorf("%s: %d files are open, the lock is held %v", what, d.open, d.lock)
			}
			d.kill()
			holds(t, what, d.simDisk, acknowledged)
		}
	}
}

// TestDiskThatIsGone: when all operations fail from one on, whoever is told of several hears of them in their order;
// and
// on the disk is all that was acknowledged before.
func TestDiskThatIsGone(t *testing.T) {
	number := regexp.MustCompile(`<(\d+)>`)
	for n := range 10_000 {
		d := &brittle{simDisk: newSimDisk(rand.New(rand.NewPCG(1, 1))), until: n, gone: true, errno: syscall.EIO}
		acknowledged, wrong := day(t, d, tableOf("two", "g", "f", "h"))
		if d.failed == "" {
			break
		}
		for _, one := range wrong {
			last := 0
			for _, found := range number.FindAllStringSubmatch(one.Error(), -1) {
				at, err := strconv.Atoi(found[1])
				if err != nil || at < last {
					t.Errorf("%s (%d): told as %v", d.failed, n, one)
				}
				last = at
			}
		}
		if d.open != 0 || d.lock {
			t.Errorf("%s (%d): %d files are open, the lock is held %v", d.failed, n, d.open, d.lock)
		}
		d.kill()
		holds(t, d.failed, d.simDisk, acknowledged)
	}
}

// holds fails unless a disk is sound and has these updates.
func holds(t *testing.T, what string, d Disk, acknowledged []Update) {
	t.Helper()
	s, err := open(t.Context(), d, tableOf("two", "g", "f", "h"), nothingBefore)
	if err != nil {
		t.Errorf("%s: the next start: %v", what, err)
		return
	}
	ended := 0
	for _, u := range slices.Backward(acknowledged) {
		got, err := s.Update(t.Context(), u.ID)
		if u.State == Live {
			if ended++; ended > youngest && errors.Is(err, ErrNotFound) {
				continue
			}
		}
		if err != nil || got.Key != u.Key || u.State == Live && got.State != Live {
			t.Errorf("%s: update %d is %v with key %s, acknowledged was %v with %s (%v)", what, u.ID, got.State, got.Key,
				u.State, u.Key, err)
		}
	}
	if err := s.release(); err != nil {
		t.Error(err)
	}
}
