// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"strings"

	"github.com/textpoke/textpoke/kernels/image"
)

// jumpLabel: cfb00a357864 (6.11) kicks every CPU at the end of a key's update.
func jumpLabel(k *image.Kernel) (Verdict, string) {
	const apply, each, kick = "arch_jump_label_transform_apply", "arch_jump_label_transform", "kick_all_cpus_sync"
	if first(k, each, "arch_jump_label_transform_queue") == "" {
		return cannotTell("%s is not in the image", each)
	}
	for _, f := range []string{apply, each} {
		if k.Calls(f)[kick] > 0 {
			return mended("%s calls %s", f, kick)
		}
	}
	return has("neither %s nor %s calls %s", each, apply, kick)
}

// initTextPLT: a7ed7b9d0ebb (6.17) gives struct mod_arch_specific a second table; 3e35d303ab7d
// (6.5) lets sections lie so far apart.
func initTextPLT(k *image.Kernel) (Verdict, string) {
	const structure, first, second = "mod_arch_specific", "ftrace_trampolines", "init_ftrace_trampolines"
	members := k.Members(structure)
	switch {
	case len(members) == 0:
		return cannotTell("no type information about struct %s", structure)
	case members[second]:
		return mended("struct %s has %s", structure, second)
	case members[first] && k.Has("module_init_limits"):
		return has("struct %s has %s and no %s; module_init_limits is there", structure, first, second)
	case members[first]:
		return cannotTell("struct %s has %s and no %s; whether sections lie far apart is not known", structure, first, second)
	}
	return mended("struct %s has no %s", structure, first)
}

// Instructions of riscv64 that order what comes before them.
const (
	fenceI     = 0x0000100f // fence.i
	fenceStore = 0x0140000f // fence w,o
	fenceAll   = 0x0330000f // fence rw,rw
)

// onlineBeforeFetch: 58661a30f1bc (6.10) fetches afresh while a CPU comes.
func onlineBeforeFetch(k *image.Kernel) (Verdict, string) {
	const callin = "smp_callin"
	if first(k, callin) == "" {
		return cannotTell("%s is not in the image", callin)
	}
	if k.HoldsWord(callin, fenceI) || k.Calls(callin)["local_flush_icache_all"] > 0 {
		return mended("%s executes fence.i", callin)
	}
	return has("%s executes no fence.i", callin)
}

// localFenceOnly: ee9a68394b4b (6.11) flushes everywhere again.
func localFenceOnly(k *image.Kernel) (Verdict, string) {
	const f, flush = "patch_text_nosync", "flush_icache_all"
	if first(k, f) == "" {
		return cannotTell("%s is not in the image", f)
	}
	if way := k.Path(f, flush, 3); way != nil {
		return mended("%s", strings.Join(way, " calls "))
	}
	return has("%s does not lead to %s", f, flush)
}

// lateStore: ca358692de41 (6.16).
func lateStore(k *image.Kernel) (Verdict, string) {
	const flush = "flush_icache_all"
	switch {
	case first(k, flush) == "":
		return cannotTell("%s is not in the image", flush)
	case k.HoldsWord(flush, fenceStore):
		return mended("%s executes fence w,o", flush)
	case k.HoldsWord(flush, fenceAll):
		return mended("%s executes fence rw,rw", flush)
	}
	return has("%s executes no fence before it asks the others", flush)
}

// lostTextMutex: e3f16d63d54e (6.16) takes it again.
func lostTextMutex(k *image.Kernel) (Verdict, string) {
	const prepare = "ftrace_arch_code_modify_prepare"
	if first(k, prepare) == "" {
		return cannotTell("%s is not in the image", prepare)
	}
	return calling(k, prepare, "mutex_lock")
}
