; The words in which machine.smt2 says what CPUs and a patcher do. Written by hand; nothing of it
; comes from the program. Texts and pointers are 64 bits wide, the byte at the lowest address last.
(set-logic ALL)
(declare-sort Cpu 0)
(declare-sort Site 0)
(define-sort Word () (_ BitVec 64))

; The part that a site has in the update that is under way.
(declare-datatypes ((Role 0)) (((none) (later) (in-batch) (current) (passed) (through))))
; How far the step that is made site by site has got with a site.
(declare-datatypes ((Done 0)) (((not-yet) (half) (complete))))
; What is promised: nothing; that nobody executes what came before the text that is there; or
; before the text that still waits in the store buffer.
(declare-datatypes ((Settled 0)) (((unsettled) (settled-now) (settled-to-come))))
; What handlers find about a site.
(declare-datatypes ((Entry 0)) (((no-entry) (acts-new) (acts-old))))
; What a CPU was asked for and has not answered; taken: it is in the middle of that.
(declare-datatypes ((Asked 0)) (((nothing) (sync) (stop) (grace) (grace-of-cpus) (taken))))
(declare-datatypes ((Stand 0)) (((runs) (to-stand) (stands))))
(declare-datatypes ((Space 0)) (((in-kernel) (in-user) (no-such-space) (in-user-left-out))))

; What a CPU does next. Up to calling it stands at a border between two instructions.
(declare-datatypes ((Phase 0)) (((boundary) (again) (entered) (calling)
  (trapped) (searching) (leaving) (returning) (missed) (retrying)
  (interrupted) (syncing) (answering) (arriving) (stopped) (resuming) (doubting))))
; What the handler acts as.
(declare-datatypes ((Act 0)) (((no-act) (act-nop) (act-call))))
; What was promised when the site was fetched: nothing, what is promised still, or was once.
(declare-datatypes ((Promise 0)) (((no-promise) (promised) (promised-once))))
; under is where an interrupt goes back to; what a phase does not need is as in (on phase).
(declare-datatypes ((Does 0)) (((cpu (phase Phase) (under Phase) (owes Bool) (woken Bool)
  (act Act) (loaded Word) (promise Promise)))))

; What a call through an ops comes to.
(declare-datatypes ((Outcome 0)) (((reaches-nobody) (reaches-tracer) (reaches-freed) (reaches-wild))))
(declare-datatypes ((Ops 0)) (((ops-are (of-new Outcome) (of-old Outcome)))))

; A store keeps some bits of what is there and puts others.
(declare-datatypes ((Store 0)) (((no-store) (store (keep Word) (put Word)))))
(declare-datatypes ((Waiting 0)) (((waits (to-text Store) (to-literal Store)))))

; What the patcher does at a place of its program, and about which sites.
(declare-datatypes ((Op 0)) (((rest) (choice) (enter-batch) (leave-batch) (enter-patch) (leave-patch) (if-last) (finish)
  (verify) (publish) (write) (fence) (round) (stop-machine) (resume) (unpublish) (wait-handlers) (grace-period)
  (settle) (attach) (release))))
(declare-datatypes ((Part 0)) (((breakpoint) (tail) (head) (word) (literal-part) (literal-low) (literal-high) (no-part))))
(declare-datatypes ((Level 0)) (((of-update) (of-batch) (of-patch))))
