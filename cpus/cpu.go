// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/cpus/isa"
)

// Phase is what a CPU does next.
type Phase uint8

// The phases. Up to Calling they are borders between instructions, where
// interrupts are taken.
const (
	Boundary  Phase = iota // between two calls
	Asleep                 // idle, or in user space: it only takes interrupts
	Again                  // goes back to the site it came from
	Inside                 // between two instructions of one site
	Entered                // in the common entry: the ops is loaded next
	Calling                // the ops is loaded: it is called next
	Guarded                // the site's guard is armed: waits until it is not
	Signalled              // the kernel has taken the trap and delivers a signal: its handler comes next

	Trapped     // ran into a breakpoint: takes a reference
	Searching   // looks the address up
	Leaving     // gives the reference back
	Returning   // leaves the trap
	Missed      // found no entry: looks at the text again
	Retrying    // forgiven: fetches afresh, then Again
	Interrupted // takes a request
	Syncing     // fetches afresh
	Answering   // tells the sender
	Arriving    // stands still for stop_machine
	Stopped     // waits to be resumed
	Resuming    // fetches afresh, then goes on
	Doubting    // met nop_ops at an enabled site: was a tracer promised?
	Crossing    // on one of its ways: makes the next step of it
	Down        // offline
	numPhases

	lastBorder = Signalled
)

// CPU is one CPU's own state: a small value that can be copied and compared.
type CPU struct {
	Task // that it is in the middle of
	ID   int16
	Back Phase // where an interrupt or a trap leads back to
	Role Role

	polled bool // looked for interrupts at this border
	hit    bool // the handler found an entry
	stop   bool // was woken for stop_machine

	cr3 uint8
	way Section // that the CPU is on, AtSite where it is on none
	at  uint8   // which of its steps comes next

	Masked uint16 // calls left with interrupts masked
	Linger uint16 // steps left before the loaded ops is called
	Awake  uint16 // calls left before an idle CPU sleeps again, or a way goes on

	Synced Seq      // position of the last synchronisation
	Act    isa.Insn // what the trap handler acts as
	Taken  Taken    // interrupt being handled
}

// Task is what a CPU is in the middle of, and goes on with when it was preempted: a small value, like CPU.
type Task struct {
	Site    int32    // being executed
	Phase   Phase    // Boundary: there is none
	Off     uint8    // of a site of several instructions: the offset of the one that comes next
	Quiet   bool     // owes an answer to a grace period
	Quiesce Ticket   // which
	Promise Promise  // the site's promise when it was fetched
	Scratch uint64   // scratch register (t0)
	Text    isa.Text // of a site of several instructions: the version of it that is being executed
	Ops     uint64   // loaded ops
}

// Event is what one step amounted to.
type Event uint8

// The events. A call ends in exactly one of Traced and Untraced.
const (
	Nothing  Event = iota
	Traced         // called a tracer
	Untraced       // a call that reached no tracer
	Lost           // Untraced, though an update had promised a tracer
	Trap           // ran into a breakpoint
	Miss           // found no entry for it
	IPI            // answered an interrupt
	Broken         // a call that ended in a violation
	Begun          // in a Tally only: calls begun, counted apart from how they end
	NumEvents
)

// Scratchpad is a CPU's working memory: no state, only room, so that steps do
// not allocate.
type Scratchpad struct {
	window    []Version
	probe     Probe
	begun     uint64    // calls begun, counted apart from how they end
	Found     bool      // the last step violated a property
	Violation Violation // which, when Found
}

// NewScratchpad makes room for windows of the usual depth.
func NewScratchpad() *Scratchpad { return &Scratchpad{window: make([]Version, 0, 16)} }

// Forget makes room for another CPU: it drops the fetches of the last one.
func (p *Scratchpad) Forget() { p.window = p.window[:0] }

// AtBorder tells whether the CPU stands between two instructions.
func (c *CPU) AtBorder() bool { return c.Phase <= lastBorder }

