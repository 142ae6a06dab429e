// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// Part is one part of a journal: how many there are of it, and what is wrong.
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
