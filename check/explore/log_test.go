// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
)

// annals is the log's twin: nothing is ever dropped from it, and positions are never
// counted anew. What can be fetched is worked out from docs/fetch-models.md.
type annals struct {
	m       *Model
	stores  []annal
	initial []isa.Text
	synced  []int // by CPU: the stores that it has seen
	promise []promise
	met     []promise // the promises that calls at site 0 were made with; see caller
}

// annal is a store, and what it left.
type annal struct {
	site int
	text isa.Text
}

// promise is about the stores from one on; its number is another one whenever it was
// taken back. Nothing is promised where none is made.
type promise struct {
	made         bool
	from, number int
}

// texts are what a CPU may see of a site, the oldest first, and those of them that the
// promise allows.
func (a *annals) texts(cpu, site int) (seen, allowed []isa.Text) {
	p := a.promise[site]
	seen = []isa.Text{a.initial[site]}
	if p.from == 0 {
		allowed = seen
	}
	for i, s := range a.stores {
		if s.site != site {
			continue
		}
		if i < a.synced[cpu] {
			seen, allowed = nil, nil
		}
		if seen = append(seen, s.text); i+1 >= p.from {
			allowed = append(allowed, s.text)
		}
	}
	return seen, allowed
}

// settle promises a text, or the store to come that leads to it.
func (a *annals) settle(site int, want isa.Text) {
	last, text := 0, a.initial[site]
	for i, s := range a.stores {
		if s.site == site {
			last, text = i+1, s.text
		}
	}
	if text != want {
		last = len(a.stores) + 1
	}
	a.promise[site].made, a.promise[site].from = true, last
}

// fetchable is every text that one fetch at a site can make of versions, the oldest
// first.
func fetchable(m *Model, site int, versions []isa.Text) map[isa.Text]bool {
	at, n := m.Code.Sites[site], m.Code.Traits.FetchLen
	quadword := func(i int) bool { return i > 0 && (int(at)+i)%8 == 0 }
	whole := m.Code.Fetch == cpus.Quadword || m.Code.Fetch == cpus.Atomic
	var cuts []int // where the parts begin that never mix
	for i := range n {
		if grain := m.Code.Arch.Grain(at + records.Addr(i)); i == 0 || i%grain == 0 && (!whole || quadword(i)) {
			cuts = append(cuts, i)
		}
	}
	type fetched struct {
		text isa.Text
		from int // the oldest version that what follows can come from
	}
	mix := func(from, to int, coherent bool) (list []fetched) { // each part from one of versions [from, to)
		list = []fetched{{from: from}}
		for part, cut := range cuts {
			end := n
			if part+1 < len(cuts) {
				end = cuts[part+1]
			}
			next := map[fetched]bool{}
			for _, f := range list {
				from := f.from
				if coherent && quadword(cut) { // the last store may not have got here
					from = max(from-1, 0)
				}
				for v := from; v < to; v++ {
					g := fetched{f.text.Splice(cut, end-cut, versions[v].Slice(cut, end-cut)), f.from}
					if coherent {
						g.from = v
					}
					next[g] = true
				}
			}
			list = slices.Collect(maps.Keys(next))
		}
		return list
	}
	out := map[isa.Text]bool{}
	add := func(list []fetched) {
		for _, f := range list {
			out[f.text] = true
		}
	}
	if m.Code.Fetch != cpus.Atomic {
		add(mix(0, len(versions), m.Code.Fetch == cpus.Coherent))
		return out
	}
	for v := range versions {
		add(mix(v, min(v+2, len(versions)), false))
	}
	return out
}

// TestDroppedStoresAreMissedByNobody holds the log against one that keeps all: whatever
// was stored, promised and seen, every CPU may fetch the same and is told the same.
func TestDroppedStoresAreMissedByNobody(t *testing.T) {
	t.Parallel()
	for _, fetch := range cpus.Fetches() {
		t.Run(fetch.String(), func(t *testing.T) {
			dropped := 0
			rapid.Check(t, func(rt *rapid.T) { dropped += checkLog(rt, t, fetch) })
			if dropped < 10 {
				t.Errorf("%d stores dropped: this proves little", dropped)
			}
		})
	}
}

