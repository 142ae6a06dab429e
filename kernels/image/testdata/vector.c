// Queueing of patches as kernels do it (text_poke_queue, text_poke_finish; arch/x86/kernel/alternative.c), with a vector of
// SLOTS entries, or one that grows (SLOTS 0); ROUNDS interrupts a batch; a lower address ends one unless UNORDERED.
typedef unsigned long u64;
struct loc { int rel; unsigned char len, op, text[6]; };

#define OUT __attribute__((noinline, noclone, used))
OUT void on_each_cpu_cond_mask(void) { __asm__ volatile(""); }
OUT void *text_poke(void *to, const void *from, u64 n) { __asm__ volatile("" ::: "memory"); return to; }
OUT void *krealloc(void *old, u64 size, int flags) { __asm__ volatile("" : "+r"(old)); return old; }

int system_state;
int nr;
#if SLOTS
struct loc vec[SLOTS];
#else
struct loc *vec;
int room;
#endif

OUT static void flush(void)
{
	if (!nr)
		return;
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < nr; i++)
			text_poke((void *)(u64)(long)vec[i].rel, &vec[i].op, round == 1 ? vec[i].len : 1);
		on_each_cpu_cond_mask();
	}
	nr = 0;
}

OUT void text_poke_queue(void *addr, const void *opcode, u64 len, const void *emulate)
{
	if (system_state == 0 || len != 5 || emulate) /* a call, and no other is emulated in its place */
		return;
#ifndef UNORDERED
	if (nr && (u64)addr < (u64)(long)vec[nr - 1].rel)
		flush();
#endif
#if SLOTS
	if (nr == SLOTS)
		flush();
#else
	if (nr == room) {
		room = room ? 2 * room : 8;
		vec = krealloc(vec, room * sizeof(*vec), 0);
	}
#endif
	vec[nr].rel = (int)(u64)addr;
	vec[nr].len = len;
	vec[nr].op = *(const unsigned char *)opcode;
	nr++;
}

OUT void text_poke_finish(void) { flush(); }
OUT void smp_text_poke_single(void *addr, const void *opcode, u64 len, const void *emulate)
{
	text_poke_queue(addr, opcode, len, emulate);
	flush();
}
void _start(void) { text_poke_queue(0, 0, 0, 0); text_poke_finish(); smp_text_poke_single(0, 0, 0, 0); }
