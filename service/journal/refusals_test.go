// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestLockIsWhole: a directory is locked with both its locks or with none, and one that is not locked holds no file
// open.
func TestLockIsWhole(t *testing.T) {
	path := t.TempDir()
	first, second := &directory{path: path}, &directory{path: path}
	lock := func(d *directory, want string) {
		t.Helper()
		err := d.Lock()
		if fmt.Sprint(err) != want || len(d.locks) != map[bool]int{true: 2}[err == nil] {
			t.Errorf("%v with %d locks, want %s", err, len(d.locks), want)
		}
	}
	lock(first, "<nil>")
	lock(second, path+": another server has it open; stop that one, or choose another directory")
	if err := first.Unlock(); err != nil || first.locks != nil {
		t.Errorf("%v, %d locks", err, len(first.locks))
	}
	lock(second, "<nil>")
	if err := second.Unlock(); err != nil {
		t.Error(err)
	}
	name := filepath.Join(path, LockName)
	if err := errors.Join(os.Remove(name), os.Mkdir(name, 0o700)); err != nil {
		t.Fatal(err)
	}
	lock(first, "open "+name+": is a directory")
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	lock(second, "<nil>") // the first one has kept nothing
	if err := second.Unlock(); err != nil {
		t.Error(err)
	}
	gone := &directory{path: filepath.Join(path, "gone")}
	lock(gone, "open "+gone.path+": no such file or directory")
	if err := gone.Sync(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// TestSameFile: the name of an open file leads to it, to another one, or nowhere; what the file system says else is
// told
// as it is.
func TestSameFile(t *testing.T) {
	d := &directory{path: t.TempDir()}
	f, err := d.Create("log")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := f.WriteAt([]byte("text"), 3); n != 4 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := f.Size(); n != 7 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	broken := func(why string) string {
		return d.at("log") + ": " + ErrBroken.Error() + "; its contents are not damaged (" + why + ")"
	}
	same := func(want string) {
		t.Helper()
		if err := d.Same("log", f); fmt.Sprint(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	same("<nil>")
	if err := d.Rename("log", "other"); err != nil {
		t.Fatal(err)
	}
	same(broken("the file or its directory was removed"))
	if err := os.Symlink("log", d.at("log")); err != nil {
		t.Fatal(err)
	}
	same("stat " + d.at("log") + ": too many levels of symbolic links")
	if err := os.Remove(d.at("log")); err != nil {
		t.Fatal(err)
	}
	if g, err := d.Create("log"); err != nil || g.Close() != nil {
		t.Fatal(err)
	}
	same(broken("another file has taken its place"))
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := f.Size(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the size of a closed file: %v", err)
	}
	if names, err := d.List(); err != nil || !slices.Equal(names, []string{"log", "other"}) {
		t.Errorf("%q, %v", names, err)
	}
}

// TestKindsOfTrouble: each error of the system has its kind, under whatever wrapping; any other has the file's name,
// and
// what says what it means already is left as it is.
func TestKindsOfTrouble(t *testing.T) {
	for errno, kind := range map[syscall.Errno]error{
		syscall.ENOSPC: ErrFull, syscall.EDQUOT: ErrFull, syscall.EROFS: ErrReadOnly, syscall.EACCES: ErrPermission,
		syscall.EPERM: ErrPermission, syscall.EMFILE: ErrHandles, syscall.ENFILE: ErrHandles, syscall.EIO: ErrBroken,
		syscall.ESTALE: ErrBroken, syscall.EINTR: nil, syscall.ENOENT: nil,
	} {
		err := fmt.Errorf("first: %w", &fs.PathError{Op: "write", Path: "x", Err: errno})
		got := explain("file", err)
		var trouble *TroubleError
		switch {
		case kind == nil:
			if errors.As(got, &trouble) || got.Error() != "file: "+err.Error() || !errors.Is(got, errno) || Passing(got) {
				t.Errorf("%v: %v", errno, got)
			}
		case !errors.As(got, &trouble) || *trouble != (TroubleError{"file", kind, err}) || !errors.Is(got, errno):
			t.Errorf("%v: %v, want %v", errno, got, kind)
		case got.Error() != fmt.Sprintf("file: %v; its contents are not damaged (%v)", kind, err):
			t.Errorf("%v: %s", errno, got)
		case Passing(got) != (kind != ErrBroken):
			t.Errorf("%v passes: %v", errno, Passing(got))
		}
	}
	for _, err := range []error{nil, &TroubleError{"a", ErrFull, syscall.EIO}, &DamagedError{"a", "b"}, &ForeignError{"a",
		"b"},
		&LockedError{"a"}} {
		if got := explain("file", err); got != err {
			t.Errorf("%v has become %v", err, got)
		}
	}
	for err, want := range map[error]string{
		&LockedError{"a"}: "a: another server has it open; stop that one, or choose another directory",
		&DamagedError{"a", "b"}: "a: damaged: b; put a copy of the whole directory back, or move it away to begin with " +
			"nothing",
		&ForeignError{"a", "b"}: "a: b; choose another directory, or move the file away to begin with nothing",
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
}

// TestCopiesRefused: why no backup is made, of which nothing is left then, and why none is taken.
func TestCopiesRefused(t *testing.T) {
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "backup")
	s := openIn(t, dir)
	furnish(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	damage := func(dir string) string {
		change(t, logOf(t, dir), func(b []byte) []byte { b[strings.LastIndex(string(b), string(Live))] ^= 0x10; return b })
		return dir
	}
	empty, older := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(older, oldName), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	lacking := image(t, dir)
	if err := os.Remove(filepath.Join(lacking, runPrefix+"1-0")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, want string }{
		{empty, empty + ": " + empty + ": there is no journal in it"},
		{older, filepath.Join(older, oldName) + ": it is of an earlier version: start a server on it first; choose another"},
		{lacking, lacking + ": open " + filepath.Join(lacking, runPrefix+"1-0") + ": no such file or directory"},
		{dir, "<nil>"},
	} {
		err := Backup(t.Context(), c.from, to)
		if !strings.HasPrefix(fmt.Sprint(err), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
		left, globbed := filepath.Glob(to + "*")
		if there := c.from == dir; globbed != nil || len(left) != map[bool]int{true: 1}[there] {
			t.Errorf("%s: %q is left", c.want, left)
		}
	}
	if err := Backup(t.Context(), damage(image(t, dir)), to+"2"); err == nil {
		t.Error("a backup of what is damaged")
	}
	if err := Backup(t.Context(), dir, to); fmt.Sprint(err) != to+": it is there already: want the name of a new file" {
		t.Error(err)
	}
	restored := filepath.Join(t.TempDir(), "restored")
	if err := Restore(t.Context(), to, restored); err != nil {
		t.Fatal(err)
	}
	for from, want := range map[string]string{
		logOf(t, dir): ": it is a part of a directory: want what textpoke backup wrote",
		to + "-none":  "no such file or directory",
		to: restored + ": " + filepath.Join(restored, segmentName(1)) +
			" is there already: want a directory without a journal",
	} {
		if err := Restore(t.Context(), from, restored); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if held(t, dir) == "" {
		t.Error("nothing is left")
	}
}

// TestVerifyTells: each part of a directory, with how much is in it, and what is wrong with it.
func TestVerifyTells(t *testing.T) {
	dir := t.TempDir()
	s := openAs(t, dir, table("t", "a", "b", "c"))
	for i := range 3 {
		u := accept(t, s, order("client", "", i))
		if u.State = Live; i < 2 {
			if err := s.Answer([]Update{u}, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	r := began(t, s, "jump-label", someTime)
	if err := s.EndRun(r.ID, Done, "", someTime, []File{{"a.csv", "text/csv", []byte("1")}, {"b.csv", "text/csv",
		[]byte("2")}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// A beginning; three accepted, two answered; a run that was added, began and ended.
	whole := []Part{{"log", 9, ""}, {"head", 9, ""}, {"updates", 3, ""}, {"wants", 1, ""}, {"runs", 1, ""}, {"files", 2,
		""},
		{"names", 3, ""}}
	for name, c := range map[string]struct {
		harm func(dir string) error
		part int
		want string
	}{
		"whole":   {func(string) error { return nil }, 0, ""},
		"no head": {func(dir string) error { return os.Remove(filepath.Join(dir, headName)) }, 0, ""},
		"a file is gone": {func(dir string) error { return os.Remove(filepath.Join(dir, runPrefix+"1-1")) }, 5,
			"b.csv, of run 1, is gone"},
		"a file is another": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, runPrefix+"1-0"), nil,
				0o600)
		}, 5,
			runPrefix + "1-0: damaged: it is not as it was written; put a copy of the whole directory back, or " +
				"move it away to begin with nothing"},
	} {
		left := image(t, dir)
		if err := c.harm(left); err != nil {
			t.Fatal(err)
		}
		want := slices.Clone(whole)
		want[c.part].Wrong = c.want
		got, err := Verify(t.Context(), left)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, d)
		}
	}
	empty := t.TempDir()
	if _, err := Verify(t.Context(), empty); fmt.Sprint(err) != empty+": there is no journal of this "+
		"version in it: start a server on it first; choose another directory, or move the file away to begin with nothing" {
		t.Error(err)
	}
	none := filepath.Join(empty, "none")
	if _, err := Verify(t.Context(), none); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := os.Stat(none); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a look has made it: %v", err)
	}
}

// TestRunsThatAreNotThere: runs and files are named that are not there; a run that was put back waits with the reason,
// and one that ended in between twice has failed.
func TestRunsThatAreNotThere(t *testing.T) {
	s := openIn(t, t.TempDir())
	ctx := t.Context()
	hears := 0
	s.OnCommit(func(time.Duration) { hears++ })
	r := began(t, s, "jump-label", someTime)
	if err := s.EndRun(r.ID, Done, "", someTime, []File{{"b", "text/b", []byte("1")}, {"a", "text/a",
		[]byte("2")}}); err != nil {
		t.Fatal(err)
	}
	if hears != 3 { // added, begun, ended
		t.Errorf("it hears of %d transactions, want 3", hears)
	}
	said := func(err error, want string) {
		t.Helper()
		if !errors.Is(err, ErrNotFound) || err.Error() != want+": "+ErrNotFound.Error() {
			t.Errorf("%v, want %s", err, want)
		}
	}
	_, _, err := s.Run(ctx, 2)
	said(err, "run 2")
	_, err = s.File(ctx, 2, "a")
	said(err, "run 2")
	_, err = s.File(ctx, 1, "c")
	said(err, `file "c" of run 1`)
	said(s.BeginRun(1), "run 1 has ended")
	said(s.PutBack(2), "run 2 has ended")
	_, list, err := s.Run(ctx, 1)
	if d := cmp.Diff([]File{{Name: "a", Type: "text/a"}, {Name: "b", Type: "text/b"}}, list); d != "" || err != nil {
		t.Errorf("%v %s", err, d)
	}
	for name, text := range map[string]string{"a": "2", "b": "1"} {
		if f, err := s.File(ctx, 1, name); err != nil || string(f.Data) != text || f.Type != "text/"+name || f.Name != name {
			t.Errorf("%+v, %v", f, err)
		}
	}
	again := began(t, s, "cut-off", someTime)
	if err := s.PutBack(again.ID); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{stoppedFirst, endedFirst, "the server ended twice while it ran"} {
		waiting, err := s.Resume(ctx, someTime)
		got, _, found := s.Run(ctx, again.ID)
		failed := want != stoppedFirst && want != endedFirst
		if err != nil || found != nil || got.Error != want || len(waiting) != map[bool]int{false: 1}[failed] ||
			got.State != map[bool]State{false: Queued, true: Failed}[failed] {
			t.Errorf("%+v, %d wait, %v, want %s", got, len(waiting), err, want)
		}
		if !failed {
			if err := s.BeginRun(again.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := s.Size(); n != s.log.end || n == 0 {
		t.Errorf("%d bytes, want %d", n, s.log.end)
	}
}

// TestMissingNames: twenty records are named that another table lacks, and of more how many.
func TestMissingNames(t *testing.T) {
	var names []string
	for i := range 22 {
		names = append(names, fmt.Sprint("f", i))
	}
	for n, want := range map[int]string{1: "f0", 2: "f0, f1", 20: strings.Join(names[:20], ", "),
		21: strings.Join(names[:20], ", ") + " and 1 more", 22: strings.Join(names[:20], ", ") + " and 2 more"} {
		if got := missing(slices.Clone(names[:n]), Identity{Records: "new"}); got != "the records new do not have "+want {
			t.Errorf("%d: %q", n, got)
		}
	}
	list, err := packNames(names)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := unpackNames(list); err != nil || !slices.Equal(got, names) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := unpackNames(list[:len(list)/2]); err == nil {
		t.Error("half of the names are taken")
	}
}
