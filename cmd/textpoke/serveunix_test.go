// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/textpoke/textpoke/kernels/tracefs"
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
	data := filepath.Join(t.TempDir(), "data")
	if r := textpoke(t, "serve", "--data", data, "--records", "gen:n=10", "--listen", "unix:"+path); r.code == exitDone ||
		!strings.Contains(r.err, "another server answers there") {
		t.Errorf("%d %s", r.code, r.err)
	}
	if _, err := os.Stat(data); err == nil {
		t.Error("the server that was refused has left its directory")
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

// TestBooted: a server that finds another boot than the last one's says so, once. An instance that traces is refused unless a
// server with the same directory has served it since the boot, also by one that was refused before.
func TestBooted(t *testing.T) {
	dir := t.TempDir()
	mount, data, file := filepath.Join(dir, "tracing"), filepath.Join(dir, "data"), filepath.Join(dir, "boot_id")
	core, seen := observer.New(zap.WarnLevel)
	for i, c := range []struct {
		id, instance, tracer, event string
		told                        int
		refused                     string
	}{
		{"one", "mine", "nop", "", 0, ""},
		{"one", "mine", "function", "", 0, ""},
		{"one", "other", "function", "", 0, "instance other traces"},
		{"one", "other", "function", "", 0, "instance other traces"},
		{"one", "other", "nop", "sched:sched_switch", 0, "instance other traces"},
		{"one", "other", "nop", "", 0, ""},
		{"two", "other", "wakeup", "", 0, "instance other traces"},
		{"two", "other", "nop", "", 1, ""},
		{"two", "other", "function", "", 1, ""},
		{"one", "other", "", "", 2, ""},
	} {
		in := filepath.Join(mount, "instances", c.instance)
		err := errors.Join(os.RemoveAll(mount), os.MkdirAll(in, 0o700), os.MkdirAll(data, 0o700),
			os.WriteFile(file, []byte(c.id+"\n"), 0o600))
		if c.tracer != "" {
			err = errors.Join(err, os.WriteFile(filepath.Join(in, "current_tracer"), []byte(c.tracer+"\n"), 0o600),
				os.WriteFile(filepath.Join(in, "set_event"), []byte(c.event+"\n"), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
		note, err := (&serveFlags{on: onKernel, data: data, instance: c.instance}).boot(file, tracefs.At(mount), zap.New(core))
		if err == nil {
			err = note.write()
		}
		if (err != nil) != (c.refused != "") || err != nil && !strings.HasPrefix(err.Error(), c.refused) || seen.Len() != c.told {
			t.Errorf("start %d: %v, told %d times, want %q and %d", i, err, seen.Len(), c.refused, c.told)
		}
	}
}
