// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/points"
)

// process are the flags of a process, which rows do not depend on: they are no part of a request.
var process = append([]string{"out", "resume", "jobs", "yes", "format", "log", "color", "columns"}, queueFlags...)

// ofProcess are the flags that rows do not depend on: a sweep that goes on may have others.
var ofProcess = append([]string{"budget"}, process...)

// keeper keeps rows, and has those that were finished before: in the tables of the directory, where this very sweep was
// carried through, otherwise in a file beside them. The caller calls closed at the end, and tells it whether the
// tables hold all rows.
func (s *sweep) keeper(f *folder, keys []string) (k points.Keeper[points.Row], closed func(complete bool) error, err error) {
	tables := []results.Table{s.out.table}
	if s.beside != nil {
		tables = append(tables, *s.beside)
	}
	run := points.NewRun(&f.manifest, tables, len(keys), ofProcess...)
	s.addPiped(run.Inputs)
	path := filepath.Join(s.common.out, s.out.table.Name+".csv.part")
	if _, err := os.Stat(path); err != nil && s.flags.resume && !s.spoken { // otherwise a later run was interrupted
		part := results.Part{Index: s.shard.Index, Of: s.shard.Of, Points: len(s.configs), Rows: s.perPoint}
		done, err := points.ReadFinished(s.common.out, run, part, ofProcess...)
		if err != nil {
			return nil, nil, err
		}
		if done != nil {
			s.reuse(f, done, len(keys))
			return done, func(bool) error { return nil }, nil
		}
	}
	folder, err := points.OpenFolder(path, run, keys, s.flags.resume)
	if err != nil {
		return nil, nil, err
	}
	s.reuse(f, folder, len(keys))
	return folder, folder.Close, nil
}

// reuse says how many rows are there already.
func (s *sweep) reuse(f *folder, k points.Keeper[points.Row], n int) {
	for i := range n {
		had, _ := k.Have(i)
		s.had += len(had.Items)
	}
	f.manifest.Reused = s.had
	if s.had == 0 {
		return
	}
	text := fmt.Sprintf("textpoke: reused %d of %d rows", s.had, s.Rows)
	if s.again != "" {
		text += "; " + s.again
	}
	fmt.Fprintln(s.streams.err, text)
}

// addPiped adds the contents of tables that came from a pipe, which cannot be read again.
func (s *sweep) addPiped(inputs map[string]string) {
	for i := range s.configs {
		t := s.configs[i].Table
		name := filepath.ToSlash(t.Name())
		if inputs[name] != "" || strings.HasPrefix(name, "gen:") || isBuiltin(name) {
			continue
		}
		h := sha256.New()
		for r := range t.Len() {
			fmt.Fprintf(h, "%x %q %q\n", t.Addr(r), t.Symbol(r), t.Module(r))
		}
		inputs[name] = hex.EncodeToString(h.Sum(nil))
	}
}
