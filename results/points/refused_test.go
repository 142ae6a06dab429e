// SPDX-License-Identifier: Apache-2.0

package points

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/results"
)

// line is a whole line of a folder's file.
func line(text string) string {
	return fmt.Sprintf("%08x %s\n", crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli)), text)
}

// TestParse: each reason why a file is damaged, whole; other files are torn.
func TestParse(t *testing.T) {
	head, first := line(`{"points":3}`), line(`{"point":0,"key":"a"}`)
	last := line(`{"point":2}`)
	for i, c := range []struct {
		text  string
		n     int
		whole int
		want  string
	}{
		{"", 0, 0, ""},
		{head, 0, len(head), ""},
		{head + first, 1, len(head + first), ""},
		{head + first + last, 2, len(head + first + last), ""},
		{head + first + "0", 1, len(head + first), ""},
		{head + first + "0 {}\n", 1, len(head + first), ""},
		{head + first + strings.ToUpper(last), 1, len(head + first), ""},
		{head + "0 {}\n" + first, 0, 0, "f:2: the checksum is wrong"},
		{head + line(`{"point":3}`), 0, 0, "f:2: combination 3 of 3"},
		{head + line(`{"point":-1}`), 0, 0, "f:2: combination -1 of 3"},
		{head + first + first, 0, 0, "f:3: combination 0: a second time"},
		{head + line("nonsense"), 0, 0, "f:2: invalid character 'o' in literal null (expecting 'u')"},
		{line("nonsense"), 0, 0, "f:1: invalid character 'o' in literal null (expecting 'u')"},
		{head + line(`{"point":0,"rows":[{"cells":["x"]}]}`), 0, 0, "f:2: " + exactError("x")},
	} {
		_, entries, whole, err := parse("f", []byte(c.text))
		got := ""
		if err != nil {
			got = strings.TrimSuffix(err.Error(), ": the file is damaged; remove it to start over")
			got = strings.TrimPrefix(got, "journal ")
		}
		if got != c.want || len(entries) != c.n || whole != c.whole {
			t.Errorf("%d: %d entries up to %d, %s; want %d up to %d, %s", i, len(entries), whole, got, c.n, c.whole, c.want)
		}
	}
}

func exactError(text string) string {
	_, err := results.ParseExact(text)
	return err.Error()
}

// TestFolderCannot: each way in which a folder's file fails is told with what failed.
func TestFolderCannot(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "none", "x")
	want := "journal: open " + path + ": no such file or directory"
	if _, err := OpenFolder(path, header, headerKeys, true); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for name, c := range map[string]struct {
		does func(f *Folder) error
		want string
	}{
		"rewind": {func(f *Folder) error { return f.rewind() }, "journal PATH: truncate PATH: file already closed"},
		"read":   {func(f *Folder) error { return f.read(true) }, "journal PATH: read PATH: file already closed"},
		"sync":   {func(f *Folder) error { return f.sync() }, "journal: sync PATH: file already closed"},
		"put": {func(f *Folder) error { return f.Put(0, outcome(0)) }, "journal: write PATH: file already closed; the " +
			"finished rows are in PATH: go on with resume\njournal PATH: truncate PATH: file already closed"},
		"close": {func(f *Folder) error { f.entries = 1; return f.Close(false) },
			"journal: sync PATH: file already closed\nclose PATH: file already closed"},
		"remove": {func(f *Folder) error { os.Remove(f.path); return f.Close(true) },
			"remove PATH: no such file or directory\nclose PATH: file already closed"},
	} {
		path := filepath.Join(dir, name)
		f := open(t, path, true, 0)
		f.file.Close()
		want := strings.ReplaceAll(c.want, "PATH", path)
		if err := c.does(f); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// TestSyncs: the first entry of a second is synced, and those that follow it are not.
func TestSyncs(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "x"), true, 0)
	long := time.Now().Add(-syncEvery)
	f.synced = long
	for i, again := range []bool{true, false} {
		before := f.synced
		if i == 1 {
			before = time.Now().Add(time.Hour)
			f.synced = before
		}
		if err := f.Put(i, outcome(i)); err != nil || f.synced.Equal(before) == again {
			t.Errorf("%d: %v, synced %v, before %v", i, err, f.synced, before)
		}
	}
	closed(t, f)
}

