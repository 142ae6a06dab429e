// SPDX-License-Identifier: Apache-2.0

package cpus

// Space is where an isolated CPU is, for rounds that leave out those in user space
// (context_tracking's state and work bits, include/linux/context_tracking_state.h;
// deferring by them was proposed by Schneider, "context_tracking,x86: Defer some
// IPIs until a user->kernel transition", linux-kernel, 2022 to 2025). The zero value
// is in the kernel.
type Space uint8

// The places, and what is noted there.
const (
	InUser Space = 1 << iota
	owes         // rounds have left the CPU out
)

// LeaveOut marks a CPU in user space as owing a synchronisation, and tells whether it
// is there.
func (s Space) LeaveOut() (Space, bool) {
	if s&InUser == 0 {
		return s, false
	}
	return s | owes, true
}

// Owes tells whether rounds have left the CPU out, which it makes up for when it enters
// the kernel.
func (s Space) Owes() bool { return s&owes != 0 }

// leaveOut leaves a CPU out: in one access, so that a CPU that comes in meanwhile is
// either interrupted or sees the mark.
func (m *Machine) leaveOut(cpu int) bool {
	for at := &m.space[cpu]; ; {
		was := at.Load()
		is, out := Space(was).LeaveOut()
		if at.CompareAndSwap(was, uint32(is)) {
			return out
		}
	}
}

// EnterKernel implements Shared.
func (m *Machine) EnterKernel(cpu int) Space { return Space(m.space[cpu].Swap(0)) }

// LeaveKernel implements Shared.
func (m *Machine) LeaveKernel(cpu int) { m.space[cpu].Store(uint32(InUser)) }
