// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/textpoke/textpoke/internal/inputs"
)

// Backup copies all that a directory holds into a file, as of one moment: a server may run on
// it meanwhile. The file is a segment, with the runs' files and the records' names in it.
func Backup(ctx context.Context, dir, to string) (err error) {
	if _, err := os.Lstat(to); err == nil { // also a link that leads to nothing
		return fmt.Errorf("%s: it is there already: want the name of a new file", to)
	}
	d := &directory{path: dir}
	for range 5 { // a server may remove a segment meanwhile
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err = backupOf(d, to); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return explain(dir, err)
}

func backupOf(d *directory, to string) error {
	st := newState()
	r, err := readLog(d, st.apply)
	switch {
	case err != nil:
		return err
	case len(r.segments) == 0:
		if _, err := os.Stat(d.at(oldName)); err == nil {
			return &ForeignError{d.at(oldName), "it is of an earlier version: start a server on it first"}
		}
		return fmt.Errorf("%s: there is no journal in it", d.path)
	case len(r.harms) > 0:
		return fmt.Errorf("%s: %s: nothing was written", d.path, &r.harms[0])
	}
	return backup(d, r.log, st, to)
}

// backup writes what a log holds into a file, which has its name once it is whole.
func backup(d Disk, l *log, st *state, to string) error {
	fresh := to + unfinished
	out, err := openFile(fresh, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	f := frames{next: 1, synced: 1}
	err = f.fill(out, func(each func(*entry) error) error { return contents(d, l, st, each) },
		func(*entry, place) error { return nil })
	if err := errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, os.Remove(fresh))
	}
	if err := os.Rename(fresh, to); err != nil {
		return err
	}
	return (&directory{path: filepath.Dir(to)}).Sync()
}

// contents is all that a directory holds.
func contents(d Disk, l *log, st *state, each func(*entry) error) error {
	whole := *st
	whole.Backup, whole.Ends, whole.Link = true, true, link{}
	file := func(name, sum string) error {
		data, err := getFile(d, name, sum)
		if err != nil {
			return err
		}
		return each(&entry{File: &kept{name, data}})
	}
	if err := whole.snapshot(each); err != nil {
		return err
	}
	if st.Names != "" {
		if err := file(st.Names, st.NamesSum); err != nil {
			return err
		}
	}
	for _, r := range st.runs {
		for _, f := range r.Files {
			if err := file(f.Stored, f.Sum); err != nil {
				return err
			}
		}
	}
	s := &Store{disk: d, log: l, state: st}
	for i, r := range slices.Clone(st.rows) {
		if r.state == "" || r.state == Queued {
			continue
		}
		a, err := s.readRow(st.first+int64(i), r)
		if err != nil {
			return err
		}
		end := a.Update
		a.State, a.Batch, a.Error, a.Receipt = Queued, 0, "", nil
		if err := each(&entry{Accept: a}); err != nil {
			return err
		}
		if err := each(&entry{End: &ending{Update: end, Past: true}}); err != nil {
			return err
		}
	}
	return each(&entry{Whole: true})
}

// saved is a backup that is read.
type saved struct {
	file string
	list []byte // the names
	text []byte
}

// openBackup reads a backup and looks at every sum in it.
func openBackup(file string) (b *saved, err error) {
	b = &saved{file: file}
	if b.text, err = inputs.Regular(file); err != nil {
		return nil, err
	}
	names := ""
	err = b.emit(func(e *entry) error {
		switch {
		case e.Begin != nil && e.Begin.Version != version:
			return fmt.Errorf("%s: it is of version %d, and this program knows %d", file, e.Begin.Version, version)
		case e.Begin != nil && !e.Begin.Backup:
			return noBackup(file, "it is a part of a directory")
		case e.Begin != nil:
			names = e.Begin.Names
		case e.File != nil && e.File.Name == names:
			b.list = e.File.Data
		}
		return nil
	})
	return b, err
}

func (b *saved) names() ([]byte, error) { return b.list, nil }

func (b *saved) close() error { return nil }

func (b *saved) emit(each func(*entry) error) error {
	var before link
	whole := false
	for at, n := 0, uint64(1); at < len(b.text); n++ {
		f, ok := parseFrame(b.text[at:])
		if !ok || f.number != n || f.link != before.after(n, f.payload) {
			if at == 0 {
				return noBackup(b.file, "it does not begin as a backup does")
			}
			return &DamagedError{b.file, fmt.Sprintf("byte %d: a frame is not as it was written", at)}
		}
		e, err := decodeEntry(f.payload)
		if err == nil && at == 0 && e.Begin == nil {
			err = errors.New("it does not begin as a backup does")
		}
		if err != nil {
			return noBackup(b.file, err.Error())
		}
		if err := each(&e); err != nil {
			return err
		}
		at, before = at+f.size, f.link
		whole = whole || e.Whole || e.Begin != nil && !e.Begin.Ends
	}
	if !whole {
		return noBackup(b.file, "its end is missing")
	}
	return nil
}

