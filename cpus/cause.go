package cpus

// Cause is why one CPU interrupts another.
type Cause uint8

// The causes. Every cause but Quiesce is an interrupt and is counted.
const (
	// Sync is a round of a protocol: fetch afresh, then answer
	// (on_each_cpu(do_sync_core), arch/x86/kernel/alternative.c; remote
	// fence.i, arch/riscv/mm/cacheflush.c).
	Sync Cause = iota
	// Stop wakes a CPU's stopper for stop_machine (kernel/stop_machine.c).
	Stop
	// Quiesce asks a CPU to say when it is in no trampoline. It models the
	// waiting of RCU-tasks, which interrupts nobody, and is not counted.
	Quiesce
	// QuiesceCPUs asks the same of a CPU, whatever tasks it has preempted
	// (synchronize_rcu).
	QuiesceCPUs

	NumCauses = int(Quiesce) // causes that are counted
)

var causeNames = [...]string{"sync", "stop", "quiesce", "quiesce-cpus"}

func (c Cause) String() string { return causeNames[c] }
