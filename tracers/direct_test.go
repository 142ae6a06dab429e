// SPDX-License-Identifier: Apache-2.0

package tracers

import (
	"slices"
	"testing"

	"github.com/textpoke/textpoke/cpus/isa"
)

// broadcasts are the rounds of a report on x86_64 by its kernel's prices: three for
// a trampoline that is pointed elsewhere, six for ftrace_caller's two calls, three
// for a batch of sites, one between (arch/x86/kernel/ftrace.c, 7.1).
func broadcasts(r Report) int {
	return 3*r.Count(StepAim) + 6*r.Count(StepUpdateFunc) + r.Count(StepSync) + 3*r.Count(StepRecords)
}

// TestModifyCosts: a direct call of one site costs 9 broadcasts to modify where the
// list function is the global one already, and 22 where the ops is static and
// alone (counted from the kernel's source, 7.1).
func TestModifyCosts(t *testing.T) {
	for _, a := range arches(t) {
		if !a.Traits().OpsTrampolines {
			continue
		}
		for flags, want := range map[OpsFlags]int{OpsDynamic: 9, 0: 22} {
			c := newCore(t, a, 4)
			o := NewOps("direct", nil, flags, 1)
			must(t)(c.RegisterDirect(o, images))
			must(t)(c.ModifyDirect(o, images+0x1000)) // makes tmp_ops' trampoline
			r := must(t)(c.ModifyDirect(o, images+0x2000))
			if got := broadcasts(r); got != want || len(r.Passes) != 2 || r.Count(StepTasks) != 0 {
				t.Errorf("%s: %d broadcasts in %d passes, want %d\n%v", flags, got, len(r.Passes), want, r.Passes)
			}
		}
	}
}

// TestModifyGoesOverTheList: the first pass leads to the list, the second to the
// new trampoline, and there is no moment without a call.
func TestModifyGoesOverTheList(t *testing.T) {
	onArches(t, func(t *testing.T, a isa.Arch) {
		c := newCore(t, a, 4)
		o := NewOps("direct", nil, OpsDynamic, 1, 2)
		must(t)(c.RegisterDirect(o, images))
		r := must(t)(c.ModifyDirect(o, images+0x1000))
		for i, pass := range r.Passes {
			for _, q := range pass.Patches {
				list := q.To.Decided == c.Places.RegsEntry && (q.To.Literal == nil || q.To.Literal == c.ListOps)
				if q.Decision != ModifyCall || i == 0 && !list || i == 1 && q.To.Decided != images+0x1000 {
					t.Errorf("pass %d: %s %s -> %s", i, q.Decision, q.From, q.To)
				}
			}
		}
		if got := names(t, c, 2); !slices.Equal(got, []string{"0xffffffffc0001000"}) {
			t.Errorf("calls %v", got)
		}
	})
}

// TestDirectErrors: the errors of direct calls, in the order in which they are
// looked for.
func TestDirectErrors(t *testing.T) {
	onArches(t, func(t *testing.T, a isa.Arch) {
		c := newCore(t, a, 4)
		there := NewOps("there", nil, 0, 1)
		must(t)(c.RegisterDirect(there, images))
		must(t)(c.Attach(livepatch(2)))
		own := NewOps("own", user(0), 0, 1)
		none := NewOps("none", nil, 0)
		bare := &Ops{Name: "bare", Filter: Functions{3}}
		for _, tt := range []struct {
			what string
			do   func() (Report, error)
			want Errno
		}{
			{"a function of its own comes first", func() (Report, error) { return c.RegisterDirect(own, images) },
				EINVAL},
			{"not initialised", func() (Report, error) { return c.RegisterDirect(bare, images) }, EINVAL},
			{"attached", func() (Report, error) { return c.RegisterDirect(there, images) }, EINVAL},
			{"no functions", func() (Report, error) { return c.RegisterDirect(none, images) }, EINVAL},
			{"no such record", func() (Report, error) { return c.RegisterDirect(NewOps("x", nil, 0, 9), images) },
				ENOENT},
			{"one of two has a trampoline", func() (Report, error) {
				return c.RegisterDirect(NewOps("x", nil, 0, 0,
					1), images)
			}, EBUSY},
			{"a live patch, and it cannot be asked", func() (Report, error) {
				return c.RegisterDirect(NewOps("x", nil,
					0, 2), images)
			}, EBUSY},
			{"a trampoline, before the live patch", func() (Report, error) {
				return c.RegisterDirect(NewOps("x", nil,
					0, 1, 2), images)
			}, EBUSY},
			{"modify what is not direct", func() (Report, error) { return c.ModifyDirect(own, images) }, EINVAL},
			{"unregister what is not attached", func() (Report, error) { return c.UnregisterDirect(none) }, EINVAL},
		} {
			if _, err := tt.do(); errno(err) != tt.want {
				t.Errorf("%s: %v, want %s", tt.what, err, tt.want.String())
			}
		}
		if c.DirectOf(0) != 0 || c.DirectOf(2) != 0 || c.Len() != 2 {
			t.Error("a refusal left something behind")
		}
	})
}

// TestSingleErrors: those of one ops for all trampolines.
func TestSingleErrors(t *testing.T) {
	onArches(t, func(t *testing.T, a isa.Arch) {
		c := newCore(t, a, 4)
		o := NewOps("single", nil, 0)
		_, err := c.DirectAdd(o, request(0, 1))
		if !a.Traits().SingleDirectOps {
			if errno(err) != EOPNOTSUPP {
				t.Error(err)
			}
			return
		}
		for what, do := range map[string]func() (Report, error){
			"add nothing":              func() (Report, error) { return c.DirectAdd(o, nil) },
			"add what is there":        func() (Report, error) { return c.DirectAdd(o, request(1, 2)) },
			"delete what is not there": func() (Report, error) { return c.DirectDel(o, request(2)) },
			"delete another one": func() (Report, error) {
				return c.DirectDel(o,
					map[int]recordsAddr{1: images + 4})
			},
			"modify what is not there": func() (Report, error) { return c.DirectMod(o, request(1, 3)) },
		} {
			if _, err := do(); errno(err) != EINVAL {
				t.Errorf("%s: %v", what, err)
			}
		}
		r := must(t)(c.DirectAdd(o, request(2, 3)))
		if len(r.Passes) != 1 || r.Patches() != 2 || r.HashCopied != 2+2 || r.HashEntries != 4+4 {
			t.Errorf("%d passes, %d patches, %d of %d entries copied", len(r.Passes), r.Patches(), r.HashCopied,
				r.HashEntries)
		}
		r = must(t)(c.DirectDel(o, request(0, 1, 2, 3)))
		if r.Count(StepTasks) != 0 || r.CallTasks != 1 || len(o.Filter) != 0 || o.has(OpsEnabled) {
			t.Errorf("waits %d, later %d, %s", r.Count(StepTasks), r.CallTasks, o.Flags)
		}
		must(t)(c.DirectAdd(o, request(1)))
	})
}
