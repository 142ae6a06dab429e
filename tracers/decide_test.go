// SPDX-License-Identifier: Apache-2.0

package tracers

import "testing"

// TestDecideRows is the kernel's table, row by row: what the text has, what is
// wanted, the decision, and the flags that follow (ftrace_check_record, 7.1).
func TestDecideRows(t *testing.T) {
	const on = Enabled | Touched
	rows := []struct {
		name   string
		flags  Flags
		enable bool
		want   Decision
		to     Flags
	}{
		{"nobody wants a nop", 0, true, Ignore, 0},
		{"touched once, nobody wants it", Touched, true, Ignore, Touched},
		{"one wants a nop", 1, true, MakeCall, 1 | on},
		{"one wants a nop, all is off", 1, false, Ignore, 1},
		{"several want a nop", 3, true, MakeCall, 3 | on},
		{"wanted and called", 1 | on, true, Ignore, 1 | on},
		{"nobody wants a call", on, true, MakeNop, Touched},
		{"nobody wants a call with everything",
			on | Modified | Regs | RegsEn | Tramp | TrampEn | DirectEn | CallOpsEn | IPModify, true, MakeNop,
			Touched | Modified},
		{"all is off, one wants a call", 1 | on | Regs | RegsEn | Tramp | TrampEn, false, MakeNop,
			1 | Touched | Regs | Tramp},
		{"all is off, one direct", 1 | on | Direct | DirectEn, false, MakeNop, 1 | Touched | Direct},
		{"all is off, one by its literal", 1 | on | CallOps | CallOpsEn, false, MakeNop, 1 | Touched | CallOps},
		{"all is off, nobody wants a call", on, false, MakeNop, Touched},

		{"nop to all registers", 1 | Regs, true, MakeCall, 1 | on | Regs | RegsEn},
		{"nop to its trampoline", 1 | Tramp, true, MakeCall, 1 | on | Tramp | TrampEn},
		{"nop to direct", 1 | Direct, true, MakeCall, 1 | on | Direct | DirectEn | Modified},
		{"nop to literal", 1 | CallOps, true, MakeCall, 1 | on | CallOps | CallOpsEn},
		{"nop, two users, one direct", 2 | Direct | Regs, true, MakeCall, 2 | on | Direct | Regs | RegsEn | Modified},
		{"nop, may change the instruction pointer", 1 | IPModify | Regs, true, MakeCall,
			1 | on | IPModify | Regs | RegsEn | Modified},

		{"call to all registers", 2 | on | Regs, true, ModifyCall, 2 | on | Regs | RegsEn},
		{"all registers no more", 1 | on | RegsEn, true, ModifyCall, 1 | on},
		{"all registers still", 2 | on | Regs | RegsEn, true, Ignore, 2 | on | Regs | RegsEn},
		{"call to trampoline", 1 | on | Tramp, true, ModifyCall, 1 | on | Tramp | TrampEn},
		{"trampoline no more", 2 | on | TrampEn, true, ModifyCall, 2 | on},
		{"trampoline still", 1 | on | Tramp | TrampEn, true, Ignore, 1 | on | Tramp | TrampEn},
		{"one left, direct", 1 | on | Direct, true, ModifyCall, 1 | on | Direct | DirectEn | Modified},
		{"direct still", 1 | on | Direct | DirectEn | Modified, true, Ignore, 1 | on | Direct | DirectEn | Modified},
		{"direct gets company", 2 | on | Direct | DirectEn | Modified, true, ModifyCall, 2 | on | Direct | Modified},
		{"direct has company", 2 | on | Direct | Modified, true, Ignore, 2 | on | Direct | Modified},
		{"direct leaves", 1 | on | DirectEn | Modified, true, ModifyCall, 1 | on | Modified},
		{"one left, by its literal", 1 | on | CallOps, true, ModifyCall, 1 | on | CallOps | CallOpsEn},
		{"literal still", 1 | on | CallOps | CallOpsEn, true, Ignore, 1 | on | CallOps | CallOpsEn},
		{"literal gets company", 2 | on | CallOpsEn, true, ModifyCall, 2 | on},
		{"literal has company", 2 | on, true, Ignore, 2 | on},
		{"several at once", 1 | on | Tramp | RegsEn | CallOps, true, ModifyCall,
			1 | on | Tramp | TrampEn | CallOps | CallOpsEn},

		{"disabled", 1 | Disabled, true, Ignore, 1 | Disabled},
		{"disabled but called", on | Disabled, true, MakeNop, Touched | Disabled},
	}
	for _, r := range rows {
		got, to := Decide(r.flags, r.enable)
		if got != r.want || to != r.to {
			t.Errorf("%s: %s and %s, want %s and %s", r.name, got, to, r.want, r.to)
		}
	}
}

// TestDecideSettles: for every combination of flags, what follows from a decision
// needs nothing more, and the decision agrees with the table's one-line rule.
func TestDecideSettles(t *testing.T) {
	bits := []Flags{Enabled, Regs, RegsEn, Tramp, TrampEn, IPModify, Disabled, Direct, DirectEn, CallOps, CallOpsEn,
		Touched, Modified}
	for set := range 1 << len(bits) {
		for count := range Flags(3) {
			f := count
			for i, b := range bits {
				if set>>i&1 == 1 {
					f |= b
				}
			}
			for _, enable := range []bool{false, true} {
				d, to := Decide(f, enable)
				if again, _ := Decide(to, enable); again != Ignore {
					t.Fatalf("%s, %v: %s to %s, then %s", f, enable, d, to, again)
				}
				if want := rule(f, enable); d != want {
					t.Fatalf("%s, %v: %s, want %s", f, enable, d, want)
				}
				if to.Count() != f.Count() || (d == Ignore) != (to == f) && d != ModifyCall {
					t.Fatalf("%s, %v: %s to %s", f, enable, d, to)
				}
			}
		}
	}
}

// rule is the table in words.
func rule(f Flags, enable bool) Decision {
	is := func(b Flags) bool { return f&b != 0 }
	one := f&RefMax == 1
	marker := is(Regs) != is(RegsEn) || is(Tramp) != is(TrampEn) ||
		one && is(Direct) != is(DirectEn) || !one && is(DirectEn) || one && is(CallOps) != is(CallOpsEn) || !one &&
		is(CallOpsEn)
	switch want := enable && f&RefMax > 0; {
	case is(Disabled) && !is(Enabled), !is(Enabled) && !want, is(Enabled) && want && !marker:
		return Ignore
	case !is(Enabled):
		return MakeCall
	case want:
		return ModifyCall
	}
	return MakeNop
}

func TestFlagsString(t *testing.T) {
	if got := (2 | Enabled | Regs | RegsEn).String(); got != "2 ENABLED REGS REGS_EN" {
		t.Errorf("%q", got)
	}
	if got := (OpsSaveRegs | OpsIPModify).String(); got != "SAVE_REGS IPMODIFY" {
		t.Errorf("%q", got)
	}
	if RefMax != 524287 { // FTRACE_REF_MAX of 6.6 and later
		t.Error(RefMax)
	}
}
