// SPDX-License-Identifier: Apache-2.0

package learn

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/internal/golden"
	"github.com/textpoke/textpoke/kernels/record"
)

var words = map[byte]string{'b': breakpoint, 't': tail, 'h': head, 'w': word, 'l': literal, 's': sync, 'p': publish,
	'u': unpublish, 'S': stop, 'R': resume}

// list reads "p b0 s" as the tokens of publishing, a breakpoint at site 0, and a round.
func list(text string) (out []token) {
	for _, word := range strings.Fields(text) {
		t := token{words[word[0]], -1}
		if len(word) > 1 {
			t.site = int(word[1] - '0')
		}
		out = append(out, t)
	}
	return out
}

// TestPhases: each kind of store comes once, for sites that go up.
func TestPhases(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "",
		"s s":                 "Sync, Sync",
		"b0":                  "Write breakpoint",
		"b1 b2 b4":            "Write breakpoint",
		"p b0 b1 s h0 h1 s u": "Publish, Write breakpoint, Sync, Write head, Sync, Unpublish",
		"b0 t1 h0":            "Write breakpoint, Write tail, Write head",
		"b0 b0":               "no",
		"b1 b0":               "no",
		"b0 s b1":             "no",
		"b0 t0 b1":            "no",
	} {
		s, ok := phases(list(text))
		got := s.String()
		if !ok {
			got = "no"
		}
		if got != want || s.loop || s.each != nil || s.after != nil {
			t.Errorf("%q: %q, %+v, want %q", text, got, s, want)
		}
	}
}

// TestLoops: of what follows the last site, as much belongs to it as follows the others, and a turn may lack something.
func TestLoops(t *testing.T) {
	const turn = "for each site (Write breakpoint, Sync, Write head, Sync)"
	for _, c := range []struct {
		text  string
		sites int
		want  string
	}{
		{"b0 s h0 s b1 s h1 s", 2, turn},
		{"p b0 s h0 s b1 s h1 s", 2, "Publish, " + turn},
		{"b0 s h0 s b1 s h1 s u", 2, turn + ", Unpublish"},
		{"p s b0 s h0 s b1 s h1 s u s", 2, "Publish, Sync, " + turn + ", Unpublish, Sync"},
		{"b0 s h0 s b1 s h1 s s", 2, turn + ", Sync"},
		{"b0 h0 b1 s h1 s b2 h2 s", 3, turn},
		{"b0 s h0 s b1 h1 b2 s h2 s", 3, turn},
		{"b0 s h0 b1 h1 s", 2, "for each site (Write breakpoint, Sync, Write head), Sync"},
		{"w0 b1 h1 b2 h2", 3, "no"},
		{"b0 h0 h1 b1 b2 h2", 3, "no"},
		{"b0 s b1 s", 3, "no"},
		{"b0 s b1 s", 1, "no"},
		{"b1 s b0 s", 2, "no"},
		{"b0 s b1 s b0", 2, "no"},
	} {
		s, ok := loop(list(c.text), c.sites)
		got := s.String()
		if !ok {
			got = "no"
		}
		if got != c.want || !s.loop {
			t.Errorf("%q of %d sites: %q, %v, want %q", c.text, c.sites, got, s.loop, c.want)
		}
	}
}

// TestEqual: shapes are the same in all of their parts.
func TestEqual(t *testing.T) {
	a, b := []string{sync}, []string{publish}
	all := []shape{{}, {loop: true}, {before: a}, {before: b}, {loop: true, before: a}, {loop: true, each: a},
		{loop: true, each: b}, {loop: true, after: a}, {loop: true, before: a, each: a, after: b}}
	for i := range all {
		for k := range all {
			if all[i].equal(all[k]) != (i == k) {
				t.Errorf("%+v and %+v: %v", all[i], all[k], i != k)
			}
		}
	}
}

// x86 makes a recording of one batch on x86_64. Its sites lie 64 bytes apart, and have two bytes.
func x86(text string) *record.Recording {
	r := &record.Recording{Arch: "x86_64", Release: "6.18", Image: "12ab", CPUs: 1, Protocol: "breakpoint"}
	r.Steps = append(r.Steps, record.Step{Kind: record.Begin, Name: "b"})
	for _, of := range list(text) {
		at, s := uint64(64*of.site), record.Step{Kind: record.Store}
		switch of.does {
		case breakpoint:
			s.At, s.Old, s.New = at, []byte{0x66}, []byte{0xcc}
		case tail:
			s.At, s.Old, s.New = at+1, []byte{0x90}, []byte{2}
		case head:
			s.At, s.Old, s.New = at, []byte{0xcc}, []byte{0xeb}
		case word:
			s.At, s.Old, s.New = at, []byte{0x66, 0x90}, []byte{0xeb, 2}
		case sync:
			r.Steps = append(r.Steps, record.Step{Kind: record.Round, Name: "f"}, record.Step{Kind: record.Answer, Name: "f"})
			s.Kind = record.Done
		default:
			s.Name = "f"
			s.Kind = map[string]record.Kind{publish: record.Publish, unpublish: record.Unpublish, stop: record.Stop,
				resume: record.Resume}[of.does]
		}
		r.Steps = append(r.Steps, s)
	}
	r.Steps = append(r.Steps, record.Step{Kind: record.End, Name: "b"})
	return r
}

