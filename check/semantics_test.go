// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

var long = flag.Bool("long", false, "run slow tests")

// planTexts say what no built-in protocol does, right and wrong.
var planTexts = map[string]string{
	"clears": `batching: buffered
every batch:
    Publish
    Fence             if stores-buffered
    Write breakpoint
    Fence             if stores-buffered
    Sync 1
    Write tail        if tail
    Write literal     if literal
    Fence             if stores-buffered
    Sync 2
    Write head
    Fence             if stores-buffered
    Sync 3
    Unpublish
    Clear
`,
	"locks": `batching: whole
once before:
    Lock text_mutex
    StopMachine
every batch:
    Write literal     if literal
    Write word
    Fence             if stores-buffered
once after:
    Resume
    Unlock text_mutex
`,
	"maps": `batching: whole
once before:
    StopMachine
every batch:
    for each patch
        Map
        Write literal if literal
        Write word
        Fence         if stores-buffered
    end
once after:
    Resume
`,
	"maps-first": `batching: whole
once before:
    StopMachine
every batch:
    for each patch
        Map
    end
    Write word
    Fence             if stores-buffered
once after:
    Resume
`,
	"halves": `batching: whole
every batch:
    Write literal-low   if literal
    Write literal-high  if literal
    Fence               if stores-buffered
    Write word
    Fence               if stores-buffered
`,
	"waits": `batching: single
every batch:
    Publish
    Fence             if stores-buffered
    Write breakpoint
    Fence             if stores-buffered
    GracePeriod
    Write tail        if tail
    Write literal     if literal
    Fence             if stores-buffered
    SynchronizeRCU
    Write head
    Fence             if stores-buffered
    Sync 1
    Unpublish
    WaitHandlers
`,
}

// unsaid are the steps that no protocol can say, and why.
var unsaid = map[poke.Op]string{
	poke.Attach: "done around an update", poke.Release: "done around an update", poke.Settle: "done around an update",
	poke.Raise: "for several patchers", poke.Expect: "for several patchers",
}

// semantic is one combination that all engines are asked about.
type semantic struct {
	arch     isa.Arch
	protocol *poke.Protocol
	mutation string
}

func (s semantic) String() string {
	name := s.arch.Traits().Name + " " + s.protocol.Name
	if s.mutation != "" {
		name += " " + s.mutation
	}
	return name
}

// semantics is all of them, built-in protocols and plan files, with all their mutations.
func semantics(t *testing.T) (list []semantic) {
	for _, name := range cpus.ArchNames() {
		arch, err := cpus.ParseArch(name)
		if err != nil {
			t.Fatal(err)
		}
		protocols := []*poke.Protocol{}
		for _, name := range poke.Names() {
			protocols = append(protocols, poke.Named(name, arch.Traits()))
		}
		for name, text := range planTexts {
			p, err := poke.ParseProtocol(name+".plan", []byte("name: "+name+"\n"+text))
			if err != nil {
				t.Fatal(err)
			}
			protocols = append(protocols, p)
		}
		slices.SortFunc(protocols, func(a, b *poke.Protocol) int { return strings.Compare(a.Name, b.Name) })
		for _, p := range protocols {
			setup := explore.Setup{Arch: arch, Protocol: p, Sites: 1}
			shape, err := setup.Shape()
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, semantic{arch, p, ""})
			for _, m := range p.Mutations(shape) {
				list = append(list, semantic{arch, p, m.Name})
			}
		}
	}
	return list
}

// slots is the vector: one that is too small for two patches only where that matters.
func (s semantic) slots() int {
	if s.mutation == "overfull-batch" {
		return 1
	}
	return 64
}

// order is that of the queue: the wrong one where that matters.
func (s semantic) order() sched.Ordering {
	if s.mutation == "unsorted-batch" {
		return sched.Descending
	}
	return sched.Table
}

