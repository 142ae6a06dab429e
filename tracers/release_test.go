// SPDX-License-Identifier: Apache-2.0

package tracers

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus/isa"
)

// ofRelease is a core of some release.
func ofRelease(t *testing.T, a isa.Arch, n int, r Release) *Core {
	t.Helper()
	c := newCore(t, a, n)
	c.Release = r
	return c
}

func kindsOf(r Report) (out []StepKind) {
	for _, s := range r.Steps {
		out = append(out, s.Kind)
	}
	return out
}

// TestSkips: from 7.2.10 or 7.2.11 on each program that goes is patched out of its
// trampoline. Before, a trampoline that calls the original function is cut off when another
// one takes its place, or none.
func TestSkips(t *testing.T) {
	onArches(t, func(t *testing.T, a isa.Arch) {
		entry, exit := Prog{Kind: FEntry, Number: 1}, Prog{Kind: FExit, Number: 2}
		for _, skips := range []bool{false, true} {
			c := ofRelease(t, a, 4, Release{SkipProgram: skips})
			b := NewBPF(c, images)
			for i, s := range []struct {
				change    func(int, Prog) (Report, error)
				p         Prog
				cut, skip int // to 7.2.9, and later
				images    int
			}{
				{b.Link, entry, 0, 0, 1},
				{b.Link, exit, 0, 0, 1}, // what goes does not call the function
				{b.Unlink, exit, 1, 1, 1},
				{b.Unlink, entry, 0, 1, 0},
				{b.Link, exit, 0, 0, 1},
				{b.Link, entry, 1, 0, 1}, // what goes does
				{b.Unlink, entry, 1, 1, 1},
				{b.Unlink, exit, 1, 1, 0},
			} {
				want := s.cut
				if skips {
					want = s.skip
				}
				r := must(t)(s.change(2, s.p))
				if r.Count(StepSkip) != want || r.Count(StepImage) != s.images {
					t.Errorf("step %d, skips %v: %d and %d images, want %d and %d", i, skips, r.Count(StepSkip),
						r.Count(StepImage), want, s.images)
				}
				if has := i != 3 && i != 7; b.Has(2) != has || (b.Image(2) != 0) != has || (c.DirectOf(2) != 0) != has {
					t.Errorf("step %d: a trampoline %v, %s, %s", i, b.Has(2), b.Image(2), c.DirectOf(2))
				}
			}
		}
	})
}

// TestUnlinkMulti: one update takes a program away from functions that have no other, one
// more pass for those that have; a store that fails, or a function without the program,
// leaves all as it was.
func TestUnlinkMulti(t *testing.T) {
	for _, a := range arches(t) {
		c := ofRelease(t, a, 8, Release{SkipProgram: true})
		b := NewBPF(c, images)
		p, other := Prog{Kind: FEntry, Number: 1}, Prog{Kind: FEntry, Number: 2}
		if !a.Traits().SingleDirectOps {
			if _, err := b.UnlinkMulti([]int{1}, p); errno(err) != EOPNOTSUPP {
				t.Errorf("%s: %v", a.Traits().Name, err)
			}
			continue
		}
		must(t)(b.LinkMulti([]int{1, 2, 3}, p))
		must(t)(b.Link(3, other))
		before := slices.Clone(c.text)
		image := b.Image(3)
		if _, err := b.UnlinkMulti([]int{1, 2, 4}, p); errno(err) != ENOENT || !slices.Equal(before, c.text) || !b.Has(1) {
			t.Errorf("a function without it: %v", err)
		}
		failed := errors.New("no store")
		for n := range 4 {
			stores := 0
			c.Stores.Site = func(*Patch) error {
				if stores++; stores == n+1 {
					return failed
				}
				return nil
			}
			if _, err := b.UnlinkMulti([]int{1, 2, 3}, p); !errors.Is(err, failed) || !slices.Equal(before, c.text) ||
				!b.Has(1) || b.Image(3) != image || len(b.tramps[3].progs) != 2 || b.Image(1) == 0 {
				t.Fatalf("store %d failed: %v, %v, %v", n, err, b.Has(1), b.Image(3))
			}
		}
		c.Stores.Site = nil
		r := must(t)(b.UnlinkMulti([]int{3, 1, 2}, p))
		if r.Count(StepSkip) != 3 || r.Count(StepImage) != 1 || r.Patches() != 2+1+1 || len(r.Passes) != 3 {
			t.Errorf("%d skips, %d images, %d patches in %d passes", r.Count(StepSkip), r.Count(StepImage), r.Patches(),
				len(r.Passes))
		}
		if b.Has(1) || b.Has(2) || !b.Has(3) || c.DirectOf(1) != 0 || c.DirectOf(3) != b.Image(3) || b.Image(3) == image {
			t.Errorf("%v %v %v, %s calls %s", b.Has(1), b.Has(2), b.Has(3), c.DirectOf(1), c.DirectOf(3))
		}
		must(t)(b.Unlink(3, other))
		if b.Has(3) || c.Len() != 0 {
			t.Errorf("%v, %d ops", b.Has(3), c.Len())
		}
	}
}

