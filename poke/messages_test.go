// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
)

// TestMessages: all that is said of wrong files and steps, whole.
func TestMessages(t *testing.T) {
	var out strings.Builder
	for _, tt := range refused {
		_, err := ParseProtocol("my.plan", []byte(tt.src))
		fmt.Fprintf(&out, "%s: %v\n", tt.what, err)
	}
	for _, src := range []string{
		steps("Walk now", "Write word"), steps("Walk masked now", "Write word"), steps("StopMachine lasy", "Write word",
			"Resume"),
		steps("StopMachine lazy now", "Write word", "Resume"), steps("Unpublish 1"), steps("Write bytes"),
		steps("Write bytes 1-6 2"),
		steps("Write bytes 6-1"), steps("Write bytes 1-8"), steps("Write bytes 0-7"), steps("Write bytes 3",
			"Write bytes 0-4"),
		steps("Unlock"), steps("Lock init_mm now"), steps("Sync 0"), steps("Sync 255", "Write word"), steps("Sync 1 lazy",
			"Write word"),
		steps("Write literal-low", "Write word"), steps("Write tail", "Write word"),
		steps("StopMachine", "Write word", "Sync 1", "Resume"),
		steps("Publish", "Write breakpoint", "Write tail if tail", "Write head", "Unpublish", "WaitHandlers"),
	} {
		p, err := ParseProtocol("my.plan", []byte(src))
		fmt.Fprintf(&out, "%s: %v\n", strings.ReplaceAll(src, "\n", "|"), err)
		if err != nil {
			continue
		}
		for _, arch := range cpus.ArchNames() {
			var plan []string
			err := p.Compile(shapeOf(t, arch, p, 2, false), cut(2, 2), func(s Step) { plan = append(plan, s.String()) })
			fmt.Fprintf(&out, "\t%s: %s: %v\n", arch, strings.Join(plan, ", "), err)
		}
	}
	for _, text := range []string{
		"", "Wirte tail", "Write", "Write 0", "Write tial", "Write tail 3..1", "Write tail 1..1", "Write tail x",
		"Write tail 1 2",
		"Write tail -1", "Write tail back 1", "Write tail 1 back now", "Fence back", "Fence 1", "Sync", "Sync 0", "Sync 256",
		"Sync 1 lazy",
		"Sync 1 back", "Lock", "Lock big", "Lock text_mutex 1", "Walk masked", "Walk maskd", "Map 3", "Map 3 back",
		"Attach back", "Settle",
		"Write bytes", "Write bytes 1-6", "Write bytes 1-6 2..3 back", "Write bytes 0-8", "StopMachine lazy", "Verify 0..255",
	} {
		st, err := ParseStep(text)
		fmt.Fprintf(&out, "%q: %s %d %d, %v\n", text, st, st.From, st.To, err)
	}
	golden(t, "messages.txt", out.String())
}

// TestLives: a tracer's life around a plan, with each of its parts and without.
func TestLives(t *testing.T) {
	var out strings.Builder
	plans := map[string][]Step{
		"word":         {{Op: Write, Part: Word, To: 2}, {Op: Sync, Round: 1}},
		"grace period": {{Op: Write, Part: Word, To: 2}, {Op: GracePeriod}},
		"own mutex": {{Op: Fence}, {Op: Lock, Mutex: TextMutex}, {Op: Write, Part: Head, To: 2}, {Op: Unlock,
			Mutex: TextMutex},
			{Op: Lock, Mutex: JumpLabelMutex}, {Op: Unlock, Mutex: JumpLabelMutex}},
	}
	for _, name := range []string{"word", "grace period", "own mutex"} {
		for n := range 64 {
			is := func(bit int) bool { return n>>bit&1 != 0 }
			l := Life{Patches: 2, Settles: is(0), Locked: is(1), Fenced: is(2)}
			attach, release, undo := is(3), is(4), is(5)
			if l.Fenced && !attach {
				continue
			}
			var steps []string
			for _, s := range l.Update(plans[name], undo, attach, release) {
				steps = append(steps, s.String())
			}
			fmt.Fprintf(&out, "%s, settles %v, locked %v, fenced %v, attach %v, release %v, undo %v: %s\n", name, l.Settles,
				l.Locked, l.Fenced,
				attach, release, undo, strings.Join(steps, ", "))
		}
	}
	golden(t, "lives.txt", out.String())
	l := Life{Patches: 1, Settles: true}
	want := append(l.Update(plans["word"], false, true, false), l.Update(plans["word"], true, false, true)...)
	if diff := cmp.Diff(want, l.Toggle(plans["word"], plans["word"])); diff != "" {
		t.Error(diff)
	}
}

// inTurn lets stores wait, or not, in turn.
type inTurn struct{ n, every int }

func (c *inTurn) Choose(what cpus.Choice, n int) int {
	if what != cpus.ChooseDrain || n != 4 {
		return 0
	}
	c.n++
	return c.n % c.every
}

