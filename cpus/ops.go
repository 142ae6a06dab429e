// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"fmt"
	"slices"
)

// maxOps is how many ops a machine can know; only their addresses are compared.
const maxOps = 16

// OpsTable names every ops that text or a literal can name. It stays as it is while the machine
// runs; an OpsStates beside it says how calls end.
type OpsTable struct {
	nop   uint64 // calls no tracer, always
	addrs []uint64
}

// OpsStates is what a call through each ops of a table amounts to, two bits an ops:
// one word, which an engine guards, copies or packs as it likes.
type OpsStates uint32

const opsBits = 2

// NewOpsTable names the ops that calls no tracer (nop_ops), and others; all can be called.
func NewOpsTable(nop uint64, others ...uint64) (t OpsTable, s OpsStates, err error) {
	t = OpsTable{nop: nop}
	for _, addr := range append([]uint64{nop}, others...) {
		if slices.Contains(t.addrs, addr) {
			continue
		}
		if err := t.Add(addr); err != nil {
			return t, s, err
		}
	}
	return t, OpsStates(CalledNobody), nil
}

// Add makes an ops known. In the states that are there already it can be called.
func (t *OpsTable) Add(addr uint64) error {
	if len(t.addrs) == maxOps {
		return fmt.Errorf("more than %d ops", maxOps)
	}
	t.addrs = append(t.addrs, addr)
	return nil
}

// Bits is how many bits of an OpsStates the table's ops take.
func (t *OpsTable) Bits() uint { return opsBits * uint(len(t.addrs)) }

// Call is what a call through an address amounts to.
func (t *OpsTable) Call(s OpsStates, addr uint64) Outcome {
	for i := range t.addrs {
		if t.addrs[i] == addr {
			return Outcome(s >> (opsBits * i) & (1<<opsBits - 1))
		}
	}
	return CalledWild
}

// Set changes how calls through an ops end: CalledTracer when it is attached, CalledFreed when it
// has been released. The ops that calls no tracer stays as it is.
func (t *OpsTable) Set(s OpsStates, addr uint64, o Outcome) OpsStates {
	for i := range t.addrs {
		if t.addrs[i] == addr && addr != t.nop {
			s = s&^((1<<opsBits-1)<<(opsBits*i)) | OpsStates(o)<<(opsBits*i)
		}
	}
	return s
}
