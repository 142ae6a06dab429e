// One function for each instruction and width, and the CPU's own answers. A function has a in
// rax, b in rcx, ~a in rdx and the flags of comparing a with b; it gives a number that is made
// of these registers and of the flags that the manual defines behind the instruction (Intel SDM,
// volume 2): 1 carry, 2 zero, 4 sign, 8 overflow.
#include <stdint.h>
#include <stdio.h>

#define DEFINE(name, defined, text)                                                                          \
	asm(".text\n.globl " #name "\n" #name ":\n\t"                                                        \
	    "mov %rdi,%rax; mov %rsi,%rcx; mov %rdi,%rdx; not %rdx; cmp %rsi,%rdi\n\t" text "\n\t"           \
	    "setc %r8b; setz %r9b; sets %r10b; seto %r11b\n\t"                                               \
	    "movzbl %r8b,%r8d; movzbl %r9b,%r9d; movzbl %r10b,%r10d; movzbl %r11b,%r11d\n\t"                 \
	    "lea (%r8,%r9,2),%r8; lea (%r8,%r10,4),%r8; lea (%r8,%r11,8),%r8; and $" #defined ",%r8\n\t"     \
	    "imul $1000003,%rcx,%rcx; add %rcx,%rax; imul $7368787,%rdx,%rdx; add %rdx,%rax\n\t"             \
	    "imul $15485863,%r8,%r8; add %r8,%rax; ret");                                                    \
	uint64_t name(uint64_t, uint64_t);

