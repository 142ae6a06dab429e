// SPDX-License-Identifier: Apache-2.0

package tracers

import (
	"slices"
	"testing"

	"github.com/textpoke/textpoke/cpus/isa"
)

const images = 0xffffffffc0000000

func livepatch(rec int) *Ops {
	return NewOps("livepatch", user(7), OpsDynamic|OpsSaveRegs|OpsSaveRegsIfSupported|OpsIPModify|OpsPermanent, rec)
}

// TestLivepatchFirst: a live patch, then programs. fentry needs nothing; fexit calls
// the original function, so its trampoline is refused with EAGAIN and generated
// again for a live patch, also when it comes as a modification
// (kernel/bpf/trampoline.c; 3e9a18e1c3e9 and 56b3c85e153b, 6.18).
func TestLivepatchFirst(t *testing.T) {
	onArches(t, func(t *testing.T, a isa.Arch) {
		c := newCore(t, a, 4)
		b := NewBPF(c, images)
		must(t)(c.Attach(livepatch(1)))
		if r := must(t)(b.Link(1, Prog{Kind: FEntry, Number: 1})); r.Count(StepImage) != 1 || r.Regenerations != 0 {
			t.Errorf("fentry: %d images, %d again", r.Count(StepImage), r.Regenerations)
		}
		if r := must(t)(b.Link(1, Prog{Kind: FExit, Number: 2})); r.Count(StepImage) != 2 || r.Regenerations != 1 {
			t.Errorf("fexit: %d images, %d again", r.Count(StepImage), r.Regenerations)
		}
		if got := names(t, c, 1); !slices.Equal(got, []string{"livepatch", b.Image(1).String()}) {
			t.Errorf("calls %v", got)
		}
		if !b.tramps[1].stack {
			t.Error("the trampoline calls the unpatched function")
		}
		b = NewBPF(c, images+1<<20)
		must(t)(c.Attach(livepatch(2)))
		if r := must(t)(b.Link(2, Prog{Kind: FExit, Number: 2})); r.Count(StepImage) != 2 || r.Regenerations != 1 {
			t.Errorf("fexit alone: %d images, %d again", r.Count(StepImage), r.Regenerations)
		}
	})
}

// TestLivepatchSecond: a live patch comes to a function with a trampoline, which is
// generated again, and once more when it goes.
func TestLivepatchSecond(t *testing.T) {
	onArches(t, func(t *testing.T, a isa.Arch) {
		c := newCore(t, a, 4)
		b := NewBPF(c, images)
		must(t)(b.Link(1, Prog{Kind: FExit, Number: 1}))
		o := livepatch(1)
		if r := must(t)(c.Attach(o)); r.Regenerations != 1 || !b.tramps[1].stack {
			t.Errorf("%d again, %v", r.Regenerations, b.tramps[1].stack)
		}
		if got := names(t, c, 1); !slices.Equal(got, []string{"livepatch", b.Image(1).String()}) {
			t.Errorf("calls %v", got)
		}
		if r := must(t)(c.Detach(o)); r.Regenerations != 1 || b.tramps[1].stack {
			t.Errorf("%d again, %v", r.Regenerations, b.tramps[1].stack)
		}
		if got := names(t, c, 1); !slices.Equal(got, []string{b.Image(1).String()}) {
			t.Errorf("calls %v", got)
		}
		must(t)(b.Unlink(1, Prog{Kind: FExit, Number: 1}))
		if got := names(t, c, 1); len(got) != 0 || c.DirectOf(1) != 0 {
			t.Errorf("calls %v", got)
		}
	})
}

// TestMulti: one program on many functions is one update; a function that cannot
// have it leaves all of them as they were.
func TestMulti(t *testing.T) {
	for _, a := range arches(t) {
		c := newCore(t, a, 8)
		b := NewBPF(c, images)
		r, err := b.LinkMulti([]int{1, 2, 3}, Prog{Kind: FEntry, Number: 1})
		if !a.Traits().SingleDirectOps {
			if errno(err) != EOPNOTSUPP {
				t.Errorf("%s: %v", a.Traits().Name, err)
			}
			continue
		}
		if err != nil || len(r.Passes) != 1 || r.Patches() != 3 {
			t.Errorf("%d passes, %d patches, %v", len(r.Passes), r.Patches(), err)
		}
		before := slices.Clone(c.text)
		if _, err := b.LinkMulti([]int{3, 4, 5}, Prog{Kind: FEntry, Number: 1}); errno(err) != EBUSY ||
			!slices.Equal(before, c.text) || b.Has(4) {
			t.Errorf("%v, %v", err, b.Has(4))
		}
		if r := must(t)(b.LinkMulti([]int{3, 4, 5}, Prog{Kind: FExit, Number: 2})); r.Patches() != 2+1+1 ||
			len(r.Passes) != 3 {
			t.Errorf("%d patches in %d passes", r.Patches(), len(r.Passes))
		}
		g := NewGlobalTramps(b, images+1<<24)
		must(t)(g.Link(2, Prog{Kind: FEntry, Number: 9}, 6))
		must(t)(g.Link(2, Prog{Kind: FEntry, Number: 9}, 7))
		if _, err := g.Link(2, Prog{Kind: FEntry, Number: 9}, 0, 3); errno(err) != EEXIST || c.Flags(0).Count() != 0 {
			t.Error(err)
		}
		if _, err := b.Link(7, Prog{Kind: FEntry, Number: 1}); errno(err) != EINVAL || b.Has(7) {
			t.Error(err)
		}
	}
}
