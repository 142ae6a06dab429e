// SPDX-License-Identifier: Apache-2.0

package tracers

import (
	"slices"
	"testing"

	"github.com/textpoke/textpoke/cpus/isa"
)

// TestAttachDetach: two tracers come and go; who is called is who is attached,
// newest first, and everything is as before in the end.
func TestAttachDetach(t *testing.T) {
	onArches(t, func(t *testing.T, a isa.Arch) {
		c := newCore(t, a, 4)
		one := NewOps("one", user(0), OpsDynamic, 1, 2)
		two := NewOps("two", user(1), OpsDynamic, 2, 3)
		r := must(t)(c.Attach(one))
		if got := r.Addrs(); !slices.Equal(got, c.Records[1:3]) {
			t.Errorf("patched %v", got)
		}
		must(t)(c.Attach(two))
		for rec, want := range [][]string{nil, {"one"}, {"two", "one"}, {"two"}} {
			if got := names(t, c, rec); !slices.Equal(got, want) {
				t.Errorf("record %d calls %v, want %v", rec, got, want)
			}
		}
		must(t)(c.Detach(one))
		if got := names(t, c, 2); !slices.Equal(got, []string{"two"}) {
			t.Errorf("calls %v", got)
		}
		r = must(t)(c.Detach(two))
		if r.Count(StepTasks) != 1 || r.Count(StepRude) != 1 || !two.Released() {
			t.Errorf("waits %d and %d, released %v", r.Count(StepTasks), r.Count(StepRude), two.Released())
		}
		for rec := range c.Records {
			if c.Flags(rec)&^noClear != 0 || c.Text(rec) != c.nop(rec) {
				t.Errorf("record %d: %s, %s", rec, c.Flags(rec), c.Text(rec))
			}
		}
	})
}
