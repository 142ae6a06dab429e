// SPDX-License-Identifier: Apache-2.0

package hardware

import (
	"errors"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// said is an error's text, "" for none.
func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestFits: threads are busy, isolated or not there; two at least and no more than may run.
func TestFits(t *testing.T) {
	const one = "no hardware engine here: this process may use one CPU, and wants two: one that patches, one that calls"
	for _, c := range []struct {
		allowed int
		want    string
		roles   []cpus.Role
	}{
		{2, "", []cpus.Role{cpus.Busy, cpus.Isolated}},
		{2, "", []cpus.Role{cpus.Busy, cpus.Offline, cpus.Busy, cpus.Offline}},
		{3, "", []cpus.Role{cpus.Busy, cpus.Busy}},
		{1, one, []cpus.Role{cpus.Busy, cpus.Busy}},
		{1, one, nil},
		{2, "it can use 2 CPUs here, not 3", make([]cpus.Role, 3)},
		{2, "1 CPU: want two or more, one that patches and one that calls", []cpus.Role{cpus.Busy, cpus.Offline}},
		{9, "an idle CPU: nothing interrupts a thread that sleeps, so that there is nothing to count; want busy and isolated ones",
			[]cpus.Role{cpus.Busy, cpus.Idle}},
		{9, "a CPU with interrupts off: a thread cannot mask them; want busy and isolated ones",
			[]cpus.Role{cpus.Busy, cpus.IrqsOff}},
	} {
		err := Fits(c.roles, c.allowed)
		if said(err) != c.want || errors.Is(err, ErrNone) != (c.want == one) {
			t.Errorf("%v of %d: %v, want %q", c.roles, c.allowed, err, c.want)
		}
	}
}

// TestExpressible: threads do what they do and nothing else; that a breakpoint without an entry is the end they do, too.
func TestExpressible(t *testing.T) {
	var native cpus.Path
	forgives, fatal := native.With(cpus.MissForgives), native.With(cpus.MissFatal)
	calls := native.With(cpus.SiteCalls)
	acts := calls.With(cpus.HandlerActs)
	for _, path := range []cpus.Path{native, forgives, fatal, calls, acts} {
		if err := Expressible(path); err != nil {
			t.Error(err)
		}
		if unforgiving(path) != (path == fatal) {
			t.Errorf("%s: unforgiving %v", path, unforgiving(path))
		}
	}
	stale := native.With(cpus.HandlerActsStale)
	program := stale.Program(cpus.InHandler)
	want := "path " + cpus.InHandler.String() + ": " + program.String() + ": the threads' own handler does otherwise, and cannot be told"
	if err := Expressible(stale); said(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestLazy: a round that leaves CPUs out cannot be had, and the first one is named.
func TestLazy(t *testing.T) {
	lazy := poke.Step{Op: poke.Sync, Lazy: true}
	if err := Lazy([]poke.Step{{Op: poke.Verify}, {Op: poke.Sync}}); err != nil {
		t.Error(err)
	}
	if err := Lazy([]poke.Step{{Op: poke.Verify}, lazy}); said(err) != lazy.Name()+
		": it leaves out CPUs in user space; all threads here are in user space, and membarrier reaches all that run" {
		t.Error(err)
	}
}
