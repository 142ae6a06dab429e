// SPDX-License-Identifier: Apache-2.0

package results

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func openDir(t *testing.T) *Dir {
	t.Helper()
	d, err := OpenDir(filepath.Join(t.TempDir(), "deep", "out"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// contents lists the directory, hidden files too.
func contents(t *testing.T, d *Dir) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(d.path)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(d.path, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got[e.Name()] = string(b)
	}
	return got
}

func checkContents(t *testing.T, d *Dir, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, contents(t, d)); diff != "" {
		t.Errorf("directory (-want +got):\n%s", diff)
	}
}

func put(text string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
}

func TestWriteIsAllOrNothing(t *testing.T) {
	d := openDir(t)
	if err := d.Write("a.csv", put("old")); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a.csv": "old"}
	checkContents(t, d, want)

	failed := errors.New("cancelled")
	for _, name := range []string{"a.csv", "b.csv"} {
		err := d.Write(name, func(w io.Writer) error {
			return errors.Join(put("half")(w), failed)
		})
		if !errors.Is(err, failed) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		checkContents(t, d, want)
	}
	func() {
		defer func() { _ = recover() }()
		_ = d.Write("a.csv", func(w io.Writer) error { _ = put("half")(w); panic("boom") })
	}()
	checkContents(t, d, want)

	if err := d.Write("a.csv", put("new")); err != nil {
		t.Fatal(err)
	}
	checkContents(t, d, map[string]string{"a.csv": "new"})
}

func TestFileAppearsOnCommit(t *testing.T) {
	d := openDir(t)
	f, err := d.Create("runs.csv")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f, "row\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(d.path, "runs.csv")); !os.IsNotExist(err) {
		t.Errorf("the file is visible before Commit: %v", err)
	}
	// Elsewhere it could be on another disk, where a rename cannot bring it back.
	if entries := contents(t, d); len(entries) != 1 {
		t.Errorf("the temporary file is not in the directory: %v", entries)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	f.Abort()
	checkContents(t, d, map[string]string{"runs.csv": "row\n"})

	f, err = d.Create("runs.csv")
	if err != nil {
		t.Fatal(err)
	}
	f.Abort()
	f.Abort()
	checkContents(t, d, map[string]string{"runs.csv": "row\n"})
}

func TestCommitFailureLeavesNothing(t *testing.T) {
	d := openDir(t)
	f, err := d.Create("x.csv")
	if err != nil {
		t.Fatal(err)
	}
	// A directory in the file's place makes the rename fail.
	if err := os.Mkdir(filepath.Join(d.path, "x.csv"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err == nil {
		t.Fatal("Commit replaced a directory")
	}
	entries, _ := os.ReadDir(d.path)
	if len(entries) != 1 {
		t.Errorf("the temporary file stayed: %v", entries)
	}
	if _, err := d.Create("x.csv"); err == nil {
		t.Error("Create took the name of a directory")
	}
}

func TestCreateRefusesPaths(t *testing.T) {
	d := openDir(t)
	for _, name := range []string{"", ".", "..", "../x", "a/b", ".hidden"} {
		if f, err := d.Create(name); err == nil {
			f.Abort()
			t.Errorf("Create(%q) worked", name)
		}
	}
	checkContents(t, d, map[string]string{})
}

func TestOpenDirErrors(t *testing.T) {
	base := t.TempDir()
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(base, "closed")
	if err := os.Mkdir(closed, 0o555); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"":                                 "name is empty",
		file:                               "it is a file",
		filepath.Join(file, "below"):       "not a directory",
		"/proc/textpoke-cannot-be-here":    "/proc/textpoke-cannot-be-here",
		closed:                             "cannot create files",
		filepath.Join(base, "nul\x00byte"): "invalid argument",
	} {
		if path == closed && os.Getuid() == 0 {
			continue // root may write anywhere
		}
		_, err := OpenDir(path)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("OpenDir(%q): %v, want one line with %q", path, err, want)
		}
	}
}

func TestWriteCSVFile(t *testing.T) {
	d := openDir(t)
	tab := twoColumns()
	if err := tab.Add("1", Empty); err != nil {
		t.Fatal(err)
	}
	// printf 'a,b_ns\n1,\n' | sha256sum
	const want = "4875a42c70acf3e9db132dd392d24a6754c2900fda200c0f24adb984cd3462ca"
	if sum, err := d.WriteCSV(tab); err != nil || sum != want {
		t.Fatal(sum, err)
	}
	checkContents(t, d, map[string]string{"two.csv": "a,b_ns\n1,\n"})
	tab.Rows[0] = tab.Rows[0][:1]
	if _, err := d.WriteCSV(tab); !errors.Is(err, ErrRow) {
		t.Errorf("a bad table: %v", err)
	}
	checkContents(t, d, map[string]string{"two.csv": "a,b_ns\n1,\n"})
}

func TestManifest(t *testing.T) {
	d := openDir(t)
	input := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(input, []byte("abc"), 0o666); err != nil {
		t.Fatal(err)
	}
	seed := uint64(1<<64 - 1)
	start := time.Date(2024, 2, 3, 4, 5, 6, 789, time.FixedZone("CET", 3600))
	m := Manifest{Version: "v1", Revision: "abcdef", Args: []string{"textpoke", "plan", "--buffer", "<256>"},
		Seed: &seed, Calibration: "c", Started: start, Finished: start.Add(time.Minute), Complete: true}
	if err := m.AddInput("built-in", strings.NewReader("")); err != nil {
		t.Fatal(err)
	}
	if err := m.AddInputFile(input); err != nil {
		t.Fatal(err)
	}
	if err := m.AddInputFile(input + "-missing"); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("a missing input: %v", err)
	}
	m.AddTable(Table{Name: "two", Columns: []Column{{Name: "a", Doc: "A letter."}}}, "")
	if err := d.WriteManifest(m); err != nil {
		t.Fatal(err)
	}
	text := contents(t, d)[ManifestName]
	for _, want := range []string{
		`"started": "2024-02-03T03:05:06Z"`, `"finished": "2024-02-03T03:06:06Z"`, `"seed": 18446744073709551615`,
		`"complete": true`, `"<256>"`, `"doc": "A letter."`,
		// The known sums of "" and "abc".
		`"built-in": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"`,
		`"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the manifest lacks %s:\n%s", want, text)
		}
	}
	var back Manifest
	if err := json.Unmarshal([]byte(text), &back); err != nil {
		t.Fatal(err)
	}
	m.Started, m.Finished = m.Started.UTC().Truncate(time.Second), m.Finished.UTC().Truncate(time.Second)
	if diff := cmp.Diff(m, back); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

func TestEmptyManifestHasListsNotNulls(t *testing.T) {
	d := openDir(t)
	if err := d.WriteManifest(Manifest{}); err != nil {
		t.Fatal(err)
	}
	text := contents(t, d)[ManifestName]
	if strings.Count(text, "null") != 1 || !strings.Contains(text, `"seed": null`) ||
		!strings.Contains(text, `"complete": false`) {
		t.Errorf("only the seed may be null:\n%s", text)
	}
}
