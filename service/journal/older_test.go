// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/internal/files"
)

// TestUpgrade: a file of version 1, as an earlier program has left it, is read, and goes
// on.
func TestUpgrade(t *testing.T) {
	needsSQLite(t)
	dir := t.TempDir()
	b, err := os.ReadFile("testdata/version1.db")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, oldName), b, 0o600); err != nil {
		t.Fatal(err)
	}
	fresh := openIn(t, t.TempDir())
	furnish(t, fresh)
	want, err := told(t, fresh)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s := openIn(t, dir)
		closeWith(t, s, want)
	}
	s := openIn(t, dir)
	if u := accept(t, s, order("a", "", 1)); u.ID != 13 {
		t.Errorf("the next update is %d, want 13", u.ID)
	}
}

func needsSQLite(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("sqlite3"); err != nil {
		t.Skipf("skipped: %v", err)
	}
}

// TestUpgradeWithoutSQLite: without the program that reads it, a directory of an earlier version is
// refused in one line, and stays as it is; so is a backup.
func TestUpgradeWithoutSQLite(t *testing.T) {
	dir := t.TempDir()
	if err := files.Copy("testdata/version1.db", filepath.Join(dir, oldName), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir())
	const want = "is of an earlier version, and the program sqlite3, which reads it, is not installed"
	if _, err := Open(t.Context(), dir, someone); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v", err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, oldName)); err != nil || len(b) == 0 {
		t.Errorf("%d bytes are left, %v", len(b), err)
	}
	if err := Restore(t.Context(), "testdata/version3.backup", filepath.Join(t.TempDir(), "to")); err == nil ||
		!strings.HasSuffix(err.Error(), want) {
		t.Errorf("a backup: %v", err)
	}
}