func checkLog(rt *rapid.T, t *testing.T, fetch cpus.Fetch) (dropped int) {
	s := setup(t, "x86_64", "breakpoint", "", 3, 2)
	// Two bytes are few enough for coherent ones to be dropped often.
	lengths := rapid.SampledFrom([][]int{nil, {2}, {2}}).Draw(rt, "lengths")
	s.Fetch, s.Workload, s.Lengths = fetch, Endless, lengths
	m, err := s.Model()
	if err != nil {
		rt.Fatal(err)
	}
	m.Code.Sites[1] += records.Addr(rapid.IntRange(0, 7).Draw(rt, "at"))
	m.findGrains()
	few := rapid.IntRange(2, 4).Draw(rt, "texts")
	a := &annals{
		m:       m,
		synced:  make([]int, len(m.Roles)),
		promise: make([]promise, 2),
		met:     make([]promise, 3*len(m.Roles)),
	}
	for site := range m.texts {
		m.texts[site] = nil
		for len(m.texts[site]) < few {
			x := isa.Text(0)
			for i := range m.Code.Traits.FetchLen {
				x = x.Splice(i, 1, isa.Text(rapid.IntRange(0, 2).Draw(rt, "byte")))
			}
			m.texts[site] = append(m.texts[site], x)
		}
		m.Initial[site] = m.texts[site][0]
		a.initial = append(a.initial, m.Initial[site])
	}
	m.layout.stores = maxStores
	w := newWorld(m)
	for range rapid.IntRange(1, 60).Draw(rt, "steps") {
		cpu, site := rapid.IntRange(0, 2).Draw(rt, "cpu"), min(rapid.IntRange(0, 3).Draw(rt, "site")/3, 1)
		text := rapid.SampledFrom(m.texts[site]).Draw(rt, "text")
		do := rapid.SampledFrom([]string{"store", "store", "store", "store", "store", "sync", "settle", "meet"}).
			Draw(rt, "do")
		if do == "settle" && a.promise[site].made { // who promises anew has taken back first
			do = "take back"
		}
		switch do {
		case "store":
			w.Store(site, 0, m.Code.Traits.FetchLen, text)
			if w.full {
				return dropped
			}
			a.stores = append(a.stores, annal{site, text})
		case "sync":
			w.cpu[cpu].Synced = w.Seq()
			a.synced[cpu] = len(a.stores)
		case "settle":
			w.Settle(site, text)
			a.settle(site, text)
		case "take back":
			w.Unsettle(site)
			a.promise[site] = promise{number: a.promise[site].number + 1}
		case "meet":
			i := cpu + len(m.Roles)*rapid.IntRange(0, 2).Draw(rt, "who")
			*w.caller(i), a.met[i] = w.settled[0], a.promise[0]
		}
		before := w.logged
		w.outdate()
		w.forget()
		dropped += max(0, before-w.logged)
		if diff := a.differs(w); diff != "" {
			rt.Fatalf("%s\nstores %v, seen %v, promises %v\nlog %v of %v, settled %v", diff, a.stores, a.synced, a.promise,
				w.log[:w.logged], m.texts, w.settled[:2])
		}
	}
	return dropped
}

// differs says what a CPU could do with the log that it could not with the annals, or
// the other way round.
func (a *annals) differs(w *world) string {
	set := func(texts []isa.Text) map[isa.Text]bool {
		out := map[isa.Text]bool{}
		for _, t := range texts {
			out[t] = true
		}
		return out
	}
	for cpu := range a.synced {
		for site := range a.initial {
			window, settled := w.Window(site, w.cpu[cpu].Synced, nil)
			var texts, allowed []isa.Text
			for _, v := range slices.Backward(window) {
				if texts = append(texts, v.Text); v.Seq >= settled.Seq() {
					allowed = append(allowed, v.Text)
				}
			}
			wantTexts, wantAllowed := a.texts(cpu, site)
			who := fmt.Sprintf("cpu %d, site %d", cpu, site)
			switch got, want := fetchable(a.m, site, texts), fetchable(a.m, site, wantTexts); {
			case !maps.Equal(got, want):
				return fmt.Sprintf("%s: may fetch %v, want %v", who, got, want)
			case !maps.Equal(set(texts), set(wantTexts)):
				return fmt.Sprintf("%s: versions %v, want %v", who, texts, wantTexts)
			case settled.Seq() != 0 != a.promise[site].made:
				return fmt.Sprintf("%s: promise %v, want %v", who, settled, a.promise[site])
			case settled.Seq() != 0 && !maps.Equal(set(allowed), set(wantAllowed)):
				return fmt.Sprintf("%s: promised %v, want %v", who, allowed, wantAllowed)
			}
		}
	}
	for i, p := range a.met {
		if current := *w.caller(i) == w.settled[0]; p.made && current != (p == a.promise[0]) {
			return fmt.Sprintf("call %d: its promise is current: %v", i, current)
		}
	}
	return ""
}

// caller is the promise of the i-th call: one that a CPU makes, that was preempted there,
// or that an NMI has interrupted there.
func (w *world) caller(i int) *cpus.Promise {
	switch n := len(w.m.Roles); i / n {
	case 0:
		return &w.cpu[i].Promise
	case 1:
		return &w.parked[i-n].Promise
	default:
		return &w.under[i-2*n].Promise
	}
}

