// SPDX-License-Identifier: Apache-2.0

package tracers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/records"
)

// OpsFlags are an ops' flags (FTRACE_OPS_FL_*, include/linux/ftrace.h).
type OpsFlags uint32

// The flags of an ops, at the kernel's bits.
const (
	OpsEnabled             OpsFlags = 1 << 0
	OpsDynamic             OpsFlags = 1 << 1 // may be freed: it does not lie in the core kernel's data
	OpsSaveRegs            OpsFlags = 1 << 2
	OpsSaveRegsIfSupported OpsFlags = 1 << 3
	OpsRecursion           OpsFlags = 1 << 4 // its func needs to be guarded against recursion
	OpsStub                OpsFlags = 1 << 5 // is never called: it holds references
	OpsInitialized         OpsFlags = 1 << 6
	OpsDeleted             OpsFlags = 1 << 7
	OpsAdding              OpsFlags = 1 << 8
	OpsRemoving            OpsFlags = 1 << 9
	OpsModifying           OpsFlags = 1 << 10
	OpsAllocTramp          OpsFlags = 1 << 11 // its trampoline was made for it
	OpsIPModify            OpsFlags = 1 << 12
	OpsPID                 OpsFlags = 1 << 13
	OpsRCU                 OpsFlags = 1 << 14 // its func needs RCU to be watching
	OpsPermanent           OpsFlags = 1 << 16 // must not be switched off by kernel.ftrace_enabled
	OpsDirect              OpsFlags = 1 << 17
	OpsGraph               OpsFlags = 1 << 19
)

var opsFlagNames = []named[OpsFlags]{
	{OpsEnabled, "ENABLED"}, {OpsDynamic, "DYNAMIC"}, {OpsSaveRegs, "SAVE_REGS"}, {OpsSaveRegsIfSupported,
		"SAVE_REGS_IF_SUPPORTED"},
	{OpsRecursion, "RECURSION"}, {OpsStub, "STUB"}, {OpsInitialized, "INITIALIZED"}, {OpsDeleted,
		"DELETED"}, {OpsAdding, "ADDING"},
	{OpsRemoving, "REMOVING"}, {OpsModifying, "MODIFYING"}, {OpsAllocTramp, "ALLOC_TRAMP"}, {OpsIPModify,
		"IPMODIFY"}, {OpsPID, "PID"},
	{OpsRCU, "RCU"}, {OpsPermanent, "PERMANENT"}, {OpsDirect, "DIRECT"}, {OpsGraph, "GRAPH"},
}

// String is the flags that are set.
func (f OpsFlags) String() string { return strings.Join(namesOf(f, opsFlagNames), " ") }

// Functions are records by their numbers, ascending and each once.
type Functions []int

// FunctionsOf sorts records and drops what is named twice.
func FunctionsOf(recs ...int) Functions {
	f := Functions(slices.Clone(recs))
	slices.Sort(f)
	return slices.Compact(f)
}

// Has tells whether a record is among them.
func (f Functions) Has(rec int) bool {
	_, ok := slices.BinarySearch(f, rec)
	return ok
}

// union is everything that is in either.
func (f Functions) union(g Functions) Functions {
	out := make(Functions, 0, len(f)+len(g))
	for len(f) > 0 && len(g) > 0 {
		if f[0] <= g[0] {
			if f[0] == g[0] {
				g = g[1:]
			}
			out, f = append(out, f[0]), f[1:]
		} else {
			out, g = append(out, g[0]), g[1:]
		}
	}
	return append(append(out, f...), g...)
}

// without is what is not in g.
func (f Functions) without(g Functions) Functions {
	return slices.DeleteFunc(slices.Clone(f), g.Has)
}

// Ops is one client of the function tracer (struct ftrace_ops). Its exported fields
// are the client's to set before it attaches; while it is attached, only Core
// changes them. The zero value traces all functions and has no function to call.
type Ops struct {
	Name   string
	Func   *Func // nil for a direct ops
	Flags  OpsFlags
	Direct *Func     // the code of its direct trampoline, where there is one; ways of dispatch jump there
	Filter Functions // functions to trace; none means all

	Trampoline records.Addr // what only this ops' sites call; 0 for none
	DirectCall records.Addr // the direct trampoline where each ops has one (dbaccb618fab, 6.4)

	// Share answers whether a direct ops can live with one that may change the
	// instruction pointer (ops_func); nil where it cannot.
	Share func(Share, int) error

	old        *Functions // that it traced before a change, while the text changes
	next, prev *Ops       // in the list, while attached
	alive      state
}

