// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/check/museum"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
	"github.com/textpoke/textpoke/sim/axis"
)

// TestTimedReplayRefuses: what the timed engine cannot express it refuses by name.
func TestTimedReplayRefuses(t *testing.T) {
	arch, err := cpus.ParseArch("x86_64")
	if err != nil {
		t.Fatal(err)
	}
	q := &Question{Sites: 2, Patchers: 2, Config: sim.Config{
		Arch: arch, Protocol: "native", Buffer: sched.Buffer{Slots: 4}, Roles: make([]cpus.Role, 3),
	}}
	if err := q.Build(); err != nil {
		t.Fatal(err)
	}
	_, err = ReplayTimed(q.Model, &explore.Trace{})
	if err == nil || !strings.Contains(err.Error(), "one patcher, the trace has 2") {
		t.Errorf("%v", err)
	}
}

// TestNobodySaysTheyAreBack: a CPU that comes into the kernel without saying so is left out
// by lazy rounds on both engines, whatever it executes meanwhile.
func TestNobodySaysTheyAreBack(t *testing.T) {
	plan := planFile(t, "name: silent\nbatching: whole\nevery batch:\nPublish\nfor each patch\nWrite breakpoint\nend\nSync 1 lazy\n"+
		"for each patch\nWrite tail\nend\nSync 9\nfor each patch\nWrite head\nend\nSync 3 lazy\nUnpublish\n"+
		"WaitHandlers\nentry:\ncatch up\n")
	questions, _, err := Questions(axis.Choices{
		"plan": {plan}, "arch": {"x86_64"}, "sites": {"2"}, "switch": {"true"}, "fetch": {"coherent"},
		"refs": {"none"}, "cpus": {"busy=1,isolated=1"},
	})
	if err != nil || len(questions) != 1 {
		t.Fatal(questions, err)
	}
	q := questions[0]
	row, err := q.Ask(t.Context(), explore.Options{Reduce: explore.Reductions{Order: true, Symmetry: true, Sites: true}})
	if err != nil || row.Verdict != explore.Unsafe {
		t.Fatal(row.Verdict, err)
	}
	for _, engine := range []sim.EngineKind{sim.LiveEngine, sim.TimedEngine} {
		if _, err := Replay(engine, q.Model, row.Trace); err != nil {
			t.Errorf("%s: %v", engine, err)
		}
	}
}

// TestTimedReplaysBugs: forced on the timed engine, each bug of the museum ends in the
// violation that it is about. What has several patchers is refused by name.
func TestTimedReplaysBugs(t *testing.T) {
	for _, b := range museum.All() {
		m, err := b.Model(false)
		if err != nil {
			t.Fatal(err)
		}
		r, err := explore.Explore(t.Context(), m, explore.Options{})
		if err != nil || r.Trace == nil {
			t.Fatalf("%s: %+v, %v", b.Name, r, err)
		}
		v, err := ReplayTimed(m, r.Trace)
		switch refused := err != nil && strings.Contains(err.Error(), "one patcher, the trace has 2"); {
		case refused != (len(m.Programs) > 1) || err != nil && !refused:
			t.Errorf("%s: %d patchers: %v", b.Name, len(m.Programs), err)
		case err == nil && v.Property != b.Want:
			t.Errorf("%s: %s, want %s", b.Name, v, b.Want)
		}
	}
}
