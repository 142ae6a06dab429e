// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sim/hardware"
)

// newHardware is the engine, where this machine has one.
func newHardware(t testing.TB, c Config) *Hardware {
	t.Helper()
	skipWithout(t)
	c.Engine = HardwareEngine
	h, err := NewHardware(newJob(t, c))
	if errors.Is(err, hardware.ErrNone) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// skipWithout skips a test where two CPUs or the system are missing.
func skipWithout(t testing.TB) {
	t.Helper()
	if n, err := hardware.Allowed(); err != nil || n < 2 {
		t.Skipf("no hardware engine here: %d CPUs, %v", n, err)
	}
}

// TestHardware: what the plan says is what this machine's CPUs do.
func TestHardware(t *testing.T) {
	for _, roles := range []string{"2", "busy=1,isolated=1"} {
		for _, protocol := range []string{"native", "stop-machine"} {
			t.Run(protocol+"/"+roles, func(t *testing.T) {
				c := config(t, "x86_64", protocol, "gen:n=12,groups=2", roles)
				c.Buffer.Slots = 8
				h := newHardware(t, c)
				for _, enable := range []bool{true, false} {
					row, err := h.Update(t.Context(), enable)
					if err != nil {
						t.Fatal(err)
					}
					if row.Violations != 0 {
						t.Errorf("%d violations, %v", row.Violations, h.Violations())
					}
					others := uint64(len(row.Roles) - 1)
					if n := row.Counts.TotalRounds(cpus.Sync); n != uint64(row.Rounds) || row.Executed.Answers != n*others {
						t.Errorf("%d rounds, %d answers; the plan has %d", n, row.Executed.Answers, row.Rounds)
					}
					if row.Calls == 0 {
						t.Error("nobody called anything")
					}
				}
			})
		}
	}
}

// TestHardwareRefuses: what threads cannot do is refused, with the reason.
func TestHardwareRefuses(t *testing.T) {
	skipWithout(t)
	for _, tt := range []struct {
		arch, protocol, roles, reason string
	}{
		{"x86_64", "native", "busy=1,idle=1", "nothing interrupts a thread that sleeps"},
		{"x86_64", "native", "busy=1,irqsoff=1", "cannot mask them"},
		{"x86_64", "native", "8000", "it can use"},
		{"x86_64", "native", "1", "want two or more"},
		{"arm64", "native", "2", "arm64 on the hardware engine: it executes x86_64"},
		{"x86_64", "breakpoint-lazy", "2", "threads' own handler does otherwise"},
	} {
		c := config(t, tt.arch, tt.protocol, "gen:n=4", tt.roles)
		c.Engine = HardwareEngine
		j, err := NewJob(c)
		if err == nil {
			_, err = NewHardware(j)
		}
		if err == nil || !strings.Contains(err.Error(), tt.reason) || strings.Contains(err.Error(), "%!") {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

// TestHardwareLeavesSitesWhole: an update that fails in the middle is taken back by the
// protocol itself, while CPUs execute the sites.
func TestHardwareLeavesSitesWhole(t *testing.T) {
	h := newHardware(t, config(t, "x86_64", "native", "gen:n=4", "2"))
	for fails := range 12 { // every store
		stores := 0
		h.Fault(func(poke.Step, int32) error {
			if stores++; stores == fails+1 {
				return poke.ErrInjected
			}
			return nil
		})
		_, err := h.Update(t.Context(), true)
		var failed *poke.Error
		if !errors.As(err, &failed) || failed.State != poke.AllOld {
			t.Fatalf("store %d: %v", fails, err)
		}
		for _, p := range h.job.patches(h.sites, true) {
			if got := h.on.Peek(int(p.Site)); got != p.Old {
				t.Fatalf("store %d: site %d holds %s", fails, p.Site, got.Format(5))
			}
		}
	}
	h.Fault(nil)
	if row, err := h.Update(t.Context(), true); err != nil || row.Violations != 0 {
		t.Fatalf("%v, %v", err, h.Violations())
	}
}

// TestHardwareCancelled: whoever wants an end gets one, with every site as it was, wherever
// the update is by then.
func TestHardwareCancelled(t *testing.T) {
	for protocol, table := range map[string]string{"native": "gen:n=4", "stop-machine": "gen:n=4",
		"per-site": "gen:n=400"} { // whose way back would take as many rounds as its way there
		h := newHardware(t, config(t, "x86_64", protocol, table, "2"))
		for at := range 4 {
			ctx, cancel := context.WithCancel(t.Context())
			stores := 0
			h.Fault(func(poke.Step, int32) error {
				if stores++; stores == at+1 {
					cancel()
				}
				return nil
			})
			_, err := h.Update(ctx, true)
			var failed *poke.Error
			if !errors.Is(err, context.Canceled) || errors.As(err, &failed) && failed.State != poke.AllOld {
				t.Errorf("%s, store %d: %v", protocol, at, err)
			}
			for _, p := range h.job.patches(h.sites, true) {
				want := p.Old
				if failed == nil { // it was through, and only what follows was cut short
					want = p.New
				}
				if got := h.on.Peek(int(p.Site)); got != want {
					t.Errorf("%s, store %d: site %d holds %s", protocol, at, p.Site, got.Format(5))
				}
			}
			if through := failed == nil; through != (protocol == "stop-machine" && at == 3) {
				t.Errorf("%s, store %d: through: %v", protocol, at, through)
			}
		}
		h.Close()
	}
}

// dies is a machine that does not survive its first update.
type dies struct{ executing }

func (d dies) Update(context.Context, *poke.Update) (hardware.Outcome, error) {
	out := hardware.Outcome{Died: true, Counts: cpus.NewCounts(2), Tallies: make([]cpus.Tally, 2), Total: 1}
	out.Findings = []cpus.Violation{{Property: cpus.TornFetch, CPU: 1, Site: -1, Why: "it died"}}
	return out, nil
}

// TestHardwareGoesOnAfterADeath: the row tells of it, and the next update finds a machine
// whose sites are as the one before was to leave them.
func TestHardwareGoesOnAfterADeath(t *testing.T) {
	h := newHardware(t, config(t, "x86_64", "native", "gen:n=4", "2"))
	h.machine = dies{h.machine}
	row, err := h.Update(t.Context(), true)
	if err != nil || row.Violations != 1 || len(h.Violations()) != 1 || row.Executed != nil {
		t.Fatalf("%+v, %v, %v", row, h.Violations(), err)
	}
	row, err = h.Update(t.Context(), false)
	if err != nil || row.Violations != 0 || row.Executed.Stores != 12 {
		t.Fatalf("%+v, %v, %v", row, h.Violations(), err)
	}
}

// TestSoak: updates go on until the time is over or the context ends, and the row is of all of them: each sends the plan's
// rounds to each other CPU.
func TestSoak(t *testing.T) {
	skipWithout(t)
	c := config(t, "x86_64", "breakpoint", "gen:n=12,groups=2", "2")
	c.Engine, c.Buffer.Slots = HardwareEngine, 8
	one, err := newJob(t, c).Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	soak := func(ctx context.Context, d time.Duration) RunRow {
		t.Helper()
		row, violations, err := Soak(ctx, c, d)
		if errors.Is(err, hardware.ErrNone) {
			t.Skip(err)
		}
		if err != nil || row.Violations != 0 || len(violations) > 0 {
			t.Fatalf("%v, %d violations, %v", err, row.Violations, violations)
		}
		n := int(row.Stress.Updates)
		if row.Rounds != n*one.Rounds || row.IPIsPerCPU != row.Rounds || row.Stress.Requests != uint64(n) {
			t.Errorf("%d updates: %d rounds, %d interrupts of a CPU, want %d", n, row.Rounds, row.IPIsPerCPU, n*one.Rounds)
		}
		return row
	}
	if row := soak(t.Context(), 100*time.Millisecond); row.Stress.Updates == 0 || row.Calls == 0 || row.Elapsed == 0 {
		t.Errorf("%d updates, %d calls in %v", row.Stress.Updates, row.Calls, row.Elapsed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if row := soak(ctx, time.Hour); row.Stress.Updates != 0 {
		t.Errorf("%d updates after the end", row.Stress.Updates)
	}
}
