// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/journal"
)

// aside are the flags that rows do not depend on: a run that is resumed may have
// others.
var aside = []string{"out", "resume", "jobs", "yes", "format", "log", "budget"}

// openJournal opens the journal, and takes over what is in it.
func (s *sweep) openJournal(f *files) error {
	h := journal.Header{Version: built.Version, Revision: built.Revision, Inputs: s.hashes(f), Points: len(s.configs)}
	for _, arg := range s.args {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if !slices.Contains(aside, name) {
			h.Args = append(h.Args, arg)
		}
	}
	tables := []results.Table{s.table}
	if s.beside != nil {
		tables = append(tables, *s.beside)
	}
	for _, t := range tables {
		for _, c := range t.Columns {
			h.Columns += t.Name + "." + c.Name + " "
		}
	}
	j, entries, err := journal.Open(filepath.Join(s.common.out, s.table.Name+".csv.part"), h, s.flags.resume)
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
	if s.flags.resume {
		text := fmt.Sprintf("textpoke: reused %d of %d rows", f.manifest.Reused, len(s.mine)*s.perPoint)
		if s.again != "" && f.manifest.Reused > 0 {
			text += "; " + s.again
		}
		fmt.Fprintln(s.streams.err, text)
	}
	return nil
}

// key names a combination in the journal.
func (s *sweep) key(i int) string {
	return strings.ToValidUTF8(strings.Join(s.configs[i].Flags(), " "), "?")
}

// closeJournal closes the journal, and removes it when all it has is written.
func (s *sweep) closeJournal(complete bool) error {
	if complete {
		return s.journal.Remove()
	}
	return s.journal.Close()
}

// hashes is those of the inputs, and of tables that came from a pipe: nobody can
// read those files again.
func (s *sweep) hashes(f *files) map[string]string {
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
