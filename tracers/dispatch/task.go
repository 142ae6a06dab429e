// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/tracers"
	"github.com/textpoke/textpoke/tracers/metadata"
)

// AllRegisters and ArgRegisters are how many are saved: pt_regs of arm64 has x0 to
// x30, sp, pc and pstate; its ftrace_regs, since Linux 6.2, x0 to x8, fp, lr, sp and
// pc. arch/arm64/kernel/entry-ftrace.S.
const (
	AllRegisters = 34
	ArgRegisters = 13
)

// Task is a task that calls, with the frame of ftrace_caller. The zero value has not
// called anything yet. One goroutine uses it.
type Task struct {
	tracers.Task
	// Regs are the registers as the traced function finds them.
	Regs [AllRegisters]uint64
	// Body is the traced function; nil does nothing.
	Body func()
	// Mismatched are calls of one ops' function with another ops.
	Mismatched uint64

	counts  *Counts
	saved   [AllRegisters]uint64
	late    *trampoline // ftrace_regs.direct_tramp: where to go on the way out
	shadow  [shadowFrames]frame
	frames  int
	hooks   *node // returns that are hooked, the latest first
	probing bool  // a kprobe is being handled: current_kprobe
}

// Count makes the task count what its calls take, from now on; nil ends that.
func (t *Task) Count(to *Counts) { t.counts = to }

// count adds what a part of a call takes.
func (t *Task) count(n Counts) {
	if t.counts != nil {
		*t.counts = t.counts.Add(n)
	}
}

// save saves the first n registers.
func (t *Task) save(n int) {
	copy(t.saved[:n], t.Regs[:n])
	if c := t.counts; c != nil {
		c.Saved += int64(n)
	}
}

// body runs the traced function.
func (t *Task) body() {
	if t.Body != nil {
		t.Body()
	}
}

// Counts is what calls take; all are exact.
type Counts struct {
	Loads   int64 // objects read because their address was
	Hashes  int64 // lookups of an address in a hash
	Walked  int64 // entries of lists that were walked
	Called  int64 // callbacks called
	Saved   int64 // registers saved
	Atomics int64 // read-modify-writes of words that other CPUs change too
	Traps   int64 // exceptions taken
}

// Add adds up two counts.
func (c Counts) Add(d Counts) Counts {
	return Counts{
		c.Loads + d.Loads, c.Hashes + d.Hashes, c.Walked + d.Walked, c.Called + d.Called,
		c.Saved + d.Saved, c.Atomics + d.Atomics, c.Traps + d.Traps,
	}
}

// Times is so many times the same.
func (c Counts) Times(n int64) Counts {
	return Counts{c.Loads * n, c.Hashes * n, c.Walked * n, c.Called * n, c.Saved * n, c.Atomics * n, c.Traps * n}
}

// Kind is a way as the command line names it.
type Kind struct {
	Name, Doc string
	// Direct says that the first tracer of a function is a direct trampoline; those
	// that join it are callbacks.
	Direct bool
	New    func(Config) (*Way, error)
}

const (
	// poolNodes is what a pool has for a few CPUs.
	poolNodes = 64
	// buckets are those of the series' first table.
	buckets = 256
)

// kinds are all ways, the kernel's first.
var kinds = []Kind{
	{"list", "list function for every call", false, newList},
	{"global", "one function and ops for all sites, or the list", false, func(c Config) (*Way, error) {
		g, err := newGlobal(c)
		if err != nil {
			return nil, err
		}
		return g.Way, nil
	}},
	{"call-ops", "a literal at each site names its ops", false, literal(false, false)},
	{"direct", "the site calls the direct trampoline", true, literal(true, false)},
	{"direct-ops", "direct trampoline out of branch range: through the ops", true, literal(false, false)},
	{"single-direct", "one ops for all direct trampolines, in branch range", true, literal(true, true)},
	{"single-direct-far", "one ops for all direct trampolines, each call looks its address up", true, literal(false, true)},
	{"intermediate", "turned down: the literal names a record that names the ops", false, newIntermediate},
	{"ops-trampoline", "turned down: the literal names a trampoline of the ops", false, newOpsTrampoline},
	{"site-trampoline", "turned down: the direct trampoline's address beside the literal", true, newSiteTrampoline},
	{"fprobe", "fprobe without its four costs", false, fprobe(FprobeCosts{})},
	{"fprobe-2022", "fprobe with all four costs", false, fprobe(FprobeCosts{true, true, true, true})},
	{"kprobe", "breakpoint and lookup, then a jump", false, kprobeOf(true)},
	{"kprobe-stepped", "breakpoint and lookup, then a single step", false, kprobeOf(false)},
	{"bpf", "trampoline generated for the function, programs inside", false, newBPF},
	{"global-trampoline", "one trampoline for all functions, programs looked up in 256 buckets", false,
		trampolineOf(func(Config) (metadata.Counted, error) { return metadata.NewFixed(buckets), nil })},
	{"global-trampoline-resizable", "the same, looked up in a hash that grows and shrinks", false,
		trampolineOf(func(Config) (metadata.Counted, error) { return metadata.NewResizable(), nil })},
	{"global-trampoline-padding", "the same, found by a number in the function's padding", false, trampolineOf(padding)},
}

func literal(near, single bool) func(Config) (*Way, error) {
	return func(c Config) (*Way, error) { return newCallOps(c, near, single) }
}

func fprobe(costs FprobeCosts) func(Config) (*Way, error) {
	return func(c Config) (*Way, error) { return NewFprobe(c, costs, poolNodes) }
}

func kprobeOf(boosted bool) func(Config) (*Way, error) {
	return func(c Config) (*Way, error) { return newKprobe(c, boosted) }
}

func trampolineOf(table func(Config) (metadata.Counted, error)) func(Config) (*Way, error) {
	return func(c Config) (*Way, error) {
		t, err := table(c)
		if err != nil {
			return nil, err
		}
		return newGlobalTrampoline(c, t)
	}
}

// Names are the names of all kinds.
func Names() []string { return spelling.Each(kinds, func(k Kind) string { return k.Name }) }

// Parse finds a kind by its name.
func Parse(name string) (Kind, error) {
	return spelling.Find("dispatch", name, kinds, func(k Kind) string { return k.Name })
}
