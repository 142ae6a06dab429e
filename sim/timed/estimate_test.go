// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"math"
	"slices"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/x86_64"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/poke"
)

// primes are costs of which no two sums are alike, and nothing random.
func primes() calibration.Costs {
	return calibration.Costs{RoundSetup: 503, Send: 53, Delivery: 1009, IdleWake: 2003, Handler: 809, Answer: 101,
		StopWake: 5003,
		Verify:   31, Publish: 41, Store: 601, StoreLiteral: 401, Fence: 59, TrapEntry: 211, TrapExit: 223, Comparison: 5,
		Reference: 11, LineTransfer: 103, CatchUp: 107, TickInterval: 4e6, Skew: 1}
}

// estimated is the estimate of a hand-made update of four CPUs, one of them offline.
func estimated(refs int3.Refs, cost calibration.Costs, plan []poke.Step, out *Outcome) *Estimate {
	roles := []cpus.Role{cpus.Busy, cpus.Busy, cpus.Isolated, cpus.Offline, cpus.Busy}
	code := &cpus.Code{Traits: x86_64.Arch.Traits()}
	parts := []Part{{Update: &poke.Update{Patches: make([]poke.Patch, 2), Plan: plan}, Cause: cpus.Sync}}
	return NewEstimate(&Config{Code: code, Roles: roles, Refs: refs, Costs: &cost}, parts, out)
}

// TestEstimateAddsUp: an update is the sum of what its plan says, and a patch is exposed from its own breakpoint until
// the store that takes it away; what does not hold a breakpoint is not exposed.
func TestEstimateAddsUp(t *testing.T) {
	c := primes()
	round := func(targets int) float64 {
		return c.RoundSetup + float64(targets)*c.Send + c.Delivery + c.Handler + c.Answer
	}
	write := func(part poke.Part, from, to int32) poke.Step {
		return poke.Step{Op: poke.Write, Part: part, From: from, To: to}
	}
	phases := func(last poke.Step) []poke.Step {
		return []poke.Step{{Op: poke.Verify, To: 2}, {Op: poke.Publish, To: 2}, write(poke.Breakpoint, 0, 2), {Op: poke.Fence},
			{Op: poke.Sync}, write(poke.Tail, 0, 2), {Op: poke.Sync, Lazy: true}, last, {Op: poke.Sync}, {Op: poke.Unpublish}}
	}
	head := 2*c.Verify + 2*c.Publish + c.Fence + 3*c.Fence + 2*round(3) + round(2) + c.Reference + 4*c.Store
	held := 4*c.Store + 3*c.Fence + round(3) + round(2)
	rest := head - 2*c.Verify - 2*c.Publish - c.Store/2 // a breakpoint that stays: half a store less, on average
	all := poke.Span{To: 5}
	for _, k := range []struct {
		name             string
		plan             []poke.Step
		update, exposure float64
	}{
		{"nothing", nil, 0, 0},
		{"phases", phases(write(poke.Head, 0, 2)), head + 2*c.Store, held},
		{"words", phases(write(poke.Word, 0, 2)), head + 2*c.Store, held},
		{"bytes from the first", phases(poke.Step{Op: poke.Write, Part: poke.Bytes, Span: all, To: 2}), head + 2*c.Store, held},
		{"the breakpoint twice", append(phases(write(poke.Breakpoint, 0, 2))[:8], write(poke.Head, 0, 2)),
			head - c.Fence - round(3) - c.Reference + 4*c.Store, held + 2*c.Store},
		{"literals", []poke.Step{write(poke.Literal, 0, 2), write(poke.LiteralLow, 0, 1), write(poke.LiteralHigh, 1, 2)},
			4 * c.StoreLiteral, 0},
		{"words alone", []poke.Step{write(poke.Word, 0, 2)}, 2 * c.Store, 0},
		{"stopped", []poke.Step{{Op: poke.StopMachine}, write(poke.Word, 1, 2)}, round(3) + c.StopWake + c.Store, 0},
		{"waits", []poke.Step{{Op: poke.GracePeriod}, {Op: poke.WaitHandlers}}, 0, 0},
	} {
		e := estimated(int3.PerCPU, c, k.plan, &Outcome{})
		update, exposure, stolen := e.Figures(&c)
		if math.Abs(update-k.update) > 1e-6 || math.Abs(exposure-k.exposure) > 1e-6 || stolen != 0 {
			t.Errorf("%s: update %g, exposed %g, stolen %g, want %g and %g", k.name, update, exposure, stolen, k.update,
				k.exposure)
		}
	}
	// A breakpoint that no store takes away counts from its own store on, to no end: what was before it comes off.
	kept := phases(poke.Step{Op: poke.Write, Part: poke.Bytes, Span: poke.Span{From: 1, To: 5}, To: 2})
	if _, exposure, _ := estimated(int3.PerCPU, c, kept,
		&Outcome{}).Figures(&c); math.Abs(exposure+2*c.Verify+2*c.Publish+c.Store/2) > 1e-6 {
		t.Errorf("a breakpoint that stays: exposed %g of %g", exposure, rest)
	}
}

