// SPDX-License-Identifier: Apache-2.0

package image

import (
	"cmp"
	"fmt"
	"slices"
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
	SkipStops     = "skip-stops"      // times that every CPU is stopped when a BPF trampoline is changed in place
	DetachWakes   = "detach-wakes"    // times that every CPU is woken when an ops of somebody's own goes
	DirectAtBoot  = "direct-at-boot"  // 1: the kernel attaches a BPF program of its own while it boots
	UprobeCalls   = "uprobe-calls"    // so many bytes of nop below a uprobe may become a call
)

// finders look for mechanisms; together they name each constant once.
var finders = []struct {
	names []string
	find  func(*evidence)
}{
	{[]string{BatchRounds, BatchSlots}, (*evidence).batches},
	{[]string{UpdateRounds, UpdateStops, UpdateFences, RecordFences}, (*evidence).records},
	{[]string{KeyBatched, KeyRounds, KeyFences, BranchRounds, BranchFences}, (*evidence).keys},
	{[]string{CallRounds, CallResets}, (*evidence).calls},
	{[]string{EntryCalls, EntryRounds, EntryKept, TrampolineAims, TrampFlushes, TrampFrees, CoreSyncs},
		(*evidence).entries},
	{[]string{GraphFastPath, GraphOwnFunc, GraphJumps}, (*evidence).graph},
	{[]string{ProbeRounds, ProbeStops}, (*evidence).probes},
	{[]string{DirectCalls, DirectShared, DirectCuts, MultiProbes, MultiStatic, MultiGraph, DirectMulti, ProbeOnRecord,
		PageFlushes}, (*evidence).users},
	{[]string{DirectFlushes, DirectSyncs, SkipStops, DirectAtBoot, UprobeCalls}, (*evidence).programs},
	{[]string{DetachWakes}, (*evidence).detaching},
}

// Mechanisms are what the code shows of how this kernel patches, in the order of the
// constants, and for each that is not understood the reason.
func (k *Kernel) Mechanisms() (found []Mechanism, unknown []string) {
	e := &evidence{Kernel: k, values: map[string]Mechanism{}}
	for _, f := range finders {
		e.reason = ""
		f.find(e)
		for _, name := range f.names {
			if m, ok := e.values[name]; ok {
				found = append(found, m)
			} else {
				unknown = append(unknown, fmt.Sprintf("%s: no rule holds: %s", name, e.reason))
			}
		}
	}
	return found, unknown
}

// evidence collects mechanisms.
type evidence struct {
	*Kernel
	values map[string]Mechanism
	reason string // why the group that is looked at is not understood
}

func (e *evidence) set(name string, value int, why string) {
	e.values[name] = Mechanism{name, value, why}
}

// none sets several to nothing for one reason.
func (e *evidence) none(why string, names ...string) {
	for _, name := range names {
		if _, ok := e.values[name]; !ok {
			e.set(name, 0, why)
		}
	}
}

func (e *evidence) value(name string) int { return e.values[name].Value }

// first is the first of some functions that the kernel has, "" if it has none.
func (e *evidence) first(names ...string) string {
	i := slices.IndexFunc(names, func(n string) bool { return len(e.Parts[n]) > 0 })
	if i < 0 {
		return ""
	}
	return names[i]
}

// leads is the way from a function to the first of some others that it leads to, as
// evidence; "" where there is none.
func (e *evidence) leads(from string, depth int, to ...string) string {
	for _, name := range to {
		if way := e.Path(from, name, depth); way != nil {
			return strings.Join(way, " calls ")
		}
	}
	return ""
}

// whatCalled says what a function calls, for a mechanism that is not understood.
func (e *evidence) whatCalled(name string) string {
	if len(e.Parts[name]) == 0 {
		return name + " is not there"
	}
	calls := sortedNames(e.Calls(name))
	if len(calls) == 0 {
		return name + " calls nothing directly"
	}
	if len(calls) > 8 {
		calls = append(calls[:8:8], "...")
	}
	return name + " calls " + strings.Join(calls, ", ")
}

// Functions that interrupt every other CPU, over the releases (include/linux/smp.h,
// arch/x86/kernel/alternative.c, arch/x86/kernel/ftrace.c).
var broadcasts = []string{"on_each_cpu_cond_mask", "on_each_cpu", "text_poke_sync", "smp_text_poke_sync_each_cpu",
	"run_sync"}

// pokers change text while other CPUs execute it, over the releases.
var pokers = []string{"smp_text_poke_batch_finish", "smp_text_poke_single", "text_poke_bp_batch", "text_poke_finish",
	"text_poke_bp"}

// phases of the breakpoint protocol, each of which ends with a round: breakpoint, tail,
// first byte (text_poke_bp_batch, arch/x86/kernel/alternative.c; ftrace_replace_code,
// arch/x86/kernel/ftrace.c, to 5.5). A compiler may write a call twice, but not leave
// one out.
const phases = 3