// TestUnlinkFails: a program that cannot be taken away stays with its trampoline.
func TestUnlinkFails(t *testing.T) {
	onArches(t, func(t *testing.T, a isa.Arch) {
		c := newCore(t, a, 4)
		b := NewBPF(c, images)
		p := Prog{Kind: FExit, Number: 1}
		must(t)(b.Link(1, p))
		image, failed := b.Image(1), errors.New("no store")
		c.Stores.Site = func(*Patch) error { return failed }
		if _, err := b.Unlink(1, p); !errors.Is(err, failed) || b.Image(1) != image || !b.Has(1) || c.DirectOf(1) != image {
			t.Errorf("%v, %s", err, b.Image(1))
		}
		c.Stores.Site = nil
		must(t)(b.Unlink(1, p))
		if _, err := b.Unlink(1, p); errno(err) != ENOENT {
			t.Error(err)
		}
	})
}

// TestSteps: the order of a change's steps is the kernel's: the trampoline, the common
// entries, the records, function_trace_op, the round, the entries; then the waits and the
// trampoline's end.
func TestSteps(t *testing.T) {
	for _, a := range arches(t) {
		if !a.Traits().OpsTrampolines {
			continue
		}
		c := newCore(t, a, 4)
		static, dynamic := NewOps("static", user(0), 0), NewOps("dynamic", user(1), OpsDynamic, 1)
		r := must(t)(c.Attach(static))
		want := []StepKind{StepTrampoline, StepUpdateFunc, StepRecords, StepSetOp, StepSync, StepUpdateFunc}
		if got := kindsOf(r); !slices.Equal(got, want) || r.Steps[2].Pass != r.Passes[0] || r.Steps[0].Ops != static {
			t.Errorf("attach: %v", r.Steps)
		}
		if r.Steps[1].Func != FuncList || r.Steps[5].Func != user(0) {
			t.Errorf("the entries call %v, then %v", r.Steps[1], r.Steps[5])
		}
		if got := kindsOf(must(t)(c.Attach(dynamic))); !slices.Equal(got, []StepKind{StepTrampoline, StepUpdateFunc,
			StepRecords}) {
			t.Errorf("second: %v", got)
		}
		if got := kindsOf(must(t)(c.Detach(dynamic))); !slices.Equal(got, []StepKind{StepRecords, StepSetOp, StepSync,
			StepUpdateFunc, StepRude, StepTasks, StepFree}) {
			t.Errorf("gone: %v", got)
		}
		must(t)(c.Detach(static))
		if got := kindsOf(must(t)(c.Attach(static))); got[0] != StepAim {
			t.Errorf("again: %v", got)
		}
	}
}

// TestReleases: to 6.1 the entries are patched though they are right; a kernel that was
// used has the trampolines of its own ops.
func TestReleases(t *testing.T) {
	for _, a := range arches(t) {
		if !a.Traits().OpsTrampolines {
			continue
		}
		c := ofRelease(t, a, 4, Release{EntryAgain: true, Used: true})
		one, two := NewOps("one", user(0), OpsDynamic, 1), NewOps("two", user(1), 0, 2)
		r := must(t)(c.Attach(one))
		if r.Count(StepTrampoline) != 1 || r.Count(StepUpdateFunc) != 1 {
			t.Errorf("one that may be freed: %v", r.Steps)
		}
		if r := must(t)(c.Attach(two)); r.Count(StepAim) != 1 || r.Count(StepTrampoline) != 0 || r.Count(StepUpdateFunc) != 0 {
			t.Errorf("a static one: %v", r.Steps)
		}
		must(t)(c.Detach(two))
		if r := must(t)(c.Detach(one)); r.Count(StepUpdateFunc) != 2 {
			t.Errorf("the list function twice: %v", r.Steps)
		}
	}
}

