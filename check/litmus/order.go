// SPDX-License-Identifier: Apache-2.0

package litmus

import "slices"

// order is what of a program's order a class keeps, as bit masks of earlier
// instructions of the same thread.
type order struct {
	perform [][]uint32 // [thread][insn]: to be performed before it is performed
	fetch   [][]uint32 // and before it is fetched
}

func (t *Test) order(c *class) order {
	o := order{make([][]uint32, len(t.threads)), make([][]uint32, len(t.threads))}
	for n := range t.threads {
		insns := t.threads[n].insns
		o.perform[n], o.fetch[n] = make([]uint32, len(insns)), make([]uint32, len(insns))
		for j := range insns {
			for i := range j {
				if c.performedBefore(&insns[i], &insns[j]) || insns[j].op == opISB && addressOf(insns[i:j]) {
					o.perform[n][j] |= 1 << i
				}
				if c.performedBeforeFetch(&insns[i], &insns[j]) {
					o.fetch[n][j] |= 1 << i
				}
			}
		}
	}
	return o
}

// addressOf tells whether the address of some later instruction depends on the
// first one's result: an isb behind both waits for it (aarch64.cat: addr; po;
// [ISB]).
func addressOf(insns []insn) bool {
	reg := insns[0].reg
	return reg >= 0 && slices.ContainsFunc(insns[1:], func(i insn) bool { return i.addr == reg })
}

// performedBeforeFetch: an instruction that synchronises the context, and on x86 the
// CPU's own store through the address that it executes from: the hardware looks out
// for it (SDM vol. 3A, "Self-Modifying Code"). Behind a store through an alias the
// fetch would not wait, but that store moves no bound, so it makes no difference. By
// windows everything is in order.
func (c *class) performedBeforeFetch(a, b *insn) bool {
	switch c.family {
	case windows:
		return true
	case rv: // where a fetch is performed like anything else
		return false
	}
	self := c.family == x86 && a.op == opStore && b.op == opExec && a.site == b.site
	return a.op.synchronises() || self
}

// performedBefore tells whether b, later in program order, waits for a.
func (c *class) performedBefore(a, b *insn) bool {
	switch {
	case c.family == windows:
		return true
	case c.family == rv && (a.op == opExec || b.op == opExec):
		return c.fetches.before(a, b)
	case a.op == opExec || b.op == opExec: // decided when fetched, in program order
		return false
	case b.needs(a.reg):
		return true
	case a.op == opWait, a.op == opIPI && b.op == opWait:
		return true
	case a.op == opCtrl && b.op.definite(): // nothing of these is done on a guess
		return true
	case a.about(b) && a.op != opIC && b.op != opIC:
		return true
	}
	switch c.family {
	case arm:
		return armOrder(a, b)
	case x86:
		return x86Order(a, b)
	default:
		return rvOrder(a, b)
	}
}

// definite tells whether the instruction waits for the branches before it.
func (o op) definite() bool {
	return o.writes() || o == opDC || o == opIC || o == opIPI || o == opWait || o.synchronises()
}

// armOrder is the part of aarch64.cat that the tests need. A dsb waits for all,
// and all wait for it; a dmb orders accesses and dc, not ic.
func armOrder(a, b *insn) bool {
	data := func(i *insn) bool { return i.op.accesses() || i.op == opDC }
	switch {
	case a.op == opDSB || b.op == opDSB:
		return true
	case a.op == opDMB:
		return data(b)
	case b.op == opDMB:
		return data(a)
	case a.op == opDMBst:
		return b.op.writes()
	case b.op == opDMBst:
		return a.op.writes()
	case a.op == opDMBld:
		return b.op.accesses()
	case b.op == opDMBld:
		return a.op == opRead
	}
	return acquireRelease(a, b)
}

// acquireRelease orders an acquiring read with what follows and a releasing
// write with what precedes.
func acquireRelease(a, b *insn) bool {
	return a.op.accesses() && b.op.accesses() && (a.marked("acquire") || b.marked("release"))
}

// x86Order is total store order: only a read may overtake an earlier write. An IPI is a write to
// the interrupt controller behind the fences of its way of sending. An instruction that serialises
// drains buffered stores first, as fences do.
func x86Order(a, b *insn) bool {
	overtakes := (a.op.writes() || a.op == opIPI) && (b.op == opRead || b.op == opCtrl)
	return !overtakes
}

// before orders a fetch with something else of the same hart.
func (f rvFetch) before(a, b *insn) bool {
	switch {
	case b.op == opExec:
		return a.op == opFenceI || a.op == opExec && f.inOrder
	case a.reg == b.addr || a.reg == b.from: // an access of the fetched instruction itself
		return true
	case b.op == opFenceI:
		return f.inOrder || f.fenceI
	case b.op == opRead:
		return f.inOrder || f.reads
	}
	return (b.op.writes() || b.op == opIPI) && (f.inOrder || f.writes)
}

// rvOrder is the part of RVWMO that the tests need. An IPI is a write to a
// device: only a fence orders it behind writes to memory. fence.i orders all accesses
// before it before all fetches behind it, and so before what is fetched there.
func rvOrder(a, b *insn) bool {
	switch {
	case a.op == opFenceI:
		return true
	case a.op == opFence:
		return b.op.accesses() || b.op == opIPI || b.op.synchronises() || b.op == opFence
	case b.op == opFence:
		return a.op.accesses() || a.op == opIPI
	case b.op == opFenceI:
		return a.op.accesses()
	}
	return acquireRelease(a, b)
}
