; arm64. Every instruction is one aligned word and is fetched whole (Arm ARM, B2.2.5, "Concurrent
; modification and execution of instructions"); bl begins with 100101. Stores wait until
; dsb. Exceptions are context synchronisation events. A literal before the function names
; its ops. The sender of a round is left as it is: its own isb is the plan's fence.
(define-fun break-mask () Word #x00000000ffffffff)
(define-fun break-text () Word #x00000000d4200000) ; brk #0
(define-fun site-mask () Word #x00000000ffffffff)
(define-fun has-literal () Bool true)
(define-fun stores-wait () Bool true)
(define-fun trap-syncs () Bool true)
(define-fun interrupt-syncs () Bool true)
(define-fun rounds-reach-masked () Bool false)
(define-fun round-spares-sender () Bool true)
(define-fun calls ((t Word)) Bool (= ((_ extract 31 26) t) #b100101))
(define-fun called ((t Word)) Word #x0000000000000000)
(define-fun fetchable ((f Word) (w Window)) Bool (agrees w f #xffffffffffffffff))
