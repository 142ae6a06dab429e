// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/records/vmlinux"
)

// entries: the calls inside the common entries, and an ops' own trampoline.
func (e *evidence) entries() {
	const update, aim = "ftrace_update_ftrace_func", "arch_ftrace_update_trampoline"
	e.reason = e.whatCalled(update)
	calls := 0
	for _, label := range []string{"ftrace_call", "ftrace_regs_call"} {
		if e.Has(label) {
			calls++
		}
	}
	switch way := e.leads(update, 3, append(pokers, broadcasts...)...); {
	case calls == 0 || e.CallOps():
		e.none("nothing to patch in the common entry: each record names its ops", EntryCalls, EntryRounds)
	case way != "" && e.pokeRounds() > 0:
		e.set(EntryCalls, calls, fmt.Sprintf("%d labels in the common entries; %s", calls, way))
		e.set(EntryRounds, e.pokeRounds(), way)
	case e.leads(update, 4, "aarch64_insn_patch_text_nosync", "patch_text_nosync", "patch_insn_write") != "":
		way = e.leads(update, 4, "aarch64_insn_patch_text_nosync", "patch_text_nosync", "patch_insn_write")
		e.set(EntryCalls, 1, way)
		e.set(EntryRounds, 0, way)
	default:
		return
	}
	e.keeps()
	if way := e.leads(aim, 3, append(pokers, broadcasts...)...); way != "" {
		e.set(TrampolineAims, e.pokeRounds(), way)
	}
	e.none("no "+aim+" that changes text", TrampolineAims)
	e.pages(aim)
	for _, f := range []string{"ftrace_modify_all_code", "arch_ftrace_update_code"} {
		if e.Has("ftrace_sync_ipi") &&
			(e.Calls(f)["smp_call_function"] > 0 || e.Calls(f)["smp_call_function_many_cond"] > 0) {
			e.set(CoreSyncs, 1, f+" calls smp_call_function, and ftrace_sync_ipi is there")
		}
	}
	e.none("no call of ftrace_sync_ipi", CoreSyncs)
}

// pages: how often the protection of a trampoline's pages changes.
func (e *evidence) pages(aim string) {
	calls := e.Calls(aim)
	switch way := e.leads(aim, 2, "execmem_alloc_rw"); {
	case way != "" && e.leads("execmem_alloc_rw", 1, "set_memory_nx") != "":
		e.set(TrampFlushes, cachedPages, way+" calls set_memory_nx, so that its pages are of a cache")
		e.set(TrampFrees, cachedPages, "they go back to that cache")
	case calls["set_memory_ro"] > 0 && calls["set_memory_x"] > 0:
		e.set(TrampFlushes, 2, aim+" calls set_memory_ro and set_memory_x")
	case e.value(TrampolineAims) > 0:
		e.set(TrampFlushes, 1, aim+" makes its pages executable")
	}
	if e.value(TrampFlushes) > 0 && e.value(TrampFrees) == 0 {
		e.set(TrampFrees, 1, "its pages are unmapped")
	}
	e.none("no trampoline that can be told", TrampFlushes, TrampFrees)
}

// cachedPages is how many flushes pages of the cache of executable memory take at the
// least, both ways: nx, for which a large page is split, rw, and rox, after which small
// ones are joined (execmem_alloc_rw and __execmem_cache_free, mm/execmem.c, Linux 7.2,
// counted by their callers on the kernel itself).
const cachedPages = 5

// keeps looks for the variable in which update_ftrace_func, which compilers put into its
// caller, keeps what the entries call (kernel/trace/ftrace.c, since Linux 6.2: "ftrace:
// Avoid needless updates of the ftrace function call"). A variable of the same file says
// whether the image names data at all.
func (e *evidence) keeps() {
	const kept, neighbour = "save_func", "saved_ftrace_func"
	switch {
	case e.value(EntryRounds) == 0:
		e.none("the common entries cost no rounds", EntryKept)
	case e.hasStatic(kept):
		e.set(EntryKept, 1, kept+" is there")
	case e.Has(neighbour):
		e.set(EntryKept, 0, "no "+kept+" beside "+neighbour)
	default:
		e.reason = "the image names no data, such as " + neighbour
	}
}

// hasStatic tells whether there is a function's own variable of a name. Compilers number
// them.
func (e *evidence) hasStatic(name string) bool {
	return slices.ContainsFunc(e.All, func(s vmlinux.Symbol) bool { return s.Name == name || strings.HasPrefix(s.Name, name+".") })
}

// pokeRounds is the rounds of one changed place.
func (e *evidence) pokeRounds() int { return cmp.Or(e.value(BatchRounds), e.value(UpdateRounds)) }

