// SPDX-License-Identifier: Apache-2.0

package promela

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
)

// TestActsWrong: a model whose handlers can act as the wrong instruction is refused, and
// no other: what the plan alone tells is what the checker finds.
func TestActsWrong(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		for _, mutation := range []string{"", "drop-sync-1", "shifted-batch"} {
			for _, sites := range []int{1, 2} {
				m := model(t, setup(t, arch, "breakpoint", mutation, 2, sites))
				wrong := verdict(t, m) == cpus.WrongInstruction
				err := Write(io.Discard, m)
				if refused := errors.Is(err, ErrUnsupported) && strings.Contains(err.Error(), "is not the site's"); refused != wrong {
					t.Errorf("%s, %q, %d sites: %v; the checker finds a wrong instruction: %v", arch, mutation, sites, err, wrong)
				}
			}
		}
	}
}

// TestFoundLater: handlers find what was published until it is waited for, forgotten or published over, and no site's
// instruction is held against a change that came before.
func TestFoundLater(t *testing.T) {
	publish := func(patch int32) poke.Step { return poke.Step{Op: poke.Publish, From: patch, To: patch + 1} }
	write := poke.Step{Op: poke.Write, Part: poke.Breakpoint, From: 2, To: 3} // of the first site, to other texts
	for i, c := range []struct {
		plan []poke.Step
		want bool
	}{
		{[]poke.Step{publish(0)}, false},
		{[]poke.Step{publish(0), write}, true},
		{[]poke.Step{write, publish(0)}, false},
		{[]poke.Step{publish(0), {Op: poke.WaitHandlers}, write}, false},
		{[]poke.Step{publish(0), {Op: poke.Clear}, write}, false},
		{[]poke.Step{publish(0), {Op: poke.Unpublish}, write}, true},
		{[]poke.Step{publish(0), {Op: poke.Sync, Round: 1}, write}, true},
		{[]poke.Step{publish(0), publish(1), write}, false},
		{[]poke.Step{publish(0), publish(2)}, false},
		{[]poke.Step{publish(0), {Op: poke.Write, Part: poke.Head, From: 2, To: 3}}, false},
	} {
		m := model(t, setup(t, "x86_64", "breakpoint", "", 2, 2))
		p := &m.Programs[0]
		third := p.Patches[0]
		third.Old, third.New = isa.TextOf(0xe9, 1, 2, 3, 0), isa.TextOf(0xe9, 4, 5, 6, 0)
		p.Patches, p.Plan = append(p.Patches[:2:2], third), c.plan
		if got := actsWrong(m); got != c.want {
			t.Errorf("%d: %v of %v", i, got, c.plan)
		}
	}
}
