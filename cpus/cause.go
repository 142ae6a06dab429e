// SPDX-License-Identifier: Apache-2.0

package cpus

// Cause is why one CPU interrupts another.
type Cause uint8

// The causes. All but the last two are interrupts and are counted.
const (
	// Sync is a round of a protocol that changes records: fetch afresh, then
	// answer (on_each_cpu(do_sync_core), arch/x86/kernel/alternative.c; remote
	// fence.i, arch/riscv/mm/cacheflush.c).
	Sync Cause = iota
	// Stop wakes a CPU's stopper for stop_machine (kernel/stop_machine.c).
	Stop
	// StaticKey and StaticCall are rounds like Sync that other updates send, such
	// as those of a tracepoint that gets its first user: a key's branches change
	// together (kernel/jump_label.c), a static call's sites one by one
	// (kernel/static_call_inline.c).
	StaticKey
	StaticCall
	// Trampoline and EntryCall are such rounds too: an ops' own trampoline, and
	// the calls inside ftrace_caller and ftrace_regs_caller, are given another
	// function to call (update_ftrace_func, arch/x86/kernel/ftrace.c).
	Trampoline
	EntryCall
	// CoreSync orders the loads of a tracer's function and of its data (ftrace_sync_ipi,
	// kernel/trace/ftrace.c). The CPU does not fetch afresh for that.
	CoreSync
	// PageAttributes flushes translations of pages whose protection changed
	// (cpa_flush, arch/x86/mm/pat/set_memory.c).
	PageAttributes
	// Quiesce asks a CPU to say when it is in no trampoline. It models the waiting of RCU-tasks,
	// which sends no interrupt, and is not counted.
	Quiesce
	// QuiesceCPUs asks the same of a CPU, whatever tasks it has preempted
	// (synchronize_rcu).
	QuiesceCPUs

	NumCauses = int(Quiesce) // causes that are counted
)

var causeNames = [...]string{"sync", "stop", "static-key", "static-call", "trampoline", "entry-call", "core-sync",
	"page-attributes",
	"quiesce", "quiesce-cpus"}

func (c Cause) String() string { return causeNames[c] }

// Syncs tells whether the one who is asked fetches afresh, wherever interrupts do
// not do that by themselves.
func (c Cause) Syncs() bool {
	return c == Sync || c >= StaticKey && c <= EntryCall
}