// TestTaken: a folder's keys and the number of its points, and what a line may not be asked for.
func TestTaken(t *testing.T) {
	s := letters(nil, new(int))
	for n, want := range map[int]string{0: "a", 7: "h", -1: "point -1 of 8", 8: "point 8 of 8"} {
		got, err := s.Key(n)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	if s.Alone() {
		t.Error("alone")
	}
	if s.Single = true; !s.Alone() {
		t.Error("not alone")
	}
	ctx, stop := context.WithCancel(t.Context())
	s.Point = func(context.Context, int, func(string)) (string, []string, error) {
		stop()
		return "", nil, errors.New("late")
	}
	if made, err := s.Do(ctx, 0); made != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%s, %v", made, err)
	}
	cut := func(context.Context, int) ([]byte, error) { return []byte("{"), nil }
	if _, _, err := tell(t, s, Way[string]{Await: cut}); err == nil ||
		err.Error() != "point 0: unexpected end of JSON input" {
		t.Error(err)
	}
	for _, c := range []struct {
		err  error
		want bool
	}{{context.Canceled, true}, {fmt.Errorf("x: %w", context.DeadlineExceeded), true},
		{errors.New("x"), false}, {nil, false}} {
		if Stopped(c.err) != c.want {
			t.Errorf("%v stops: %v", c.err, !c.want)
		}
	}
}

// TestReadFinished: the rows of a run that was carried through before, and of no other.
func TestReadFinished(t *testing.T) {
	s := madeUp{points: 4, rows: 2, beside: []int{1, 0, 2, 1, 0, 0, 1, 1}}
	for i, c := range []struct {
		part   *results.Part
		change func(m *results.Manifest)
		run    func(r *Run)
		spoil  func(dir string) error
		points int
		bad    bool
	}{
		{points: 4},
		{part: &results.Part{Index: 1, Of: 3, Points: 4, Rows: 2}, points: 1},
		{change: func(m *results.Manifest) { m.Exit = 1 }},
		{change: func(m *results.Manifest) { m.Complete = false }},
		{run: func(r *Run) { r.Version = "other" }},
		{run: func(r *Run) { r.Points = 5 }},
		{spoil: func(dir string) error { return os.Remove(filepath.Join(dir, "main.csv")) }},
		{spoil: func(dir string) error { return os.Remove(filepath.Join(dir, results.ManifestName)) }},
		{spoil: func(dir string) error {
			return os.WriteFile(filepath.Join(dir, results.ManifestName), []byte("{"), 0o600)
		}, bad: true},
	} {
		dir := t.TempDir()
		if err := s.write(dir, c.part, c.change); err != nil {
			t.Fatal(err)
		}
		m, err := results.ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		run, part := written(&m, "shard", "out"), results.Part{Points: 4, Rows: 2}
		if run.Points = 4; c.part != nil {
			part = *c.part
		}
		if c.run != nil {
			c.run(&run)
		}
		part.Points = run.Points
		if c.spoil != nil {
			if err := c.spoil(dir); err != nil {
				t.Fatal(err)
			}
		}
		got, err := ReadFinished(dir, run, part, "shard", "out")
		if len(got) != c.points || (err != nil) != c.bad {
			t.Errorf("%d: %d points, %v, want %d", i, len(got), err, c.points)
		}
		if c.points != 4 {
			continue
		}
		o, is := got.Have(1)
		var others []int
		for _, row := range o.Items {
			others = append(others, len(row.Others))
		}
		if diff := cmp.Diff([]int{2, 1}, others); diff != "" || !is || got.Put(1, o) != nil {
			t.Errorf("%v, %s", is, diff)
		}
	}
}