// graph: what function_graph does besides.
func (e *evidence) graph() {
	for _, f := range []string{"ftrace_graph_enable_direct", "register_ftrace_graph"} {
		if e.Calls(f)["__static_call_update"] > 0 && e.Has(callKeySymbol+"fgraph_func") {
			e.set(GraphFastPath, 1, f+" calls __static_call_update")
		}
	}
	e.none("no static call of function_graph", GraphFastPath)
	if e.Has("ftrace_graph_func") {
		e.set(GraphOwnFunc, 1, "ftrace_graph_func is there")
	}
	e.none("no ftrace_graph_func: the ops' function is ftrace_stub", GraphOwnFunc)
	const jump = "ftrace_enable_ftrace_graph_caller"
	if way := e.leads(jump, 3, append(pokers, "run_sync")...); way != "" && e.Has("ftrace_graph_call") {
		e.set(GraphJumps, e.pokeRounds(), way)
	}
	e.none("no "+jump+" that sends rounds", GraphJumps)
}

// probes: the breakpoint of a kprobe that lies on no record.
func (e *evidence) probes() {
	const arm = "arch_arm_kprobe"
	e.reason = e.whatCalled(arm)
	switch stop := e.leads(arm, 4, "stop_machine_cpuslocked", "stop_machine"); {
	case len(e.Parts[arm]) == 0:
		e.none("no "+arm, ProbeRounds, ProbeStops)
	case stop != "":
		e.set(ProbeStops, 1, stop)
		e.set(ProbeRounds, 0, stop)
	case e.broadcastsIn(arm) > 0:
		e.set(ProbeRounds, e.broadcastsIn(arm), e.leads(arm, 1, broadcasts...))
		e.set(ProbeStops, 0, e.leads(arm, 1, broadcasts...))
	case e.leads(arm, 2, "text_poke") != "":
		e.none(e.leads(arm, 2, "text_poke")+", and no round follows", ProbeRounds, ProbeStops)
	}
}

// users: which ops those have that attach to many functions, and what else they change.
func (e *evidence) users() {
	for _, f := range []string{"register_fentry", "bpf_trampoline_update", "__bpf_trampoline_link_prog", "direct_ops_add"} {
		if way := e.leads(f, 3, "update_ftrace_direct_add"); way != "" {
			e.set(DirectShared, 1, way)
		}
	}
	if skip := "arch_bpf_trampoline_skip"; e.Has(skip) { // claim:bpf-detach-skips
		e.set(DirectCuts, 1, skip+" is there: each image jumps over a program that goes")
	}
	if e.Has("direct_ops") && e.Calls("register_ftrace_direct")["register_ftrace_function"] > 0 &&
		e.value(DirectShared) == 0 {
		e.set(DirectShared, 1, "direct_ops is there") // 5.5 to 6.3
	}
	e.none("no arch_bpf_trampoline_skip: only an image that calls the function is cut off", DirectCuts)
	if e.Direct() {
		e.set(DirectCalls, 1, "register_ftrace_direct is there")
	}
	e.none("no register_ftrace_direct", DirectCalls)
	if way := e.leads("bpf_kprobe_multi_link_attach", 2, "register_fprobe_ips"); way != "" {
		e.set(MultiProbes, 1, way)
	}
	e.none("no bpf_kprobe_multi_link_attach that leads to register_fprobe_ips", MultiProbes) // without CONFIG_FPROBE
	if e.first("kprobe_ftrace_handler") != "" {
		e.set(ProbeOnRecord, 1, "kprobe_ftrace_handler is there")
	}
	e.none("no kprobe_ftrace_handler: a breakpoint is placed on records too", ProbeOnRecord)
	if way := e.leads("register_fprobe_ips", 3, "register_ftrace_graph"); way != "" && !e.Has("fprobe_ftrace_ops") {
		e.set(MultiGraph, 1, way)
	}
	e.none("fprobe has ops of its own for functions alone", MultiGraph)
	for _, f := range []string{"cpa_flush", "change_page_attr_set_clr"} {
		if way := e.leads(f, 3, append(broadcasts, "flush_tlb_kernel_range")...); way != "" {
			e.set(PageFlushes, 1, way)
		}
	}
	e.none("no cpa_flush", PageFlushes)
	e.none("the BPF trampoline has an ops of its own for each function", DirectShared)
	if e.Has("fprobe_ftrace_ops") || e.first("fprobe_ftrace_entry") != "" {
		e.set(MultiStatic, 1, "fprobe has one ops for all without exit handlers")
	}
	e.none("each fprobe has an ops of its own", MultiStatic)
	if e.first("bpf_trampoline_multi_attach") != "" {
		e.set(DirectMulti, 1, "bpf_trampoline_multi_attach is there")
	}
	e.none("no bpf_trampoline_multi_attach", DirectMulti)
}