// Resting tells whether the CPU does nothing until it is interrupted.
func (c *CPU) Resting() bool { return c.Phase == Asleep && !c.stop && !c.Quiet }

// BetweenCalls tells whether the CPU's task stands between two calls.
func (c *CPU) BetweenCalls() bool {
	return (c.Phase == Boundary || c.Phase == Asleep) && (c.way == AtSite || c.way == OnEntry)
}

// Preemptible tells whether another task may take the CPU over: the kernels
// modelled here are preempted at voluntary points only.
func (c *CPU) Preemptible() bool {
	return (c.BetweenCalls() || c.Phase == Down) && c.Masked == 0 && !c.stop && !c.Quiet
}

// Houses tells whether a patcher may take the CPU over now.
func (c *CPU) Houses() bool { return c.Preemptible() && c.Phase != Down }

// phaseWords are the phases for people: where the CPU is, and its next step.
var phaseWords = [...]struct{ is, does string }{
	Boundary: {"between calls", "calls"}, Asleep: {"asleep", "sleeps"}, Again: {"back at site", "goes back to the site"},
	Inside: {"inside", "goes on inside the site"}, Entered: {"entered from",
		"loads the ops"}, Calling: {"calling for", "calls the ops"},
	Guarded: {"before the guard of", "looks at the guard"}, Signalled: {"signalled at", "begins the signal's handler"},
	Trapped: {"trapped at", "tries to take a reference on the batch"}, Searching: {"looking up", "looks the address up"},
	Leaving: {"found", "gives the reference back"}, Returning: {"returning from trap at", "returns from the trap"},
	Missed: {"missed", "looks whether the breakpoint is still there"}, Retrying: {"retrying",
		"fetches afresh, to try again"},
	Interrupted: {"interrupted", "takes what waits"}, Syncing: {"syncing", "fetches afresh"}, Answering: {"answering",
		"answers the sender"},
	Arriving: {"arriving", "stands still, interrupts off"}, Stopped: {"stopped",
		"waits to be resumed"}, Resuming: {"resuming", "fetches afresh, goes on"},
	Doubting: {"met nop_ops at", "asks what was promised"}, Crossing: {"crossing", "goes on its way"},
	Down: {"offline", "is offline"},
}

// String is what the CPU is.
func (p Phase) String() string { return phaseWords[p].is }

// Does is what the CPU does next.
func (p Phase) Does() string { return phaseWords[p].does }

// InInterrupt tells whether the CPU handles an interrupt or stands still.
func (c *CPU) InInterrupt() bool {
	return c.Phase >= Interrupted && c.Phase <= Resuming || c.Phase == Crossing || c.Phase == Down
}

var eventNames = [NumEvents]string{Traced: "a tracer is called", Untraced: "no tracer is called",
	Lost: "a promised tracer is not called",
	Trap: "trap", Miss: "no entry", IPI: "interrupt answered", Broken: "broken"}

func (e Event) String() string { return eventNames[e] }

// Begun is how many calls were begun by steps that worked on this pad.
func (p *Scratchpad) Begun() uint64 { return p.begun }

// There tells whether there is a task at all.
func (t *Task) There() bool { return t.Phase != Boundary }

// CanPark tells whether the CPU is in the middle of a call, where kernels built
// with CONFIG_PREEMPT may give it to another task.
func (c *CPU) CanPark() bool {
	return c.AtBorder() && c.Phase > Asleep && c.Masked == 0
}

// Park takes the task off the CPU, between two of its instructions: a timer
// interrupt came. The CPU goes on with a task that stands between two calls.
func (c *CPU) Park(code *Code, sh Shared) Task {
	c.Tick(code, sh)
	t := c.Task
	c.Phase, c.polled, c.Quiet, c.Linger = Boundary, false, false, 0
	return t
}

