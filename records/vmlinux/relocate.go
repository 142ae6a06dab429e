// SPDX-License-Identifier: Apache-2.0

package vmlinux

import "slices"

// kernelHalf is what the upper bits of a kernel's address are where virtual addresses
// have 48 bits or fewer, and with 52 too (VA_BITS_MIN).
func inKernelHalf(addr uint64) bool { return addr>>52 == 0xfff }

// minRelocations is how many relocations in a row are a kernel's, and no accident.
const minRelocations = 1000

// relaBytes is the size of Elf64_Rela: where, type, addend.
const relaBytes = 24

// relocate fills in the pointers of a raw image that stand nowhere but in its relocations
// (arm64 with --no-apply-dynamic-relocs, to 6.1). No symbol is needed: kallsyms' own
// base is among them. They are found by what they hold.
func (k *Kernel) relocate() {
	if !k.raw() {
		return
	}
	d := k.Segments[0].Data
	best, count := k.Longest(relaBytes, func(_ uint64, rela []byte) bool {
		return le.Uint64(rela[8:]) == k.Arch.relative && inKernelHalf(le.Uint64(rela))
	})
	if count >= minRelocations {
		k.apply(d, d[best:int(best)+relaBytes*count])
	}
}

// apply fills in pointers. The base is the least of the addends rounded down to the
// alignment of an image (64 KiB at least, Documentation/arch/arm64/booting.rst).
func (k *Kernel) apply(d, relas []byte) {
	low := ^uint64(0)
	for r := range slices.Chunk(relas, relaBytes) {
		if a := le.Uint64(r[16:]); inKernelHalf(a) {
			low = min(low, a)
		}
	}
	base, filled := low&^0xfffff, 0
	for r := range slices.Chunk(relas, relaBytes) {
		at := le.Uint64(r) - base
		if at < uint64(len(d)) && uint64(len(d))-at >= 8 {
			if le.Uint64(d[at:]) == 0 {
				filled++
			}
			le.PutUint64(d[at:], le.Uint64(r[16:]))
		}
	}
	k.Segments[0].Addr = base
	k.Note(
		"%d relocations give pointers, %d of them empty in the image; linked at %#x",
		len(relas)/relaBytes,
		filled,
		base,
	)
}

// settle finds out where a raw image without such relocations is linked. Symbols that
// are absolute say so themselves; otherwise a pointer to a symbol does.
func (k *Kernel) settle() error {
	if !k.raw() {
		return nil
	}
	for _, name := range []string{"_text", "_stext", "_start"} {
		if at, ok := k.Addr(name); ok && inKernelHalf(at) {
			k.Segments[0].Addr = at &^ 0xfffff
			return nil
		}
	}
	// Addends are in place (RELR, or none): struct tracepoint points to its iterator.
	tp, ok1 := k.Addr("__tracepoint_sched_switch")
	iter, ok2 := k.Addr("__traceiter_sched_switch")
	for at := tp + 8; ok1 && ok2 && at < tp+96; at += 8 {
		if v := k.Pointer(at); inKernelHalf(v) && (v-iter)&0xfff == 0 && v-iter <= ^uint64(0)-k.reaches() {
			k.Note("addends are in place; linked at %#x, by a pointer to __traceiter_sched_switch", v-iter)
			k.Segments[0].Addr = v - iter
			k.shift(v - iter)
			return nil
		}
	}
	return Fail("kernel", "where it is linked cannot be told")
}
