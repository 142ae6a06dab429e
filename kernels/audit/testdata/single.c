// smp_text_poke_single as Linux 6.16-rc1 had it, which appends whatever the address, and as
// it has been since 6.16-rc3 (MENDED), behind the check of the order.
typedef unsigned long u64;
#define OUT __attribute__((noinline, noclone, used))
struct loc { int rel; };
struct loc vec[256];
int nr;
OUT void on_each_cpu_cond_mask(void) { __asm__ volatile(""); }
OUT void smp_text_poke_batch_finish(void)
{
	if (!nr)
		return;
	for (int i = 0; i < 3; i++)
		on_each_cpu_cond_mask();
	nr = 0;
}
OUT static void append(void *addr) { vec[nr++].rel = (int)(u64)addr; }
OUT void smp_text_poke_batch_add(void *addr, const void *opcode, u64 len, const void *emulate)
{
	if (nr == 256 || (nr && (u64)addr < (u64)(long)vec[nr - 1].rel))
		smp_text_poke_batch_finish();
	append(addr);
}
OUT void smp_text_poke_single(void *addr, const void *opcode, u64 len, const void *emulate)
{
#ifdef MENDED
	smp_text_poke_batch_add(addr, opcode, len, emulate);
#else
	append(addr);
#endif
	smp_text_poke_batch_finish();
}
void _start(void) { smp_text_poke_batch_add(0, 0, 0, 0); smp_text_poke_single(0, 0, 0, 0); }
