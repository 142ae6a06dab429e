// SPDX-License-Identifier: Apache-2.0

package points

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/results"
)

func TestParseShard(t *testing.T) {
	for _, test := range []struct{ text, env, want, err string }{
		{text: "0/1", want: "0/1"},
		{text: "3/8", want: "3/8"},
		{text: "/8", env: "7", want: "7/8"},
		{text: "/8", err: "none of JOB_COMPLETION_INDEX, SLURM_ARRAY_TASK_ID is set"},
		{text: "/8", env: "8", err: `index "8" in JOB_COMPLETION_INDEX: want 0 to 7`},
		{text: "8/8", err: `index "8": want 0 to 7`},
		{text: "-1/8", err: `index "-1"`},
		{text: "x/8", err: `index "x"`},
		{text: "1/0", err: "want i/n"},
		{text: "1/x", err: "want i/n"},
		{text: "1", err: "want i/n"},
		{text: "", err: "want i/n"},
		{text: "1/2/3", err: "want i/n"},
	} {
		t.Setenv("JOB_COMPLETION_INDEX", test.env)
		got, err := ParseShard(test.text)
		switch {
		case test.err == "" && (err != nil || got.String() != test.want):
			t.Errorf("%q: %v, %v, want %s", test.text, got, err, test.want)
		case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
			t.Errorf("%q: %v, want %s", test.text, err, test.err)
		}
	}
}

// TestPoints: every point is in one shard, and they are as large as they can be equal.
func TestShardPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, of := rapid.IntRange(0, 100).Draw(t, "points"), rapid.IntRange(1, 20).Draw(t, "shards")
		seen := make([]int, n)
		for i := range of {
			mine := Shard{i, of}.Points(n)
			if len(mine) < n/of || len(mine) > (n+of-1)/of {
				t.Errorf("shard %d/%d of %d points has %d", i, of, n, len(mine))
			}
			for _, p := range mine {
				seen[p]++
			}
		}
		if slices.ContainsFunc(seen, func(n int) bool { return n != 1 }) {
			t.Errorf("points are in so many shards: %v", seen)
		}
	})
	if got := (Shard{}).Points(3); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("all: %v", got)
	}
}

// madeUp is a sweep, with a table and another one about its rows.
type madeUp struct {
	points, rows int
	beside       []int // rows of the other table, for each row of the first
}

// write writes the points of a shard as commands do.
func (s madeUp) write(dir string, part *results.Part, change func(*results.Manifest)) error {
	main := results.Table{Name: "main", Columns: []results.Column{{Name: "point", Kind: results.Integer}, {Name: "text"}}}
	beside := results.Table{Name: "beside", Columns: []results.Column{{Name: "row", Kind: results.Integer},
		{Name: "k", Kind: results.Integer}}}
	mine := Shard{}
	if part != nil {
		mine = Shard{part.Index, part.Of}
	}
	for _, p := range mine.Points(s.points) {
		for k := range s.rows {
			if err := main.Add(p, fmt.Sprintf("a \"text\", row %d", k)); err != nil {
				return err
			}
			for b := range s.beside[p*s.rows+k] {
				if err := beside.Add(p*s.rows+k, b); err != nil {
					return err
				}
			}
		}
	}
	d, err := results.OpenDir(dir)
	if err != nil {
		return err
	}
	m := results.Manifest{Args: []string{"textpoke", "plan", "--out=" + dir}, Complete: true, Part: part}
	for _, t := range []results.Table{main, beside} {
		sum, err := d.WriteCSV(t)
		if err != nil {
			return err
		}
		m.AddTable(t, sum)
	}
	if part != nil {
		m.Args = append(m.Args, fmt.Sprintf("--shard=%d/%d", part.Index, part.Of))
	}
	if change != nil {
		change(&m)
	}
	return d.WriteManifest(m)
}

// TestMergedIsWhole divides sweeps in every way: in any order, the shards make the bytes
// that the whole makes.
func TestMergedIsWhole(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := madeUp{points: rapid.IntRange(0, 12).Draw(rt, "points"), rows: rapid.IntRange(1, 3).Draw(rt, "rows")}
		for range s.points * s.rows {
			s.beside = append(s.beside, rapid.IntRange(0, 3).Draw(rt, "beside"))
		}
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		path := func(name any) string { return filepath.Join(dir, fmt.Sprint(name)) }
		if err := s.write(path("whole"), nil, nil); err != nil {
			rt.Fatal(err)
		}
		of, exits := rapid.IntRange(1, 5).Draw(rt, "shards"), []int(nil)
		var dirs []string
		for i := range of {
			exits = append(exits, rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(rt, "exit"))
			part := &results.Part{Index: i, Of: of, Points: s.points, Rows: s.rows}
			if err := s.write(path(i), part, func(m *results.Manifest) { m.Exit = exits[i] }); err != nil {
				rt.Fatal(err)
			}
			dirs = append(dirs, path(i))
		}
		rand.Shuffle(of, func(i, j int) { dirs[i], dirs[j] = dirs[j], dirs[i] })
		w, err := Merge(dirs, "out", "shard")
		if err != nil {
			rt.Fatal(err)
		}
		out, err := results.OpenDir(path("merged"))
		if err == nil {
			err = w.Write(out)
		}
		if err != nil {
			rt.Fatal(err)
		}
		for _, name := range []string{"main.csv", "beside.csv"} {
			want, _ := os.ReadFile(filepath.Join(path("whole"), name))
			if got, _ := os.ReadFile(filepath.Join(path("merged"), name)); len(want) == 0 || !bytes.Equal(got, want) {
				rt.Errorf("%s of %d shards:\n%s\nwant\n%s", name, of, got, want)
			}
		}
		want := 0
		for _, code := range []int{3, 1} { // no comes before cut short
			if slices.Contains(exits, code) {
				want = code
			}
		}
		if w.Manifest.Exit != want || w.Manifest.Part != nil || w.Manifest.Files[0].Rows != s.points*s.rows {
			rt.Errorf("exits %v: manifest %+v", exits, w.Manifest)
		}
	})
}

