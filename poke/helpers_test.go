// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"flag"
	"iter"
	"testing"

	"go.uber.org/goleak"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

var long = flag.Bool("long", false, "run slow tests")

var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shapeOf is the shape of an update on an architecture under a protocol.
func shapeOf(t testing.TB, arch string, p *Protocol, patches int, detach bool) Shape {
	t.Helper()
	a, err := cpus.ParseArch(arch)
	if err != nil {
		t.Fatal(err)
	}
	site, err := a.Site(0x1004, p.Layout)
	if err != nil {
		t.Fatal(err)
	}
	return Shape{Traits: a.Traits(), Len: int(site.Len), Patches: patches, Detach: detach}
}

// everyProtocol calls f for every protocol on every architecture that it can
// work on.
func everyProtocol(t *testing.T, f func(t *testing.T, p *Protocol, s Shape)) {
	for _, arch := range cpus.ArchNames() {
		for _, name := range Names() {
			a, _ := cpus.ParseArch(arch)
			p := Named(name, a.Traits())
			s := shapeOf(t, arch, p, 1, false)
			if p.check(s) != nil {
				continue
			}
			t.Run(arch+"/"+name, func(t *testing.T) { f(t, p, s) })
		}
	}
}

// cut makes batches of at most n patches.
func cut(patches, n int) iter.Seq[Range] {
	return func(yield func(Range) bool) {
		for from := 0; from < patches; from += n {
			if !yield(Range{from, min(from+n, patches)}) {
				return
			}
		}
	}
}

// compile collects a plan.
func compile(t testing.TB, p *Protocol, s Shape, batch int) (plan []Step) {
	t.Helper()
	compileInto(t, p, s, batch, func(st Step) { plan = append(plan, st) })
	return plan
}

// compileInto emits a plan.
func compileInto(t testing.TB, p *Protocol, s Shape, batch int, emit Emit) {
	t.Helper()
	switch p.Batching {
	case Single:
		batch = 1
	case Whole:
		batch = s.Patches
	}
	if err := p.Compile(s, cut(s.Patches, batch), emit); err != nil {
		t.Fatal(err)
	}
}

// paper is a Ground of plain words, with nobody else on it: what is left there
// is what a plan does to the text.
type paper struct {
	code      *cpus.Code
	text      []isa.Text
	ops       []uint64
	begun     map[int]cpus.Change
	published int // batches published and not cleared
	refs      int
	stopped   bool
	rounds    int
	stops     int
	graces    int
	locks     [NumMutexes]bool
	below     bool     // the large page is split
	mapped    int      // site, plus 1
	exposed   []string // what must not happen
}

func (g *paper) Peek(site int) isa.Text  { return g.text[site] }
func (g *paper) Literal(site int) uint64 { return g.ops[site] }
func (g *paper) Store(site, off, n int, t isa.Text) {
	g.text[site] = g.text[site].Splice(off, n, t)
	g.must(g.mapped == 0 || g.mapped == site+1, "a store goes to another site's page")
	if bp := g.code.Traits.BreakpointLen; off == 0 && t.Slice(0, bp) == g.code.Arch.Breakpoint() {
		_, begun := g.begun[site]
		g.must(begun, "a breakpoint is placed before the update is begun")
	}
	if g.text[site].Slice(0, g.code.Traits.BreakpointLen) == g.code.Arch.Breakpoint() && g.refs == 0 {
		g.exposed = append(g.exposed, "a breakpoint is placed that no handler finds")
	}
}
func (g *paper) StoreLiteral(site int, ops uint64) { g.ops[site] = ops }
func (g *paper) Begin(site int, c cpus.Change) {
	if g.begun == nil {
		g.begun = map[int]cpus.Change{}
	}
	g.begun[site] = c
}
func (g *paper) Unsettle(int) {}
func (g *paper) Publish(_ int, patches []Patch, undo bool) {
	for i := range patches {
		g.must(g.begun[int(patches[i].Site)] == patches[i].Change(undo), "a site is published before its update is begun")
	}
	g.must(g.published == 0, "something is published before what was is forgotten")
	g.published++
	g.refs = 1
}
func (g *paper) Unpublish() {
	g.must(g.refs == 1, "what is not published is taken away")
	g.refs--
	for _, t := range g.text {
		if t.Slice(0, g.code.Traits.BreakpointLen) == g.code.Arch.Breakpoint() {
			g.exposed = append(g.exposed, "a breakpoint is left that no handler finds")
		}
	}
}
func (g *paper) Drained() bool { return g.refs == 0 }
func (g *paper) Clear()        { g.published = 0 }

// must notes what must not happen.
func (g *paper) must(is bool, not string) {
	if !is {
		g.exposed = append(g.exposed, not)
	}
}
func (g *paper) Send(c cpus.Cause, _ bool) {
	if c == cpus.Quiesce {
		g.graces++
		return
	}
	g.rounds++
	if g.stopped && !g.code.Traits.MaskedRounds {
		g.exposed = append(g.exposed, "a round is sent to CPUs that stand still")
	}
}
func (g *paper) Answered() bool { return true }
func (g *paper) StopMachine(bool) bool {
	g.must(!g.stopped, "the machine is stopped twice")
	g.stopped, g.stops = true, g.stops+1
	return true
}
func (g *paper) SetOps(uint64, cpus.Outcome) {}
func (g *paper) Settle(int, isa.Text)        {}
func (g *paper) Share(a Access) bool {
	switch a.Op {
	case Lock, Unlock:
		free := !g.locks[a.Mutex]
		g.locks[a.Mutex] = a.Op == Lock
		return free
	case Map:
		g.mapped = int(a.Site) + 1
	case Walk:
		return g.below
	}
	return true
}
func (g *paper) Stopped() bool  { return true }
func (g *paper) ResumeMachine() { g.stopped = false }
func (g *paper) SyncSelf()      {}

// world is a paper with patches for all its sites.
func world(t testing.TB, p *Protocol, s Shape) (*paper, []Patch) {
	t.Helper()
	arch, err := cpus.ParseArch(s.Traits.Name)
	if err != nil {
		t.Fatal(err)
	}
	code := &cpus.Code{Arch: arch, Traits: s.Traits, Layout: p.Layout, Len: s.Len, Entry: 0x100000}
	if code.Path, err = p.Path(s); err != nil {
		t.Fatal(err)
	}
	g := &paper{code: code}
	var patches []Patch
	for i := range s.Patches {
		site, err := arch.Site(records.Addr(0x200004+64*i), p.Layout)
		if err != nil {
			t.Fatal(err)
		}
		on, _, err := arch.Enabled(site, isa.Destination{Target: code.Entry, Entry: code.Entry})
		if err != nil {
			t.Fatal(err)
		}
		off := arch.Disabled(site)
		code.Sites = append(code.Sites, site.Addr)
		g.text, g.ops = append(g.text, off), append(g.ops, 1)
		patches = append(patches, Patch{Site: int32(i), Addr: site.Addr, Old: off, New: on, OldOps: 1, NewOps: 2})
	}
	return g, patches
}

// is tells whether a site is wholly old or wholly new.
func (g *paper) is(p *Patch, undo bool, literals bool) bool {
	return g.text[p.Site] == p.text(undo) && (!literals || g.ops[p.Site] == p.Ops(undo))
}