// TestProgress: a patcher that is set to where another one had got goes on as that one does, with all that waits.
func TestProgress(t *testing.T) {
	for _, name := range []string{"breakpoint", "word", "word-rounds", "text-poke"} {
		for every := 1; every < 4; every++ {
			p := shipped()[name]
			if p == nil {
				continue
			}
			s := shapeOf(t, "riscv64", p, 2, false)
			if p.check(s) != nil {
				continue
			}
			g, patches := world(t, p, s)
			plan := append([]Step{{Op: Attach, To: 2}}, compile(t, p, s, 2)...)
			a := &Patcher{Code: g.code, Patches: patches, Plan: append(plan, Step{Op: Release, To: 2})}
			ch := &inTurn{every: every}
			stores, most := a.Stores()
			seen := 0
			for steps := 0; ; steps++ {
				if steps > 1000 {
					t.Fatalf("%s: it does not end", name)
				}
				progress := a.Progress([]StoreID{})
				b := &Patcher{Code: g.code, Patches: patches, Plan: a.Plan}
				b.Resume(progress)
				if diff := cmp.Diff(progress, b.Progress(make([]StoreID, 9))); diff != "" {
					t.Fatalf("%s: %s", name, diff)
				}
				at, done, stage := b.Place()
				if at != a.At || done != a.Done || stage != a.stage || a.Waiting() != len(progress.Buffered) ||
					a.Waiting() > most ||
					a.Begun() != (stage > 0 || done > 0) || a.InPatch() != (stage > 0) || a.Clearing() != (stage == clearing) {
					t.Fatalf("%s: at %d, %d, %d: %d wait of %d", name, at, done, stage, a.Waiting(), most)
				}
				seen = max(seen, a.Waiting())
				held := map[string]bool{}
				for i, id := range progress.Buffered {
					if !slices.Contains(stores, id) {
						t.Errorf("%s: %+v is none of its stores", name, id)
					}
					site, off, n, text, code := b.StoreAt(id)
					st := a.Plan[id.At]
					switch {
					case st.Op == Write && code != !st.WritesLiteral(), st.Op == Write && (n == 0 || off+n > 8):
						t.Errorf("%s: %s stores %d bytes at %d: %v, %v", name, st, n, off, text, code)
					case st.Op == Write:
						held[fmt.Sprint("site ", site, !code)] = true
					default:
						held[fmt.Sprint("batch ", st.Op == Publish || st.Op == Unpublish)] = true
					}
					first := slices.IndexFunc(a.buffer, func(s store) bool { return s.place == a.buffer[i].place }) == i
					c, paper := &Patcher{Code: g.code, Patches: patches, Plan: a.Plan}, *g
					paper.text, paper.ops = slices.Clone(g.text), slices.Clone(g.ops)
					c.Resume(progress)
					if c.Drain(len(progress.Buffered), &paper) || c.Drain(i, &paper) != first ||
						first && slices.Contains(c.Progress(nil).Buffered, id) {
						t.Errorf("%s: store %d of %+v, the first of its place: %v", name, i, progress.Buffered, first)
					}
				}
				for site := range int32(2) {
					for _, literal := range []bool{false, true} {
						if a.Holds(site, literal) != held[fmt.Sprint("site ", site, literal)] {
							t.Errorf("%s: holds a store to site %d, literal %v: %v", name, site, literal, a.Holds(site, literal))
						}
					}
				}
				if a.HoldsBatch() != held["batch true"] || a.HoldsOps() != held["batch false"] {
					t.Errorf("%s: holds %v: batch %v, ops %v", name, held, a.HoldsBatch(), a.HoldsOps())
				}
				status, err := a.Step(t.Context(), g, ch)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if status == Ended {
					break
				}
			}
			if (seen > 0) != (every != 0) && every > 1 {
				t.Errorf("%s: %d stores have waited", name, seen)
			}
		}
	}
}

// TestPassed: combinations without a mutation are left out, unless none has it.
func TestPassed(t *testing.T) {
	var p Passed
	lacks := func(name, protocol string) error {
		return fmt.Errorf("point 1: %w", &NotOffered{Mutation: name, Protocol: protocol, Arch: "arm64",
			Offered: []string{"a", "b"}})
	}
	broken := errors.New("broken")
	for i, c := range []struct {
		mutation string
		err      error
		out      bool
		want     error
	}{
		{"x", lacks("x", "word"), true, nil}, {"x", lacks("x", "word"), true, nil}, {"x", nil, false, nil},
		{"x", broken, false, broken}, {"x", lacks("x", "native"), true, nil},
	} {
		if out, err := p.Take(c.mutation, c.err); out != c.out || !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%d: %v, %v", i, out, err)
		}
	}
	notes, err := p.Notes()
	if diff := cmp.Diff([]string{"left out: word on arm64, which has no x", "left out: native on arm64, which has no x"},
		notes); diff != "" ||
		err != nil {
		t.Errorf("%v %s", err, diff)
	}
	first, second := lacks("y", "word"), lacks("y", "native")
	for _, err := range []error{first, second, broken} {
		_, _ = p.Take("y", err)
	}
	if notes, err := p.Notes(); notes != nil || !errors.Is(err, first) {
		t.Errorf("%v, %v, want %v", notes, err, first)
	}
	if want := `point 1: mutation "y": protocol word on arm64 has nothing of the kind; it offers a, b`; first.Error() != want {
		t.Errorf("%v, want %s", first, want)
	}
	if notes, err := new(Passed).Notes(); notes != nil || err != nil {
		t.Errorf("%v, %v", notes, err)
	}
}