// Restore makes a directory of a backup. There must be no journal in it yet.
func Restore(ctx context.Context, from, dir string) (err error) {
	b, err := openAnyBackup(ctx, from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	d, err := makeDirectory(dir)
	if err == nil {
		err = restore(d, b)
	}
	return explain(dir, err)
}

// openAnyBackup opens a backup, also one of an earlier version: one SQLite file without a log. A server's own file
// has a log, which may hold all acknowledged updates.
func openAnyBackup(ctx context.Context, from string) (older, error) {
	switch _, logged, err := checkHeader(from); {
	case err != nil:
		return openBackup(from)
	case logged:
		return nil, noBackup(from, "it is a server's own file, which goes with "+oldName+"-wal and "+oldHead+" beside it: "+
			"start a server on a copy of the whole directory")
	}
	return openSQLite(ctx, from, "")
}

func restore(d *directory, b older) (err error) {
	s := &Store{disk: d, file: d.path}
	if err := d.Lock(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.release()) }()
	names, err := d.List()
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, ok := segmentOf(name); ok || name == oldName || name == oldHead || name == headName {
			return fmt.Errorf("%s is there already: want a directory without a journal", d.at(name))
		}
	}
	return s.load(func() (older, error) { return b, nil })
}

// noBackup is the error of a file that is no backup, and why.
func noBackup(file, why string) error {
	return fmt.Errorf("%s: %s: want what textpoke backup wrote", file, why)
}

// Part is one part of a journal: its rows, and its damage.
type Part struct {
	Name  string
	Rows  int64
	Wrong string // "" for nothing
}

// Verify looks at everything that a directory holds, sum by sum, and changes nothing. The
// directory must not be a running server's.
func Verify(ctx context.Context, dir string) (list []Part, err error) {
	d := &directory{path: dir}
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	if err := d.Lock(); err != nil {
		return nil, explain(dir, err)
	}
	defer func() { err = errors.Join(err, d.Unlock()) }()
	s := &Store{disk: d, file: dir, state: newState()}
	add := func(name string, rows int, wrong error) {
		p := Part{Name: name, Rows: int64(rows)}
		if wrong != nil {
			p.Wrong = wrong.Error()
		}
		list = append(list, p)
	}
	r, err := readLog(d, s.state.apply)
	var damaged *DamagedError
	switch {
	case errors.As(err, &damaged):
		add("log", 0, err)
		return list, nil
	case err != nil:
		return nil, explain(dir, err)
	case len(r.segments) == 0:
		return nil, &ForeignError{dir, "there is no journal of this version in it: start a server on it first"}
	}
	s.log = r.log
	var wrong error
	if len(r.harms) > 0 {
		wrong = fmt.Errorf("%s (%d places)", &r.harms[0], len(r.harms))
	}
	add("log", int(r.next-r.segments[0]), wrong)
	add("head", int(r.next-1), s.verifyHead())
	wrong = nil
	if ids := s.state.damaged(); len(ids) > 0 {
		wrong = fmt.Errorf("%d cannot be read: %s", len(ids), ranges(ids))
	}
	add("updates", len(s.state.rows), wrong)
	add("wants", len(s.state.wants), nil)
	add("runs", len(s.state.runs), nil)
	files, wrong := s.verifyFiles()
	add("files", files, wrong)
	wrong = nil
	if s.state.Names != "" {
		_, wrong = getFile(d, s.state.Names, s.state.NamesSum)
	}
	add("names", s.state.Count, wrong)
	return list, context.Cause(ctx)
}

func (s *Store) verifyHead() error {
	if names, err := s.disk.List(); err != nil || !slices.Contains(names, headName) {
		return err // one that is missing says nothing
	}
	h, number, known, err := openHead(s.disk)
	if err != nil {
		return err
	}
	return errors.Join(s.log.follows(number, known), h.Close())
}

func (s *Store) verifyFiles() (n int, wrong error) {
	for _, r := range s.state.runs {
		for _, f := range r.Files {
			n++
			if _, err := getFile(s.disk, f.Stored, f.Sum); errors.Is(err, fs.ErrNotExist) {
				wrong = fmt.Errorf("%s, of run %d, is gone", f.Name, r.ID)
			} else if err != nil {
				wrong = err
			}
		}
	}
	return n, wrong
}
