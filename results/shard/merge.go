// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/results"
)

// Whole is what shards make together.
type Whole struct {
	Manifest results.Manifest // as one machine would have written it, but for its times
	Dirs     []string         // of the shards, in their order
	tables   [][][]string     // by file, each with its header
}

// part is the directory of one shard.
type part struct {
	path string
	results.Manifest
}

// Merge reads the directories of all shards of one sweep, in any order. It refuses what
// one machine would not have written: shards of different sweeps, one that is missing, that
// is there twice or was cut short, and tables that do not have the rows that they must. plain
// is a shard's arguments without those that may differ from shard to shard.
func Merge(dirs []string, plain func(args []string) []string) (*Whole, error) {
	parts, err := readParts(dirs, plain)
	if err != nil {
		return nil, err
	}
	w := &Whole{Manifest: parts[0].Manifest}
	w.Manifest.Part = nil
	for _, p := range parts {
		w.Dirs = append(w.Dirs, p.path)
		w.Manifest.Exit = worse(w.Manifest.Exit, p.Exit)
		if p.Started.Before(w.Manifest.Started) {
			w.Manifest.Started = p.Started
		}
		if p.Finished.After(w.Manifest.Finished) {
			w.Manifest.Finished = p.Finished
		}
	}
	for i := range w.Manifest.Files {
		rows, err := interleave(parts, i)
		if err != nil {
			return nil, err
		}
		w.tables = append(w.tables, rows)
		w.Manifest.Files[i].Rows = len(rows) - 1
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
func readParts(dirs []string, plain func([]string) []string) ([]*part, error) {
	var first *part
	byIndex := map[int]*part{}
	for _, dir := range dirs {
		p, err := readPart(dir)
		if err != nil {
			return nil, err
		}
		p.Args = plain(p.Args)
		if first == nil {
			first = p
		}
		if err := p.same(first); err != nil {
			return nil, fmt.Errorf("%s is of another sweep than %s: %w", p.path, first.path, err)
		}
		if other := byIndex[p.Part.Index]; other != nil {
			return nil, fmt.Errorf("%s and %s are both shard %d/%d", other.path, p.path, p.Part.Index, p.Part.Of)
		}
		byIndex[p.Part.Index] = p
	}
	if first == nil {
		return nil, errors.New("no shards")
	}
	var parts []*part
	for i := range first.Part.Of {
		p := byIndex[i]
		if p == nil {
			return nil, fmt.Errorf("shard %d/%d is missing", i, first.Part.Of)
		}
		parts = append(parts, p)
	}
	return parts, nil
}

func readPart(dir string) (*part, error) {
	path := filepath.Join(dir, results.ManifestName)
	f, err := open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s: no %s: nothing was finished there", dir, results.ManifestName)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("read shard: %w", err)
	}
	p := &part{path: dir}
	if err := json.Unmarshal(text, &p.Manifest); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	switch s := p.Part; {
	case s == nil:
		return nil, choice.Errorf("%s holds no shard: it was made without %s", dir, choice.Name("shard"))
	case s.Of < 1 || s.Index < 0 || s.Index >= s.Of || s.Points < 0 || s.Rows < 1:
		return nil, fmt.Errorf("%s: shard %d/%d of %d points with %d rows each", path, s.Index, s.Of, s.Points, s.Rows)
	case !p.Complete:
		return nil, choice.Errorf("%s: shard %d/%d was cut short: go on with it first, with %s", dir, s.Index, s.Of, choice.Name("resume"))
	}
	return p, nil
}

// same tells how two shards differ that should be of one sweep.
func (p *part) same(q *part) error {
	a, b := p.Manifest, q.Manifest
	switch {
	case a.Version != b.Version || a.Revision != b.Revision:
		return fmt.Errorf("version %s %s, and %s %s", a.Version, a.Revision, b.Version, b.Revision)
	case !slices.Equal(a.Args, b.Args):
		return fmt.Errorf("arguments %q, and %q", strings.Join(a.Args, " "), strings.Join(b.Args, " "))
	case !maps.Equal(a.Inputs, b.Inputs):
		return errors.New("their inputs have other contents")
	case a.Part.Of != b.Part.Of || a.Part.Points != b.Part.Points || a.Part.Rows != b.Part.Rows:
		return fmt.Errorf("%d shards of %d points, and %d of %d", a.Part.Of, a.Part.Points, b.Part.Of, b.Part.Points)
	case !slices.EqualFunc(a.Files, b.Files, func(x, y results.ManifestFile) bool {
		return x.Name == y.Name && slices.Equal(x.Columns, y.Columns)
	}):
		return errors.New("their tables have other columns")
	}
	return nil
}

// interleave puts the rows of one table into the order of the points. The first table has
// as many rows for every point; the first column of others is the number of a row of the
// first.
func interleave(parts []*part, file int) (rows [][]string, err error) {
	of := parts[0].Part
	byPoint := make([][][]string, of.Points)
	for _, p := range parts {
		name := filepath.Join(p.path, p.Files[file].Name)
		all, err := readRows(name, p.Files[file])
		if err != nil {
			return nil, err
		}
		mine := Shard{p.Part.Index, of.Of}.Points(of.Points)
		if want := len(mine) * of.Rows; file == 0 && len(all)-1 != want {
			return nil, fmt.Errorf("%s: %d rows, where %d points have %d", name, len(all)-1, len(mine), want)
		}
		rows = all[:1] // all have the same header
		for i, row := range all[1:] {
			number := i
			if file == 0 {
				number = mine[i/of.Rows] * of.Rows
			} else if number, err = strconv.Atoi(row[0]); err != nil || number/of.Rows%of.Of != p.Part.Index ||
				number/of.Rows >= of.Points {
				return nil, fmt.Errorf("%s: row %d: %s %q is not of shard %d/%d", name, i+1, all[0][0], row[0],
					p.Part.Index, of.Of)
			}
			byPoint[number/of.Rows] = append(byPoint[number/of.Rows], row)
		}
	}
	return append(rows, slices.Concat(byPoint...)...), nil
}

// open opens a file: what is none, a pipe or a device, may have no end.
func open(name string) (*os.File, error) {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a file", name)
	}
	if err != nil {
		return nil, fmt.Errorf("read shard: %w", err)
	}
	return os.Open(name)
}

// readRows reads a table, its header first. One that is not what was written is refused.
func readRows(name string, about results.ManifestFile) ([][]string, error) {
	f, err := open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sum := sha256.New()
	rows, err := csv.NewReader(io.TeeReader(f, sum)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if is := hex.EncodeToString(sum.Sum(nil)); about.SHA256 != "" && about.SHA256 != is {
		return nil, fmt.Errorf("%s: it was edited: its SHA-256 is %.12s..., and %.12s... in its manifest", name, is, about.SHA256)
	}
	if len(rows) == 0 || !slices.EqualFunc(rows[0], about.Columns, func(s string, c results.Column) bool {
		return s == c.Name
	}) {
		return nil, fmt.Errorf("%s: its header is not that of its manifest", name)
	}
	return rows, nil
}

// Write writes the tables.
func (w *Whole) Write(dir *results.Dir) error {
	for i, file := range w.Manifest.Files {
		sum := sha256.New()
		err := dir.Write(file.Name, func(to io.Writer) error {
			return results.WriteRecords(io.MultiWriter(to, sum), w.tables[i])
		})
		if err != nil {
			return err
		}
		w.Manifest.Files[i].SHA256 = hex.EncodeToString(sum.Sum(nil))
	}
	return nil
}

// Rows are those of the first table, its header left out.
func (w *Whole) Rows() [][]string { return w.tables[0][1:] }