// TestNamed: all that has a name says it, and finds itself by it.
func TestNamed(t *testing.T) {
	if names := MutationNames(); len(names) != len(AllMutations()) || names[0] != AllMutations()[0].Name ||
		len(names) < 15 {
		t.Errorf("%v", names)
	}
	for _, name := range Names() {
		p := Named(name, isa.Traits{FetchLen: 4, BreakpointLen: 4})
		if p == nil || p.Name != name || len(p.Text()) == 0 {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if Named("nobody", isa.Traits{}) != nil || new(Protocol).Text() != nil {
		t.Error("a protocol that there is not")
	}
	for want, traits := range map[string]isa.Traits{"word-rounds": {RoundPerLiteral: true, FetchLen: 4, BreakpointLen: 4},
		"breakpoint": {FetchLen: 1, BreakpointLen: 2}, "word": {FetchLen: 4, BreakpointLen: 4}} {
		if got := nativeOf(traits); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if len(ShippedPlans()) != len(Protocols())+1 || len(Protocols())+1 != len(Names()) {
		t.Errorf("%d plans, %d protocols, %v", len(ShippedPlans()), len(Protocols()), Names())
	}
}

// TestMutatedPlans: the sums of each plan with each defect that it can have. Where one changes, textpoke plan shows
// what.
func TestMutatedPlans(t *testing.T) {
	var out strings.Builder
	for _, arch := range cpus.ArchNames() {
		for _, name := range Names() {
			a, _ := cpus.ParseArch(arch)
			p := Named(name, a.Traits())
			s := shapeOf(t, arch, p, 3, true)
			if p.check(s) != nil {
				continue
			}
			fmt.Fprintf(&out, "%s %s: literals %v, changed %v, frees %v\n", arch, name, s.Literals(), p.ChangesLiterals(s),
				s.Frees())
			for _, m := range append([]Mutation{{Name: "none"}}, p.Mutations(s)...) {
				sum, n := sha256.New(), 0
				outline := p.Outline(s, m)
				fmt.Fprintln(sum, outline)
				if err := p.Compile(s, cut(3, 2), m.Through(func(st Step) { fmt.Fprintln(sum, st); n++ })); err != nil {
					fmt.Fprintln(sum, err)
				}
				path, err := p.Path(s)
				fmt.Fprintln(sum, m.OnPath(path), err)
				fmt.Fprintf(&out, "\t%.6x %s: %d steps\n", sum.Sum(nil), m.Name, n)
			}
		}
	}
	golden(t, "mutated.txt", out.String())
}

// TestFrees: what enabled sites call goes with its tracer unless one word calls the entry common to all.
func TestFrees(t *testing.T) {
	for i, want := range []bool{false, true, true, true, true, true, true, true} {
		s := Shape{Traits: isa.Traits{CallOps: i&1 != 0, OpsTrampolines: i&2 != 0, FetchLen: 4}, Len: 4 + i&4}
		if got := s.Frees(); got != want {
			t.Errorf("%+v: %v", s, got)
		}
		if got := s.Literals(); got != (i&1 != 0 && i&4 == 0) {
			t.Errorf("%+v has literals: %v", s, got)
		}
	}
}

// TestWatched: a listener hears of each step with its times, and of batches as they come and go.
func TestWatched(t *testing.T) {
	var heard []string
	l := &cpus.Listener{Step: func(cpu int, name string, from, until int64) {
		heard = append(heard, fmt.Sprint(cpu, " ", name, " ", from, "-", until))
	}, Batch: func(at int64, fill int) { heard = append(heard, fmt.Sprint(at, " has ", fill)) }}
	now := int64(10)
	w := &watch{l, func() int64 { now++; return now }, 5}
	for _, st := range []Step{{Op: Publish, From: 1, To: 4}, {Op: Write, Part: Tail, To: 1}, {Op: Unpublish}, {Op: Sync,
		Round: 2}} {
		w.over(3, st)
	}
	want := []string{"11 has 3", "3 Publish 5-11", "3 Write tail 5-12", "13 has 0", "3 Unpublish 5-13", "3 Sync 2 5-14"}
	if diff := cmp.Diff(want, heard); diff != "" {
		t.Error(diff)
	}
}
