// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sched"
)

// TestZeroConfig: the zero Config is the first architecture's own kernel on eight
// CPUs, with one vector for all of it.
func TestZeroConfig(t *testing.T) {
	j, err := NewJob(Config{})
	if err != nil {
		t.Fatal(err)
	}
	row, err := j.Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if row.Arch.Traits().Name != cpus.ArchNames()[0] || row.Patches != row.Records || row.Records != 42757 {
		t.Errorf("%s: %d of %d records", row.Arch.Traits().Name, row.Patches, row.Records)
	}
	if row.Rounds != 3 || row.IPIs != 3*(DefaultCPUs-1) {
		t.Errorf("%d rounds and %d interrupts, want 3 and %d", row.Rounds, row.IPIs, 3*(DefaultCPUs-1))
	}
}

// TestConfigIsValidated: what cannot be is refused in one line, and neither counted
// nor crashed on.
func TestConfigIsValidated(t *testing.T) {
	for want, c := range map[string]Config{
		"0 CPUs":                   {Roles: []cpus.Role{}},
		"8193 CPUs":                {Roles: make([]cpus.Role, cpus.MaxCPUs+1)},
		"no CPU that a patcher":    {Roles: []cpus.Role{cpus.Isolated, cpus.Offline}},
		"buffer of -1 slots":       {Buffer: sched.Buffer{Slots: -1}},
		"out of turn 2":            {OutOfTurn: 2},
		"out of turn NaN":          {OutOfTurn: math.NaN()},
		"calls: -1 a second":       {Calls: new(-1.0)},
		"entries: NaN a second":    {Entries: new(math.NaN())},
		`protocol "none": not one`: {Protocol: "none"},
		"order number 99":          {Order: 99},
		"engine number 9":          {Engine: 9},
		"fetch model number 99":    {Fetch: 99},
		"lookup number 99":         {Lookup: 99},
		"references number 99":     {Refs: 99},
		"a role that there is":     {Roles: []cpus.Role{0, 99}},
		"want a way of dispatch":   {Tracers: &Tracers{}},
		"without any step":         {Plan: &poke.Protocol{}},
		"want one of them":         {Plan: poke.Named("word", mustArch(t).Traits()), Protocol: "breakpoint"},
		`scenario ""`:              {Scenario: &Scenario{}},
		"preempts no tasks":        {Preempt: true},
	} {
		if _, err := NewJob(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}

// mustArch is the first architecture.
func mustArch(t *testing.T) isa.Arch {
	t.Helper()
	a, err := cpus.ParseArch(cpus.ArchNames()[0])
	if err != nil {
		t.Fatal(err)
	}
	return a
}
