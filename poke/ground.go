package poke

import (
	"fmt"
	"sync/atomic"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
)

// Shared is what patchers share besides the machine.
type Shared struct {
	held   [NumMutexes]atomic.Bool
	raised atomic.Bool
	mapped atomic.Int64 // site whose page stores go to, plus 1
}

// NewShared has every lock free and nothing mapped.
func NewShared() *Shared { return &Shared{} }

func (s *Shared) page() (site int, ok bool) {
	n := s.mapped.Load()
	return int(n) - 1, n > 0
}

// The Ground of the live machine.

// Peek implements Ground.
func (x *Executor) Peek(site int) isa.Text { return x.Machine.Peek(site) }

// Literal implements Ground.
func (x *Executor) Literal(site int) uint64 { return x.Machine.Literal(site) }

// Store implements Ground.
func (x *Executor) Store(site, off, n int, t isa.Text) {
	if mapped, ok := x.Shared.page(); ok && mapped != site {
		x.Machine.Report(cpus.Violation{
			Property: cpus.BrokenSite, CPU: x.lease.CPU(), Site: mapped, Addr: x.Machine.Code().Sites[mapped], Bytes: t.Format(n),
			Why: fmt.Sprintf("another patcher has mapped this site's page meanwhile: the store for site %d goes here", site),
		})
		site = mapped
	}
	x.Machine.Store(site, off, n, t)
}

// StoreLiteral implements Ground.
func (x *Executor) StoreLiteral(site int, ops uint64) { x.Machine.StoreLiteral(site, ops) }

// Unsettle implements Ground.
func (x *Executor) Unsettle(site int) { x.Machine.Unsettle(site) }

// Settle implements Ground.
func (x *Executor) Settle(site int, want isa.Text) { x.Machine.Settle(site, want) }

// Attach implements Ground.
func (x *Executor) Attach(ops uint64) { x.Machine.SetOps(ops, cpus.CalledTracer) }

// Release implements Ground.
func (x *Executor) Release(ops uint64) { x.Machine.SetOps(ops, cpus.CalledFreed) }

// Lock implements Ground.
func (x *Executor) Lock(m Mutex) bool { return x.Shared.held[m].CompareAndSwap(false, true) }

// Unlock implements Ground.
func (x *Executor) Unlock(m Mutex) { x.Shared.held[m].Store(false) }

// Map implements Ground.
func (x *Executor) Map(site int) { x.Shared.mapped.Store(int64(site) + 1) }

// Raise implements Ground.
func (x *Executor) Raise() { x.Shared.raised.Store(true) }

// Raised implements Ground.
func (x *Executor) Raised() bool { return x.Shared.raised.Load() }

// Publish implements Ground.
func (x *Executor) Publish(patches []Patch, undo bool) {
	if n := len(patches); x.Slots > 0 && n > x.Slots {
		last := &patches[n-1]
		x.Machine.Report(cpus.Violation{
			Property: cpus.Overflow, CPU: x.lease.CPU(), Site: int(last.Site), Addr: last.Addr, Bytes: last.New.Format(x.Machine.Code().Len),
			Why: fmt.Sprintf("%d patches in a vector of %d slots: the rest is written behind its end", n, x.Slots),
		})
	}
	x.Table.Publish(Batch(x.Machine.Code(), x.Lookup, x.AsQueued, patches, undo))
}

// Unpublish implements Ground.
func (x *Executor) Unpublish() { x.Table.Unpublish() }

// Drained implements Ground.
func (x *Executor) Drained() bool { return x.Table.Drained() }

// Clear implements Ground.
func (x *Executor) Clear() { x.Table.Clear() }

// Send implements Ground.
func (x *Executor) Send(c cpus.Cause, lazy bool) { x.sender.Send(x.lease.CPU(), c, lazy) }

// Answered implements Ground.
func (x *Executor) Answered() bool { return x.sender.Answered() }

// StopMachine implements Ground.
func (x *Executor) StopMachine() bool {
	x.stopped = x.sender.StopMachine(x.lease.CPU())
	return x.stopped
}

// Stopped implements Ground.
func (x *Executor) Stopped() bool { return x.sender.Stopped() }

// ResumeMachine implements Ground.
func (x *Executor) ResumeMachine() {
	x.sender.ResumeMachine()
	x.stopped = false
}

// SyncSelf implements Ground.
func (x *Executor) SyncSelf() { x.lease.Sync() }