// TestEstimateOfOtherParts: parts of other causes take their time, and expose no record.
func TestEstimateOfOtherParts(t *testing.T) {
	c := primes()
	plan := []poke.Step{{Op: poke.Write, Part: poke.Breakpoint, To: 2}, {Op: poke.Fence}, {Op: poke.Write, Part: poke.Head,
		To: 2}}
	part := func(cause cpus.Cause, patches int) Part {
		return Part{Update: &poke.Update{Patches: make([]poke.Patch, patches), Plan: plan}, Cause: cause}
	}
	cfg := &Config{Code: &cpus.Code{Traits: x86_64.Arch.Traits()}, Roles: make([]cpus.Role, 2), Costs: &c}
	e := NewEstimate(cfg, []Part{part(cpus.Sync, 2), part(cpus.CoreSync, 2), part(cpus.Sync, 2)}, &Outcome{})
	update, exposure, _ := e.Figures(&c)
	if want := 3 * (4*c.Store + c.Fence); update != want {
		t.Errorf("update %g, want %g", update, want)
	}
	if want := 2*c.Store + c.Fence; math.Abs(exposure-want) > 1e-6 {
		t.Errorf("exposed %g, want %g", exposure, want)
	}
}

// TestTargets: who sleeps is woken, and who masks interrupts is waited for where they can be masked.
func TestTargets(t *testing.T) {
	for _, c := range []struct {
		role     cpus.Role
		maskable bool
		want     calibration.Target
	}{
		{cpus.Idle, true, calibration.Asleep}, {cpus.Idle, false, calibration.Asleep}, {cpus.IrqsOff, true,
			calibration.Masking},
		{cpus.IrqsOff, false, calibration.Prompt}, {cpus.Busy, true, calibration.Prompt}, {cpus.Isolated, true,
			calibration.Prompt},
	} {
		if got := target(c.role, c.maskable); got != c.want {
			t.Errorf("%s, maskable %v: %v, want %v", c.role, c.maskable, got, c.want)
		}
	}
	roles := []cpus.Role{cpus.Busy, cpus.IrqsOff, cpus.Idle, cpus.Isolated, cpus.Offline}
	for _, masked := range []bool{false, true} {
		cfg := &Config{Code: &cpus.Code{Traits: x86_64.Arch.Traits()}, Roles: roles, Costs: new(primes())}
		traits := x86_64.Arch.Traits()
		traits.MaskedRounds = masked
		cfg.Code.Traits = traits
		e := NewEstimate(cfg, nil, &Outcome{})
		first := calibration.Masking
		if masked {
			first = calibration.Prompt
		}
		if !slices.Equal(e.all, []calibration.Target{first, calibration.Asleep, calibration.Prompt}) || !slices.Equal(e.fewer,
			e.all[:2]) ||
			!slices.Equal(e.stopping, []calibration.Target{calibration.Masking, calibration.Asleep, calibration.Prompt}) ||
			e.online != 4 || e.busy != 2 {
			t.Errorf("rounds reach masked CPUs %v: all %v, fewer %v, stopping %v, %g online, %g busy", masked, e.all, e.fewer,
				e.stopping, e.online, e.busy)
		}
	}
}

// TestEstimateReturnsWhatItTook: with the costs of the execution the stolen time is what was measured, whatever the
// counter; without calls, or without the time for any, no trap is foreseen, and with twice the calls more than before
// are.
func TestEstimateReturnsWhatItTook(t *testing.T) {
	c := primes()
	c.Calls = 1e5
	plan := []poke.Step{{Op: poke.Write, Part: poke.Breakpoint, To: 2}, {Op: poke.Sync}, {Op: poke.Write, Part: poke.Head,
		To: 2}}
	const traps, taken, caught, compared = 6, 9, 4, 30
	outcome := func(trap float64) *Outcome {
		out := &Outcome{Tallies: make([]cpus.Tally, 5), Stolen: make([]Nanos, 5), Compared: compared, CaughtUp: caught,
			Counts: cpus.NewCounts(5)}
		out.Tallies[1][cpus.Trap], out.Tallies[4][cpus.Trap] = 2, traps-2
		out.Counts.Taken[0][cpus.Sync], out.Counts.Taken[2][cpus.Stop] = 5, taken-5
		out.Stolen[1] = Nanos(taken*c.Handler + caught*c.CatchUp + traps*trap)
		return out
	}
	references := map[int3.Refs]float64{int3.PerCPU: 2, int3.SharedRef: 0, int3.NoRef: 0}
	for refs, n := range references {
		trap := c.TrapEntry + c.TrapExit + n*c.Reference + compared/traps*c.Comparison
		out := outcome(trap)
		e := estimated(refs, c, plan, out)
		if _, _, stolen := e.Figures(&c); math.Abs(stolen-float64(out.Stolen[1])/4) > 1 {
			t.Errorf("%v: stolen %g, want %g", refs, stolen, float64(out.Stolen[1])/4)
		}
		slow := c
		slow.Calls = 0
		if _, _, stolen := e.Figures(&slow); stolen != (taken*c.Handler+caught*c.CatchUp)/4 {
			t.Errorf("%v: nobody calls, and %g are stolen", refs, stolen)
		}
		slow.Calls = 2 * c.Calls
		_, _, more := e.Figures(&slow)
		if was := float64(out.Stolen[1]) / 4; more <= was || more >= was+traps*trap/4 {
			t.Errorf("%v: twice the calls: %g stolen, were %g", refs, more, was)
		}
	}
}

