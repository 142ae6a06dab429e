// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
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
		_, err := NewJob(c) // "%!" is a format that its arguments do not fit
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "%!") {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}

// TestConfigAtTheBorders: the last number that can be is taken, and the first that cannot is refused.
func TestConfigAtTheBorders(t *testing.T) {
	c := config(t, "x86_64", "native", "gen:n=4", "2")
	way := kinds(t)[0]
	for what, change := range map[string]func(c *Config, beyond int){
		"1 to 8192": func(c *Config, beyond int) { c.Roles = make([]cpus.Role, cpus.MaxCPUs+beyond) },
		"0 CPUs":    func(c *Config, beyond int) { c.Roles = make([]cpus.Role, 1-beyond) },
		"slots":     func(c *Config, beyond int) { c.Buffer.Slots = -beyond },
		"turn 1":    func(c *Config, beyond int) { c.OutOfTurn = 1 + float64(beyond)/8 },
		"turn -0":   func(c *Config, beyond int) { c.OutOfTurn = -float64(beyond) / 8 },
		"calls":     func(c *Config, beyond int) { c.Calls = new(float64(-beyond)) },
		"entries":   func(c *Config, beyond int) { c.Entries = new(float64(-beyond)) },
		"order":     func(c *Config, beyond int) { c.Order = sched.Ordering(len(sched.OrderNames()) - 1 + beyond) },
		"lookup":    func(c *Config, beyond int) { c.Lookup = int3.Lookup(len(int3.LookupNames()) - 1 + beyond) },
		"kind of":   func(c *Config, beyond int) { c.Refs = int3.Refs(len(int3.RefsNames()) - 1 + beyond) },
		"fetch":     func(c *Config, beyond int) { c.Fetch = cpus.Fetch(len(cpus.FetchNames()) - 1 + beyond) },
		"number 3":  func(c *Config, beyond int) { c.Engine = TimedEngine + EngineKind(2*beyond) },
		"or more":   func(c *Config, beyond int) { c.Tracers = &Tracers{Dispatch: way, Relevant: -beyond} },
		"that are":  func(c *Config, beyond int) { c.Tracers = &Tracers{Dispatch: way, Irrelevant: -beyond} },
	} {
		for beyond := range 2 {
			one := c
			change(&one, beyond)
			if _, err := NewJob(one); (err != nil) != (beyond == 1) || err != nil && !strings.Contains(err.Error(), what) {
				t.Errorf("%s, %d beyond the border: %v", what, beyond, err)
			}
		}
	}
}

// TestWhatIsLeftOpen: the instruction set is the table's, where it has one, and the protocol the kernel's own.
func TestWhatIsLeftOpen(t *testing.T) {
	for table, want := range map[string]string{"arm64-6.12": "arm64", "gen:n=4": "x86_64"} {
		c := config(t, "riscv64", "", table, "2")
		c.Arch = nil
		if j := newJob(t, c); j.Arch.Traits().Name != want || j.Protocol != poke.Native {
			t.Errorf("%s: %s, protocol %s", table, j.Arch.Traits().Name, j.Protocol)
		}
	}
	c := timedConfig(t, "x86_64", "native", "gen:n=4", "2", plainCosts())
	if c.Calls = new(7.0); c.Calling() != 7 || c.costs().Entries != 1000 || c.Calibration.Costs.Calls != 1e6 {
		t.Errorf("%v calls, %v entries; the calibration's are %v", c.Calling(), c.costs().Entries, c.Calibration.Costs.Calls)
	}
	if c.Entries = new(3.0); c.costs().Entries != 3 {
		t.Errorf("%v entries", c.costs().Entries)
	}
}

// TestShellQuote: a word that the shell takes as it is stays so, others are quoted.
func TestShellQuote(t *testing.T) {
	for _, plain := range []string{"azAZ09", "_-+=:,./@%", "busy=1,idle=2"} {
		if got := Command(plain, plain); got != "textpoke "+plain+" "+plain {
			t.Errorf("%s", got)
		}
	}
	for _, r := range "!\"#$&()*;<>?[\\]^`{|}~ \té" {
		for _, word := range []string{string(r), "a" + string(r), string(r) + "a"} {
			if got := ShellQuote(word); got != "'"+word+"'" {
				t.Errorf("%s", got)
			}
		}
	}
	for word, want := range map[string]string{"": "''", "it's": `'it'\''s'`} {
		if got := ShellQuote(word); got != want {
			t.Errorf("%s, want %s", got, want)
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
