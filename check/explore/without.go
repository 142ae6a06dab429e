// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
)

// With is the same model with other CPUs, those of deaf (one bit each) among them
// deaf; see cpus.Code.Deaf. It is prepared.
func (m *Model) With(roles []cpus.Role, deaf uint64) (*Model, error) {
	o := m.copied()
	o.Code.Deaf, o.Roles = deaf, slices.Clone(roles)
	return o, o.Prepare()
}

// copied is the same model, not prepared.
func (m *Model) copied() *Model {
	code := *m.Code
	return &Model{
		Code: &code, Roles: m.Roles, Programs: m.Programs, Initial: m.Initial, Literals: m.Literals,
		NopOps: m.NopOps, Attached: m.Attached, Lookup: m.Lookup, Refs: m.Refs, Slots: m.Slots, Filling: m.Filling,
		Preempt: m.Preempt, SameSites: m.SameSites, ticks: m.ticks, anyEnd: m.anyEnd, around: m.around,
		among: m.among,
	}
}

// Homes are the CPUs that the patchers sit on, by patcher.
func (m *Model) Homes() []int { return slices.Clone(m.homes[:len(m.Programs)]) }

// withoutCPU is the model without one of its CPUs, which is no patcher's home.
func (m *Model) withoutCPU(cpu int) (*Model, error) {
	low := uint64(1)<<cpu - 1
	deaf := m.Code.Deaf&low | m.Code.Deaf>>1&^low
	return m.With(slices.Delete(slices.Clone(m.Roles), cpu, cpu+1), deaf)
}

// behind is a CPU's number when another one is left out.
func behind(cpu, out int) int {
	if cpu > out {
		return cpu - 1
	}
	return cpu
}

// without makes o, a world of the model without one of its CPUs, what w is without that
// CPU: what it owes is not waited for, what it holds is not held.
func (w *world) without(out int, o *world) {
	n := len(w.m.Roles)
	o.state = w.state
	ticket := func(t cpus.Ticket) cpus.Ticket { return o.ticket(int(t)/n, behind(int(t)%n, out)) }
	for cpu := range n {
		to := behind(cpu, out)
		if cpu == out {
			continue
		}
		o.box[to], o.refs[to], o.stopped[to], o.space[to] = w.box[cpu], w.refs[cpu], w.stopped[cpu], w.space[cpu]
		c := w.cpu[cpu]
		c.ID, c.Taken.Ticket, c.Quiesce = int32(to), ticket(c.Taken.Ticket), ticket(c.Quiesce)
		t := w.parked[cpu]
		t.Quiesce = ticket(t.Quiesce)
		o.cpu[to], o.parked[to] = c, t
	}
	o.box[n-1], o.refs[n-1], o.stopped[n-1], o.space[n-1] = [MaxPatchers]request{}, 0, false, 0
	for i := range w.m.Programs {
		o.left[i] -= int8(w.owed(out, i))
		o.patcher[i].Resume(w.patcher[i].Progress(nil))
	}
	if w.stopping != 0 {
		if o.arriving--; w.stopped[out] {
			o.arrived--
		}
	}
	if w.m.SharesReferences() && w.m.Code.Path.Holds(w.cpu[out].Phase) {
		*o.ref(0)--
	}
	if o.logged > 0 {
		o.forget()
	}
}

// follows is a step of somebody else where a CPU is left out; false for one that is
// about that CPU.
func (a action) follows(out int) (action, bool) {
	switch a.kind {
	case stepPatcher, begin, drain:
		return a, true
	case unpark:
		if int(a.arg) == out {
			return a, false
		}
		a.arg = uint8(behind(int(a.arg), out))
	}
	if int(a.who) == out {
		return a, false
	}
	a.who = uint8(behind(int(a.who), out))
	return a, true
}

// SharesReferences tells whether handlers of all CPUs count in one counter.
func (m *Model) SharesReferences() bool { return m.Refs != int3.PerCPU && m.Refs != int3.NoRef }
