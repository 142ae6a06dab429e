// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestServeUnix: at a socket the server's own user may do everything without a token; nobody outside of its group may
// open it; a second server is refused, and one that was killed leaves a socket that is taken over.
func TestServeUnix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	dead, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	dead.Close()
	s := serve(t, "--listen", "unix:"+path)
	if s.url != "unix:"+path {
		t.Fatal(s.url)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("%v %v, want 0660", info.Mode(), err)
	}
	awaitReady(t, func() bool {
		return textpoke(t, "ctl", "--server", s.url, "enable", "--client", "any").code == exitDone
	})
	if r := textpoke(t, "serve", "--data", t.TempDir(), "--records", "gen:n=10", "--listen", "unix:"+path); r.code == exitDone ||
		!strings.Contains(r.err, "another server answers there") {
		t.Errorf("%d %s", r.code, r.err)
	}
	for _, bad := range [][]string{{"serve", "--data", t.TempDir(), "--listen", "unix:"}, {"ctl", "--server", "unix:" + path + "x", "status"}} {
		if r := textpoke(t, bad...); r.code == exitDone || strings.Count(r.err, "\n") != 1 || !strings.Contains(r.err, "unix:") {
			t.Errorf("%v: %d %q", bad, r.code, r.err)
		}
	}
	if code, log := s.stop(); code != exitDone {
		t.Errorf("%d %s", code, log)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket is still there")
	}
}

// TestBooted: a server that finds another boot than the last one's says so, once.
func TestBooted(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "boot_id")
	core, seen := observer.New(zap.WarnLevel)
	for i, c := range []struct {
		id   string
		told int
	}{{"one", 0}, {"one", 0}, {"two", 1}, {"two", 1}, {"one", 2}} {
		if err := os.WriteFile(file, []byte(c.id), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := booted(file, dir, zap.New(core)); err != nil || seen.Len() != c.told {
			t.Errorf("start %d: %v, told %d times, want %d", i, err, seen.Len(), c.told)
		}
	}
}
