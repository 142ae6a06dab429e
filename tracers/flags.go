// SPDX-License-Identifier: Apache-2.0

package tracers

import (
	"strconv"
	"strings"
)

// Flags are a record's state and, in the low bits, how many ops want it called
// (struct dyn_ftrace.flags, include/linux/ftrace.h, Linux 6.6 and later). Pairs
// are what is wanted and, with En, what the text has.
type Flags uint64

// The flags of a record.
const (
	Enabled   Flags = 1 << 31 // the text holds a call
	Regs      Flags = 1 << 30 // the entry that saves all registers
	RegsEn    Flags = 1 << 29
	Tramp     Flags = 1 << 28 // the only ops' own trampoline
	TrampEn   Flags = 1 << 27
	IPModify  Flags = 1 << 26 // an ops that may change the instruction pointer is attached; at most one
	Disabled  Flags = 1 << 25 // not to be touched: module not ready, weak function
	Direct    Flags = 1 << 24 // a direct ops is attached
	DirectEn  Flags = 1 << 23
	CallOps   Flags = 1 << 22 // the site's literal names the only ops
	CallOpsEn Flags = 1 << 21
	Touched   Flags = 1 << 20 // was enabled once (6.5)
	Modified  Flags = 1 << 19 // was direct or ipmodify once
)

// RefMax is the most references that a record can count, FTRACE_REF_MAX: 2^19-1
// since Linux 6.6 (2^23-1 in 5.15 to 6.1, 2^25-1 in 5.0).
const RefMax = 1<<19 - 1

// noClear are the flags that outlive the last reference
// (FTRACE_NOCLEAR_FLAGS).
const noClear = Disabled | Touched | Modified

var flagNames = []struct {
	flag Flags
	name string
}{
	{Enabled, "ENABLED"}, {Regs, "REGS"}, {RegsEn, "REGS_EN"}, {Tramp, "TRAMP"}, {TrampEn, "TRAMP_EN"},
	{IPModify, "IPMODIFY"}, {Disabled, "DISABLED"}, {Direct, "DIRECT"}, {DirectEn, "DIRECT_EN"},
	{CallOps, "CALL_OPS"}, {CallOpsEn, "CALL_OPS_EN"}, {Touched, "TOUCHED"}, {Modified, "MODIFIED"},
}

// Count is how many ops want the record called.
func (f Flags) Count() int { return int(f & RefMax) }

// has tells whether any of the bits is set.
func (f Flags) has(bits Flags) bool { return f&bits != 0 }

// with sets or clears bits.
func (f Flags) with(bits Flags, on bool) Flags {
	if on {
		return f | bits
	}
	return f &^ bits
}

// String is the count and the flags that are set: "2 ENABLED REGS REGS_EN".
func (f Flags) String() string {
	words := []string{strconv.Itoa(f.Count())}
	for _, n := range flagNames {
		if f.has(n.flag) {
			words = append(words, n.name)
		}
	}
	return strings.Join(words, " ")
}
