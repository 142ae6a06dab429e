// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var long = flag.Bool("long", false, "run slow tests")

func TestMain(m *testing.M) {
	flag.Parse()
	if !*long { // every step of the model writes to the disk
		if err := flag.Set("rapid.checks", "8"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

var someone = Identity{Records: "table", Hash: "abc", Count: 100}

var someTime = time.Unix(1, 0).UTC()

// openIn opens the journal of a directory, and closes it in the end.
func openIn(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(t.Context(), dir, someone)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // a test may have closed it
	return s
}

// order is an update of a client, with a key or none.
func order(client, key string, which ...int) Order {
	return Order{Which: which, Digest: "d", Update: Update{
		Client: client, Key: key, Ops: "o", Enable: true, Records: len(which), Submitted: time.Unix(1, 0).UTC(),
	}}
}

// accept has an update accepted that is new.
func accept(t testing.TB, s *Store, o Order) Update {
	t.Helper()
	entered := 0
	u, err := s.Accept(o, func(Update) { entered++ })
	if err != nil || entered != 1 {
		t.Fatalf("Accept: %v, entered %d times", err, entered)
	}
	return u
}

// image is a copy of a directory's files: what a process leaves that is killed now. The head is
// copied first: it may be older than the log.
func image(t testing.TB, dir string) string {
	t.Helper()
	to := t.TempDir()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b os.DirEntry) int { return strings.Compare(b.Name(), a.Name()) })
	for _, e := range all {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, e.Name()), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// logOf is the file of a directory's last segment.
func logOf(t testing.TB, dir string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, segmentPrefix+"*"+segmentSuffix))
	if err != nil || len(all) == 0 {
		t.Fatalf("%q, %v", all, err)
	}
	return slices.Max(all)
}

// change has a file of a directory changed.
func change(t testing.TB, file string, do func(b []byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, do(b), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// began has a run begin at once.
func began(t testing.TB, s *Store, name string, at time.Time) Run {
	t.Helper()
	r, err := s.AddRun(name, "", at)
	if err == nil {
		err = s.BeginRun(r.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.State = Running
	return r
}
