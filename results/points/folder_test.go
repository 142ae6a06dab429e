// SPDX-License-Identifier: Apache-2.0

package points

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/results"
)

var header = Run{
	Version: "v1", Revision: "abc", Request: choice.ParseArgs([]string{"textpoke", "plan", "--seed=1,2"}),
	Inputs: map[string]string{"a.csv": "12", "b\xff.csv": "34"}, Columns: "plan.a plan.b", Points: 100,
}

// headerKeys are the keys of its points.
var headerKeys = func() (keys []string) {
	for i := range header.Points {
		keys = append(keys, fmt.Sprintf("--seed %d", i))
	}
	return keys
}()

func outcome(i int) Outcome[Row] {
	return Outcome[Row]{Wrong: strings.Repeat("!\n", i%2), Items: []Row{{
		Cells:  Cells{results.Int(int64(i)), results.Float(3), results.Empty, results.String("a,\"b\"\n\xff")},
		Others: []Cells{{results.Uint(1 << 63)}, {results.Bool(true)}}, Text: "text\n",
	}}}
}

var values = cmp.Comparer(func(a, b results.Value) bool { return a == b })

// folderOf makes a file with n points, and returns its path and contents.
func folderOf(t *testing.T, n int) (string, []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plan.csv.part")
	j := open(t, path, false, 0)
	for i := range n {
		if err := j.Put(i, outcome(i)); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, j)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, data
}

// open opens a folder that must have the first n points.
func open(t *testing.T, path string, resume bool, n int) *Folder {
	t.Helper()
	f, err := OpenFolder(path, header, headerKeys, resume)
	if err != nil {
		t.Fatal(err)
	}
	for i := range header.Points {
		got, is := f.Have(i)
		if is != (i < n) {
			t.Fatalf("of %d points, it has number %d: %v", n, i, is)
		}
		if diff := cmp.Diff(outcome(i), got, values); is && diff != "" {
			t.Fatalf("point %d (-want +got):\n%s", i, diff)
		}
	}
	return f
}

func closed(t *testing.T, f *Folder) {
	t.Helper()
	if err := f.Close(false); err != nil {
		t.Fatal(err)
	}
}

// TestTornAnywhere cuts the file off at every length, as a death in the middle of
// a write does: whole lines are read, and the file goes on as if it had ended
// with them.
func TestTornAnywhere(t *testing.T) {
	path, data := folderOf(t, 4)
	step := 1
	if testing.Short() {
		step = 7
	}
	for size := 0; size <= len(data); size += step {
		if err := os.WriteFile(path, data[:size], 0o666); err != nil {
			t.Fatal(err)
		}
		whole := max(strings.Count(string(data[:size]), "\n")-1, 0)
		j := open(t, path, true, whole)
		for i := whole; i < 4; i++ {
			if err := j.Put(i, outcome(i)); err != nil {
				t.Fatal(err)
			}
		}
		closed(t, j)
		if got, _ := os.ReadFile(path); string(got) != string(data) {
			t.Fatalf("cut at %d and gone on with, it is\n%s\nand not\n%s", size, got, data)
		}
	}
}

// TestDamage changes every byte of the file: no entry comes back that was not
// written, and only the last line may be given up.
func TestDamage(t *testing.T) {
	path, data := folderOf(t, 3)
	last := strings.LastIndex(strings.TrimSuffix(string(data), "\n"), "\n") // without it, the last two are one
	for i := range data {
		bad := append([]byte(nil), data...)
		bad[i] ^= 1
		_, entries, _, err := parse(path, bad)
		switch {
		case i < last && err == nil:
			t.Fatalf("byte %d of line %d is wrong and nothing is said", i, 1+strings.Count(string(data[:i]), "\n"))
		case i < last && !strings.Contains(err.Error(), path+":"+fmt.Sprint(1+strings.Count(string(data[:i]), "\n"))) &&
			data[i] != '\n':
			t.Fatalf("byte %d: %v does not name the line", i, err)
		case i >= last && (err != nil || len(entries) != 2 && i > last):
			t.Fatalf("byte %d of the last line: %d entries, %v", i, len(entries), err)
		}
	}
}

