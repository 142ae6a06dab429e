// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim/hardware"
)

// shared is what every engine and plan say of an update alike.
type shared struct {
	Patches, Flushes, Full, Order, Final int
	Rounds, Stops, IPIs, PerCPU          int
	Sent, Taken                          [2]uint64 // rounds and stops that were sent, and interrupts for them
}

func sharedBy(row *RunRow) shared {
	s := shared{
		row.Patches, row.Flushes, row.FlushFull, row.FlushOrder, row.FlushFinal,
		row.Rounds, row.Stops, row.IPIs, row.IPIsPerCPU, [2]uint64{}, [2]uint64{},
	}
	for i, cause := range []cpus.Cause{cpus.Sync, cpus.Stop} {
		s.Sent[i], s.Taken[i] = row.Counts.TotalRounds(cause), row.Counts.TotalTaken(cause)
	}
	return s
}

// TestEnginesAgree takes every protocol that x86_64 has, built in and from its file, with
// a vector and with as many slots as patches, through every engine: what they and plan
// count is the same. What an engine cannot do it refuses.
func TestEnginesAgree(t *testing.T) {
	var protocols []Config
	for _, name := range poke.Names() {
		protocols = append(protocols, Config{Protocol: name})
	}
	for _, file := range poke.ShippedPlans() {
		p, err := poke.ParseProtocol(file.Name+".plan", file.Text)
		if err != nil {
			t.Fatal(err)
		}
		protocols = append(protocols, Config{Protocol: p.Name, Plan: p})
	}
	k, err := calibration.Open("vm-2")
	if err != nil {
		t.Fatal(err)
	}
	executed := map[string]int{}
	for _, p := range protocols {
		for _, slots := range []int{8, 0} {
			c := config(t, "x86_64", p.Protocol, "gen:n=20,groups=2", "2")
			c.Plan, c.Buffer, c.Calibration = p.Plan, sched.Buffer{Slots: slots}, k
			where := fmt.Sprintf("%s, from file %v, %d slots", p.Protocol, p.Plan != nil, slots)
			var impossible *poke.ImpossibleError
			if j, err := NewJob(c); err == nil && errors.As(j.check(), &impossible) {
				continue
			}
			want := planned(t, c)
			for _, kind := range []EngineKind{LiveEngine, TimedEngine, HardwareEngine} {
				got, err := updates(t, c, kind)
				switch {
				case kind == HardwareEngine && errors.Is(err, hardware.ErrNone):
					continue
				case kind == HardwareEngine && err != nil && strings.HasPrefix(p.Protocol, "breakpoint-lazy"):
					continue // rounds that leave CPUs out
				case err != nil:
					t.Errorf("%s, %s: %v", where, kind, err)
				case !reflect.DeepEqual(got, want):
					t.Errorf("%s, %s: %+v, plan %+v", where, kind, got, want)
				default:
					executed[kind.String()]++
				}
			}
		}
	}
	t.Logf("combinations that agree: %v", executed)
	if executed["live"] < 20 || executed["timed"] < 20 {
		t.Errorf("only %v", executed)
	}
}

// planned is what plan says of both directions.
func planned(t *testing.T, c Config) (out [2]shared) {
	t.Helper()
	j := newJob(t, c)
	for i := range out {
		row, err := j.runRow(t.Context(), "", i == 0)
		if err != nil {
			t.Fatal(err)
		}
		row.Counts = row.counts()
		out[i] = sharedBy(&row)
	}
	return out
}

// updates is what an engine says of both directions.
func updates(t *testing.T, c Config, kind EngineKind) (out [2]shared, err error) {
	t.Helper()
	c.Engine = kind
	if kind == HardwareEngine {
		skipped, err := hardware.Allowed()
		if err != nil || skipped < 2 {
			t.Logf("no hardware engine here: %d CPUs, %v", skipped, err)
			return out, hardware.ErrNone
		}
		c.Calibration = nil
	}
	j, err := NewJob(c)
	if err != nil {
		return out, err
	}
	e, err := NewEngine(j)
	if err != nil {
		return out, err
	}
	defer e.Close()
	for i := range out {
		row, err := e.Update(t.Context(), i == 0)
		if err != nil {
			return out, err
		}
		out[i] = sharedBy(&row)
	}
	return out, nil
}

// TestSiliconBreaks: defects that the checker finds on paper are met on this machine's
// CPUs, or it is said how often they were tried. Old and new bytes side by side need a CPU
// that fetches in the middle of two stores: whether these are seen is the machine's.
func TestSiliconBreaks(t *testing.T) {
	skipWithout(t)
	for _, tt := range []struct {
		mutation string
		property cpus.Property
		flips    int
		must     bool // be seen
	}{
		{"late-publish", cpus.UnhandledBreakpoint, 200, true},
		{"early-release", cpus.UnhandledBreakpoint, 400, true},
		{"drop-sync-3-no-recheck", cpus.UnhandledBreakpoint, 100, false},
		{"no-breakpoint", cpus.TornFetch, 100, false},
		{"drop-sync-1", cpus.TornFetch, 10, false},
		{"drop-sync-2", cpus.TornFetch, 10, false},
	} {
		if *long {
			tt.flips *= 100
		}
		c := config(t, "x86_64", "native", "gen:n=60", "2")
		c.Mutation = tt.mutation
		h := newHardware(t, c)
		found, n := false, 0
		for ; n < tt.flips && !found; n++ {
			if _, err := h.Update(t.Context(), n%2 == 0); err != nil {
				t.Fatal(err)
			}
			for _, v := range h.Violations() {
				found = found || v.Property == tt.property
			}
		}
		h.Close()
		t.Logf("%s: %s found: %v, after %d updates of 60 sites", tt.mutation, tt.property, found, n)
		if !found && tt.must {
			t.Errorf("%s was not met in %d updates of 60 sites: %v", tt.mutation, n, properties(h.Violations()))
		}
	}
}
