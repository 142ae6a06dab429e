// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Part is one part of a journal: how many there are of it, and what is wrong.
type Part struct {
	Name  string
	Rows  int64
	Wrong string // "" for nothing
}

// parts is what was looked at of a file.
type parts struct {
	list []Part
	head head
}

func (p *parts) add(name string, rows int64, wrong string) {
	p.list = append(p.list, Part{name, rows, wrong})
}

// wrong is the first that is.
func (p *parts) wrong() string {
	for _, one := range p.list {
		if one.Wrong != "" {
			return one.Name + ": " + one.Wrong
		}
	}
	return ""
}

// Verify looks at everything that a directory holds, sum by sum, and changes nothing: it
// looks at a copy. The directory must not be a running server's.
func Verify(ctx context.Context, dir string) (list []Part, err error) {
	s := &Store{file: filepath.Join(dir, FileName)}
	defer func() { err = errors.Join(err, s.release()) }()
	if _, err := os.Stat(s.file); err != nil {
		return nil, err
	}
	if err := s.takeLock(dir); err != nil {
		return nil, explain(s.file, err)
	}
	if found, err := checkHeader(s.file); err != nil {
		return nil, explain(s.file, err)
	} else if found != version {
		return nil, &ForeignError{s.file, fmt.Sprintf("its schema is of version %d: start a server on it first", found)}
	}
	copied, err := os.MkdirTemp("", "textpoke-verify-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(copied)
	for _, name := range []string{FileName, FileName + "-wal", HeadName} {
		if err := copyFile(filepath.Join(dir, name), filepath.Join(copied, name)); err != nil && !errors.Is(err,
			os.ErrNotExist) {
			return nil, err
		}
	}
	found, err := soundFile(ctx, filepath.Join(copied, FileName))
	if err != nil {
		return nil, err
	}
	t, err := openTip(copied)
	if err != nil {
		return nil, err
	}
	defer t.out.Close()
	var damaged *DamagedError
	switch err := t.follow(found.head); {
	case errors.As(err, &damaged):
		found.add("head", found.head.commits, damaged.Why)
	case err != nil:
		return nil, err
	default:
		found.add("head", found.head.commits, "")
	}
	return found.list, nil
}

// soundFile looks at a database: SQLite's own structures, its tables, and every sum.
func soundFile(ctx context.Context, file string) (p parts, err error) {
	db, err := connect(file, 1, "_pragma=query_only(1)")
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	s := &Store{file: file, write: db}
	wrong, err := integrity(ctx, db)
	if err != nil {
		wrong = err.Error()
	}
	p.add("pages", 0, wrong)
	if ctx.Err() != nil {
		return p, context.Cause(ctx)
	}
	wrong = ""
	if err := s.checkSchema(ctx); err != nil {
		wrong = err.Error()
	}
	p.add("tables", 0, wrong)
	wrong = ""
	if _, p.head, err = readIdentity(ctx, db); err != nil {
		wrong = err.Error()
	}
	p.add("identity", 1, wrong)
	for _, t := range []struct{ table, bad string }{
		{"updates", "asked <> " + askedOf + " OR told <> " + toldOf}, {"wants", "sum <> " + wantOf},
		{"runs", "sum <> " + runOf}, {"files", "sum <> " + fileOf}, {"names", "sum <> " + namesOf},
	} {
		p.count(ctx, db, t.table, t.bad)
	}
	return p, nil
}

// count counts a table's rows, and those whose sums do not match.
func (p *parts) count(ctx context.Context, db *sql.DB, table, bad string) {
	var rows, wrong int64
	err := db.QueryRowContext(ctx, "SELECT COUNT(*), COALESCE(SUM("+bad+"), 0) FROM "+table).Scan(&rows, &wrong)
	switch {
	case err != nil:
		p.add(table, rows, err.Error())
	case wrong > 0:
		p.add(table, rows, fmt.Sprintf("%d rows are not as they were written", wrong))
	default:
		p.add(table, rows, "")
	}
}
