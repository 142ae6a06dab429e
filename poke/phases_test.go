// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/x86_64"
)

// TestRoundsOfPhases: a batch sends one round for its breakpoints, one if any site is
// longer than a byte, and one if any new first byte is not an int3
// (smp_text_poke_batch_finish, arch/x86/kernel/alternative.c, Linux 6.16); counted the
// slow way, entry by entry. The shipped files count alike.
func TestRoundsOfPhases(t *testing.T) {
	type entry struct {
		len  int
		int3 bool
	}
	sum := func(entries []entry, slots int) (rounds, writes int) {
		for i := 0; i < len(entries); i += slots {
			tails, heads := 0, 0
			for _, e := range entries[i:min(i+slots, len(entries))] {
				writes++ // its breakpoint
				if e.len > 1 {
					tails++
				}
				if !e.int3 {
					heads++
				}
			}
			rounds += 1 + min(tails, 1) + min(heads, 1)
		}
		return rounds, writes
	}
	if r, _ := sum([]entry{{5, false}, {1, false}}, 2); r != 3 {
		t.Fatalf("%d", r)
	}
	longest, _ := x86_64.Sized(x86_64.JccLen)
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) entry {
			return entry{rapid.SampledFrom(x86_64.Lengths).Draw(t, "length"), rapid.IntRange(0, 3).Draw(t, "int3") == 0}
		}), 1, 40).Draw(t, "entries")
		for name, slots := range map[string]int{"breakpoint": rapid.IntRange(1, 9).Draw(t, "slots"),
			"breakpoint-global": len(all), "per-site": 1, "breakpoint-lazy": 3} {
			want, _ := sum(all, slots)
			s := Shape{Traits: longest.Traits(), Len: 6, Patches: len(all), Entry: func(i int) (int, bool) {
				return all[i].len,
					all[i].int3
			}}
			batches := func(yield func(Range) bool) {
				for i := 0; i < len(all); i += slots {
					if !yield(Range{i, min(i+slots, len(all))}) {
						return
					}
				}
			}
			var c Count
			if err := shipped()[name].Compile(s, batches, c.Add); err != nil || c.Rounds != want {
				t.Errorf("%s, %d slots: %d rounds, %v; want %d for %v", name, slots, c.Rounds, err, want, all)
			}
		}
	})
}

// TestPhasesWithoutEntries: ftrace's sites all have five bytes, and nothing is left
// out; what has no tail and no literal sends one round less.
func TestPhasesWithoutEntries(t *testing.T) {
	one, _ := x86_64.Sized(1)
	for _, c := range []struct {
		s      Shape
		rounds int
	}{
		{Shape{Traits: x86_64.Arch.Traits(), Len: 5}, 3},
		{Shape{Traits: one.Traits(), Len: 1}, 2},
		{Shape{Traits: one.Traits(), Len: 1, Kept: true}, 1},
		{Shape{Traits: x86_64.Arch.Traits(), Len: 5, Kept: true}, 2},
	} {
		var n Count
		shipped()["breakpoint"].one(c.s, n.Add)
		if n.Rounds != c.rounds {
			t.Errorf("%d bytes, kept %v: %d rounds, want %d", c.s.Len, c.s.Kept, n.Rounds, c.rounds)
		}
		var dropped Count
		m, err := shipped()["breakpoint"].Mutation("drop-sync-2", c.s)
		if (err == nil) != (c.s.Len > 1) {
			t.Errorf("%d bytes: drop-sync-2: %v", c.s.Len, err)
		}
		if shipped()["breakpoint"].one(c.s, m.Through(dropped.Add)); err == nil && dropped.Rounds != c.rounds-1 {
			t.Errorf("%d bytes without round 2: %d rounds", c.s.Len, dropped.Rounds)
		}
	}
}

// TestPatchEntry: an int3 that is wanted is not written twice, and a byte has no tail.
func TestPatchEntry(t *testing.T) {
	code := &cpus.Code{Arch: x86_64.Arch, Traits: x86_64.Arch.Traits(), Len: 5}
	for _, c := range []struct {
		p             Patch
		n, head, tail int
		kept          bool
	}{
		{Patch{Old: x86_64.Nop5, New: 0xE8}, 5, 1, 4, false},
		{Patch{Old: x86_64.Nop1, New: x86_64.Ret, Len: 1}, 1, 1, 0, false},
		{Patch{Old: x86_64.Nop1, New: x86_64.Int3, Len: 1}, 1, 0, 0, true},
		{Patch{Old: x86_64.Nop2, New: 0xEB, Len: 2}, 2, 1, 1, false},
	} {
		if n, kept := c.p.Entry(code); n != c.n || kept != c.kept {
			t.Errorf("%+v: %d bytes, kept %v", c.p, n, kept)
		}
		p := &Patcher{Code: code, Patches: []Patch{c.p}, Plan: []Step{{Op: Write, Part: Head, To: 1},
			{Op: Write, Part: Tail, To: 1}}}
		if head, tail := p.storeOf(StoreID{0, 0}), p.storeOf(StoreID{1, 0}); int(head.n) != c.head || int(tail.n) != c.tail {
			t.Errorf("%+v: head of %d bytes, tail of %d", c.p, head.n, tail.n)
		}
	}
}
