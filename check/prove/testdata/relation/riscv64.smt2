; riscv64. Every instruction of a site is one aligned word and is fetched whole (Ziccif); jalr ends in
; 1100111. Stores wait until a fence. Neither traps nor interrupts fence instructions:
; fence.i alone does. Rounds are remote fences of the firmware, which masks do not hold back,
; and the sender fences, too (flush_icache_all, arch/riscv/mm/cacheflush.c).
(define-fun break-mask () Word #x00000000ffffffff)
(define-fun break-text () Word #x0000000000100073) ; ebreak
(define-fun site-mask () Word #x00000000ffffffff)
(define-fun has-literal () Bool true)
(define-fun stores-wait () Bool true)
(define-fun trap-syncs () Bool false)
(define-fun interrupt-syncs () Bool false)
(define-fun rounds-reach-masked () Bool true)
(define-fun round-spares-sender () Bool false)
(define-fun calls ((t Word)) Bool (= ((_ extract 6 0) t) #b1100111))
(define-fun called ((t Word)) Word #x0000000000000000)
(define-fun fetchable ((f Word) (w Window)) Bool (agrees w f #xffffffffffffffff))
