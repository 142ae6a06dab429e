// SPDX-License-Identifier: Apache-2.0

package tracers

// Decision is what an update does to a record (FTRACE_UPDATE_*).
type Decision uint8

// The decisions.
const (
	Ignore Decision = iota
	MakeCall
	ModifyCall
	MakeNop
)

var decisionNames = [...]string{"ignore", "make call", "modify call", "make nop"}

func (d Decision) String() string { return decisionNames[d] }

// Decide says what an update does to a record with these flags, and what they
// are afterwards. enable is false where everything is switched off at once,
// for every ops (kernel.ftrace_enabled=0). It is ftrace_check_record
// (kernel/trace/ftrace.c, Linux 7.1).
func Decide(f Flags, enable bool) (Decision, Flags) {
	if f.has(Disabled) && !f.has(Enabled) {
		return Ignore, f // skip_record
	}
	if !enable || f.Count() == 0 {
		if !f.has(Enabled) {
			return Ignore, f
		}
		if f.Count() == 0 {
			return MakeNop, f & noClear
		}
		return MakeNop, f &^ (Enabled | TrampEn | RegsEn | DirectEn | CallOpsEn)
	}
	differs := differing(f)
	if f.has(Enabled) && differs == 0 {
		return Ignore, f
	}
	to := f | Enabled | Touched
	if f.has(Direct | IPModify) {
		to |= Modified
	}
	for _, p := range pairs {
		if differs.has(p.want) {
			to = to.with(p.have, p.wanted(f))
		}
	}
	if f.has(Enabled) {
		return ModifyCall, to
	}
	return MakeCall, to
}

// pairs are the ways that a site can be called in other than the plain one.
// Direct and CallOps go for an only user.
var pairs = []pair{
	{Regs, RegsEn, false}, {Tramp, TrampEn, false}, {Direct, DirectEn, true}, {CallOps, CallOpsEn, true},
}

type pair struct {
	want, have Flags
	only       bool
}

// wanted tells whether the text is to have it.
func (p pair) wanted(f Flags) bool { return f.has(p.want) && (!p.only || f.Count() == 1) }

// differing are the flags whose wish and text differ.
func differing(f Flags) (d Flags) {
	for _, p := range pairs {
		if p.wanted(f) != f.has(p.have) {
			d |= p.want
		}
	}
	return d
}