// TestTimes: the whole begins with its first shard and ends with its last, and keeps no choice that is ignored.
func TestTimes(t *testing.T) {
	s := madeUp{points: 2, rows: 1, beside: []int{0, 0}}
	dir, start := t.TempDir(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var dirs []string
	for i, at := range [][2]int{{5, 7}, {2, 9}, {3, 4}} {
		path := filepath.Join(dir, fmt.Sprint(i))
		err := s.write(path, &results.Part{Index: i, Of: 3, Points: 2, Rows: 1}, func(m *results.Manifest) {
			m.Started, m.Finished = start.Add(time.Duration(at[0])*time.Hour), start.Add(time.Duration(at[1])*time.Hour)
			m.Args = append(m.Args, "--kept=1", "out")
		})
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, path)
	}
	w, err := Merge([]string{dirs[2], dirs[0], dirs[1]}, "out", "shard")
	if err != nil {
		t.Fatal(err)
	}
	if m := w.Manifest; m.Started.Hour() != 2 || m.Finished.Hour() != 9 {
		t.Errorf("from %v to %v", m.Started, m.Finished)
	}
	if diff := cmp.Diff([]string{"textpoke", "plan", "--kept=1", "out"}, w.Manifest.Args); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(dirs, w.Dirs); diff != "" {
		t.Error(diff)
	}
}

// TestBadParts: a manifest whose shard cannot be is refused with its numbers.
func TestBadParts(t *testing.T) {
	s := madeUp{points: 2, rows: 1, beside: []int{0, 0}}
	for _, c := range []struct {
		part results.Part
		bad  bool
	}{
		{results.Part{Index: 0, Of: 1, Points: 0, Rows: 1}, false},
		{results.Part{Index: 0, Of: 0, Points: 2, Rows: 1}, true},
		{results.Part{Index: -1, Of: 2, Points: 2, Rows: 1}, true},
		{results.Part{Index: 2, Of: 2, Points: 2, Rows: 1}, true},
		{results.Part{Index: 0, Of: 1, Points: -1, Rows: 1}, true},
		{results.Part{Index: 0, Of: 1, Points: 2, Rows: 0}, true},
	} {
		dir := t.TempDir()
		if err := s.write(dir, nil, func(m *results.Manifest) { m.Part = &c.part }); err != nil {
			t.Fatal(err)
		}
		_, err := readPart(dir)
		want := fmt.Sprintf("%s/manifest.json: shard %d/%d of %d points with %d rows each", dir, c.part.Index, c.part.Of,
			c.part.Points, c.part.Rows)
		if c.bad != (err != nil) || err != nil && err.Error() != want {
			t.Errorf("%+v: %v, want %s", c.part, err, want)
		}
	}
	if got := (Shard{}).String() + (Shard{0, 1}).String(); got != "0/1" {
		t.Error(got)
	}
	for i, want := range map[[2]int]int{{0, 0}: 0, {0, 3}: 3, {1, 0}: 1, {1, 3}: 1, {3, 3}: 3} {
		if worse(i[0], i[1]) != want || worse(i[1], i[0]) != want {
			t.Errorf("%v: %d", i, worse(i[0], i[1]))
		}
	}
}

// TestRefusedItem: where an item is refused and its point fails, the refusal is told, and nothing of it is taken after.
func TestRefusedItem(t *testing.T) {
	refused, failed := errors.New("refused"), errors.New("failed")
	for _, workers := range []int{1, 2} {
		for _, c := range []struct{ take, point, want error }{
			{nil, nil, nil}, {nil, failed, failed}, {refused, nil, refused}, {refused, failed, refused},
		} {
			taken := 0
			err := inOrder(t.Context(), 1, workers, func(_ context.Context, _ int, give func(int)) error {
				give(1)
				give(2)
				return c.point
			}, func(int) error { taken++; return c.take })
			if want := map[bool]int{true: 2, false: 1}[c.take == nil]; !errors.Is(err, c.want) || taken != want {
				t.Errorf("%d workers, %v and %v: %v after %d items", workers, c.take, c.point, err, taken)
			}
		}
	}
}

// TestLocked: a file that another run has is let go again.
func TestLocked(t *testing.T) {
	open := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(list)
	}
	path := filepath.Join(t.TempDir(), "x")
	f, err := OpenFolder(path, header, headerKeys, true)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close(true)
	before := open()
	for range 9 {
		_, err := OpenFolder(path, header, headerKeys, true)
		if want := "journal " + path + ": another run is writing it: resource temporarily unavailable"; err == nil ||
			err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if after := open(); after > before {
		t.Errorf("%d files are open, and %d were before", after, before)
	}
}
