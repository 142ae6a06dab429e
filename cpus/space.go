package cpus

// Where an isolated CPU is, for rounds that leave out those in user space
// (context_tracking's state and work bits, include/linux/context_tracking_state.h;
// deferring by them was proposed by Schneider, "context_tracking,x86: Defer some
// IPIs until a user->kernel transition", linux-kernel, 2022 to 2025).
const (
	inUser = 1 << iota
	owes   // a round has left the CPU out
)

// leaveOut marks a CPU in user space as owing a synchronisation, and tells
// whether it is there: in one access, so that a CPU that comes in meanwhile is
// either interrupted or sees the mark.
func (m *Machine) leaveOut(cpu int) bool {
	s := &m.space[cpu]
	return s.CompareAndSwap(inUser, inUser|owes) || s.Load() == inUser|owes
}

// EnterKernel implements Shared.
func (m *Machine) EnterKernel(cpu int) bool { return m.space[cpu].Swap(0)&owes != 0 }

// LeaveKernel implements Shared.
func (m *Machine) LeaveKernel(cpu int) { m.space[cpu].Store(inUser) }
