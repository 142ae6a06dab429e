// SPDX-License-Identifier: Apache-2.0

package museum

import (
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
)

// acts lays out a case about what handlers act as, and asks with and without reductions.
func acts(t *testing.T, text string, fixed bool) *explore.Result {
	t.Helper()
	b, err := read("acts.case", text)
	if err != nil {
		t.Fatal(err)
	}
	var found [2]*explore.Result
	for i, r := range []explore.Reductions{{}, {Symmetry: true, Sites: true, Order: true}} {
		m, err := b.laidOut(fixed)
		if err == nil {
			err = m.Prepare()
		}
		if err == nil {
			found[i], err = explore.Explore(t.Context(), m, explore.Options{Reduce: r})
		}
		if err != nil {
			t.Fatal(err)
		}
		if found[i].Verdict == explore.Unsafe {
			if _, err := explore.Replay(m, found[i].Trace); err != nil {
				t.Error(err)
			}
		}
	}
	if found[0].Verdict != found[1].Verdict {
		t.Errorf("%s, with reductions %s", found[0].Verdict, found[1].Verdict)
	}
	return found[1]
}

// phases are the three of one patch, published or not.
const phases = `
    Publish N          PUBLISHED
    Fence
    Write breakpoint N
    Fence
    Sync 1
    Write tail N
    Fence
    Sync 2
    Write head N
    Fence
    Sync 3
    Unpublish          TAKEN
    Fence
    WaitHandlers       TAKEN
`

// TestStaleBatch: a batch that is kept over to the update after the next leads handlers
// to what the site called two updates ago. The tracer is still there, so that nothing else
// shows.
func TestStaleBatch(t *testing.T) {
	text := "machine:\n ARCH\n cpus 2\n always traced\n attached entry, other, third\n" +
		"text:\n calls entry\npatches:\n site 0, to calls other\n" +
		" site 0, from calls other, to calls third\n site 0, from calls third, to calls entry\npatcher:\n"
	for n, in := range []struct{ published, taken string }{{"", "if fixed"}, {"if fixed", "if fixed"}, {"if fixed", ""}} {
		text += strings.NewReplacer("N ", string(rune('0'+n))+" ", " N\n", " "+string(rune('0'+n))+"\n",
			"PUBLISHED", in.published, "TAKEN", in.taken).Replace(phases)
	}
	// On riscv64 every site calls the common entry.
	for _, arch := range []string{"arch x86_64", "arch arm64\n without literals"} {
		text := strings.Replace(text, "ARCH", arch, 1)
		if got := acts(t, text, true); got.Verdict != explore.Safe {
			t.Errorf("%s: %s %v, want safe", arch, got.Verdict, got.Violation)
		}
		got := acts(t, text, false)
		if got.Verdict != explore.Unsafe || got.Violation.Property != cpus.WrongInstruction {
			t.Errorf("%s: %s %v, want a wrong instruction", arch, got.Verdict, got.Violation)
		}
	}
}

// TestTwoUpdatesOfOneSite: two patchers change the same site to different calls, one after
// the other. What is right is what the one means that is there; both at once is not safe.
func TestTwoUpdatesOfOneSite(t *testing.T) {
	const text = `machine:
    arch x86_64
    cpus 3
    attached entry, other
text:
    disabled
patches:
    site 0, to calls entry
patcher:
    Lock text_mutex    if fixed
    update breakpoint 0
    update breakpoint 0 back
    Unlock text_mutex  if fixed
patches:
    site 0, to calls other
patcher:
    Lock text_mutex    if fixed
    update breakpoint 0
    update breakpoint 0 back
    Unlock text_mutex  if fixed
`
	if got := acts(t, text, true); got.Verdict != explore.Safe {
		t.Errorf("%s %v, want safe", got.Verdict, got.Violation)
	}
	if got := acts(t, text, false); got.Verdict != explore.Unsafe {
		t.Errorf("without the lock: %s, want unsafe", got.Verdict)
	}
}
