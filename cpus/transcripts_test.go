// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/internal/golden"
	"github.com/textpoke/textpoke/records"
)

// flipping is a handler that finds the act of a site for a while.
type flipping struct {
	acts map[records.Addr]isa.Insn
	refs int
}

func (h *flipping) Enter(int) bool { h.refs++; return true }
func (h *flipping) Leave(int)      { h.refs-- }
func (h *flipping) Find(at records.Addr, p *Probe) (isa.Insn, Found) {
	p.Comparisons++
	if act, ok := h.acts[at]; ok {
		return act, Hit
	}
	return isa.Insn{}, NoEntry
}

// TestSumsOfRuns: what CPUs do, step by step, while text is stored at random, rounds are sent, NMIs come and tasks are
// parked, with nothing left to chance: the sums of each CPU after each step, and how many steps came to what. Where a
// sum
// changes, the rules of a step have.
func TestSumsOfRuns(t *testing.T) {
	var out bytes.Buffer
	for _, arch := range ArchNames() {
		for _, fetch := range Fetches() {
			for _, v := range []struct {
				name string
				with []Variant
			}{
				{"native", nil}, {"apart", []Variant{SiteApart}}, {"masked", []Variant{SiteApartMasked}}, {"direct",
					[]Variant{SiteDirect}},
				{"stale", []Variant{HandlerActsStale}}, {"skips", []Variant{HandlerSkips}}, {"fatal", []Variant{MissFatal}},
				{"catches up", []Variant{EntryCatchesUp}}, {"early", []Variant{EntryEarly}},
			} {
				fmt.Fprintf(&out, "%s %s %s: %s\n", arch, fetch, v.name, runOnce(t, arch, fetch, v.with))
			}
		}
	}
	golden.Check(t, filepath.Join("testdata", "runs.txt"), out.Bytes())
}

// runOnce is the sum of one run.
func runOnce(t *testing.T, arch string, fetch Fetch, with []Variant) string {
	t.Helper()
	h := &flipping{acts: map[records.Addr]isa.Insn{}}
	f := newFixture(t, arch, 3, []Role{Busy, Idle, Isolated, IrqsOff}, h, fetch)
	f.code.Path = NativePath(f.code.Traits, f.code.Len, false)
	for _, v := range with {
		f.code.Path = f.code.Path.With(v)
	}
	l := f.Lockstep()
	sum, rng, events := sha256.New(), rand.New(rand.NewPCG(7, 7)), [NumEvents]int{}
	ch := NewRandom(1, 2)
	ch.busy = &f.inFlight
	stopped, asked := false, false
	for range 1500 {
		cpu, site := rng.IntN(4), rng.IntN(3)
		switch rng.IntN(24) {
		case 0:
			text := []isa.Text{f.off[site], f.on[site], f.bp[site]}[rng.IntN(3)]
			f.Store(site, 0, f.code.Len, text)
			f.SetInFlight([]int32{int32(site)})
		case 1:
			f.Store(site, 0, f.code.Traits.BreakpointLen, []isa.Text{f.off[site], f.on[site], f.bp[site]}[rng.IntN(3)])
		case 2:
			h.acts[f.code.Sites[site]] = f.code.Act(site, []isa.Text{f.off[site], f.on[site]}[rng.IntN(2)])
		case 3:
			clear(h.acts)
			f.SetPromised()
		case 4:
			f.StoreLiteral(site, []uint64{testNop, testTracer}[rng.IntN(2)])
		case 5:
			f.Settle(site, []isa.Text{f.off[site], f.on[site]}[rng.IntN(2)])
		case 6:
			f.Unsettle(site)
		case 7:
			if s := f.Sender(0); !asked || s.Answered() {
				asked = true
				s.Send(0, []Cause{Sync, Quiesce, QuiesceCPUs, CoreSync}[rng.IntN(4)], rng.IntN(2) == 0)
			}
		case 8:
			if s := f.Sender(1); !stopped {
				stopped = s.StopMachine(1, false)
			} else if s.Stopped() {
				s.ResumeMachine()
				stopped = false
			}
		case 9:
			l.Tick(cpu)
		case 10:
			if l.CPUs[cpu].CanPark() && !l.Tasks[cpu].There() {
				l.Park(cpu)
			}
		case 11:
			if from := rng.IntN(4); l.CPUs[cpu].CanUnpark() && l.Tasks[from].There() {
				l.Unpark(cpu, from)
			}
		}
		event := l.Step(cpu, ch)
		events[event]++
		c := l.CPU(cpu)
		fmt.Fprintln(sum, cpu, event, c, c.AtBorder(), c.Resting(), c.BetweenCalls(), c.Preemptible(), c.Houses(),
			c.InInterrupt(),
			c.CanPark(), c.CanUnpark(), h.refs)
	}
	n, violations := f.Violations()
	for _, v := range violations {
		fmt.Fprintln(sum, v)
	}
	return fmt.Sprintf("%.6x, events %v, %d violations", sum.Sum(nil), events, n)
}
