// Functions of x86_64 by which a kernel patches its text, with the calls between them: as Linux 6.1 has them, or with
// SINCE_6_16 as later ones.
#define F __attribute__((noinline, noclone, used)) void
#define EMPTY { __asm__ volatile(""); }
#define THEN(...) { __asm__ volatile(""); __VA_ARGS__; __asm__ volatile(""); }

F kernel_power_off(void) EMPTY
F text_poke_memcpy(void) EMPTY
F do_sync_core(void) EMPTY
F on_each_cpu_cond_mask(void) EMPTY
F multi_cpu_stop(void) EMPTY
F stop_machine_cpuslocked(void) EMPTY
F synchronize_rcu_tasks(void) EMPTY
F ftrace_shutdown(void) THEN(synchronize_rcu_tasks())
F __text_poke(void) EMPTY
F text_poke(void) THEN(__text_poke())
#ifdef SINCE_6_16
int text_poke_array_refs;
long __per_cpu_offset[4];
F smp_text_poke_int3_handler(void) EMPTY
F smp_text_poke_batch_finish(void) THEN(text_poke_array_refs = 1; __text_poke(); on_each_cpu_cond_mask())
F ftrace_replace_code(void) THEN(smp_text_poke_batch_finish())
#else
#ifdef BEFORE_6_1
struct { void *vec; int entries; } *bp_desc;
F text_poke_bp_batch(void) THEN(bp_desc = 0; text_poke(); on_each_cpu_cond_mask())
#else
struct { void *vec; int entries, refs; } bp_desc;
F text_poke_bp_batch(void) THEN(bp_desc.refs = 1; text_poke(); on_each_cpu_cond_mask())
#endif
F poke_int3_handler(void) EMPTY
F text_poke_finish(void) THEN(text_poke_bp_batch())
F ftrace_replace_code(void) THEN(text_poke_finish())
#endif
#ifndef NOTHING
F arch_ftrace_update_code(void) THEN(ftrace_replace_code())
#endif
void _start(void) {}