// question is what the checker is asked.
func (s semantic) question() (*Question, error) {
	sites := 1
	queues := s.mutation == "overfull-batch" || s.mutation == "unsorted-batch"
	if queues || s.mutation == "shifted-batch" || strings.HasPrefix(s.protocol.Name, "maps") || *long {
		sites = 2
	}
	q := &Question{Sites: sites, Config: sim.Config{
		Arch: s.arch, Layout: s.arch.Traits().Layout, Plan: s.protocol, Protocol: s.protocol.Name, Mutation: s.mutation,
		Buffer: sched.Buffer{Slots: s.slots()}, Order: s.order(), Fetch: cpus.Weak, Roles: make([]cpus.Role, 2),
	}}
	return q, q.Build()
}

// run does it on an engine, there and back, and tells what broke. Refused is what an
// engine cannot do; preempt lets the timed one preempt tasks.
func (s semantic) run(
	t *testing.T, engine sim.EngineKind, seed uint64, preempt bool,
) (broken []cpus.Violation, refused error) {
	table, err := records.Open(t.Context(), "gen:n=8,groups=1,order=sorted", records.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := sim.Config{
		Arch: s.arch, Plan: s.protocol, Mutation: s.mutation,
		Table: table, Buffer: sched.Buffer{Slots: s.slots()}, Order: s.order(),
		Roles: make([]cpus.Role, 4), Fetch: cpus.Weak, Seed: seed, Engine: engine,
	}
	if engine == sim.TimedEngine {
		c.Preempt = preempt
		c.Calibration = &calibration.Calibration{Name: "test", Arch: s.arch.Traits().Name, CPUs: 4, Costs: slowCosts}
		// Who traps at one site has seen all stores so far: often is not always best.
		c.Calls = new([]float64{5e6, 1e6, 2e5}[seed%3])
	}
	j, err := sim.NewJob(c)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("stuck"))
	defer cancel()
	e, err := sim.NewEngine(j)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	for _, enable := range []bool{true, false} {
		if _, err := e.Update(ctx, enable); err != nil {
			var impossible *poke.ImpossibleError
			if errors.As(err, &impossible) {
				return nil, err
			}
			if len(e.Violations()) == 0 {
				t.Fatalf("%s on the %s engine: %v", s, engine, err)
			}
			break // what broke is in the way of the update back
		}
	}
	return e.Violations(), nil
}

// slowCosts are those of a machine on which trouble is likely: much is called, old text is
// fetched for long, and tasks are preempted often.
var slowCosts = calibration.Costs{
	RoundSetup: 500, Send: 50, Delivery: 1000, Jitter: 200, IdleWake: 2000, Handler: 800, Answer: 100, StopWake: 5000,
	Verify: 30, Publish: 40, Store: 600, StoreLiteral: 400, Fence: 50,
	TrapEntry: 200, TrapExit: 200, Comparison: 5, Reference: 10, LineTransfer: 100,
	UserEntry: 100, UserExit: 100, CatchUp: 100, MaskedStretch: 10_000, FetchLag: 1e5, GracePeriod: 1e4,
	Switch: 1500, TickInterval: 1e4, Away: 1e6, Migration: 5000,
	Calls: 5e6, Skew: 1, Tracer: 100, Entries: 1000, KernelStretch: 2000,
}

// rare are defects that no run on the timed engine meets, and why. As all others, what
// the checker has found of them is forced on the engine, step by step.
var rare = map[string]string{
	"drop-sync-3": "a handler that looks again must find the next update's breakpoint, and everybody rests between two " +
		"updates; or the batch must go between its taking a reference and looking up, which is one moment with " +
		"references of its own CPU",
}

// seeds is how many runs may look for what the checker has found.
const seeds = 100