// batches: one function of the text-poke machinery goes through the phases.
func (e *evidence) batches() {
	f := e.first("smp_text_poke_batch_finish", "text_poke_bp_batch", "text_poke_bp")
	if f == "" {
		e.none("no function of the text-poke machinery", BatchRounds, BatchSlots)
		return
	}
	switch b, err := e.RunBatch(); {
	case err == nil:
		e.set(BatchRounds, b.Rounds, b.said())
	case e.broadcastsIn(f) >= phases:
		e.set(BatchRounds, phases, fmt.Sprintf("three phases, %d calls that reach every CPU in %s", e.broadcastsIn(f), f))
	default:
		e.reason = e.whatCalled(f)
		return
	}
	if f == "text_poke_bp" {
		e.set(BatchSlots, 1, "text_poke_bp changes one place")
		return
	}
	if slots, how := e.Slots(); slots > 0 {
		e.set(BatchSlots, slots, how)
	} else {
		e.reason = how
	}
}

// broadcastsIn counts the calls in a function's code that interrupt every other CPU.
func (e *evidence) broadcastsIn(name string) (n int) {
	calls := e.Calls(name)
	for _, b := range broadcasts {
		n += calls[b]
	}
	return n
}

// records: who changes the records, and what it sends.
func (e *evidence) records() {
	e.reason = e.whatCalled("arch_ftrace_update_code")
	if way := e.leads("ftrace_make_call", 3, "flush_icache_all"); way != "" {
		e.set(RecordFences, 1, way)
	}
	if way := e.leads("arch_ftrace_update_code", 2, "stop_machine", "stop_machine_cpuslocked"); way != "" {
		e.set(UpdateStops, 1, way)
		e.none(way, UpdateRounds, UpdateFences, RecordFences)
		return
	}
	const why = "nothing leads there"
	switch way := e.leads("ftrace_replace_code", 2, pokers...); {
	case way != "" && e.value(BatchRounds) > 0:
		e.set(UpdateRounds, 0, way)
	case e.broadcastsIn("ftrace_replace_code") >= phases:
		n := e.broadcastsIn("ftrace_replace_code")
		e.set(UpdateRounds, phases, fmt.Sprintf("three phases, %d calls that reach every CPU in ftrace_replace_code", n))
	case e.value(RecordFences) > 0:
		if e.Calls("arch_ftrace_update_code")["flush_icache_all"] > 0 {
			e.set(UpdateFences, 1, "arch_ftrace_update_code calls flush_icache_all")
		}
	case e.leads("ftrace_make_call", 3, "aarch64_insn_patch_text_nosync") != "" &&
		e.leads("arch_ftrace_update_code", 2, "kick_all_cpus_sync") == "":
		e.set(UpdateRounds, 0, e.leads("ftrace_make_call", 3, "aarch64_insn_patch_text_nosync"))
	default:
		e.reason = e.whatCalled("ftrace_make_call")
		return
	}
	e.none(why, UpdateRounds, UpdateStops, UpdateFences, RecordFences)
}

// keys: who changes the branches of a key, and what it sends.
func (e *evidence) keys() {
	const apply, each, queue = "arch_jump_label_transform_apply", "arch_jump_label_transform", "arch_jump_label_transform_queue"
	e.reason = e.whatCalled(each)
	why := e.leads(apply, 3, pokers...)
	switch {
	case e.value(BatchRounds) > 0 && why != "":
		e.set(KeyBatched, 1, why)
	case e.value(BatchRounds) > 0:
		if why = e.leads(each, 3, pokers...); why == "" {
			return
		}
		e.set(BranchRounds, e.value(BatchRounds), why)
	case e.Calls(apply)["kick_all_cpus_sync"] > 0:
		why = apply + " calls kick_all_cpus_sync"
		e.set(KeyRounds, 1, why)
	case e.Calls(each)["kick_all_cpus_sync"] > 0:
		why = each + " calls kick_all_cpus_sync"
		e.set(BranchRounds, 1, why)
	case e.Calls(apply)["flush_icache_all"] > 0:
		why = apply + " calls flush_icache_all"
		e.set(KeyFences, 1, why)
	default:
		for _, f := range []string{queue, each} {
			if way := e.leads(f, 3, "flush_icache_all"); way != "" {
				e.set(BranchFences, 1, way)
			}
			why = cmp.Or(why, e.leads(f, 3, "aarch64_insn_patch_text_nosync", "patch_text_nosync", "patch_insn_write"))
		}
		if why == "" {
			return
		}
	}
	e.none(why, KeyBatched, KeyRounds, KeyFences, BranchRounds, BranchFences)
}

// calls: static calls are patched one by one, or there are none.
func (e *evidence) calls() {
	const transform = "arch_static_call_transform"
	e.reason = e.whatCalled(transform)
	switch way := e.leads(transform, 3, pokers...); {
	case len(e.Parts[transform]) == 0:
		e.none("no "+transform, CallRounds, CallResets)
		return
	case way == "" || e.value(BatchRounds) == 0:
		return
	default:
		e.set(CallRounds, e.value(BatchRounds), way)
	}
	// 231264d6927f, in 5.14 and in stable releases: it waits for readers in between.
	for _, f := range []string{"tracepoint_add_func", "tracepoint_probe_register_prio", "tracepoint_probe_register"} {
		for _, wait := range []string{"cond_synchronize_rcu", "cond_synchronize_rcu_full"} {
			if way := e.leads(f, 3, wait); way != "" {
				e.set(CallResets, 1, way)
			}
		}
	}
	e.none("no wait for readers when a tracepoint gets its first probe", CallResets)
}
