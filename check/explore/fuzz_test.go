// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzTrace: a trace that is read can be followed, or is refused; nothing panics,
// on either engine.
func FuzzTrace(f *testing.F) {
	s := setup(f, "x86_64", "native", "drop-sync-1", 2, 1)
	s.Preempt = true
	m, err := s.Model()
	if err != nil {
		f.Fatal(err)
	}
	r, err := Explore(f.Context(), m, Options{})
	if err != nil {
		f.Fatal(err)
	}
	r.Trace.Model = []string{"--arch", "x86_64"}
	path := filepath.Join(f.TempDir(), "t.json")
	if err := r.Trace.Save(path); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(`{"format":1,"model":["x"],"steps":[` +
		`{"do":"u0.7"},{"do":"b3"},{"do":"c255:1,2"},{"do":"d0.9"},{"do":"t1"},{"do":"k1"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		trace, err := parseTrace(b)
		if err != nil {
			return
		}
		n, err := Conform(m, trace)
		if err == nil && n != len(trace.Steps) {
			t.Errorf("%d of %d steps conform, and no error", n, len(trace.Steps))
		}
		if len(trace.Steps) < 200 {
			_, _ = Replay(m, trace)
		}
	})
}

// FuzzCheckpoint: what is no checkpoint is refused.
func FuzzCheckpoint(f *testing.F) {
	s := setup(f, "x86_64", "native", "", 2, 1)
	m, err := s.Model()
	if err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(f.TempDir(), "checkpoint")
	explore(f, s, Options{Checkpoint: path, LimitStates: 100})
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	states := explore(f, s, Options{}).States
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "checkpoint")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Explore(t.Context(), m, Options{Checkpoint: path, Resume: true})
		if err == nil && (r.States != states || r.Verdict != Safe) {
			t.Errorf("went on from a damaged checkpoint: %+v", r)
		}
	})
}