// TestRefused are directories that one machine would not have written together.
func TestRefused(t *testing.T) {
	s := madeUp{points: 4, rows: 1, beside: []int{1, 1, 1, 1}}
	dir := t.TempDir()
	make := func(name string, index, of int, change func(*results.Manifest)) string {
		path := filepath.Join(dir, name)
		part := &results.Part{Index: index, Of: of, Points: s.points, Rows: s.rows}
		if err := s.write(path, part, change); err != nil {
			t.Fatal(err)
		}
		return path
	}
	overwrite := func(path, file, text string) string {
		if err := os.WriteFile(filepath.Join(path, file), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, b := make("a", 0, 2, nil), make("b", 1, 2, nil)
	if _, err := Merge([]string{b, a}, "out", "shard"); err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(dir, "whole")
	if err := s.write(whole, nil, nil); err != nil {
		t.Fatal(err)
	}
	device := make("device", 1, 2, nil)
	if err := os.Remove(filepath.Join(device, "main.csv")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", filepath.Join(device, "main.csv")); err != nil {
		t.Skip(err)
	}
	unsummed := func(m *results.Manifest) { // as versions wrote it that had no sums
		for i := range m.Files {
			m.Files[i].SHA256 = ""
		}
	}
	edited := overwrite(make("edited", 1, 2, nil), "main.csv", "point,text\n1,x\n3,x\n")
	for _, test := range []struct {
		dirs []string
		err  string
	}{
		{nil, "no shards"},
		{[]string{a, edited},
			"edited/main.csv: it was edited: its SHA-256 is 34957db17602..., and f8d668988bcf... in its manifest"},
		{[]string{a, device}, "device/main.csv: not a file"},
		{[]string{a}, "shard 1/2 is missing"},
		{[]string{a, b, a}, "a and a are both shard 0/2"},
		{[]string{whole}, "whole holds no shard: it was made without shard"},
		{[]string{filepath.Join(dir, "none")}, "none: no manifest.json: nothing was finished there"},
		{[]string{a, make("three", 1, 3, nil)}, "three is of another sweep than a: one of 3 shards, and of 2"},
		{[]string{a, make("cut", 1, 2, func(m *results.Manifest) { m.Complete = false })},
			"cut: shard 1/2 was cut short: go on with it first, with resume"},
		{[]string{a, make("args", 1, 2, func(m *results.Manifest) { m.Args[1] = "run" })},
			"args is of another sweep than a: command: plan in a, run in args"},
		{[]string{a, make("old", 1, 2, func(m *results.Manifest) { m.Version = "0.1" })},
			"old is of another sweep than a: version: none in a, 0.1 in old"},
		{[]string{a, make("input", 1, 2, func(m *results.Manifest) { m.AddSum("x", "00") })},
			"input is of another sweep than a: SHA-256 of x: none in a, 00 in input"},
		{[]string{a, make("less", 1, 2, func(m *results.Manifest) { m.Files = m.Files[:1] })},
			"less is of another sweep than a: columns: main.point main.text beside.row beside.k  in a, main.point main.text  in less"},
		{[]string{a, make("index", 1, 2, func(m *results.Manifest) { m.Part.Index = 7 })},
			"index/manifest.json: shard 7/2 of 4 points with 1 rows each"},
		{[]string{a, overwrite(make("rows", 1, 2, unsummed), "main.csv", "point,text\n1,x\n")},
			"rows/main.csv: 1 rows, where 2 points have 2"},
		{[]string{a, overwrite(make("header", 1, 2, unsummed), "main.csv", "points,text\n")},
			"header/main.csv: read main: it has other columns"},
		{[]string{a, overwrite(make("quote", 1, 2, nil), "main.csv", "point,text\n\"1,x\n")},
			"quote/main.csv: it was edited: its SHA-256 is 9d9046d37ee5..., and f8d668988bcf... in its manifest"},
		{[]string{a, overwrite(make("row", 1, 2, unsummed), "beside.csv", "row,k\n0,0\n")},
			`row/beside.csv: row 1: row "0" is not of shard 1/2`},
		{[]string{a, overwrite(make("far", 1, 2, unsummed), "beside.csv", "row,k\n5,0\n")},
			`far/beside.csv: row 1: row "5" is not of shard 1/2`},
		{[]string{a, overwrite(make("json", 1, 2, nil), results.ManifestName, "{")},
			"read json/manifest.json: unexpected end of JSON input"},
	} {
		_, err := Merge(test.dirs, "out", "shard")
		if err == nil || strings.ReplaceAll(err.Error(), dir+"/", "") != test.err {
			t.Errorf("%v: %v, want %s", test.dirs, err, test.err)
		}
	}
}
