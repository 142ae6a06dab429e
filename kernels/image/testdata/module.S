// A module before it is linked: each section that counts, and some that do not.
.section .modinfo,"a"
	.asciz "license=GPL"
#ifndef SMALL
.text
traced:	nop
other:	nop
.globl frees
.type frees,@function
frees:	call kmem_cache_destroy
	call frees
	call queue_work_on
.size frees, . - frees
.type another,@function
another: call kmem_cache_destroy
.size another, . - another
.section .init.text,"ax"
starts:	nop
.section .exit.text,"ax"
	.balign 4
	nop
.type cleanup_module,@function
cleanup_module:
	call kmem_cache_destroy
	call frees
	call frees
	jmp kmem_cache_destroy
.size cleanup_module, . - cleanup_module
.section __mcount_loc,"a"
	.quad traced, starts
.section __patchable_function_entries,"aw"
	.quad other
.section .static_call_sites,"aw"	// the site, the key
	.long traced - ., __SCK__outer - .
	.long starts - ., __SCK__outer - .
	.long other - ., __SCK__another - .
.section __jump_table,"aw"		// the branch, its target, the key
	.long traced - ., other - .
	.quad outer_key - .
	.long other - ., traced - .
	.quad outer_key - .
	.long starts - ., starts - .
	.quad own_key - .
.section .alternative,"a"	// the place, its other text, a vendor, bytes, what is wanted
	.long traced - ., other - .
	.short 0, 1
	.long 30
	.long traced - ., other - .
	.short 0x5b7, 1
	.long 30
	.long other - ., traced - .
	.short 0, 1
	.long 29
.data
own_key: .quad 0
.section .rodata,"a"
	.quad 0
.section .init.rodata,"a"
	.quad 0
.section .data..percpu,"aw"
	.quad 0
.section __versions,"a"
	.quad 0
.section .init.empty,"ax"
.section .comment_on_it,""
	.quad traced
#endif
.section .note.GNU-stack,"",@progbits
