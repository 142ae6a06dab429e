// SPDX-License-Identifier: Apache-2.0

package litmus

import "slices"

// op is what an instruction does.
type op uint8

const (
	opExec      op = iota // executes a site: which text was it?
	opRead                // data read, of data or of a site's text
	opWrite               // data write
	opStore               // store to a site's text
	opDC                  // clean a site's text to the point of unification
	opIC                  // invalidate it in all instruction caches
	opDSB                 // completes everything before it
	opDMB                 // orders accesses to data
	opDMBst               // orders writes
	opDMBld               // orders reads with what follows
	opISB                 // context synchronisation
	opFence               // fence rw,rw
	opFenceI              // this hart's fetches see what is visible to it
	opMfence              // completes buffered stores
	opLock                // a LOCKed read-modify-write of something else
	opSerialise           // cpuid, iret, serialize, mov to a control register
	opCtrl                // a conditional branch on a register
	opIPI                 // interrupts all other CPUs
	opWait                // waits until they have answered
)

// operand is what an instruction's line names.
type operand uint8

const (
	nothing  operand = iota
	aSite            // dc a
	aText            // store a 1, store a[1] 1
	aValue           // write x 1
	aReg             // ctrl r
	fromSite         // r = exec a, r = exec a[1]
	fromAny          // r = read x
)

// ops describes each op. Quiet ones have no effect of their own but to let later ones go on: the
// search performs them as soon as it can.
var ops = [...]struct {
	name     string
	families family
	operand  operand
	quiet    bool
	marks    []string // what may follow the operands, besides dependencies
}{
	opExec:      {"exec", arm | x86 | rv, fromSite, false, nil},
	opRead:      {"read", arm | x86 | rv, fromAny, false, []string{"acquire"}},
	opWrite:     {"write", arm | x86 | rv, aValue, false, []string{"release"}},
	opStore:     {"store", arm | x86 | rv, aText, false, []string{"alias"}},
	opDC:        {"dc", arm, aSite, false, nil},
	opIC:        {"ic", arm, aSite, false, nil},
	opDSB:       {"dsb", arm, nothing, true, nil},
	opDMB:       {"dmb", arm, nothing, true, nil},
	opDMBst:     {"dmb.st", arm, nothing, true, nil},
	opDMBld:     {"dmb.ld", arm, nothing, true, nil},
	opISB:       {"isb", arm, nothing, true, nil},
	opFence:     {"fence", rv, nothing, true, nil},
	opFenceI:    {"fence.i", rv, nothing, true, nil},
	opMfence:    {"mfence", x86, nothing, true, nil},
	opLock:      {"lock", x86, nothing, true, nil},
	opSerialise: {"serialise", x86, nothing, true, nil},
	opCtrl:      {"ctrl", arm | x86 | rv, aReg, true, nil},
	opIPI:       {"ipi", arm | x86 | rv, nothing, false, nil},
	opWait:      {"wait", arm | x86 | rv, nothing, true, nil},
}

// marks restrict an instruction to some families.
var markFamilies = map[string]family{"acquire": arm | rv, "release": arm | rv, "alias": x86}

func parseOp(s string) (op, bool) {
	for i := range ops {
		if ops[i].name == s {
			return op(i), true
		}
	}
	return 0, false
}

func (o op) writes() bool   { return o == opWrite || o == opStore }
func (o op) accesses() bool { return o == opRead || o.writes() }

// synchronises tells whether the instructions behind it are fetched only when this is done.
func (o op) synchronises() bool { return o == opISB || o == opFenceI || o == opSerialise }

// families tells where the instruction exists.
func (i *insn) families() family {
	f := ops[i.op].families
	for mark, only := range markFamilies {
		if slices.Contains(i.marks, mark) {
			f &= only
		}
	}
	return f
}