// TestText: passes and errors as people read them.
func TestText(t *testing.T) {
	for _, a := range arches(t) {
		if a.Traits().CallOps {
			continue
		}
		c := newCore(t, a, 2)
		r := must(t)(c.Attach(NewOps("one", user(0), 0, 1)))
		pass := r.Passes[0].String()
		for _, want := range []string{"update_ftrace_func ftrace_ops_list_func\nmake call " + c.Site(1).Addr.String() +
			": nop -> call " + c.tramps[c.Text(1).Decided].ops.Trampoline.String() + "\nset function_trace_op\nsync\n"} {
			if !strings.HasPrefix(pass, want) {
				t.Errorf("%q\nwant %q", pass, want)
			}
		}
		was := c.text[1].Text
		c.text[1].Text++
		_, err := c.Attach(NewOps("two", user(1), 0, 1))
		n := int(c.sites[1].Len)
		want := "the site holds " + (was + 1).Format(n) + " and not " + was.Format(n)
		if errno(err) != EINVAL || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, c := range []Config{{Arch: arches(t)[0]}, {Records: addrs(1)}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v is a tracer", c)
		}
	}
}

// TestPeerRefuses: a live patch cannot come where a direct ops does not share, and takes
// nothing with it.
func TestPeerRefuses(t *testing.T) {
	onArches(t, func(t *testing.T, a isa.Arch) {
		c := newCore(t, a, 4)
		o := NewOps("direct", nil, OpsDynamic, 1)
		must(t)(c.RegisterDirect(o, images))
		if _, err := c.Attach(livepatch(1)); errno(err) != EBUSY || c.Len() != 1 {
			t.Errorf("%v, %d ops", err, c.Len())
		}
		asked := []Share(nil)
		o.Share = func(s Share, rec int) error {
			asked = append(asked, s)
			return nil
		}
		patch := livepatch(1)
		must(t)(c.Attach(patch))
		must(t)(c.Detach(patch))
		if !slices.Equal(asked, []Share{SharePeer, UnsharePeer}) {
			t.Errorf("asked %v", asked)
		}
	})
}

// TestSharing: a program on the entry alone needs no other trampoline for a live patch; one
// that fails leaves the trampoline as it was.
func TestSharing(t *testing.T) {
	onArches(t, func(t *testing.T, a isa.Arch) {
		c := newCore(t, a, 4)
		b := NewBPF(c, images)
		must(t)(b.Link(1, Prog{Kind: FEntry, Number: 1}))
		patch := livepatch(1)
		if r := must(t)(c.Attach(patch)); r.Regenerations != 0 || r.Count(StepImage) != 0 || !b.tramps[1].share {
			t.Errorf("fentry: %d again, %d images, share %v", r.Regenerations, r.Count(StepImage), b.tramps[1].share)
		}
		if r := must(t)(c.Detach(patch)); r.Regenerations != 0 || b.tramps[1].share {
			t.Errorf("fentry, gone: %d again, share %v", r.Regenerations, b.tramps[1].share)
		}
		failed := errors.New("no store")
		c.Stores.Site = func(*Patch) error { return failed }
		if _, err := c.Attach(livepatch(1)); !errors.Is(err, failed) || b.tramps[1].share || c.Len() != 1 {
			t.Errorf("%v, share %v, %d ops", err, b.tramps[1].share, c.Len())
		}
	})
}

// TestGlobalTaken: a global trampoline takes no function that has a direct trampoline.
func TestGlobalTaken(t *testing.T) {
	onArches(t, func(t *testing.T, a isa.Arch) {
		c := newCore(t, a, 4)
		g := NewGlobalTramps(NewBPF(c, images), images+1<<24)
		p := Prog{Kind: FEntry, Number: 9}
		must(t)(g.Link(2, p, 1))
		must(t)(c.RegisterDirect(NewOps("direct", nil, OpsDynamic, 2), images+1<<28))
		if _, err := g.Link(2, p, 2, 3); errno(err) != EBUSY || c.DirectOf(3) != 0 || len(g.progs[3]) != 0 {
			t.Errorf("%v, %s", err, c.DirectOf(3))
		}
		must(t)(g.Link(2, p, 3))
	})
}
