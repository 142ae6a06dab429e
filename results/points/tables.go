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
	"strings"

	"github.com/textpoke/textpoke/results"
)

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
	for _, f := range files {
		t, err := readTable(filepath.Join(dir, f.Name), f)
		if err != nil {
			return nil, nil, err
		}
		tables = append(tables, t)
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
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() { // a pipe or a device may have no end
		err = fmt.Errorf("%s: not a file", path)
	}
	if err != nil {
		return results.Table{}, err
	}
	text, err := os.ReadFile(path)
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
