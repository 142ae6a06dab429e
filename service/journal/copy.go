// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Backup copies a directory's database into a file, as of one moment: a server may run
// on it meanwhile.
func Backup(ctx context.Context, dir, to string) (err error) {
	from := filepath.Join(dir, FileName)
	if found, err := checkHeader(from); err != nil {
		return explain(from, err)
	} else if found != version {
		return &ForeignError{from, fmt.Sprintf("its schema is of version %d: start a server on it first", found)}
	}
	if _, err := os.Stat(to); err == nil {
		return fmt.Errorf("%s: it is there already: want the name of a new file", to)
	}
	db, err := connect(from, 1, "_pragma=cache_size(-1024)") // VACUUM INTO is no query
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	fresh := to + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", fresh); err != nil {
		return explain(from, err)
	}
	found, err := soundFile(ctx, fresh)
	if err != nil {
		return err
	}
	if wrong := found.wrong(); wrong != "" {
		return noBackup(from, wrong)
	}
	return place(fresh, to)
}

// place gives a file that is whole its name, and has both on the disk.
func place(fresh, to string) error {
	f, err := os.OpenFile(fresh, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(fresh, to); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Restore makes a directory of a backup. There must be no database in it yet.
func Restore(ctx context.Context, from, dir string) (err error) {
	if err := checkBackup(from); err != nil {
		return err
	}
	s := &Store{file: filepath.Join(dir, FileName)}
	defer func() { err = errors.Join(err, s.release()) }()
	if err := s.takeLock(dir); err != nil {
		return explain(s.file, err)
	}
	if _, err := os.Stat(s.file); err == nil {
		return fmt.Errorf("%s is there already: want a directory without one", s.file)
	}
	if err := alone(dir); err != nil {
		return err
	}
	fresh := s.file + ".new"
	if err := copyFile(from, fresh); err != nil {
		return explain(fresh, err)
	}
	found, err := soundFile(ctx, fresh)
	if err != nil {
		return err
	}
	if wrong := found.wrong(); wrong != "" {
		return &DamagedError{from, wrong}
	}
	if s.tip, err = openTip(dir); err != nil {
		return err
	}
	// A head without a database is refused: it comes first, and is empty until then.
	if err := place(fresh, s.file); err != nil {
		return err
	}
	return errors.Join(s.tip.put(found.head), s.tip.out.Sync())
}

// checkBackup looks whether a file begins as a backup does.
func checkBackup(file string) error {
	var foreign *ForeignError
	var damaged *DamagedError
	_, err := checkHeader(file)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &foreign):
		return noBackup(file, foreign.Why)
	case errors.As(err, &damaged):
		return noBackup(file, damaged.Why)
	}
	return explain(file, err)
}

// noBackup says so, with nothing of what a server's own file would want.
func noBackup(file, why string) error {
	return fmt.Errorf("%s: %s: want what textpoke backup wrote", file, why)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