func TestNothingFinishedIsThrownAway(t *testing.T) {
	path, data := folderOf(t, 3)
	_, err := OpenFolder(path, header, headerKeys, false)
	if !errors.Is(err, ErrUnfinished) || !strings.Contains(err.Error(), "3 of 100 combinations: go on with resume") {
		t.Errorf("opened without resume: %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != string(data) {
		t.Error("the file is another one now")
	}
}

func TestAnotherRun(t *testing.T) {
	path, data := folderOf(t, 1)
	for want, change := range map[string]func(*Run){
		"version: v1 there, v2 here":     func(h *Run) { h.Version = "v2" },
		"revision: abc there, none here": func(h *Run) { h.Revision = "" },
		"buffer: none there, 2 here\nseed: 1,2 there, 1,3 here": func(h *Run) {
			h.Request = choice.ParseArgs([]string{"textpoke", "plan", "--seed=1,3", "--buffer=2"})
		},
		"command: plan there, run here": func(h *Run) { h.Request.Name = "run" },
		"SHA-256 of a.csv: 12 there, 13 " +
			"here": func(h *Run) { h.Inputs = map[string]string{"a.csv": "13", "b\xff.csv": "34"} },
		"SHA-256 of b\uFFFD.csv: 34 there, none here\nSHA-256 of c: " +
			"none t": func(h *Run) { h.Inputs = map[string]string{"a.csv": "12", "c": "1"} },
		"columns: plan.a plan.b there, plan.a here": func(h *Run) { h.Columns = "plan.a" },
		"combinations: 100 there, 5 here":           func(h *Run) { h.Points = 5 },
	} {
		h := header
		change(&h)
		_, err := OpenFolder(path, h, headerKeys, true)
		if err == nil || !strings.Contains(err.Error(), "is of another run: "+want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if got, _ := os.ReadFile(path); string(got) != string(data) {
		t.Error("the file is another one now")
	}
	closed(t, open(t, path, true, 1))
}

// TestOneAtATime: two runs that write one file would lose each other's rows.
func TestOneAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plan.csv.part")
	j := open(t, path, false, 0)
	if _, err := OpenFolder(path, header, headerKeys, true); err == nil || !strings.Contains(err.Error(), "another run is writing it") {
		t.Errorf("opened twice: %v", err)
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if err := j.Put(i, outcome(i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	closed(t, j)
	j = open(t, path, true, 20)
	if err := j.Close(true); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestHeaderAlone: nothing of another run is kept where it finished nothing.
func TestHeaderAlone(t *testing.T) {
	path, data := folderOf(t, 2)
	other := strings.SplitAfter(string(data), "\n")[0]
	if err := os.WriteFile(path, []byte(other), 0o666); err != nil {
		t.Fatal(err)
	}
	h := header
	h.Version = "v2"
	for want := range 2 {
		j, err := OpenFolder(path, h, headerKeys, want > 0)
		if err != nil || len(j.had) != want {
			t.Fatalf("%d points of %d, %v", len(j.had), want, err)
		}
		if err := j.Put(want, outcome(want)); err != nil {
			t.Fatal(err)
		}
		closed(t, j)
	}
}

func TestNothingLeavesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plan.csv.part")
	closed(t, open(t, path, true, 0))
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a journal of nothing: %v", err)
	}
}

// TestFullDisk fills the disk, as far as the file can tell: what was finished
// before stays, whole, and can be gone on with once there is room.
func TestFullDisk(t *testing.T) {
	path, data := folderOf(t, 3)
	one := (len(data) - strings.Index(string(data), "\n")) / 3
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	for room := range one - 40 { // of the fourth entry
		j := open(t, path, true, 3)
		limit := unix.Rlimit{Cur: uint64(len(data) + room), Max: before.Max}
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
		err := j.Put(4, outcome(4))
		again := j.Put(5, outcome(5))
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(err, unix.EFBIG) || !strings.Contains(err.Error(), path) {
			t.Fatalf("with room for %d bytes: %v", room, err)
		}
		if again == nil {
			t.Error("it goes on after it failed")
		}
		closed(t, j)
		if got, _ := os.ReadFile(path); string(got) != string(data) {
			t.Fatalf("with room for %d bytes the file is\n%s", room, got)
		}
	}
}

// TestOtherPoints: a file whose points are others is no use, whatever its first line says.
func TestOtherPoints(t *testing.T) {
	path, _ := folderOf(t, 1)
	keys := slices.Clone(headerKeys)
	keys[0] = "--seed 7"
	if _, err := OpenFolder(path, header, keys, true); err == nil ||
		err.Error() != "resume: combination 0 was --seed 0, and is --seed 7" {
		t.Errorf("%v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("0 {}\n"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, entries, whole, err := parse("x", data)
		if whole > len(data) || err != nil && entries != nil {
			t.Errorf("%d entries up to %d, %v", len(entries), whole, err)
		}
		for _, e := range entries {
			if e.Point < 0 || e.Point >= h.Points {
				t.Errorf("point %d of %d", e.Point, h.Points)
			}
		}
	})
}
