// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestParseStep: a step is what its text says.
func TestParseStep(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		st := Step{Op: Op(rapid.IntRange(0, len(opNames)-1).Draw(rt, "op")), To: 1}
		switch st.Op {
		case Write:
			st.Part = Part(rapid.IntRange(0, len(partNames)-1).Draw(rt, "part"))
			if st.Part == Bytes {
				st.Span.From = rapid.Uint8Range(0, 7).Draw(rt, "first byte")
				st.Span.To = 1 + rapid.Uint8Range(st.Span.From, 7).Draw(rt, "last byte")
			}
		case Lock, Unlock:
			st.Mutex = Mutex(rapid.IntRange(0, NumMutexes-1).Draw(rt, "lock"))
		case Sync:
			st.Round, st.Lazy = rapid.Uint8Range(1, 255).Draw(rt, "round"), rapid.Bool().Draw(rt, "lazy")
		}
		switch st.Op {
		case Verify, Publish, Write, Settle, Map:
			st.From = rapid.Int32Range(0, 300).Draw(rt, "from")
			st.To = st.From + rapid.Int32Range(1, 300).Draw(rt, "patches")
		}
		st.Undo = st.Op.undoes() && st.Op != Attach && st.Op != Release && rapid.Bool().Draw(rt, "back")
		if got, err := ParseStep(st.String()); err != nil || got != st {
			rt.Errorf("%s: %+v, %v; want %+v", st, got, err, st)
		}
	})
	for text, want := range map[string]Step{
		"Release back":  {Op: Release, Undo: true, To: 1},
		"Attach 1":      {Op: Attach, From: 1, To: 2},
		"Write tail":    {Op: Write, Part: Tail, To: 1},
		"  Fence  ":     {Op: Fence, To: 1},
		"Publish 1..3":  {Op: Publish, From: 1, To: 4},
		"Settle 2 back": {Op: Settle, Undo: true, From: 2, To: 3},
	} {
		if got, err := ParseStep(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "no step", "Wirte tail": "did you mean Write", "Write 0": "want one of " +
			"breakpoint", "Fence back": "want nothing behind Fence",
		"Write tail 3..1": `"3..1"`, "Sync": "the number of the round", "Lock big": `lock "big"`,
	} {
		if _, err := ParseStep(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
