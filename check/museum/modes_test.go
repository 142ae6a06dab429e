// SPDX-License-Identifier: Apache-2.0

package museum

import (
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check/explore"
)

// TestHitWhileBroughtUpAtOnce: the breakpoint may as well be executed while it is there.
// The shortest way fetches it late; made earlier, the same steps of the CPU that comes up
// end in the same violation. So it rests on nothing that CPUs fetch ahead.
func TestHitWhileBroughtUpAtOnce(t *testing.T) {
	b, err := Named("hit-while-brought-up")
	if err != nil {
		t.Fatal(err)
	}
	m, r := search(t, b, false, explore.Options{})
	step := func(what string) int {
		i := slices.IndexFunc(r.Trace.Steps, func(s explore.Step) bool { return strings.HasPrefix(s.Who+": "+s.What, what) })
		if i < 0 {
			t.Fatalf("%q does not happen", what)
		}
		return i
	}
	head, hit := step("patcher 0: Write head"), step("cpu 2: tries to take a reference")
	var early, rest []explore.Step
	for _, s := range r.Trace.Steps[head:hit] {
		if s.Who == "cpu 2" {
			early = append(early, s)
		} else {
			rest = append(rest, s)
		}
	}
	if i := step("cpu 2: fetches site 0: a breakpoint"); i < head || len(early) == 0 {
		t.Fatalf("the breakpoint is fetched in step %d, before the head is written in step %d", i, head)
	}
	// The newest of the versions that there are then is the breakpoint itself.
	fetch := &early[len(early)-1]
	do, _, _ := strings.Cut(fetch.Do, ":")
	for _, choices := range []string{"", ":0", ":0,0"} {
		fetch.Do = do + choices
		moved := *r.Trace
		moved.Steps = slices.Concat(r.Trace.Steps[:head], early, rest, r.Trace.Steps[hit:])
		n, err := explore.Conform(m, &moved)
		if err == nil && moved.Steps[n-1].Event == "broken" {
			return
		}
		t.Logf("%s: %d steps: %v", fetch.Do, n, err)
	}
	t.Error("not so where the breakpoint is executed while it is there")
}