// programs: how the pages of a BPF trampoline are made executable, and whether the kernel
// has a program of its own. Between 6.3 and 6.10, hid_bpf_init loads one that hooks
// __hid_bpf_tail_call (drivers/hid/bpf/hid_bpf_jmp_table.c): its ops stays in the list.
func (e *evidence) programs() {
	const update, atBoot, preload = "bpf_trampoline_update", "hid_bpf_init", "hid_bpf_preload_skel"
	calls := e.Calls(update)
	switch {
	case calls["set_memory_ro"] > 0 && calls["set_memory_x"] > 0:
		e.set(DirectFlushes, 2, update+" calls set_memory_ro and set_memory_x")
	case calls["set_memory_rox"] > 0:
		e.set(DirectFlushes, 1, update+" calls set_memory_rox")
	case calls["set_memory_x"] > 0:
		e.set(DirectFlushes, 1, update+" calls set_memory_x")
	}
	e.none("no BPF trampoline", DirectFlushes)
	if e.first(update) != "" && e.value(DirectFlushes) == 0 {
		e.set(DirectFlushes, 1, "the buffer in which a BPF trampoline is built is freed")
	}
	e.copying()
	if e.Calls(atBoot)[preload] > 0 {
		e.set(DirectAtBoot, 1, atBoot+" calls "+preload)
	}
	e.none("no "+preload, DirectAtBoot)
	switch way := e.leads("arch_uprobe_optimize", 2, broadcasts...); {
	case way != "" && e.constant(overRedZone):
		e.set(UprobeCalls, 10, way+"; lea -0x80(%rsp),%rsp is a constant")
	case way != "":
		e.set(UprobeCalls, 5, way)
	}
	e.none("no arch_uprobe_optimize that reaches every CPU", UprobeCalls)
}

// copying: what a new BPF trampoline sends when it is copied to where it runs, and one that
// is changed there. arm64 kicks all CPUs after the copy, and to 6.12 once more
// (flush_icache_range, arch/arm64/include/asm/cacheflush.h); riscv64 flushes instruction
// caches, and changes text that may run while every CPU stands still (patch_text,
// arch/riscv/kernel/patch.c). On x86-64 both are pokes and changes of protection.
func (e *evidence) copying() {
	const prepare, kick, insert = "arch_prepare_bpf_trampoline", "kick_all_cpus_sync", "aarch64_insn_copy"
	n, why := 0, ""
	if way := e.leads(insert, 2, kick); way != "" && e.leads(prepare, 2, insert) != "" {
		n, why = 1, e.leads(prepare, 2, insert)+strings.TrimPrefix(way, insert)
	}
	if e.Calls(prepare)[kick] > 0 {
		n, why = n+1, strings.TrimPrefix(why+", and "+prepare+" calls "+kick, ", and ")
	}
	if way := e.leads(prepare, 3, "flush_icache_all"); way != "" {
		n, why = 1, way
	}
	if n > 0 {
		e.set(DirectSyncs, n, why)
	}
	e.none(prepare+" leads to no other CPU, or to none alone", DirectSyncs)
	for _, poke := range []string{"arch_bpf_trampoline_skip", "bpf_arch_text_poke"} {
		if way := e.leads(poke, 2, "stop_machine_cpuslocked", "stop_machine"); way != "" {
			e.set(SkipStops, 1, way)
		}
	}
	e.none("no stop_machine behind bpf_arch_text_poke", SkipStops)
}

// overRedZone is lea -0x80(%rsp),%rsp, with which begins what takes the place of a nop of ten
// bytes: programs have a red zone (arch/x86/kernel/uprobes.c, linux-next 554ba38456da).
const overRedZone = "\x48\x8d\x64\x24\x80"

// constant tells whether some bytes stand behind the kernel's text.
func (e *evidence) constant(s string) bool {
	_, text, ok := e.Limits("_stext", "_etext")
	return ok && bytes.Contains(e.At(text), []byte(s))
}

// detaching: who takes an ops of its own away waits until every CPU has switched tasks,
// for which each is given work (ftrace_shutdown, kernel/trace/ftrace.c: ftrace_sync in
// 5.4, synchronize_rcu_tasks_rude in 5.10). Later that one is empty where the idle loop
// is not traced (kernel/rcu/tasks.h, Linux 7.2).
func (e *evidence) detaching() {
	const rude = "synchronize_rcu_tasks_rude"
	e.reason = e.whatCalled("unregister_ftrace_function")
	way := e.leads("unregister_ftrace_function", 3, "schedule_on_each_cpu", rude)
	switch {
	case len(e.Parts["unregister_ftrace_function"]) == 0:
		e.none("no unregister_ftrace_function", DetachWakes)
	case strings.HasSuffix(way, rude):
		if waits := e.leads(rude, 1, "synchronize_rcu_tasks_generic", "__wait_rcu_gp"); waits != "" {
			e.set(DetachWakes, 1, way+" calls "+strings.TrimPrefix(waits, rude+" calls "))
		}
		e.none(rude+" waits for nothing", DetachWakes)
	case way != "":
		e.set(DetachWakes, 1, way)
	}
}