// TestEstimateOfQueues: what a shared counter's line takes beyond the sums of the plan is visits, which cost what they
// cost.
func TestEstimateOfQueues(t *testing.T) {
	c := primes()
	c.Calls = 1e5
	plan := []poke.Step{{Op: poke.Write, Part: poke.Breakpoint, To: 2}, {Op: poke.Sync}, {Op: poke.Write, Part: poke.Head,
		To: 2}}
	const visits, update, exposure, traps = 7, 11, 5, 3
	one := c.LineTransfer + c.Reference
	base := estimated(int3.SharedRef, c, plan, &Outcome{})
	u, x, _ := base.Figures(&c)
	out := &Outcome{Tallies: make([]cpus.Tally, 5), Stolen: make([]Nanos, 5), Counts: cpus.NewCounts(5),
		Update: Nanos(u + update*one), Exposure: Nanos(x + exposure*one)}
	out.Tallies[1][cpus.Trap] = traps
	out.Stolen[1] = Nanos(traps * (c.TrapEntry + c.TrapExit + visits*one))
	e := estimated(int3.SharedRef, c, plan, out)
	for _, transfer := range []float64{c.LineTransfer, 1000} {
		k := c
		k.LineTransfer = transfer
		gotUpdate, gotExposure, stolen := e.Figures(&k)
		more := transfer + c.Reference
		if math.Abs(gotUpdate-u-update*more) > 11 || math.Abs(gotExposure-x-exposure*more) > 11 {
			t.Errorf("transfer %g: update %g, exposure %g, want %g and %g", transfer, gotUpdate, gotExposure, u+update*more,
				x+exposure*more)
		}
		if want := float64(out.Stolen[1]) / 4; transfer == c.LineTransfer && math.Abs(stolen-want) > 2 {
			t.Errorf("stolen %g, want %g", stolen, want)
		}
	}
	own := estimated(int3.PerCPU, c, plan, out)
	if got, _, _ := own.Figures(&c); math.Abs(got-u) > 1e-6 {
		t.Errorf("without a shared counter there is no queue: %g, want %g", got, u)
	}
	out.Update, out.Exposure, out.Stolen[1] = 0, 0, 0 // less than the sums: no CPU waited
	if got, gotExposure, _ := estimated(int3.SharedRef, c, plan, out).Figures(&c); math.Abs(got-u) > 1e-6 ||
		math.Abs(gotExposure-x) > 1e-6 {
		t.Errorf("nobody waited: %g and %g, want %g and %g", got, gotExposure, u, x)
	}
}

// TestEstimateHoldsAgainstTheMachine: where nothing is random, the estimate of an update with other costs is what a
// machine with these takes.
func TestEstimateHoldsAgainstTheMachine(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range []string{"native", "breakpoint", "breakpoint-lazy", "stop-machine"} {
			for _, slots := range []int{1, 4, 64} {
				first, other := primes(), primes()
				other.Store, other.StoreLiteral, other.Send, other.Handler, other.Fence, other.Verify = 97, 89, 307, 401, 211, 7
				roles := "busy=5,offline=1"
				if protocol == "breakpoint-lazy" { // others take isolated CPUs into the kernel, where they call
					roles = "busy=3,isolated=2,offline=1"
				}
				c := plain(arch, protocol, 10, roles, first)
				c.Slots = slots
				r := newRig(t, c)
				part, err := r.part(true)
				if err != nil {
					t.Fatal(err)
				}
				out, err := r.Update(t.Context(), part)
				if err != nil {
					t.Fatal(err)
				}
				e := NewEstimate(&r.cfg, []Part{part}, &out)
				c.Costs = &other
				want := newRig(t, c).update(true)
				update, exposure, stolen := e.Figures(&other)
				mean := 0.0
				for _, ns := range want.Stolen {
					mean += float64(ns) / 5
				}
				if math.Abs(update-float64(want.Update)) > 1 || math.Abs(exposure-float64(want.Exposure)) > 1 ||
					math.Abs(stolen-mean) > 1 {
					t.Errorf("%s %s, %d slots: update %g, exposure %g, stolen %g, want %d, %d, %g", arch, protocol, slots, update,
						exposure,
						stolen, want.Update, want.Exposure, mean)
				}
			}
		}
	}
}
