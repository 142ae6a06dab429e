// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"slices"
	"strings"

	"github.com/textpoke/textpoke/kernels/image"
)

// tryGetDesc: before efd608fa7403 (6.1), bp_desc was a pointer; after it, a structure whose
// count (at 12, behind a pointer and a number) the handler changes in one step. Since 6.16 each
// CPU has a count of its own.
func tryGetDesc(k *image.Kernel) (Verdict, string) {
	const desc, count = "bp_desc", 12
	if k.Has("text_poke_array_refs") {
		return mended("text_poke_array_refs is there: each CPU has a count")
	}
	at, ok := k.Addr(desc)
	if !ok {
		return cannotTell("no %s", desc)
	}
	for _, f := range []string{"text_poke_bp_batch", "poke_int3_handler"} {
		if k.Touches(f, at+count) {
			return mended("%s touches %s+%d: it is a structure with a count", f, desc, count)
		}
	}
	for _, f := range []string{"text_poke_bp_batch", "poke_int3_handler"} {
		if k.Touches(f, at) {
			return has("%s touches %s and no count in it: it is a pointer", f, desc)
		}
	}
	return cannotTell("no function that touches %s is in the image", desc)
}

// unsortedArray: 2aebf5ee43bf (6.16-rc3) lets a single poke flush what is queued first.
func unsortedArray(k *image.Kernel) (Verdict, string) {
	const single = "smp_text_poke_single"
	if first(k, single) == "" {
		return mended("no %s: a single poke has an entry of its own", single)
	}
	switch alone, err := k.RunSingle(); {
	case err != nil:
		return cannotTell("%s cannot be executed: %v", single, err)
	case alone:
		return mended("executed: %s ends the batch that a higher address waits in, before it adds its own", single)
	}
	return has("executed: %s puts a lower address behind a higher one, into one batch", single)
}

// kprobeDisarm: 5c02ece81848 (5.6) tells every CPU.
func kprobeDisarm(k *image.Kernel) (Verdict, string) {
	return calling(k, "arch_disarm_kprobe", "text_poke_sync", "smp_text_poke_sync_each_cpu", "on_each_cpu",
		"on_each_cpu_cond_mask")
}

// staticCallFixup: c27c753ea6fd (5.19) takes text_mutex.
func staticCallFixup(k *image.Kernel) (Verdict, string) {
	const fixup = "__static_call_fixup"
	if first(k, fixup) == "" {
		return mended("no %s", fixup)
	}
	return calling(k, fixup, "mutex_lock")
}

// broughtUp: an update that held the lock of hotplug would keep CPUs from coming.
func broughtUp(k *image.Kernel) (Verdict, string) {
	const lock, update = "cpus_read_lock", "arch_ftrace_update_code"
	if first(k, update) == "" {
		return cannotTell("%s is not in the image", update)
	}
	if way := k.Path(update, "stop_machine", 2); way != nil {
		return mended("%s: no CPU runs meanwhile", strings.Join(way, " calls "))
	}
	for _, f := range []string{"ftrace_startup", "ftrace_run_update_code", update, "ftrace_arch_code_modify_prepare",
		"ftrace_modify_all_code"} {
		if k.Calls(f)[lock] > 0 {
			return mended("%s calls %s", f, lock)
		}
	}
	return has("%s leads to a batch, and neither it nor its callers call %s", update, lock)
}

// otherTrampoline: uprobes on nops of ten bytes, since 554ba38456da (7.2).
func otherTrampoline(k *image.Kernel) (Verdict, string) {
	found, _ := k.Mechanisms()
	for _, m := range found {
		switch {
		case m.Name != image.UprobeCalls:
		case m.Value == 10:
			return has("a nop of ten bytes becomes a call, whose trampoline is looked up each time: %s", m.Evidence)
		default:
			return mended("no nop of ten bytes becomes a call: %s", m.Evidence)
		}
	}
	return cannotTell("what becomes of a uprobe's nop is not understood")
}

// moduleStaticCalls: static_call_module_notify comes to each site in turn.
func moduleStaticCalls(k *image.Kernel) (Verdict, string) {
	const notify, transform = "static_call_module_notify", "arch_static_call_transform"
	if first(k, notify) == "" {
		return mended("no %s: modules have no static calls", notify)
	}
	way := k.Path(notify, transform, 3)
	if way == nil {
		return cannotTell("%s does not lead to %s", notify, transform)
	}
	for _, single := range []string{"smp_text_poke_single", "text_poke_bp"} {
		if on := k.Path(transform, single, 2); on != nil {
			return has("%s", strings.Join(append(way, on[1:]...), " calls "))
		}
	}
	return mended("%s does not lead to a single poke", transform)
}

// detachPokes: arch_bpf_trampoline_skip came within 7.2.
func detachPokes(k *image.Kernel) (Verdict, string) {
	const skip = "arch_bpf_trampoline_skip"
	if first(k, skip) == "" {
		return mended("no %s", skip)
	}
	if way := k.Path(skip, "bpf_arch_text_poke", 2); way != nil {
		return has("%s", strings.Join(way, " calls "))
	}
	return cannotTell("%s pokes in an unknown way", skip)
}

// freedTable: __text_poke finds a module's page in init_mm's tables (vmalloc_to_page). A large page of text that was split
// may be joined again, and its table is freed (cpa_collapse_large_pages, arch/x86/mm/pat/set_memory.c), which
// direct_map_level2_collapses in /proc/vmstat counts. Debian's 7.2.6 takes no lock around the walk, 7.2.9 init_mm's.
func freedTable(k *image.Kernel) (Verdict, string) {
	const update, walk, lock, tables, counter = "__text_poke", "vmalloc_to_page", "down_read", "init_mm", "direct_map_level2_collapses"
	at, ok := k.Addr(tables)
	switch {
	case first(k, update) == "":
		return cannotTell("%s is not in the image", update)
	case k.Calls(update)[walk] == 0:
		return cannotTell("%s does not call %s", update, walk)
	case !k.Contains(counter):
		return mended("nothing joins pages of text (no %s)", counter)
	case k.Calls(update)[lock] == 0:
		return has("%s calls %s and no %s; pages of text are joined (%s)", update, walk, lock, counter)
	case ok && slices.ContainsFunc(k.Refs(update), func(to uint64) bool { return at <= to && to < at+pageBytes }):
		return mended("%s calls %s with %s's lock", update, lock, tables)
	}
	return cannotTell("%s calls %s, and whose lock it takes is not known", update, lock)
}

// pageBytes bounds struct mm_struct, as far as its lock lies in it.
const pageBytes = 4096
