; x86_64. A breakpoint is int3, one byte; a call is e8 and the distance from behind it (Intel SDM
; vol. 2, "CALL"). A fetch may mix the bytes of any versions (vol. 3A, "Handling Self- and
; Cross-Modifying Code"). Interrupts and the IRET behind a trap serialise (vol. 3A, "Serializing
; Instructions"). Loads see stores in order, as if none waited. A round has the sender
; run its function too (on_each_cpu, kernel/smp.c).
(define-fun break-mask () Word #x00000000000000ff)
(define-fun break-text () Word #x00000000000000cc)
(define-fun site-mask () Word #x000000ffffffffff)
(define-fun has-literal () Bool false)
(define-fun stores-wait () Bool false)
(define-fun trap-syncs () Bool true)
(define-fun interrupt-syncs () Bool true)
(define-fun rounds-reach-masked () Bool false)
(define-fun round-spares-sender () Bool false)
(define-fun calls ((t Word)) Bool (= ((_ extract 7 0) t) #xe8))
(define-fun called ((t Word)) Word
  (bvadd site-at (bvadd #x0000000000000005 ((_ sign_extend 32) ((_ extract 39 8) t)))))
; Each byte is that of some version.
(define-fun fetchable ((f Word) (w Window)) Bool (and
  (= (bvand f (bvnot site-mask)) #x0000000000000000)
  (agrees w f #x00000000000000ff) (agrees w f #x000000000000ff00) (agrees w f #x0000000000ff0000)
  (agrees w f #x00000000ff000000) (agrees w f #x000000ff00000000)))
