// SPDX-License-Identifier: Apache-2.0

package image

import (
	_ "embed"
	"fmt"
	"strings"
)

// Mechanism is one thing that the kernel's own code shows of how it patches.
type Mechanism struct {
	Name     string // one of the constants
	Value    int
	Evidence string // what shows it
}

// The mechanisms. One that is absent from what [Kernel.Mechanisms] returns is not
// understood, and what depends on it cannot be predicted.
const (
	BatchRounds  = "batch-rounds"  // rounds of a batch of patches
	BatchSlots   = "batch-slots"   // patches of a batch
	BatchSorted  = "batch-sorted"  // 1: a batch is sorted, and a lower address does not end it
	UpdateRounds = "update-rounds" // rounds of an update of records, however many
	UpdateStops  = "update-stops"  // times that every CPU is stopped for an update of records
	UpdateFences = "update-fences" // remote fences of an update of records, however many
	RecordFences = "record-fences" // remote fences of a record

	KeyBatched   = "key-batched"   // 1: a key's branches go into batches; 0: one by one
	KeyRounds    = "key-rounds"    // rounds of a key, however many branches
	KeyFences    = "key-fences"    // remote fences of a key, however many branches
	BranchRounds = "branch-rounds" // rounds of a branch
	BranchFences = "branch-fences" // remote fences of a branch

	CallRounds     = "call-rounds"     // rounds of a site of a static call
	CallBatched    = "call-batched"    // 1: the sites of a static call, or of a module, go into batches
	CallResets     = "call-resets"     // 1: a tracepoint that loses its last probe gets its first static call back
	EntryCalls     = "entry-calls"     // calls in the common entries that are patched
	EntryRounds    = "entry-rounds"    // rounds of each
	EntryKept      = "entry-kept"      // 1: they are left alone where they call the right function already
	TrampolineAims = "trampoline-aims" // rounds when an ops' own trampoline gets its function
	TrampFlushes   = "tramp-flushes"   // changes of protection, at the least, when that trampoline is made
	TrampFrees     = "tramp-frees"     // flushes, at the least, when it is freed
	CoreSyncs      = "core-syncs"      // rounds that order loads when the traced function changes

	GraphFastPath = "graph-fast-path" // 1: a single user of function_graph is called by static calls
	GraphOwnFunc  = "graph-own-func"  // 1: function_graph's ops has a function of its own
	GraphJumps    = "graph-jumps"     // rounds of the jump to function_graph in the common entry
	ProbeRounds   = "probe-rounds"    // rounds of a breakpoint of a kprobe
	ProbeStops    = "probe-stops"     // times that every CPU is stopped for it
	DirectCalls   = "direct-calls"    // 1: functions can call a program directly
	DirectCuts    = "direct-cuts"     // 1: the trampoline of any BPF program jumps over it when it goes
	MultiProbes   = "multi-probes"    // 1: a BPF link can probe many functions
	DirectShared  = "direct-shared"   // 1: one ops serves all direct calls, claim:direct-ops-shared
	MultiStatic   = "multi-static"    // 1: the ops of fprobe is static
	MultiGraph    = "multi-graph"     // 1: fprobe is a user of function_graph
	DirectMulti   = "direct-multi"    // 1: many functions are attached to directly at once
	ProbeOnRecord = "probe-on-record" // 1: a kprobe on a record is an ops, and no breakpoint
	PageFlushes   = "page-flushes"    // rounds, at the least, of a change of protection of pages
	DirectFlushes = "direct-flushes"  // such changes that a new BPF trampoline takes
	DirectSyncs   = "direct-syncs"    // times that other CPUs synchronise when it is copied to its place
	SkipBatched   = "skip-batched"    // 1: a program that goes is patched out of all BPF trampolines in batches
	SkipStops     = "skip-stops"      // times that every CPU is stopped when a BPF trampoline is changed in place
	DetachWakes   = "detach-wakes"    // times that every CPU is woken when an ops of somebody's own goes
	DirectAtBoot  = "direct-at-boot"  // 1: the kernel attaches a BPF program of its own while it boots
	UprobeCalls   = "uprobe-calls"    // so many bytes of nop below a uprobe may become a call
	UprobeBatched = "uprobe-batched"  // 1: all probed sites of a process become calls when one is first hit
	CacheWakes    = "cache-wakes"     // times that every CPU is woken when a cache of objects is destroyed
	ModuleSyncs   = "module-syncs"    // rounds, or remote fences, for each area of a module that is loaded
	ModuleAreas   = "module-areas"    // 1: a module's memory is allocated by area; 0: in two parts, one of them for its start
	ModuleTexts   = "module-texts"    // changes of protection of each text of a module
	ModulePlaces  = "module-places"   // remote fences of a place of a module for which the CPU has an alternative
	ModuleFences  = "module-fences"   // remote fences of a module's text that becomes read-only and executable
	PageFences    = "page-fences"     // remote fences of a page of a module that is given back
	ModuleLate    = "module-late"     // 1: after its start only memory that is read-only from then on is touched
)

//go:embed mechanisms.rules
var mechanismsText string

// mechanismRules look for each of the constants, and have rules beside that these share.
var mechanismRules = MustRules(mechanismsText)

// Answers are what the rules of mechanisms say, as far as one of their cases holds.
func (k *Kernel) Answers() map[string]Answer {
	answers := map[string]Answer{}
	for i := range mechanismRules {
		if a, ok := k.Judge(&mechanismRules[i], answers); ok {
			answers[mechanismRules[i].Name] = a
		}
	}
	return answers
}

// Mechanisms are what the code shows of how this kernel patches, in the order of the
// constants, and for each that is not understood the reason.
func (k *Kernel) Mechanisms() (found []Mechanism, unknown []string) {
	answers := k.Answers()
	for i := range mechanismRules {
		r := &mechanismRules[i]
		a, ok := answers[r.Name]
		switch {
		case r.Name[0] == '.', ok && a.Evidence == "": // it serves others; no release has it
		case ok:
			found = append(found, Mechanism{r.Name, whole(a.Value), a.Evidence})
		default:
			a, _ = k.Judge(r, answers)
			unknown = append(unknown, fmt.Sprintf("%s: no rule holds: %s", r.Name, a.Evidence))
		}
	}
	return found, unknown
}

// Protocol is how the kernel changes records, as package poke calls it; "" where that is
// not understood.
func (k *Kernel) Protocol() string {
	found, _ := k.Mechanisms()
	of := map[string]int{}
	for _, m := range found {
		of[m.Name] = m.Value
	}
	if _, known := of[UpdateRounds]; !known {
		return ""
	}
	return ProtocolOf(func(name string) int { return of[name] })
}

// ProtocolOf is the protocol that the values of mechanisms make.
func ProtocolOf(value func(mechanism string) int) string {
	switch {
	case value(UpdateStops) > 0:
		return "stop-machine"
	case value(UpdateRounds) > 0:
		return "breakpoint-global"
	case value(BatchRounds) > 0:
		return "breakpoint"
	}
	return "native"
}

// Direct tells whether functions can be attached to directly, without the common entry
// (CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS).
func (k *Kernel) Direct() bool { return k.Has("register_ftrace_direct") }

// ConfigValue is what a configuration says of an option, "" where it is not set.
func ConfigValue(config, option string) string {
	for line := range strings.Lines(config) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), option+"="); ok {
			return v
		}
	}
	return ""
}
