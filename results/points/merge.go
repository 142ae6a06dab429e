// SPDX-License-Identifier: Apache-2.0

package points

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/results"
)

// Whole is what shards make together.
type Whole struct {
	Manifest results.Manifest // as one machine would have written it, but for its times
	Dirs     []string         // of the shards, in their order
	Tables   []results.Table
}

// part is the directory of one shard.
type part struct {
	path string
	results.Manifest
}

// Merge reads the directories of all shards of one sweep, in any order. It refuses what
// one machine would not have written: shards of different sweeps, one that is missing, that
// is there twice or was cut short, and tables that do not have the rows that they must. The ignored choices may differ
// from shard to shard.
func Merge(dirs []string, ignored ...string) (*Whole, error) {
	parts, err := readParts(dirs, ignored)
	if err != nil {
		return nil, err
	}
	w := &Whole{Manifest: parts[0].Manifest}
	of := *w.Manifest.Part
	w.Manifest.Part, w.Manifest.Files = nil, nil
	w.Manifest.Args = slices.DeleteFunc(w.Manifest.Args, func(arg string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		return strings.HasPrefix(arg, "--") && slices.Contains(ignored, name)
	})
	byPoint := make([][]Row, of.Points)
	for _, p := range parts {
		w.Dirs = append(w.Dirs, p.path)
		w.Manifest.Exit = worse(w.Manifest.Exit, p.Exit)
		if p.Started.Before(w.Manifest.Started) {
			w.Manifest.Started = p.Started
		}
		if p.Finished.After(w.Manifest.Finished) {
			w.Manifest.Finished = p.Finished
		}
		rows, tables, err := readTables(p.path, p.Files, *p.Part)
		if err != nil {
			return nil, err
		}
		for k, n := range (Shard{p.Part.Index, of.Of}).Points(of.Points) {
			byPoint[n] = rows[k]
		}
		w.Tables = tables
	}
	for i := range w.Tables {
		w.Tables[i].Rows = nil
	}
	for _, row := range slices.Concat(byPoint...) {
		w.Tables[0].Rows = append(w.Tables[0].Rows, row.Cells)
		for _, other := range row.Others {
			w.Tables[1].Rows = append(w.Tables[1].Rows, other)
		}
	}
	return w, nil
}

// worse is the exit code of both: that of an answer that is no, 1, comes before that of one
// that was cut short, 3.
func worse(a, b int) int {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// readParts reads the manifests and holds them against each other.
func readParts(dirs, ignored []string) (parts []part, err error) {
	for _, dir := range dirs {
		p, err := readPart(dir)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
		first := &parts[0]
		if err := written(&p.Manifest, ignored...).differs(written(&first.Manifest, ignored...), "in "+first.path,
			"in "+p.path); err != nil {
			return nil, choice.Errorf("%s is of another sweep than %s: %w", p.path, first.path, err)
		}
		if a, b := first.Part, p.Part; a.Of != b.Of || a.Rows != b.Rows {
			return nil, fmt.Errorf("%s is of another sweep than %s: one of %d shards, and of %d", p.path, first.path, b.Of, a.Of)
		}
	}
	if len(parts) == 0 {
		return nil, errors.New("no shards")
	}
	slices.SortFunc(parts, func(a, b part) int { return a.Part.Index - b.Part.Index })
	for i := range max(len(parts), parts[0].Part.Of) {
		switch of := parts[0].Part.Of; {
		case i > 0 && i < len(parts) && parts[i].Part.Index == parts[i-1].Part.Index:
			return nil, fmt.Errorf("%s and %s are both shard %d/%d", parts[i-1].path, parts[i].path, parts[i].Part.Index, of)
		case i >= len(parts) || parts[i].Part.Index > i:
			return nil, fmt.Errorf("shard %d/%d is missing", i, of)
		}
	}
	return parts, nil
}

func readPart(dir string) (part, error) {
	m, err := results.ReadManifest(dir)
	if errors.Is(err, os.ErrNotExist) {
		return part{}, fmt.Errorf("%s: no %s: nothing was finished there", dir, results.ManifestName)
	}
	if err != nil {
		return part{}, err
	}
	switch s := m.Part; {
	case s == nil:
		return part{}, choice.Errorf("%s holds no shard: it was made without %s", dir, choice.Name("shard"))
	case s.Of < 1 || s.Index < 0 || s.Index >= s.Of || s.Points < 0 || s.Rows < 1:
		return part{}, fmt.Errorf("%s: shard %d/%d of %d points with %d rows each", filepath.Join(dir, results.ManifestName),
			s.Index, s.Of, s.Points, s.Rows)
	case !m.Complete:
		return part{}, choice.Errorf("%s: shard %d/%d was cut short: go on with it first, with %s", dir, s.Index, s.Of,
			choice.Name("resume"))
	}
	return part{dir, m}, nil
}

// Write writes the tables, and notes them in the manifest.
func (w *Whole) Write(dir *results.Dir) error {
	for _, t := range w.Tables {
		sum, err := dir.WriteCSV(t)
		if err != nil {
			return err
		}
		w.Manifest.AddTable(t, sum)
	}
	return nil
}
