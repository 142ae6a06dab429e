// SPDX-License-Identifier: Apache-2.0

package tracers

import (
	"errors"
	"slices"
	"testing"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

type recordsAddr = records.Addr

// request gives functions trampolines of their own.
func request(recs ...int) map[int]recordsAddr {
	to := map[int]recordsAddr{}
	for _, rec := range recs {
		to[rec] = images + records.Addr(rec)*0x1000
	}
	return to
}

// TestDead: where a change fails and cannot be taken back either, nobody may attach, detach or switch any more.
func TestDead(t *testing.T) {
	onArches(t, func(t *testing.T, a isa.Arch) {
		c := newCore(t, a, 6)
		other := NewOps("other", user(0), OpsDynamic, 5)
		must(t)(c.Attach(other))
		stores := 0
		c.Stores.Site = func(*Patch) error {
			if stores++; stores > 1 {
				return EFAULT
			}
			return nil
		}
		if _, err := c.Attach(NewOps("one", user(0), OpsDynamic, 1, 2)); errno(err) != EFAULT || !c.Dead() {
			t.Errorf("%v, dead %v", err, c.Dead())
		}
		for what, do := range map[string]func() (Report, error){
			"detach": func() (Report, error) { return c.Detach(other) },
			"attach": func() (Report, error) { return c.Attach(NewOps("x", user(0), 0, 0)) },
			"filter": func() (Report, error) { return c.SetFilter(other, 4) },
			"switch": func() (Report, error) { return c.Switch(false) },
		} {
			if _, err := do(); errno(err) != ENODEV {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// TestVerify: a site that holds something else is found before anything is written.
func TestVerify(t *testing.T) {
	onArches(t, func(t *testing.T, a isa.Arch) {
		c := newCore(t, a, 4)
		c.text[2].Text ^= 1
		_, err := c.Attach(NewOps("one", user(0), 0, 1, 2))
		if first := c.Text(1).Decided != 0; err == nil || first || c.Dead() {
			t.Errorf("%v, first site written %v, dead %v", err, first, c.Dead())
		}
	})
}

// TestMisaligned: a record whose literal or site is misaligned is refused, and so is
// whoever names it.
func TestMisaligned(t *testing.T) {
	onArches(t, func(t *testing.T, a isa.Arch) {
		c, err := New(Config{Arch: a, Records: []records.Addr{textBase, textBase + 68, textBase + 128}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Attach(NewOps("one", user(0), 0, 1))
		var why *isa.MisalignedError
		if !a.Traits().CallOps {
			if err != nil || c.Refused() != nil {
				t.Error(err)
			}
			return
		}
		if errno(err) != ENOENT || !errors.As(err, &why) || !slices.Equal(c.Refused(), []int{1}) {
			t.Errorf("%v, refused %v", err, c.Refused())
		}
		r := must(t)(c.Attach(NewOps("all", user(0), 0)))
		if r.Patches() != 2 {
			t.Errorf("%d patches", r.Patches())
		}
	})
}

// TestFreed: a call that is on its way holds the grace period up; freeing at once is
// found out.
func TestFreed(t *testing.T) {
	onArches(t, func(t *testing.T, a isa.Arch) {
		for _, wait := range []bool{true, false} {
			c := newCore(t, a, 2)
			o := NewOps("one", user(0), OpsDynamic, 1)
			must(t)(c.Attach(o))
			call := c.Enter(1)
			must(t)(c.Detach(o))
			if late := c.Enter(1); o.Released() || c.Free(o) == nil {
				t.Error("released with a call on its way")
			} else if _, err := late.Finish(new(Task)); err != nil {
				t.Error(err)
			}
			if !wait {
				c.FreeAtOnce(o)
			}
			_, err := call.Finish(new(Task))
			if errors.Is(err, ErrFreed) == wait {
				t.Errorf("waited %v: %v", wait, err)
			}
			if wait && (!o.Released() || c.Free(o) != nil) {
				t.Error("not released after the last call")
			}
		}
	})
}

// TestUnguarded: the kernel asks the ops that goes whether the literal may name the
// one that stays. A guarded ops that stays alone is then called without its guard;
// one that needs none stays on the list (__ftrace_hash_rec_update, 7.1).
func TestUnguarded(t *testing.T) {
	onArches(t, func(t *testing.T, a isa.Arch) {
		for _, guardedStays := range []bool{true, false} {
			c := newCore(t, a, 2)
			plain, guarded := NewOps("plain", user(0), 0, 1), NewOps("guarded", user(1), OpsRecursion, 1)
			must(t)(c.Attach(plain))
			must(t)(c.Attach(guarded))
			goes, stays := guarded, plain
			if guardedStays {
				goes, stays = plain, guarded
			}
			must(t)(c.Detach(goes))
			if got := c.Flags(1).has(CallOps); got != (guardedStays && a.Traits().CallOps) {
				t.Errorf("CALL_OPS %v, guarded stays %v", got, guardedStays)
			}
			raw := c.Enter(1)
			if guardedStays && a.Traits().CallOps != (raw.f == stays.Func) {
				t.Errorf("calls function %p", raw.f)
			}
			if _, err := raw.Finish(new(Task)); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestAttachErrors: those of Attach that no other test meets.
func TestAttachErrors(t *testing.T) {
	onArches(t, func(t *testing.T, a isa.Arch) {
		c := newCore(t, a, 3)
		there := NewOps("there", user(0), 0, 1)
		must(t)(c.Attach(there))
		full := newCore(t, a, 3)
		full.flags[1] = RefMax
		regs := Errno(0)
		if !a.Traits().RegsEntry {
			regs = EINVAL
		}
		for _, tt := range []struct {
			what string
			c    *Core
			o    *Ops
			want Errno
		}{
			{"attached already", c, there, EBUSY},
			{"deleted", c, NewOps("x", user(0), OpsDeleted, 1), EINVAL},
			{"registers", c, NewOps("x", user(0), OpsSaveRegs, 1), regs},
			{"instruction pointer of all functions", c, NewOps("x", user(0), OpsIPModify), EINVAL},
			{"too many references", full, NewOps("x", user(0), 0, 1), EINVAL},
		} {
			if _, err := tt.c.Attach(tt.o); errno(err) != tt.want {
				t.Errorf("%s: %v", tt.what, err)
			}
		}
		if _, err := c.Detach(NewOps("x", user(0), 0)); errno(err) != EBUSY {
			t.Error(err)
		}
		if full.Flags(1) != RefMax || full.Len() != 0 {
			t.Error("a refusal left something behind")
		}
	})
}

// TestGlobal: the pair that sites without a literal share, and the steps around the
// patches (ftrace_modify_all_code): through the list while sites are half switched,
// then, if one static ops is alone, its own function after a round.
func TestGlobal(t *testing.T) {
	kinds := func(p *Pass) (out []StepKind) {
		for _, s := range p.Steps {
			out = append(out, s.Kind)
		}
		return out
	}
	onArches(t, func(t *testing.T, a isa.Arch) {
		c := newCore(t, a, 3)
		one := NewOps("one", user(0), 0, 1)
		r := must(t)(c.Attach(one))
		want := []StepKind{StepUpdateFunc, StepRecords, StepSetOp, StepSync, StepUpdateFunc}
		updates := 2
		if a.Traits().CallOps {
			updates = 0 // nothing to patch; the round is sent all the same
		}
		if got := kinds(r.Passes[0]); !slices.Equal(got, want) || r.Count(StepUpdateFunc) != updates ||
			r.Count(StepSync) != 1 {
			t.Errorf("steps %v, %d updates", got, r.Count(StepUpdateFunc))
		}
		if f, o := c.Global(); f != user(0) || o != one {
			t.Errorf("%v, %v", f, o)
		}
		r = must(t)(c.Attach(NewOps("two", user(0), OpsRecursion, 2)))
		if got := kinds(r.Passes[0]); !slices.Equal(got, []StepKind{StepUpdateFunc, StepRecords}) {
			t.Errorf("steps %v", got)
		}
		if f, _ := c.Global(); f != FuncList {
			t.Errorf("%v", f)
		}
		must(t)(c.Detach(one))
		if f, o := c.Global(); f != FuncAssist || o.Name != "two" {
			t.Errorf("%v, %v", f, o)
		}
		graph := NewOps("graph", user(2), OpsGraph, 0)
		if got := kinds(must(t)(c.StartGraph(graph)).Passes[0]); got[len(got)-1] != StepGraphStart {
			t.Errorf("steps %v", got)
		}
		if got := kinds(must(t)(c.StopGraph(graph)).Passes[0]); got[len(got)-1] != StepGraphStop {
			t.Errorf("steps %v", got)
		}
	})
}

// TestRegsWhileSwitching: an ops that wants all registers is left out by the list
// function while a site still calls the entry that saves few (ftrace_ops_test).
func TestRegsWhileSwitching(t *testing.T) {
	onArches(t, func(t *testing.T, a isa.Arch) {
		c := newCore(t, a, 1)
		for _, name := range []string{"one", "two"} {
			must(t)(c.Attach(NewOps(name, user(0), OpsDynamic, 0)))
		}
		switched, meanwhile := 0, []string{"two", "one"}
		if !a.Traits().RegsEntry { // the one entry saves what there is to save
			meanwhile = []string{"regs", "two", "one"}
		}
		c.Stores.Site = func(*Patch) error {
			switched++
			if got := names(t, c, 0); !slices.Equal(got, meanwhile) {
				t.Errorf("calls %v", got)
			}
			return nil
		}
		must(t)(c.Attach(NewOps("regs", user(1), OpsSaveRegs|OpsSaveRegsIfSupported, 0)))
		if got := names(t, c, 0); !slices.Equal(got, []string{"regs", "two", "one"}) || switched != 1 {
			t.Errorf("calls %v, %d sites switched", got, switched)
		}
	})
}