// TestOneSemantics: every step of a plan, right and with every defect, means the same to
// the live engine, the timed engine and the checker, on every instruction set. What the
// checker finds can be forced on both others, and is met by runs in virtual time, which
// are the same every time; what is safe breaks nowhere; and what an engine cannot do it
// refuses by name.
func TestOneSemantics(t *testing.T) {
	said := map[poke.Op]bool{}
	parts := map[poke.Part]bool{}
	for _, s := range semantics(t) {
		t.Run(s.String(), func(t *testing.T) {
			q, err := s.question()
			if err != nil {
				t.Fatal(err)
			}
			for _, st := range q.Model.Programs[0].Plan {
				said[st.Op] = true
				parts[st.Part] = parts[st.Part] || st.Op == poke.Write
			}
			row, err := q.Ask(t.Context(), explore.Options{
				LimitStates: 1e6, Reduce: explore.Reductions{Order: true, Symmetry: true, Sites: true},
			})
			if err != nil {
				t.Fatal(err)
			}
			switch row.Verdict {
			case explore.Safe:
				s.staysWhole(t)
			case explore.Unsafe:
				s.breaks(t, q, &row)
			default:
				t.Errorf("the checker says %s", row.Verdict)
			}
		})
	}
	for op := poke.Verify; op <= poke.Expect; op++ {
		if why := unsaid[op]; !said[op] && why == "" {
			t.Errorf("no plan has the step %s", op)
		}
	}
	for part := poke.Breakpoint; part <= poke.LiteralHigh; part++ {
		if !parts[part] {
			t.Errorf("no plan writes %s", part)
		}
	}
}

// TestEndlessIsForced: what breaks because patchers go on for ever can be forced on both
// engines, the updates that were chosen one after the other.
func TestEndlessIsForced(t *testing.T) {
	forced := 0
	for _, s := range semantics(t) {
		q, err := s.question()
		if err != nil {
			t.Fatal(err)
		}
		q.Sites, q.Workload = 2, explore.Endless
		if err := q.Build(); err != nil {
			t.Fatal(err)
		}
		row, err := q.Ask(t.Context(), explore.Options{
			LimitStates: 2e5, Reduce: explore.Reductions{Order: true, Symmetry: true, Sites: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		if row.Verdict != explore.Unsafe {
			continue
		}
		forced++
		if _, err := explore.Replay(q.Model, row.Trace); err != nil {
			t.Errorf("%s: %s cannot be forced on the live engine: %v", s, row.Violation.Property, err)
		}
		if _, err := ReplayTimed(q.Model, row.Trace); err != nil {
			t.Errorf("%s: %s cannot be forced on the timed engine: %v", s, row.Violation.Property, err)
		}
	}
	if forced < 50 {
		t.Errorf("%d were unsafe: so few that this proves little", forced)
	}
}

// staysWhole lets engines look for what the checker says cannot be.
func (s semantic) staysWhole(t *testing.T) {
	runs := uint64(1)
	if *long {
		runs = 30
	}
	for _, engine := range []sim.EngineKind{sim.LiveEngine, sim.TimedEngine} {
		for seed := range runs {
			broken, err := s.run(t, engine, seed, false)
			if err != nil || len(broken) > 0 {
				t.Errorf("the checker says safe; on the %s engine: %v, %v", engine, err, broken)
			}
		}
	}
}

// breaks forces what the checker has found on both engines, and lets runs meet it.
func (s semantic) breaks(t *testing.T, q *Question, row *VerdictRow) {
	if _, err := explore.Replay(q.Model, row.Trace); err != nil {
		t.Errorf("%s cannot be forced on the live engine: %v", row.Violation.Property, err)
	}
	if _, err := ReplayTimed(q.Model, row.Trace); err != nil {
		t.Errorf("%s cannot be forced on the timed engine: %v", row.Violation.Property, err)
	}
	for seed := range uint64(seeds) {
		broken, refused := s.run(t, sim.TimedEngine, seed, true)
		if refused != nil {
			if _, other := s.run(t, sim.LiveEngine, seed, false); other == nil || row.Violation.Property != cpus.Deadlock {
				t.Errorf("the timed engine refuses, the live one does not: %v, %v", refused, other)
			}
			return
		}
		if len(broken) > 0 {
			if why := rare[s.mutation]; why != "" {
				t.Errorf("a run meets it after all: %s", why)
			}
			return
		}
	}
	if rare[s.mutation] == "" {
		t.Errorf("%s: no run on the timed engine meets it", row.Violation)
	}
}
