// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/cpus/x86_64"
	"github.com/textpoke/textpoke/poke"
)

// TestLengths: rounds that a phase without stores leaves out are missed by nobody, in
// batches of any lengths; a round left out where something was stored is.
func TestLengths(t *testing.T) {
	for _, c := range []struct {
		lengths  []int
		mutation string
		verdict  Verdict
	}{
		{[]int{1}, "", Safe}, {[]int{2}, "", Safe}, {[]int{5}, "", Safe}, {[]int{6}, "", Safe},
		{[]int{1, 5}, "", Safe}, {[]int{2, 6}, "", Safe}, {[]int{1, 2}, "", Safe},
		{[]int{5}, "drop-sync-2", Unsafe}, {[]int{1, 5}, "drop-sync-2", Unsafe}, {[]int{1, 6}, "drop-sync-2", Unsafe},
		{[]int{2}, "drop-sync-1", Unsafe}, {[]int{1}, "drop-sync-3-no-recheck", Unsafe},
	} {
		s := setup(t, "x86_64", "native", c.mutation, 2, 2)
		s.Lengths = c.lengths
		got := explore(t, s, Options{Reduce: all})
		if got.Verdict != c.verdict {
			t.Errorf("%v %s: %s, %v; want %s", c.lengths, c.mutation, got.Verdict, got.Violation, c.verdict)
		}
	}
	s := setup(t, "x86_64", "native", "", 2, 2)
	s.Lengths = []int{1}
	shape, err := s.Shape()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Protocol.Mutation("drop-sync-2", shape); err == nil {
		t.Error("sites of one byte have a second round that can be left out")
	}
}

// int3Sites is x86_64 with sites of one byte that become int3, as WARN does.
type int3Sites struct{ isa.Arch }

func (int3Sites) Enabled(isa.Site, isa.Destination) (isa.Text, isa.Via, error) {
	return x86_64.Int3, isa.Direct, nil
}

// TestExplicitInt3: where the new instruction is an int3 the third phase is left out
// on the way there, one round in all, and sent on the way back; whoever traps there is
// somebody else's, and the poker's handler does not consume it.
func TestExplicitInt3(t *testing.T) {
	one, _ := x86_64.Sized(1)
	s := setup(t, "x86_64", "native", "", 2, 1)
	s.Arch = int3Sites{one}
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	rounds := 0
	for _, st := range m.Programs[0].Plan {
		if st.Op == poke.Sync {
			rounds++
		}
	}
	if rounds != 1+2 {
		t.Errorf("%d rounds there and back, want 1 and 2", rounds)
	}
	m.Code.Probed = 1
	if got := answerTo(t, m); got.Verdict != Safe {
		t.Errorf("%s: %v", got.Verdict, got.Violation)
	}
	m.Code.Probed = 0
	if got := answerTo(t, m); got.Verdict != Unsafe || got.Violation.Property != cpus.UnhandledBreakpoint {
		t.Errorf("an int3 that nobody owns: %s, %v", got.Verdict, got.Violation)
	}
}

func answerTo(t *testing.T, m *Model) *Result {
	t.Helper()
	r, err := Explore(t.Context(), m, Options{Reduce: all})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestAStoreIsWholeWithinAQuadword: a fetch that reads all at once helps only where the
// store replaces all at once: sites of two bytes from 4 mod 8 on lie in one aligned
// quadword, those of five and six in two.
func TestAStoreIsWholeWithinAQuadword(t *testing.T) {
	for length, want := range map[int]Verdict{2: Safe, 5: Unsafe, 6: Unsafe} {
		s := setup(t, "x86_64", "breakpoint", "no-breakpoint", 2, 1)
		s.Fetch, s.Lengths = cpus.Atomic, []int{length}
		for _, r := range []Reductions{{}, all, single} {
			got := explore(t, s, Options{Reduce: r})
			if got.Verdict != want || want == Unsafe && got.Violation.Property != cpus.TornFetch {
				t.Errorf("%d bytes: %s %v, want %s", length, got.Verdict, got.Violation, want)
			}
		}
	}
}
