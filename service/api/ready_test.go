// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strings"
	"syscall"
	"testing"
)

// TestReadyIsTrue: /readyz follows the journal, a full disk is 507, and /healthz
// tells when only a new start helps.
func TestReadyIsTrue(t *testing.T) {
	w := ready(t)
	store := w.store
	ask := func() reply { return w.do("POST", "/v1/updates", request("a", true, `,"filter":["*"]`)) }
	health := func(path, want string, status int) {
		t.Helper()
		if got := is[Health](w.do("GET", path, nil), status); got.Status != want || strings.Contains(got.Reason, "/") {
			t.Errorf("%s: %+v, want %s", path, got, want)
		}
	}
	gauge := func(want string) {
		t.Helper()
		if text := w.do("GET", "/metrics", nil).body; !strings.Contains(text, "\ntextpoke_ready "+want+"\n") {
			t.Errorf("textpoke_ready is not %s", want)
		}
	}
	is[Update](ask(), 202)
	health("/readyz", "ok", 200)
	gauge("1")

	store.Fault(func() error { return syscall.ENOSPC })
	if p := is[Problem](ask(), 507); !strings.Contains(p.Detail, "full") {
		t.Errorf("%+v", p)
	}
	health("/readyz", "unable", 503)
	health("/healthz", "ok", 200)
	gauge("0")

	store.Fault(nil)
	if err := w.service.Look(t.Context()); err != nil {
		t.Error(err)
	}
	health("/readyz", "ok", 200)
	is[Update](ask(), 202)

	store.Fault(func() error { return syscall.EIO })
	is[Problem](ask(), 503)
	health("/readyz", "broken", 503)
	health("/healthz", "broken", 503)
}
