// SPDX-License-Identifier: Apache-2.0

package calibration

// Costs holds the cost of each mechanism on one machine. Times are in nanoseconds, rates in events
// a second. Quantities (quantities.go) gives each its name in files.
type Costs struct {
	// A round: the sender prepares it (RoundSetup), sends to one target after the
	// other (Send each), and looks at the answers. A target takes the interrupt
	// Delivery and an exponential delay of mean Jitter later, unless it masks
	// interrupts or handles something else; an idle one wakes up first (IdleWake).
	// Handler is what the target loses, from the interrupt's entry to its exit;
	// Answer is how long it takes until the sender sees that the last one is done.
	RoundSetup, Send, Delivery, Jitter, IdleWake, Handler, Answer float64
	// StopWake is what it takes, beside that, to get the stopper of a CPU to run
	// for stop_machine.
	StopWake float64

	// What the patcher does at one site: compare (Verify), put it into the batch
	// that is published (Publish), one store to text (Store) or to a literal
	// (StoreLiteral); and a fence.
	Verify, Publish, Store, StoreLiteral, Fence float64

	// A trap: into the handler and out of it, one comparison of the lookup, and
	// taking or giving back a reference whose cache line is already here. A line
	// that another CPU has must come first (LineTransfer), one CPU after the other.
	TrapEntry, TrapExit, Comparison, Reference, LineTransfer float64

	// UserEntry and UserExit are what the way into the kernel and out of it takes;
	// DeferralEntry is what each entry takes on top of that where rounds may leave
	// CPUs in user space out; CatchUp is the synchronisation of one that was.
	UserEntry, UserExit, DeferralEntry, CatchUp float64

	// MaskedStretch is the mean length of a stretch with interrupts masked.
	MaskedStretch float64
	// A CPU that does not synchronise goes on fetching old text for up to FetchLag
	// after a store.
	FetchLag float64
	// GracePeriod is what synchronize_rcu_tasks takes at least.
	GracePeriod float64
	// Switch is a switch between tasks; a task that was preempted is Away for so long
	// on average; Migration is what a task loses that goes on on another CPU.
	Switch, Away, Migration float64
	// TickInterval is the time between two timer interrupts of a CPU that is busy.
	TickInterval float64

	// What runs on the machine: calls of traced functions a second on a CPU that
	// is busy, and Skew, the exponent of Zipf's law by which they are spread over
	// functions; Tracer is what a call of a tracer takes. An isolated CPU enters
	// the kernel Entries times a second and stays for KernelStretch on average.
	Calls, Skew, Tracer, Entries, KernelStretch float64
}
