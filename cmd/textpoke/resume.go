// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/journal"
)

// aside are the flags that rows do not depend on: a run that is resumed may have
// others.
var aside = append([]string{"out", "resume", "jobs", "yes", "format", "log", "budget"}, queueFlags...)

// openJournal opens the journal, and takes over what is in it.
func (s *sweep) openJournal(f *folder) error {
	h := journal.Header{Version: built.Version, Revision: built.Revision, Inputs: s.hashes(f), Points: len(s.configs)}
	h.Args = rowArgs(s.args)
	tables := []results.Table{s.table}
	if s.beside != nil {
		tables = append(tables, *s.beside)
	}
	for _, t := range tables {
		for _, c := range t.Columns {
			h.Columns += t.Name + "." + c.Name + " "
		}
	}
	if s.flags.resume {
		if reused, err := s.finished(f, h); err != nil || reused {
			return err
		}
	}
	j, entries, err := journal.Open(s.journalPath(), h, s.flags.resume)
	if err != nil {
		return err
	}
	s.journal, s.reused = j, map[int]journal.Entry{}
	for _, e := range entries {
		if key := s.key(e.Point); e.Key != key {
			return errors.Join(fmt.Errorf("--resume: combination %d was %s, and is %s", e.Point, e.Key, key), j.Close())
		}
		s.reused[e.Point] = e
		f.manifest.Reused += len(e.Rows)
	}
	s.sayReused(f.manifest.Reused)
	return nil
}

// sayReused says how many rows are there already.
func (s *sweep) sayReused(n int) {
	if n == 0 {
		return
	}
	text := fmt.Sprintf("textpoke: reused %d of %d rows", n, len(s.mine)*s.perPoint)
	if s.again != "" {
		text += "; " + s.again
	}
	fmt.Fprintln(s.streams.err, text)
}

// finished takes over all rows of a directory whose manifest says that this sweep was
// carried through. What printed text beside its rows, or found something wrong, has to be
// done again: tables do not have that.
func (s *sweep) finished(f *folder, h journal.Header) (bool, error) {
	if _, err := os.Stat(s.journalPath()); err == nil {
		return false, nil // a later run was interrupted
	}
	m, err := f.dir.ReadManifest()
	switch {
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	same := m.Complete && m.Exit == 0 && m.Version == h.Version && m.Revision == h.Revision &&
		slices.Equal(rowArgs(m.Args), h.Args) && maps.Equal(m.Inputs, h.Inputs)
	if !same || s.spoken {
		return false, nil
	}
	t, err := f.dir.ReadCSV(s.table.Name, s.table.Columns)
	if err != nil || len(t.Rows) != len(s.mine)*s.perPoint {
		return false, nil // another version's, or changed since: it is made again
	}
	others := make([][]journal.Cells, len(s.configs)*s.perPoint)
	if s.beside != nil {
		beside, err := f.dir.ReadCSV(s.beside.Name, s.beside.Columns)
		if err != nil {
			return false, nil
		}
		for _, row := range beside.Rows {
			n, is := row[0].Number()
			if !is || int(n) >= len(others) {
				return false, nil
			}
			others[int(n)] = append(others[int(n)], row)
		}
	}
	s.reused = map[int]journal.Entry{}
	for k, point := range s.mine {
		e := journal.Entry{Point: point}
		for i := range s.perPoint {
			e.Rows = append(e.Rows, journal.Row{Cells: t.Rows[k*s.perPoint+i], Others: others[point*s.perPoint+i]})
		}
		s.reused[point] = e
	}
	f.manifest.Reused = len(t.Rows)
	s.sayReused(len(t.Rows))
	return true, nil
}

// journalPath is where the journal is.
func (s *sweep) journalPath() string { return filepath.Join(s.common.out, s.table.Name+".csv.part") }

// rowArgs are the arguments that rows depend on.
func rowArgs(args []string) []string { return without(args, aside) }

// without is a command line without some flags.
func without(args, flags []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return strings.HasPrefix(name, "--") && slices.Contains(flags, name[2:])
	})
}

// key names a combination in the journal.
func (s *sweep) key(i int) string {
	return strings.ToValidUTF8(strings.Join(s.configs[i].Flags(), " "), "?")
}

// closeJournal closes the journal, and removes it when all it has is written.
func (s *sweep) closeJournal(complete bool) error {
	switch {
	case s.journal == nil:
		return nil
	case complete:
		return s.journal.Remove()
	}
	return s.journal.Close()
}

// hashes is those of the inputs, and of tables that came from a pipe: nobody can
// read those files again.
func (s *sweep) hashes(f *folder) map[string]string {
	in := maps.Clone(f.manifest.Inputs)
	if in == nil {
		in = map[string]string{}
	}
	for i := range s.configs {
		t := s.configs[i].Table
		name := filepath.ToSlash(t.Name())
		if in[name] != "" || strings.HasPrefix(name, "gen:") || isBuiltin(name) {
			continue
		}
		h := sha256.New()
		for r := range t.Len() {
			fmt.Fprintf(h, "%x %q %q\n", t.Addr(r), t.Symbol(r), t.Module(r))
		}
		in[name] = hex.EncodeToString(h.Sum(nil))
	}
	return in
}
