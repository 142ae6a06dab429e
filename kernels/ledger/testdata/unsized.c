// A kernel without type information whose vector of patches nobody can tell the size of: its code has three phases, and no
// function that queues. Three functions have records, one_key has one branch, three_key three.
#define F __attribute__((noinline, noclone, used)) void
#define EMPTY { __asm__ volatile(""); }
#define THEN(...) { __asm__ volatile(""); __VA_ARGS__; __asm__ volatile(""); }

const char linux_banner[] __attribute__((used)) = "Linux version 9.9.9-unsized (nobody) #1 SMP";
long one_key[2] = {1}, three_key[2] = {1};

F _stext(void) EMPTY
F on_each_cpu_cond_mask(void) EMPTY
F text_poke_bp_batch(void) THEN(on_each_cpu_cond_mask(); on_each_cpu_cond_mask(); on_each_cpu_cond_mask())
F text_poke_finish(void) THEN(text_poke_bp_batch())
F arch_jump_label_transform_apply(void) THEN(text_poke_finish())
F ftrace_replace_code(void) THEN(text_poke_finish())
F arch_ftrace_update_code(void) THEN(ftrace_replace_code())
F first_function(void) EMPTY
F second_function(void) EMPTY
F third_function(void) EMPTY
F _etext(void) EMPTY
F _start(void) EMPTY

#define BRANCH(f, key) ".long " f " - ., " f " + 1 - .\n.quad " key " - .\n"
__asm__(".pushsection .data\n.balign 8\n"
	".globl __start_mcount_loc, __stop_mcount_loc, __start___jump_table, __stop___jump_table\n"
	"__start_mcount_loc: .quad first_function, second_function, third_function\n__stop_mcount_loc: .quad 0\n"
	"__start___jump_table:\n"
	BRANCH("first_function", "one_key") BRANCH("first_function", "three_key")
	BRANCH("second_function", "three_key") BRANCH("third_function", "three_key")
	"__stop___jump_table: .quad 0\n.popsection\n");