// X(name, defined flags, text)
#define WIDTHS(X, op, defined)                                                                               \
	X(op##_b, defined, #op "b %cl,%al") X(op##_h, defined, #op "b %ch,%ah")                              \
	X(op##_w, defined, #op "w %cx,%ax") X(op##_l, defined, #op "l %ecx,%eax")                            \
	X(op##_q, defined, #op "q %rcx,%rax")                                                                \
	X(op##_mb, defined, "mov %rax,-16(%rsp); " #op "b %cl,-15(%rsp); mov -16(%rsp),%rax")                \
	X(op##_ml, defined, "mov %rax,-16(%rsp); " #op "l %ecx,-16(%rsp); mov -16(%rsp),%rax")
#define NUMBERS(X, op)                                                                                       \
	X(op##_nb, 15, #op "b $-3,%al") X(op##_nw, 15, #op "w $-3,%ax") X(op##_nl, 15, #op "l $-3,%eax")     \
	X(op##_nq, 15, #op "q $-3,%rax") X(op##_nn, 15, #op "q $0x7654321,%rax")
#define ONE(X, op, defined)                                                                                  \
	X(op##_b, defined, #op "b %ah") X(op##_w, defined, #op "w %ax") X(op##_l, defined, #op "l %eax")     \
	X(op##_q, defined, #op "q %rax")
#define SHIFT(X, op)                                                                                         \
	X(op##_b, 6, #op "b %cl,%al") X(op##_w, 6, #op "w %cl,%ax") X(op##_l, 7, #op "l %cl,%eax")           \
	X(op##_q, 7, #op "q %cl,%rax") X(op##_1, 7, #op "b $1,%ah") X(op##_7, 7, #op "b $7,%al")             \
	X(op##_15, 7, #op "w $15,%ax") X(op##_31, 7, #op "l $31,%eax") X(op##_63, 7, #op "q $63,%rax")
#define BIT(X, op)                                                                                           \
	X(op##_w, 1, #op "w %cx,%ax") X(op##_l, 1, #op "l %ecx,%eax") X(op##_q, 1, #op "q %rcx,%rax")        \
	X(op##_n, 1, #op "q $45,%rax") X(op##_nl, 1, #op "l $5,%eax")
#define SCAN(X, op, defined)                                                                                 \
	X(op##_w, defined, #op "w %cx,%ax") X(op##_l, defined, #op "l %ecx,%eax")                            \
	X(op##_q, defined, #op "q %rcx,%rax") X(op##_1, defined, "or $1,%rcx; " #op "q %rcx,%rax")           \
	X(op##_0, defined, "xor %ecx,%ecx; " #op "q %rcx,%rax")
#define CONDITION(X, c)                                                                                      \
	X(cmov##c##_q, 15, "cmov" #c " %rcx,%rax") X(cmov##c##_l, 15, "cmov" #c " %ecx,%eax")                \
	X(set##c##_h, 15, "set" #c " %ah") X(j##c##_, 15, "j" #c " 1f; mov %rcx,%rax; 1:")
#define STRINGS(X, s, repeat, op)                                                                      \
	X(s##_##op, 15, "mov %rax,-32(%rsp); mov %rdx,-24(%rsp); mov %rcx,-64(%rsp); mov %rcx,-56(%rsp);"    \
	  "lea -32(%rsp),%rsi; lea -64(%rsp),%rdi; mov $3,%ecx; " repeat #op ";"                             \
	  "sub %rsp,%rsi; sub %rsp,%rdi; lea (%rcx,%rsi,8),%rcx; lea (%rcx,%rdi),%rcx;"                      \
	  "mov -64(%rsp),%rax; mov -56(%rsp),%rdx; lea (%rax,%rdx,2),%rax; cmp %rax,%rax")

#define ALL(X)                                                                                               \
	WIDTHS(X, add, 15) WIDTHS(X, adc, 15) WIDTHS(X, sub, 15) WIDTHS(X, sbb, 15) WIDTHS(X, cmp, 15)       \
	WIDTHS(X, and, 15) WIDTHS(X, or, 15) WIDTHS(X, xor, 15) WIDTHS(X, test, 15) WIDTHS(X, xadd, 15)      \
	WIDTHS(X, mov, 15) WIDTHS(X, xchg, 15) NUMBERS(X, add) NUMBERS(X, adc) NUMBERS(X, sub)               \
	NUMBERS(X, sbb) NUMBERS(X, cmp) NUMBERS(X, and) NUMBERS(X, or) NUMBERS(X, xor) NUMBERS(X, test)      \
	NUMBERS(X, mov) ONE(X, neg, 15) ONE(X, not, 15) ONE(X, inc, 15) ONE(X, dec, 15)                      \
	SHIFT(X, shl) SHIFT(X, shr) SHIFT(X, sar) BIT(X, bt) BIT(X, bts) BIT(X, btr)                         \
	SCAN(X, bsf, 2) SCAN(X, bsr, 2)                                                                      \
	CONDITION(X, o) CONDITION(X, no) CONDITION(X, b) CONDITION(X, ae) CONDITION(X, e) CONDITION(X, ne)   \
	CONDITION(X, be) CONDITION(X, a) CONDITION(X, s) CONDITION(X, ns) CONDITION(X, l) CONDITION(X, ge)   \
	CONDITION(X, le) CONDITION(X, g)                                                                     \
	STRINGS(X, one, "", stosb) STRINGS(X, one, "", stosw) STRINGS(X, one, "", stosl)            \
	STRINGS(X, one, "", stosq) STRINGS(X, one, "", movsb) STRINGS(X, one, "", movsw)            \
	STRINGS(X, one, "", movsl) STRINGS(X, one, "", movsq)                                          \
	STRINGS(X, rep, "rep ", stosb) STRINGS(X, rep, "rep ", stosw) STRINGS(X, rep, "rep ", stosl) \
	STRINGS(X, rep, "rep ", movsb) STRINGS(X, rep, "rep ", movsw) STRINGS(X, rep, "rep ", movsl) \
	X(imul_w, 0, "imulw %cx,%ax") X(imul_l, 0, "imull %ecx,%eax") X(imul_q, 0, "imulq %rcx,%rax")        \
	X(imul_3, 0, "imulq $-7,%rcx,%rax") X(imul_3l, 0, "imull $-70000,%ecx,%eax")                         \
	X(imul_3w, 0, "imulw $-700,%cx,%ax")                                                                 \
	X(cmpxchg_b, 15, "cmpxchgb %cl,%dl") X(cmpxchg_l, 15, "cmpxchgl %edx,%ecx")                          \
	X(cmpxchg_q, 15, "cmpxchgq %rdx,%rcx") X(cmpxchg_m, 15, "mov %rcx,-8(%rsp); cmpxchgq %rdx,-8(%rsp); mov -8(%rsp),%rcx") \
	X(movzbl, 15, "movzbl %ch,%eax") X(movzbq, 15, "movzbq %cl,%rax") X(movzwl, 15, "movzwl %cx,%eax")   \
	X(movsbw, 15, "movsbw %cl,%ax") X(movsbl, 15, "movsbl %ch,%eax") X(movsbq, 15, "movsbq %cl,%rax")    \
	X(movswl, 15, "movswl %cx,%eax") X(movswq, 15, "movswq %cx,%rax") X(movslq, 15, "movslq %ecx,%rax")  \
	X(lea_q, 15, "lea -5(%rax,%rcx,4),%rdx") X(lea_l, 15, "lea 0x1234(%rcx,%rax,2),%edx")                \
	X(cltq, 15, "cltq") X(cwtl, 15, "cwtl") X(cqto, 15, "cqto") X(cltd, 15, "cltd")                      \
	X(push_q, 15, "push %rcx; pop %rax") X(push_n, 15, "pushq $-5; pop %rax") X(push_m, 15, "push %rcx; push (%rsp); pop %rax; pop %rdx") \
	X(r15l, 15, "push %r15; mov %rcx,%r15; movl %r15d,%eax; movw %r15w,%dx; movb %r15b,%cl; pop %r15")   \
	X(spl, 15, "push %rdi; mov %cl,%dil; mov %sil,%cl; mov %rdi,%rdx; pop %rdi")                         \
	X(leave, 15, "push %rbp; mov %rsp,%rbp; push %rcx; push %rax; leave")                                \
	X(fences, 15, "pause; lfence; mfence; sfence; nop; nopw (%rax,%rax)")                                \
	X(call, 15, "call 1f; jmp 2f; 1: mov %rcx,%rax; ret; 2: lea 3f(%rip),%rdx; push %rdx; ret; 3: mov $1,%edx") \
	X(indirect, 15, "lea 4f(%rip),%rdx; jmp *%rdx; mov %rcx,%rax; 4: mov $2,%edx")

ALL(DEFINE)
#define BMI(X) SCAN(X, tzcnt, 3)
BMI(DEFINE)

static const uint64_t numbers[] = {0, 1, 2, 5, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000,
	0xffffffff, 0x100000000, 0x7fffffffffffffff, 0x8000000000000000, 0xffffffffffffff80, 0xffffffffffffffff,
	0x123456789abcdef0, 0xfedcba9876543210, 0x8040201008040201};
#define N (sizeof numbers / sizeof *numbers)

int main(void)
{
	for (unsigned i = 0; i < 8 * N; i++) {
		uint64_t a = numbers[i % N], b = numbers[(i * 7 + i / N) % N];
#define LINE(f, defined, text)                                                                               \
	printf(#f " %llu %llu %llu\n", (unsigned long long)a, (unsigned long long)b, (unsigned long long)f(a, b));
		ALL(LINE)
		if (__builtin_cpu_supports("bmi")) {
			BMI(LINE)
		}
	}
}
