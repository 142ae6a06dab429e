// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus"
)

// TestUndoOfForms lets every store of plans of many forms fail: the built-in ones', and others.
func TestUndoOfForms(t *testing.T) {
	around := func(begin, end string, batch ...string) string {
		return lines(append(append([]string{"name: x", "once before:", begin, "every batch:"}, batch...), "once after:",
			end)...)
	}
	phases := func(l ...string) []string {
		return append(append([]string{"Publish", "Write breakpoint"}, l...), "Write head", "Unpublish", "WaitHandlers")
	}
	for what, src := range map[string]string{
		"three phases":           steps(phases("Sync 1", "Write tail if tail", "Sync 2")...),
		"under a lock":           around("Lock text_mutex", "Unlock text_mutex", phases()...),
		"a stopped machine":      around("StopMachine", "Resume", "Write word"),
		"whole sites":            steps("for each patch", "Write literal if literal", "Write word", "end"),
		"whole sites, published": steps("Publish", "Write word", "Unpublish", "WaitHandlers"),
		"a lock for each batch":  steps("Lock text_mutex", "Write word", "Unlock text_mutex"),
		"a stop for each batch":  steps("StopMachine", "Write word", "Resume"),
		"written behind the stop": lines("name: x", "once before:", "StopMachine", "Resume", "every batch:",
			"Write word"),
		"phases inside stop_machine": around("StopMachine", "Resume", phases()...),
		"published for everything": lines("name: x", "once before:", "Publish", "every batch:", "Write breakpoint",
			"Write head", "once after:", "Unpublish", "WaitHandlers"),
		"published twice":           steps(append(phases(), phases()...)...),
		"forgotten, not waited for": steps("Publish", "Write breakpoint", "Write head", "Unpublish", "Clear"),
		"handlers waited for late":  steps("Publish", "Write breakpoint", "Unpublish", "Write head", "WaitHandlers"),
		"two breakpoints":           steps(phases("Write breakpoint")...),
		"two tails":                 steps(phases("Write tail if tail", "Write tail if tail")...),
		"a tail before it": steps("Publish", "Write tail if tail", "Write breakpoint", "Write head", "Unpublish",
			"WaitHandlers"),
		"a breakpoint that stays":   steps("Publish", "Write breakpoint", "Unpublish", "WaitHandlers"),
		"a word under a breakpoint": steps(phases("Write word")...),
		"half a literal": steps("Publish", "Write literal-low if literal", "Write word", "Unpublish",
			"WaitHandlers"),
		"breakpoints site by site": steps("Publish", "for each patch", "Write breakpoint", "Write head", "end",
			"Unpublish", "WaitHandlers"),
		"mapped pages": steps("for each patch", "Map", "Write word", "end"),
	} {
		p := parse(t, "x.plan", []byte(src))
		for _, arch := range cpus.ArchNames() {
			if what == "half a literal" && arch == "x86_64" || strings.Contains(what, "tail") && arch != "x86_64" {
				continue // nothing is left of that
			}
			plan := compile(t, p, shapeOf(t, arch, p, 7, false), 3)
			for k := 0; undoneAt(t, t, p, shapeOf(t, arch, p, 7, false), plan, k); k++ {
			}
		}
	}
}

// somePlan draws a plan file that can be carried out, and is most probably wrong.
func somePlan(t *rapid.T) string {
	d := &drawn{t: t, locks: map[Mutex]bool{}}
	d.line("name: drawn")
	d.line("batching: " + rapid.SampledFrom(batchingNames).Draw(t, "batching"))
	d.line("layout: " + rapid.SampledFrom(layoutNames).Draw(t, "layout"))
	d.line("locks: " + rapid.SampledFrom(locksNames).Draw(t, "locks"))
	around := rapid.SampledFrom([][2][]string{
		{}, {{"StopMachine"}, {"Resume"}}, {{"Lock text_mutex"}, {"Unlock text_mutex"}}, {{"Publish"},
			{"Unpublish", "WaitHandlers"}},
	}).Draw(t, "around")
	d.published, d.stopped = len(around[1]) == 2, len(around[0]) == 1 && around[0][0] == "StopMachine"
	d.locks[TextMutex] = len(around[0]) == 1 && strings.HasPrefix(around[0][0], "Lock")
	if len(around[0]) > 0 {
		d.line("once before:", around[0]...)
	}
	d.line("every batch:")
	d.block(0)
	if len(around[1]) > 0 {
		d.line("once after:", around[1]...)
	}
	return strings.Join(d.lines, "\n")
}

type drawn struct {
	t         *rapid.T
	lines     []string
	round     int
	looping   bool
	published bool
	stopped   bool
	locks     map[Mutex]bool
}

func (d *drawn) line(first string, more ...string) { d.lines = append(append(d.lines, first), more...) }