// CanUnpark tells whether the CPU stands where it can go on with another task.
func (c *CPU) CanUnpark() bool {
	return c.Phase == Boundary && c.Masked == 0 && !c.stop && !c.Quiet
}

// Unpark goes on with a task where it was preempted, there or on another CPU.
// Nothing is fetched afresh for that.
func (c *CPU) Unpark(t Task) {
	c.Task, c.polled = t, false
}

// Role says how a CPU spends its time between interrupts.
type Role uint8

// The roles.
const (
	Busy     Role = iota // executes traced code all the time
	Idle                 // sleeps; an interrupt wakes it for a few calls
	Isolated             // runs in user space; an interrupt takes it into the kernel for a few calls
	IrqsOff              // executes traced code, half of it with interrupts masked
	Offline              // takes no part until it is plugged in
)

var roleNames = []string{"busy", "idle", "isolated", "irqsoff", "offline"}

// Valid tells whether it is one of the roles.
func (r Role) Valid() bool { return int(r) < len(roleNames) }

func (r Role) String() string { return roleNames[r] }

// MaxCPUs bounds a machine: what Linux's x86_64 allows (NR_CPUS_RANGE_END,
// arch/x86/Kconfig).
const MaxCPUs = 8192

// RoleError says what is wrong with a list of roles.
type RoleError struct {
	Spec, Part, Reason string
}

func (e *RoleError) Error() string {
	return fmt.Sprintf("cpus %q: %q: %s", e.Spec, e.Part, e.Reason)
}

// ParseRoles reads "8" (so many busy CPUs) or "busy=4,idle=2,isolated=1": the
// CPUs are numbered in the order given.
func ParseRoles(spec string) ([]Role, error) {
	if n, err := strconv.Atoi(spec); err == nil {
		if n == 0 {
			return nil, &RoleError{spec, spec, fmt.Sprintf("want 1 to %d", MaxCPUs)}
		}
		spec = fmt.Sprintf("%s=%d", Busy, n)
	}
	var roles []Role
	for part := range strings.SplitSeq(spec, ",") {
		name, number, ok := strings.Cut(part, "=")
		if !ok {
			return nil, &RoleError{spec, part, "want a number of CPUs or ROLE=NUMBER"}
		}
		role := slices.Index(roleNames, name)
		if role < 0 {
			return nil, &RoleError{spec, part, fmt.Sprintf("no role %q; there are %s", name, strings.Join(roleNames, ", "))}
		}
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 {
			return nil, &RoleError{spec, part, "the number of CPUs must be a whole number, 0 or more"}
		}
		if n > MaxCPUs-len(roles) {
			return nil, &RoleError{spec, part, fmt.Sprintf("more than %d CPUs", MaxCPUs)}
		}
		for range n {
			roles = append(roles, Role(role))
		}
	}
	if Housekeeper(roles) < 0 {
		return nil, &RoleError{spec, spec, "at least one CPU must be busy, idle or irqsoff, for the patcher to run on"}
	}
	return roles, nil
}

// Housekeeper is the first CPU that a patcher may run on: not an isolated one,
// and online. -1 if there is none.
func Housekeeper(roles []Role) int {
	for cpu, r := range roles {
		if r.RunsPatcher() {
			return cpu
		}
	}
	return -1
}

// RunsPatcher tells whether patchers may run on such a CPU.
func (r Role) RunsPatcher() bool { return r != Isolated && r != Offline }

// FormatRoles is the short form of a list of roles: "8" or "busy=6,isolated=2".
func FormatRoles(roles []Role) string {
	var parts []string
	for i := 0; i < len(roles); {
		j := i
		for j < len(roles) && roles[j] == roles[i] {
			j++
		}
		parts = append(parts, fmt.Sprintf("%s=%d", roles[i], j-i))
		i = j
	}
	if len(parts) == 1 && roles[0] == Busy {
		return strconv.Itoa(len(roles))
	}
	return strings.Join(parts, ",")
}
