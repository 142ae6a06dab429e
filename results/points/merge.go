// SPDX-License-Identifier: Apache-2.0

package points

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/internal/spelling"
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

// Finished are points whose rows a directory's tables hold.
type Finished [][]Row

// Have implements [Keeper].
func (f Finished) Have(n int) (Outcome[Row], bool) { return Outcome[Row]{Items: f[n]}, true }

// Put implements [Keeper]: all points are there.
func (f Finished) Put(int, Outcome[Row]) error { return nil }

// ReadFinished is the points of a run that was carried through before, whose tables are in the directory; nil where
// another run's or none is there, one that was cut short, or one with the answer no. The ignored choices may differ.
func ReadFinished(dir string, run Run, part results.Part, ignored ...string) (Finished, error) {
	m, err := results.ReadManifest(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil || !m.Complete || m.Exit != 0 {
		return nil, err
	}
	there := written(&m, ignored...)
	there.Points = run.Points // the tables tell
	if run.differs(there, "", "") != nil {
		return nil, nil
	}
	rows, _, err := readTables(dir, m.Files, part)
	if err != nil {
		return nil, nil //nolint:nilerr // changed since: the points are done again
	}
	return rows, nil
}

// readTables reads the rows of a part's points, in their order, and the tables that they stand in. The first table has as
// many rows for each point; the first column of the other one, if there is one, is the number of a row of the first
// table of the whole sweep.
func readTables(dir string, files []results.ManifestFile, part results.Part) (points [][]Row, tables []results.Table,
	err error) {
	tables, err = spelling.ReadEach(files, func(f results.ManifestFile) (results.Table, error) {
		return readTable(filepath.Join(dir, f.Name), f)
	})
	if err != nil {
		return nil, nil, err
	}
	if len(tables) == 0 || len(tables) > 2 {
		return nil, nil, fmt.Errorf("%s: %d tables, where a sweep has one or two", dir, len(tables))
	}
	mine := Shard{part.Index, part.Of}.Points(part.Points)
	if n := len(tables[0].Rows); n != len(mine)*part.Rows {
		return nil, nil, fmt.Errorf("%s: %d rows, where %d points have %d", filepath.Join(dir, files[0].Name), n, len(mine),
			len(mine)*part.Rows)
	}
	points = make([][]Row, len(mine))
	for i, cells := range tables[0].Rows {
		points[i/part.Rows] = append(points[i/part.Rows], Row{Cells: cells})
	}
	for _, t := range tables[1:] {
		for i, cells := range t.Rows {
			number, is := cells[0].Number()
			n, k := int(number)/part.Rows, int(number)%part.Rows
			if !is || number < 0 || n%max(part.Of, 1) != part.Index || n >= part.Points {
				return nil, nil, fmt.Errorf("%s: row %d: %s %q is not of shard %d/%d", filepath.Join(dir, t.Name+".csv"), i+1,
					t.Columns[0].Name, cells[0], part.Index, part.Of)
			}
			row := &points[n/max(part.Of, 1)][k]
			row.Others = append(row.Others, cells)
		}
	}
	return points, tables, nil
}

// readTable reads a table. One that is not what its manifest says is refused.
func readTable(path string, about results.ManifestFile) (results.Table, error) {
	text, err := inputs.Regular(path)
	if err != nil {
		return results.Table{}, err
	}
	sum := sha256.Sum256(text)
	if is := hex.EncodeToString(sum[:]); about.SHA256 != "" && about.SHA256 != is {
		return results.Table{}, fmt.Errorf("%s: it was edited: its SHA-256 is %.12s..., and %.12s... in its manifest", path, is,
			about.SHA256)
	}
	t, err := results.ReadCSV(bytes.NewReader(text), strings.TrimSuffix(about.Name, ".csv"), about.Columns)
	if err != nil {
		return t, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// Shard is one part of a sweep: the points Index, Index+Of, Index+2*Of and so on. The zero
// Shard is all of it.
type Shard struct{ Index, Of int }

// indexes are the variables in which schedulers say which of several equal jobs one is:
// Kubernetes' Indexed Jobs and Slurm's arrays, both from 0.
var indexes = []string{"JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_ID"}

// ParseShard reads "i/n", i from 0. "/n" takes i from the environment.
func ParseShard(text string) (Shard, error) {
	index, of, ok := strings.Cut(text, "/")
	from := ""
	for _, name := range indexes {
		if index == "" && ok {
			index, from = os.Getenv(name), " in "+name
		}
	}
	if index == "" && ok {
		return Shard{}, fmt.Errorf("no index: none of %s is set", strings.Join(indexes, ", "))
	}
	n, err := strconv.Atoi(of)
	if !ok || err != nil || n < 1 {
		return Shard{}, errors.New("want i/n, such as 0/4, or /4 where the environment says i")
	}
	i, err := strconv.Atoi(index)
	if err != nil || i < 0 || i >= n {
		return Shard{}, fmt.Errorf("index %q%s: want 0 to %d", index, from, n-1)
	}
	return Shard{i, n}, nil
}

// String is the shard as ParseShard reads it; of all of a sweep it is empty.
func (s Shard) String() string {
	if s == (Shard{}) {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.Index, s.Of)
}

// Points are the numbers of the shard's points among n.
func (s Shard) Points(n int) (list []int) {
	for i := s.Index; i < n; i += max(s.Of, 1) {
		list = append(list, i)
	}
	return list
}