// TestFromSiteToSite: the whole file of a kernel that goes from site to site.
func TestFromSiteToSite(t *testing.T) {
	r := x86("p b1 s t1 s h1 s b2 s t2 s h2 s u")
	r.Fences = []string{"f calls g", "h calls i"}
	l, err := Plan([]*record.Recording{r, x86("b1 s t1 s h1 s")})
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", "loop.plan"), l.Text)
}

// TestRefused: each reason why nothing is learned, whole.
func TestRefused(t *testing.T) {
	foreign := x86("b1")
	foreign.Arch = "vax"
	other := x86("b1 b2")
	other.Image, other.File = "34cd", "other.recording"
	arch := x86("b1 b2")
	arch.Arch = "arm64"
	overlap := x86("")
	overlap.Arch = "arm64"
	overlap.Steps = overlap.Steps[:1]
	for _, s := range [][2]int{{72, 8}, {64, 8}, {80, 4}} { // two literals, and the word behind them
		at, n := uint64(s[0]), s[1]
		overlap.Steps = append(overlap.Steps, record.Step{Kind: record.Store, At: at, Old: make([]byte, n), New: make([]byte,
			n)})
	}
	for _, c := range []struct {
		list []*record.Recording
		want string
	}{
		{[]*record.Recording{foreign}, ": arch \"vax\": not one of x86_64, arm64, riscv64"},
		{[]*record.Recording{x86("b1 b2"), other}, "other.recording: a recording of another kernel than 6.18"},
		{[]*record.Recording{x86("b1 b2"), arch}, "6.18: a recording of another kernel than 6.18"},
		{[]*record.Recording{x86("b1 s b2 b1")}, "6.18: step 2: its stores do not go in phases, or from site to site"},
		{[]*record.Recording{x86("b1 s h1 s")},
			"6.18: 1 shapes, none of more than one site in a batch: whether it goes through its sites in " +
				"phases or from one to the next cannot be told; record an action of several sites"},
		{[]*record.Recording{x86("S w1 w2")},
			"6.18: the plan that was learned: learned.plan:7: StopMachine: nothing lets the CPUs go on (Resume), " +
				"and the next time through line 6 would wait for ever"},
		{[]*record.Recording{overlap}, "6.18: step 2: its stores overlap, and are about no sites"},
	} {
		if _, err := Plan(c.list); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// TestMainShape: of the shapes of several sites the first that has the most in it.
func TestMainShape(t *testing.T) {
	of := func(largest int, before, each string) *sight {
		s := &sight{largest: largest}
		s.before, s.each = strings.Fields(before), strings.Fields(each)
		return s
	}
	for i, c := range []struct {
		seen []*sight
		want int
	}{
		{[]*sight{of(2, "a b", ""), of(2, "b a", "")}, 0},
		{[]*sight{of(2, "a b", ""), of(2, "a", "b c")}, 1},
		{[]*sight{of(2, "a b", "c"), of(2, "a", "b c")}, 0},
		{[]*sight{of(1, "a b c", ""), of(2, "a", ""), of(9, "", "")}, 1},
		{[]*sight{of(2, "", ""), of(2, "", "a")}, 1},
	} {
		l := &learner{seen: c.seen}
		if got, err := l.main(); err != nil || got != c.seen[c.want] {
			t.Errorf("%d: %v, %v", i, got, err)
		}
	}
}

// TestMissing: a batch in phases that lacks just these steps, and has all others in their order.
func TestMissing(t *testing.T) {
	main := shape{before: []string{publish, breakpoint, tail, sync, head}}
	for i, c := range []struct {
		seen, main shape
		want       bool
	}{
		{shape{before: []string{publish, breakpoint, head}}, main, true},
		{shape{before: []string{publish, breakpoint, head}, loop: true}, main, false},
		{shape{before: []string{publish, breakpoint, head}}, shape{before: main.before, loop: true}, false},
		{shape{before: []string{publish, breakpoint}}, main, false},
		{shape{before: []string{publish, breakpoint, sync, head}}, main, false},
		{shape{before: []string{breakpoint, publish, head}}, main, false},
		{shape{before: []string{publish, breakpoint, tail}}, main, false},
		{main, main, false},
	} {
		l := &learner{seen: []*sight{{shape: c.seen}}}
		if got := l.missing(&sight{shape: c.main}, tail, sync); got != c.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}
