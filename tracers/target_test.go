// SPDX-License-Identifier: Apache-2.0

package tracers

import (
	"testing"

	"github.com/textpoke/textpoke/records"
)

// TestTargets: each row of the precedence, for what is to be called and for what
// is called now.
func TestTargets(t *testing.T) {
	all := Targets{Direct: 0xd000, Trampoline: 0x7000, RegsEntry: 0x2000, Entry: 0x1000}
	bare := Targets{RegsEntry: 0x2000, Entry: 0x1000}
	rows := []struct {
		name  string
		in    Targets
		f     Flags
		now   bool
		to    records.Addr
		wrong bool
	}{
		{"new: one direct", all, 1 | Direct | Tramp | Regs, false, 0xd000, false},
		{"new: direct with company", all, 2 | Direct | Regs, false, 0x2000, false},
		{"new: trampoline before registers", all, 1 | Tramp | Regs, false, 0x7000, false},
		{"new: registers", all, 2 | Regs, false, 0x2000, false},
		{"new: plain", all, 2, false, 0x1000, false},
		{"new: direct without an entry in the table falls through", bare, 1 | Direct | Regs, false, 0x2000, true},
		{"new: direct without an entry falls to the trampoline", Targets{Trampoline: 0x7000, Entry: 0x1000},
			1 | Direct | Tramp, false, 0x7000, true},
		{"new: trampoline of nobody", bare, 1 | Tramp | Regs, false, 0x1000, true},
		{"new does not look at what is installed", all, 2 | DirectEn | TrampEn | RegsEn, false, 0x1000, false},
		{"now: direct, whatever the count", all, 2 | DirectEn | TrampEn | RegsEn, true, 0xd000, false},
		{"now: trampoline before registers", all, 1 | TrampEn | RegsEn, true, 0x7000, false},
		{"now: registers", all, 1 | RegsEn, true, 0x2000, false},
		{"now: plain", all, 1, true, 0x1000, false},
		{"now: direct without an entry falls through", bare, 1 | DirectEn | RegsEn, true, 0x2000, true},
		{"now: trampoline of nobody", bare, 1 | TrampEn | RegsEn, true, 0x1000, true},
		{"now does not look at what is wanted", all, 1 | Direct | Tramp | Regs, true, 0x1000, false},
	}
	for _, r := range rows {
		to, ok := r.in.New(r.f)
		if r.now {
			to, ok = r.in.Current(r.f)
		}
		if to != r.to || ok == r.wrong {
			t.Errorf("%s: %s, %v", r.name, to, ok)
		}
	}
}

// TestTrampolineOf: whose trampoline a site calls while lists and hashes change.
func TestTrampolineOf(t *testing.T) {
	ops := func(name string, flags OpsFlags, tramp records.Addr, filter ...int) *Ops {
		o := NewOps(name, user(0), flags, filter...)
		o.Trampoline = tramp
		return o
	}
	old := func(o *Ops, filter ...int) *Ops {
		o.old = new(FunctionsOf(filter...))
		return o
	}
	plain, bare := ops("plain", 0, 0x7000, 1), ops("bare", 0, 0, 1)
	adding := ops("adding", OpsAdding, 0x8000, 1)
	modifying := old(ops("modifying", OpsModifying, 0x9000, 2), 1)
	added := old(ops("added", OpsModifying, 0xa000, 1), 2)
	gone := old(ops("gone", OpsRemoving, 0xb000, 1), 1)
	rows := []struct {
		name    string
		removed *Ops
		list    []*Ops
		now     *Ops
	}{
		{"the one that traces it", nil, []*Ops{plain}, plain},
		{"one without a trampoline is passed over", nil, []*Ops{bare, plain}, plain},
		{"one that is being added has not got there", nil, []*Ops{adding, plain}, plain},
		{"one that is being modified: by its old filter", nil, []*Ops{modifying}, modifying},
		{"one that is being modified: not by its new one", nil, []*Ops{added, plain}, plain},
		{"one that is being removed comes first", gone, []*Ops{plain}, gone},
		{"a removed one that did not trace it", old(ops("other", 0, 0xc000, 2), 2), []*Ops{plain}, plain},
		{"nobody", nil, []*Ops{bare, adding}, nil},
	}
	for _, r := range rows {
		if got := TrampolineNow(1, r.removed, r.list); got != r.now {
			t.Errorf("%s: %v", r.name, got)
		}
	}
	if got := TrampolineThen(1, []*Ops{modifying, adding}); got != adding {
		t.Errorf("then: %v", got)
	}
	if Unique(1, []*Ops{plain, bare}) != nil || Unique(1, []*Ops{modifying, bare}) != bare || Unique(3,
		[]*Ops{plain}) != nil {
		t.Error("unique")
	}
}
