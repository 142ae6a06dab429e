// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
)

func lives(t *testing.T, m *Model) *Result {
	t.Helper()
	r, err := Liveness(t.Context(), m, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestLiveness: updates of every protocol can end and CPUs come back, unless the search
// for deadlocks says otherwise, which works in another way.
func TestLiveness(t *testing.T) {
	n := 0
	for _, arch := range cpus.ArchNames() {
		for _, p := range poke.Protocols() {
			for _, change := range []func(s *Setup){
				func(*Setup) {},
				func(s *Setup) { s.Sites = 2 },
				func(s *Setup) { s.Roles = append(s.Roles, cpus.Idle) },
				func(s *Setup) { s.Preempt = true },
				func(s *Setup) { s.Roles[1] = cpus.IrqsOff },
				func(s *Setup) { s.Roles[1] = cpus.Isolated },
			} {
				s := setup(t, arch, p.Name, "", 2, 1)
				change(&s)
				m, err := s.Model()
				if err != nil {
					continue
				}
				safety := explore(t, s, Options{Reduce: all})
				live := lives(t, m)
				switch {
				case safety.Verdict == Safe && live.Verdict != Safe:
					t.Errorf("%s %s %v: %s", arch, p.Name, s.Roles, live.Violation)
				case safety.Verdict == Unsafe && safety.Violation.Property == cpus.Deadlock &&
					(live.Verdict != Unsafe || live.Violation.Property != cpus.StuckUpdate):
					t.Errorf("%s %s: %s, and liveness says %s: %v", arch, p.Name, safety.Violation, live.Verdict, live.Violation)
				}
				n++
			}
		}
	}
	if n < 100 {
		t.Errorf("%d models", n)
	}
}

// mute is a machine whose CPUs never see what is asked of them.
type mute struct{ *world }

func (mute) Pending(int, bool) bool { return false }

// gone is a machine whose handlers find that a breakpoint is gone, whether it is or not.
type gone struct{ *world }

func (gone) Peek(int) isa.Text { return 0 }

// TestStuck: defects that no other property tells.
func TestStuck(t *testing.T) {
	for _, c := range []struct {
		name   string
		model  func(t *testing.T) *Model
		shared func(w *world) cpus.Shared
		goal   goals // that is out of reach
	}{
		{"as it is", func(t *testing.T) *Model {
			return programs(t, []poke.Step{{Op: poke.Sync, Round: 1}})
		}, func(w *world) cpus.Shared { return w }, 0},
		{"a CPU that never answers", func(t *testing.T) *Model {
			return programs(t, []poke.Step{{Op: poke.Sync, Round: 1}})
		}, func(w *world) cpus.Shared { return mute{w} }, 1},
		{"a handler that tries again for ever", func(t *testing.T) *Model {
			return programs(t, []poke.Step{{Op: poke.Write, Part: poke.Breakpoint, To: 1}, {Op: poke.Sync, Round: 1}})
		}, func(w *world) cpus.Shared { return gone{w} }, atRest},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLiveness(c.model(t), Options{})
			l.e.w.shared = c.shared(l.e.w)
			if cut, err := l.forward(t.Context()); err != nil || cut != "" || l.broken {
				t.Fatal(err, cut, l.broken)
			}
			state, found := l.stuck()
			if found != (c.goal != 0) || found && l.well[state]&c.goal != 0 {
				t.Errorf("stuck %v, with a way to %b; want none to %b", found, l.well[state], c.goal)
			}
		})
	}
}

// TestLivenessIsCut: what was not looked at to the end is not said to live.
func TestLivenessIsCut(t *testing.T) {
	s := setup(t, "x86_64", "breakpoint", "", 2, 2)
	for _, o := range []Options{{LimitStates: 100}, {LimitMemory: 1}, {LimitTime: 1}} {
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		if r, err := Liveness(t.Context(), m, o); err != nil || r.Verdict != Incomplete || r.Cut == "" {
			t.Errorf("%+v: %v, %v", o, r, err)
		}
	}
	if r := explore(t, s, Options{Reduce: all, Liveness: true, LimitStates: 900}); r.Verdict != Incomplete {
		t.Errorf("%s: the search is through before the limit, and liveness is not", r.Verdict)
	}
}

// TestPlansThatHangForEver: patchers that go on for ever hang in the middle of an update, or
// between two of them, when what one has left is what none begins with.
func TestPlansThatHangForEver(t *testing.T) {
	for _, test := range []struct {
		arch, plan string
		why        string
	}{
		{"x86_64", "StopMachine\n Sync 1\n for each patch\n Write word\n end\n Resume\n", "patcher 0 is at Sync 1"},
		{"arm64", "for each patch\n Write word\n end\n", "patcher 0 is between two updates"},
	} {
		protocol, err := poke.ParseProtocol("hangs", []byte("name: hangs\nbatching: whole\nevery batch:\n"+test.plan))
		if err != nil {
			t.Fatal(err)
		}
		s := setup(t, test.arch, poke.Native, "", 2, 1)
		s.Protocol, s.Workload = protocol, Endless
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		m.anyEnd = true // nobody looks at what is left: the next update finds it, or none comes
		got := lives(t, m)
		if got.Verdict != Unsafe || got.Violation.Property != cpus.StuckUpdate ||
			!strings.HasPrefix(got.Violation.Why, test.why) {
			t.Errorf("%s: %s %v, want an update that is stuck: %s", test.plan, got.Verdict, got.Violation, test.why)
		}
		if verdict, err := checked(t, s); verdict != Unsafe || err != nil {
			t.Errorf("%s: %s, %v", test.plan, verdict, err)
		}
		if got, err := Explore(t.Context(), m, Options{Reduce: all}); err != nil || got.Verdict != Unsafe ||
			got.Violation.Property != cpus.Deadlock {
			t.Errorf("%s: %v %v, want a deadlock", test.plan, got, err)
		}
	}
}
