// Functions of the kernel's names, each with its defect, or with MENDED as the fix has it.
#define F __attribute__((noinline, noclone, used)) void
#define EMPTY { __asm__ volatile(""); }
#define THEN(...) { __asm__ volatile(""); __VA_ARGS__; __asm__ volatile(""); }

F mutex_lock(void) EMPTY
F text_poke_sync(void) EMPTY
F cpus_read_lock(void) EMPTY
F call_rcu_tasks(void) EMPTY
F dup_hash(void) EMPTY
F text_poke_bp(void) EMPTY
F text_poke_queue(void) EMPTY
F bpf_arch_text_poke(void) EMPTY
F ftrace_call(void) EMPTY

F _stext(void) EMPTY
const unsigned char _etext[] __attribute__((used)) = { 0x48, 0x8d, 0x64, 0x24, 0x80 }; // lea -0x80(%rsp),%rsp
F on_each_cpu_cond_mask(void) EMPTY
F ptep_clear_flush(void) EMPTY
#ifdef MENDED
F uprobe_write(void) THEN(ptep_clear_flush())
#else
F uprobe_write(void) EMPTY
#endif
F arch_uprobe_optimize(void) THEN(uprobe_write(); on_each_cpu_cond_mask())

char init_mm[1024];
char another_mm[4096];
F down_read(void *lock) { __asm__ volatile("" : : "r"(lock)); }
F vmalloc_to_page(void) EMPTY
#ifndef NO_JOIN
const char vmstat_text[] __attribute__((used)) = "direct_map_level2_collapses";
#endif

#if defined(MENDED)
F __text_poke(void) THEN(down_read(init_mm + 408); vmalloc_to_page())
#elif defined(OTHER_LOCK)
F __text_poke(void) THEN(down_read(another_mm + 3700); vmalloc_to_page())
#elif defined(NO_WALK)
F __text_poke(void) THEN(down_read(init_mm + 408))
#else
F __text_poke(void) THEN(vmalloc_to_page())
#endif

#ifdef MENDED
struct { void *vec; int entries, refs; } bp_desc;
F text_poke_bp_batch(void) THEN(bp_desc.refs = 1)
F __static_call_fixup(void) THEN(mutex_lock())
F arch_disarm_kprobe(void) THEN(text_poke_sync())
F ftrace_arch_code_modify_prepare(void) THEN(cpus_read_lock())
F arch_static_call_transform(void) THEN(text_poke_queue())
F register_ftrace_direct(void) THEN(dup_hash(); call_rcu_tasks())
F bpf_tramp_image_put(void) EMPTY
#else
void *bp_desc;
F text_poke_bp_batch(void) THEN(bp_desc = &bp_desc)
F __static_call_fixup(void) EMPTY
F arch_disarm_kprobe(void) EMPTY
F ftrace_arch_code_modify_prepare(void) THEN(mutex_lock())
F arch_static_call_transform(void) THEN(text_poke_bp())
F register_ftrace_direct(void) THEN(dup_hash())
F arch_bpf_trampoline_skip(void) THEN(bpf_arch_text_poke())
F bpf_trampoline_multi_detach(void) EMPTY
#endif
F arch_ftrace_update_code(void) THEN(ftrace_arch_code_modify_prepare())
F static_call_module_notify(void) THEN(arch_static_call_transform())
F bpf_trampoline_update(void) EMPTY
void _start(void) EMPTY