// block draws steps, some of them around other blocks.
func (d *drawn) block(depth int) {
	for range rapid.IntRange(1, 5).Draw(d.t, "steps") {
		kind := rapid.IntRange(0, 12).Draw(d.t, "kind")
		if kind == 12 { // breakpoints need it
			kind = 7
		}
		if depth > 2 {
			kind %= 7
		}
		switch kind {
		default:
			part := rapid.SampledFrom(partNames[:]).Draw(d.t, "part")
			when := map[bool]string{true: " if tail", false: ""}[part == "tail"]
			if strings.HasPrefix(part, "literal") {
				when = " if literal"
			}
			d.line("Write " + part + when)
		case 4:
			d.line(rapid.SampledFrom([]string{"Fence", "Fence if stores-buffered", "Fence if literal and not tail"}).Draw(d.t,
				"fence"))
		case 5:
			if d.round++; d.round < 200 {
				d.line(fmt.Sprintf("Sync %d if not masked-rounds", d.round), fmt.Sprintf("Sync %d lazy if masked-rounds", d.round))
			}
		case 6:
			if d.looping {
				d.line("Map")
			}
		case 7:
			d.inside(&d.published, depth, "Publish", rapid.SampledFrom([]string{"Unpublish\nWaitHandlers", "Unpublish\nClear",
				"Clear\nUnpublish"}).Draw(d.t, "end"))
		case 8:
			d.inside(&d.stopped, depth, "StopMachine", "Resume")
		case 9:
			if m := Mutex(rapid.IntRange(0, NumMutexes-1).Draw(d.t, "lock")); !d.locks[m] {
				d.locks[m] = true
				d.line("Lock " + m.String())
				d.block(depth + 1)
				d.line("Unlock " + m.String())
				d.locks[m] = false
			}
		case 10, 11:
			d.inside(&d.looping, depth, loopBegins, loopEnds)
		}
	}
}

func (d *drawn) inside(flag *bool, depth int, begin, end string) {
	if *flag {
		return
	}
	*flag = true
	d.line(begin)
	d.block(depth + 1)
	d.line(end)
	*flag = false
}

// TestUndoOfAnyFile lets every store of plans that nobody would write fail: the
// way may be unsafe, but all is old afterwards and nothing is left behind. A plan
// that does not fail leaves nothing behind either.
func TestUndoOfAnyFile(t *testing.T) {
	accepted, stores := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		src := somePlan(rt)
		p, err := ParseProtocol("drawn.plan", []byte(src))
		if err != nil { // a breakpoint that nothing publishes
			return
		}
		accepted++
		for _, arch := range cpus.ArchNames() {
			s := shapeOf(t, arch, p, 4, rapid.Bool().Draw(rt, "detach"))
			if p.check(s) != nil {
				continue
			}
			var plan []Step
			compileInto(t, p, s, 3, func(st Step) { plan = append(plan, st) })
			for k := 0; undoneAt(t, rt, p, s, plan, k); k++ {
				stores++
			}
		}
		if rt.Failed() {
			rt.Logf("the plan:\n%s", src)
		}
	})
	if !testing.Short() && (accepted == 0 || stores < 100) { // in short runs rapid draws a fifth
		t.Errorf("%d plans were accepted, %d stores failed", accepted, stores)
	}
}

// undoneAt lets store k of a plan fail and takes it back. It tells whether the
// plan has that many stores.
func undoneAt(t *testing.T, rt rapid.TB, p *Protocol, s Shape, plan []Step, k int) bool {
	g, pt, failed := failStore(t, p, s, plan, k)
	patches := pt.Patches
	g.exposed = nil // what the plan itself exposes is its own business
	var back []Step
	if failed {
		back = Undo(plan, pt.At, pt.Done, s)
		b := &Patcher{Code: g.code, Patches: patches, Plan: back}
		if err := drive(t, t.Context(), b, g, cpus.NewRandom(uint64(k), 2)); err != nil {
			rt.Fatal(err)
		}
		b.drain(g)
		for i := range patches {
			if !g.is(&patches[i], true, s.Literals()) {
				rt.Errorf("%s, store %d of %v failed, back by %v: site %d holds %s, ops %d", s.Traits.Name, k, plan, back, i,
					g.text[i].Format(s.Len), g.ops[i])
			}
		}
		for _, e := range g.exposed {
			if !strings.Contains(e, "breakpoint") { // it may have been there already
				rt.Errorf("%s, store %d of %v failed, back by %v: %s", s.Traits.Name, k, plan, back, e)
			}
		}
	}
	if g.refs != 0 || g.published != 0 || g.stopped || g.locks != [NumMutexes]bool{} {
		rt.Errorf("%s, store %d of %v failed, back by %v: %d references, %d batches published, stopped %v, locks %v",
			s.Traits.Name, k, plan, back, g.refs, g.published, g.stopped, g.locks)
	}
	return failed
}