// NewOps makes an ops that traces some functions, all if none are named. Add
// OpsDynamic for one that may be freed: whatever is allocated or in a module.
func NewOps(name string, f *Func, flags OpsFlags, functions ...int) *Ops {
	return &Ops{Name: name, Func: f, Flags: flags | OpsInitialized, Filter: FunctionsOf(functions...)}
}

// has tells whether any of the flags is set.
func (o *Ops) has(bits OpsFlags) bool { return o.Flags&bits != 0 }

// Test tells whether the ops wants a function's calls (ftrace_ops_test). regs
// tells whether the entry passed all registers: an ops that wants them is refused
// without, which happens while sites are being switched.
func (o *Ops) Test(rec int, regs bool) bool {
	if o.has(OpsSaveRegs) && !regs {
		return false
	}
	return o.Filter.choose(rec)
}

// Effective is the function that is called for the ops when it is the only one
// (ftrace_ops_get_func): guarded if it needs it.
func (o *Ops) Effective() *Func {
	if o.has(OpsRecursion | OpsRCU) {
		return FuncAssist
	}
	return o.Func
}

// state is how far an ops is on its way.
type state uint8

const (
	fresh    state = iota
	attached       // in the list
	leaving        // out of the list; a call may still be on its way to it
	released       // a grace period has passed
	freed          // its memory is somebody else's
)

// setFilter replaces what an ops traces.
func (x *change) setFilter(o *Ops, to Functions) {
	from := o.Filter
	x.later(func() {
		o.Filter = from
		x.c.rehashed(o)
	})
	o.Filter = to
	x.c.rehashed(o)
}

// choose is hash_contains_ip: a filter without entries is all functions.
func (f Functions) choose(rec int) bool { return len(f) == 0 || f.Has(rec) }

// Errno is an error number of Linux (include/uapi/asm-generic/errno.h). 0 is
// success.
type Errno int

// The error numbers that attaching can end with.
const (
	EPERM      Errno = 1
	ENOENT     Errno = 2
	E2BIG      Errno = 7
	EAGAIN     Errno = 11
	ENOMEM     Errno = 12
	EFAULT     Errno = 14
	EBUSY      Errno = 16
	EEXIST     Errno = 17
	ENODEV     Errno = 19
	EINVAL     Errno = 22
	EOPNOTSUPP Errno = 95
)

var errnoNames = map[Errno]string{
	0: "0", EPERM: "EPERM", ENOENT: "ENOENT", E2BIG: "E2BIG", EAGAIN: "EAGAIN", ENOMEM: "ENOMEM", EFAULT: "EFAULT",
	EBUSY: "EBUSY", EEXIST: "EEXIST", ENODEV: "ENODEV", EINVAL: "EINVAL", EOPNOTSUPP: "EOPNOTSUPP",
}

// String is the number's name.
func (e Errno) String() string {
	if s, ok := errnoNames[e]; ok {
		return s
	}
	return fmt.Sprintf("errno %d", int(e))
}

// Error is a refusal: the kernel's number, the rule in words, and where the rule
// stands.
type Error struct {
	Errno  Errno
	Ops    string       // whose request it was
	Record records.Addr // which record it was about, 0 for none
	Why    string
	Source string // function and release
	Err    error  // what it rests on; may be nil
}

func (e *Error) Error() string {
	s := "-" + e.Errno.String() + ": "
	if e.Ops != "" {
		s += "ops " + e.Ops + ": "
	}
	if e.Record != 0 {
		s += "record " + e.Record.String() + ": "
	}
	s += e.Why
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap is what the refusal rests on.
func (e *Error) Unwrap() error { return e.Err }

// Is tells whether the refusal has an error number.
func (e *Error) Is(target error) bool { return target == e.Errno }

// refuse makes the refusal of an ops.
func refuse(errno Errno, ops *Ops, why, source string) *Error {
	return &Error{Errno: errno, Ops: ops.Name, Why: why, Source: source}
}

// at says which record a refusal is about.
func (e *Error) at(a records.Addr) *Error {
	e.Record = a
	return e
}

// Error makes an Errno an error, for stores into text that fail.
func (e Errno) Error() string { return "-" + e.String() }

// UnmarshalText finds an error number by its name; "0" is success.
func (e *Errno) UnmarshalText(text []byte) error {
	for known, name := range errnoNames {
		if name == string(text) {
			*e = known
			return nil
		}
	}
	return fmt.Errorf("tracers: %q is the name of no error number", text)
}
