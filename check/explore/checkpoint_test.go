// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckpoint cuts a search short again and again; what it finds in the end is
// what it finds in one go.
func TestCheckpoint(t *testing.T) {
	for _, exact := range []bool{false, true} {
		for _, mutation := range []string{"", "no-grace-period"} {
			s := setup(t, "x86_64", "native", mutation, 3, 2)
			want := explore(t, s, Options{Exact: exact})
			o := Options{Exact: exact, Checkpoint: filepath.Join(t.TempDir(), "checkpoint")}
			for o.LimitStates = 1000; ; o.LimitStates += 7000 {
				r := explore(t, s, o)
				o.Resume = true
				if r.Verdict == Incomplete {
					continue
				}
				if r.Verdict != want.Verdict || r.States != want.States || r.Transitions != want.Transitions ||
					r.Depth != want.Depth {
					t.Errorf("exact %t, mutation %q: %s %d %d %d, want %s %d %d %d", exact, mutation,
						r.Verdict, r.Depth, r.States, r.Transitions, want.Verdict, want.Depth, want.States, want.Transitions)
				}
				break
			}
		}
	}
}

// TestCheckpointInTheMiddle halts a search inside of a level.
func TestCheckpointInTheMiddle(t *testing.T) {
	s := setup(t, "x86_64", "native", "", 4, 1)
	want := explore(t, s, Options{})
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "checkpoint")
	first, err := newSearch(m, Options{Checkpoint: path, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	for range 60 {
		first.level()
		first.queue, first.next = first.next, nil
		first.depth.Add(1)
	}
	if len(first.queue) < 2 {
		t.Fatalf("a level of %d slabs has no middle", len(first.queue))
	}
	w := newWorker(first)
	w.slab(first.queue[0])
	w.flush()
	first.queue, first.next = first.queue[1:], w.out
	if err := first.save(); err != nil {
		t.Fatal(err)
	}
	r, err := Explore(context.Background(), m, Options{Checkpoint: path, Resume: true})
	if err != nil {
		t.Fatal(err)
	}
	if r.States != want.States || r.Transitions != want.Transitions || r.Depth != want.Depth || r.Verdict != Safe {
		t.Errorf("%+v, want %+v", r, want)
	}
}

// TestWrongCheckpoints: a damaged file, or one of another search, is refused with
// its name, and nothing is searched.
func TestWrongCheckpoints(t *testing.T) {
	s := setup(t, "x86_64", "native", "", 3, 2)
	path := filepath.Join(t.TempDir(), "checkpoint")
	explore(t, s, Options{Checkpoint: path, LimitStates: 2000})
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := setup(t, "x86_64", "native", "drop-sync-1", 3, 2)
	huge := append([]byte(nil), whole...)
	at := strings.IndexByte(string(whole), '\n') + 1
	for i := range 8 {
		huge[at+i] = 0xff
	}
	flipped := append([]byte(nil), whole...)
	flipped[len(flipped)/2] ^= 4
	for name, c := range map[string]struct {
		s    Setup
		file []byte
		want string
	}{
		"flipped":   {s, flipped, "damaged"},
		"no sum":    {s, whole[:len(whole)-32], "damaged"},
		"short":     {s, whole[:len(whole)/2], "damaged"},
		"long":      {s, append(append([]byte(nil), whole...), 0), "damaged"},
		"huge":      {s, huge, "damaged"},
		"empty":     {s, nil, "no checkpoint"},
		"noise":     {s, []byte("{}\n"), "no checkpoint"},
		"no end":    {s, []byte(strings.Repeat("x", 1<<21)), "no checkpoint"},
		"of others": {other, whole, "another search"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, c.file, 0o600); err != nil {
				t.Fatal(err)
			}
			m, err := c.s.Model()
			if err != nil {
				t.Fatal(err)
			}
			_, err = Explore(context.Background(), m, Options{Checkpoint: path, Resume: true})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("%v, want %s with %q", err, path, c.want)
			}
		})
	}
}

// TestCheckpointAtTheEndOfALevel: a search that is halted when it has just looked
// at the last state of a level has not looked at the next one.
func TestCheckpointAtTheEndOfALevel(t *testing.T) {
	for _, mutation := range []string{"", "no-grace-period"} {
		s := setup(t, "x86_64", "native", mutation, 2, 1)
		want := explore(t, s, Options{})
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "checkpoint")
		first, err := newSearch(m, Options{Checkpoint: path})
		if err != nil {
			t.Fatal(err)
		}
		first.level()
		if len(first.queue) > 0 || len(first.next) == 0 {
			t.Fatalf("%d slabs of the level left, %d of the next", len(first.queue), len(first.next))
		}
		if err := first.save(); err != nil {
			t.Fatal(err)
		}
		got := explore(t, s, Options{Checkpoint: path, Resume: true})
		if got.Verdict != want.Verdict || got.States != want.States || got.Depth != want.Depth {
			t.Errorf("mutation %q: %s, %d states, depth %d; want %s, %d, %d", mutation, got.Verdict, got.States, got.Depth,
				want.Verdict, want.States, want.Depth)
		}
	}
}

// TestPlacesOfCheckpoints: what cannot hold a checkpoint is refused before anything is searched, by its name.
func TestPlacesOfCheckpoints(t *testing.T) {
	m, err := new(setup(t, "x86_64", "word", "", 2, 1)).Model()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for path, want := range map[string]string{
		dir:                           "checkpoint " + dir + ": not a file",
		filepath.Join(dir, "no", "x"): "checkpoint " + filepath.Join(dir, "no", "x") + ": ",
	} {
		if _, err := Explore(t.Context(), m, Options{Checkpoint: path}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	path := filepath.Join(dir, "x")
	s, err := newSearch(m, Options{Checkpoint: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.save(); err == nil || !strings.HasPrefix(err.Error(), "checkpoint "+path+": ") {
		t.Errorf("%v", err)
	}
	if _, err := Explore(t.Context(), m, Options{Checkpoint: path + ".not", Resume: true}); err == nil ||
		!strings.HasPrefix(err.Error(), "checkpoint: ") {
		t.Errorf("%v", err)
	}
}
