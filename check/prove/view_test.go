// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus"
)

// TestBranchesAreToldApart: two branches have one key where all that they ask and do is written alike, whatever they are
// called.
func TestBranchesAreToldApart(t *testing.T) {
	few := func(n int) *rapid.Generator[int] { return rapid.IntRange(0, n) }
	tests := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) test {
		return test{attr(few(1).Draw(t, "attr")), only(number(rapid.SampledFrom([]int{0, 1, 200}).Draw(t, "value")))}
	}), 0, 2)
	conds := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) cond {
		return cond{scope(few(2).Draw(t, "who")), tests.Draw(t, "any")}
	}), 0, 2)
	updates := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) update {
		return update{
			attr(few(1).Draw(t, "attr")), change(few(1).Draw(t, "how")), number(rapid.SampledFrom([]int{0, 1, 256}).Draw(t, "to")),
			scope(few(1).Draw(t, "of CPUs")), scope(few(1).Draw(t, "of sites")), tests.Draw(t, "provided"),
		}
	}), 0, 2)
	rapid.Check(t, func(t *rapid.T) {
		b := branch{when: conds.Draw(t, "when"), then: updates.Draw(t, "then"), broken: cpus.Property("")}
		other := b
		other.name = "another"
		switch few(3).Draw(t, "what differs") {
		case 0:
			other.when = conds.Draw(t, "other when")
		case 1:
			other.then = updates.Draw(t, "other then")
		case 2:
			other.broken = cpus.BrokenSite
		}
		text := func(b *branch) string { return fmt.Sprint(b.when, b.then, b.broken) }
		if same, want := b.key() == other.key(), text(&b) == text(&other); same != want {
			t.Errorf("one key: %t, want %t:\n%s\n%s", same, want, text(&b), text(&other))
		}
	})
	one := branch{then: []update{{attr: does, to: 3, provided: []test{{text, only(1)}}}}}
	for name, change := range map[string]func(u *update){
		"attr": func(u *update) { u.attr = home }, "how": func(u *update) { u.how = push },
		"to": func(u *update) { u.to += 256 }, "of CPUs": func(u *update) { u.ofCPUs = every },
		"of sites": func(u *update) { u.ofSites = every }, "provided": func(u *update) { u.provided = nil },
		"whose": func(u *update) { u.provided = []test{{literal, only(1)}} },
	} {
		u := one.then[0]
		change(&u)
		if other := (&branch{then: []update{u}}); other.key() == one.key() {
			t.Errorf("%s makes no difference", name)
		}
	}
	who := branch{when: []cond{{own, []test{{text, only(1)}}}}}
	if other := (&branch{when: []cond{{every, who.when[0].any}}}); other.key() == who.key() {
		t.Error("whose attribute is asked makes no difference")
	}
}
