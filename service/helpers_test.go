// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"flag"
	"testing"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/service/journal"
	"github.com/textpoke/textpoke/sim"
)

var long = flag.Bool("long", false, "run slow tests")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small is a small machine.
func small(t testing.TB) sim.Config {
	t.Helper()
	arch, err := cpus.ParseArch("x86_64")
	if err != nil {
		t.Fatal(err)
	}
	roles, err := cpus.ParseRoles("busy=2,idle=1")
	if err != nil {
		t.Fatal(err)
	}
	table, err := records.Open(t.Context(), "gen:n=100,groups=4", records.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return sim.Config{Arch: arch, Protocol: "breakpoint", Table: table, Roles: roles, Buffer: sched.Buffer{Slots: 256}, Seed: 1}
}

// world is a directory that services are started in, one after the other.
type world struct {
	Config
	Sim   sim.Config
	Fault func(st poke.Step, patch int32) error // of the machine; see Simulated
	dir   string
}

func newWorld(t testing.TB) *world {
	return &world{Config: Config{Log: zap.NewNop()}, Sim: small(t), dir: t.TempDir()}
}

// with is what a service is made of that stands on a journal.
func (w *world) with(st *journal.Store) Config {
	c := w.Config
	c.Store, c.Table, c.Machine = st, w.Sim.Table, Simulated(w.Sim, w.Fault)
	return c
}

// start starts a service; kill ends it as if the process had ended, but for its
// goroutines.
func (w *world) start(t testing.TB) (s *Service, kill func()) {
	t.Helper()
	st, err := journal.Open(t.Context(), w.dir, Identity(w.Sim.Table))
	if err != nil {
		t.Fatal(err)
	}
	s, err = Start(t.Context(), w.with(st))
	if err != nil {
		st.Close()
		t.Fatal(err)
	}
	ended := false
	kill = func() {
		if ended {
			return
		}
		ended = true
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := st.Close(); err != nil && !errors.Is(err, journal.ErrBroken) {
			t.Errorf("Close of the journal: %v", err)
		}
		if v := s.live.Violations(); len(v) > 0 {
			t.Errorf("violations: %v", v)
		}
	}
	t.Cleanup(kill)
	return s, kill
}

// enable and disable are requests about records.
func enable(client string, names ...string) Request {
	return Request{Client: client, Ops: "tracer", Enable: true, Records: names}
}

func disable(client string, names ...string) Request {
	return Request{Client: client, Ops: "tracer", Records: names}
}

// do submits a request and waits until it has ended.
func do(t testing.TB, s *Service, r Request) Update {
	t.Helper()
	u, err := s.Submit(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if u, err = s.Wait(t.Context(), u.ID); err != nil {
		t.Fatal(err)
	}
	return u
}

// enabled is the indexes of the records that are.
func enabled(t testing.TB, s *Service) (out []int) {
	t.Helper()
	all, err := s.Records(t.Context(), RecordQuery{After: -1, Limit: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Enabled {
			out = append(out, r.Index)
		}
	}
	return out
}