// TestPromisesOfWhatNeverComes: what is promised before it is stored is promised about the
// store to come. A store to another site, which every CPU has seen, is not that one.
func TestPromisesOfWhatNeverComes(t *testing.T) {
	s := setup(t, "x86_64", "stop-machine", "", 2, 2)
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	m = &Model{
		Code: m.Code, Roles: m.Roles, Initial: m.Initial, Literals: m.Literals, NopOps: m.NopOps,
		Lookup: m.Lookup, Refs: m.Refs, SameSites: true, anyEnd: true,
		Programs: []Program{{Patches: m.Programs[0].Patches, Plan: []poke.Step{
			{Op: poke.Attach, To: 1}, {Op: poke.StopMachine}, {Op: poke.Settle, To: 1},
			{Op: poke.Write, Part: poke.Word, From: 1, To: 2}, {Op: poke.Resume}, {Op: poke.Sync, Round: 1},
		}}},
	}
	if err := m.Prepare(); err != nil {
		t.Fatal(err)
	}
	for _, r := range reductions {
		got, err := Explore(t.Context(), m, Options{Reduce: r.Reductions})
		if err != nil {
			t.Fatal(err)
		}
		if got.Verdict != Unsafe || got.Violation.Property != cpus.StaleAfterCompletion {
			t.Errorf("reduce %s: %s %v, want a call of what was replaced", r.name, got.Verdict, got.Violation)
			continue
		}
		if _, err := Replay(m, got.Trace); err != nil {
			t.Errorf("reduce %s: %v", r.name, err)
		}
	}
}

// TestEnginesAskTheSame: what is dropped from the log is nothing to choose from on the live
// machine, which keeps it: stores of what is there already, and of what comes again.
func TestEnginesAskTheSame(t *testing.T) {
	for _, fetch := range cpus.Fetches() {
		for _, parts := range [][]poke.Part{
			{poke.Word, poke.Head, poke.Breakpoint},
			{poke.Breakpoint, poke.Breakpoint, poke.Head, poke.Word, poke.Breakpoint, poke.Head},
		} {
			s := setup(t, "x86_64", "breakpoint", "", 2, 1)
			s.Fetch = fetch
			m, err := s.Model()
			if err != nil {
				t.Fatal(err)
			}
			plan := []poke.Step{{Op: poke.Attach, To: 1}}
			for _, part := range parts {
				plan = append(plan, poke.Step{Op: poke.Write, Part: part, To: 1})
			}
			m.Roles[1] = cpus.Idle // so that nobody fetches before the plan is through
			m = &Model{
				Code: m.Code, Roles: m.Roles, Initial: m.Initial, Literals: m.Literals, NopOps: m.NopOps,
				Lookup: m.Lookup, Refs: m.Refs, SameSites: true, anyEnd: true,
				Programs: []Program{{Patches: m.Programs[0].Patches, Plan: plan}},
			}
			if err := m.Prepare(); err != nil {
				t.Fatal(err)
			}
			got, err := Explore(t.Context(), m, Options{})
			if err != nil || got.Verdict != Unsafe {
				t.Fatal(got, err)
			}
			if _, err := Replay(m, got.Trace); err != nil {
				t.Errorf("%s, %v: %v", fetch, parts, err)
			}
		}
	}
}

// TestNothingIsLeftToForget: in every state that is reached the log holds nothing that
// could be dropped, though most steps do not look; see needsLess.
func TestNothingIsLeftToForget(t *testing.T) {
	limit := 500
	if *long {
		limit = 20000
	}
	states := 0
	eachSetup(t, 3, 2, func(name string, s Setup) {
		if s.Roles[2] = cpus.Idle; s.Fetch != cpus.Weak && s.Fetch != cpus.Coherent {
			return
		}
		s.Workload = Endless
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		w, words := newWorld(m), make([]uint64, m.layout.words)
		e := newExpander(m, Reductions{})
		queue := [][]uint64{e.initial()}
		seen := map[string]bool{string(stateKey(nil, queue[0])): true}
		for ; len(queue) > 0 && len(seen) < limit; queue = queue[1:] {
			e.expand(queue[0], func(found *cpus.Violation) bool {
				if key := string(stateKey(nil, e.next)); found == nil && !seen[key] {
					seen[key] = true
					queue = append(queue, slices.Clone(e.next))
					w.unpack(e.next)
					w.outdate()
					w.forget()
					if w.pack(words); !slices.Equal(words, e.next) {
						t.Fatalf("%s: after %s the log holds %v, of which is left %v", name, e.action.spell(e.answers()),
							e.w.log[:e.w.logged], w.log[:w.logged])
					}
				}
				return true
			})
		}
		states += len(seen)
	})
	t.Logf("%d states", states)
}
