; What CPUs and a patcher may do, in one step each. Written by hand, to be read beside the kernel's
; source; nothing of it comes from the program.
;
; A step-NAME is what any CPU c and any site s may see of a step in which CPU c0 acts, or site s0
; is changed, or both; x-next is x behind the step. It must hold of all CPUs and sites at once:
; so it says, too, what is waited for of all of them. A bad-NAME is what must never come about.

; -- The plan, at the place where the patcher is

(declare-const op-here Op)
(assert (= op-here (op place)))
(declare-const part-here Part)
(assert (= part-here (part place)))
(declare-const level-here Level)
(assert (= level-here (level place)))
(declare-const stage-here Int)
(assert (= stage-here (stage place)))
(declare-const after-here Place)
(assert (= after-here (after place)))
(declare-const later-here Place)
(assert (= later-here (later-in place)))
(declare-const back-here Place)
(assert (= back-here (back-to place)))
(declare-const through-here Role)
(assert (= through-here (goes-through place)))
(declare-const backwards-here Bool)
(assert (= backwards-here (backwards place)))

; -- What stays as it is

(define-fun patcher-stays () Bool (and (= place-next place) (= ops-next ops) (= published-next published)
  (= reference-next reference)))
(define-fun patcher-goes-to ((p Place)) Bool (and (= place-next p) (= ops-next ops) (= published-next published)
  (= reference-next reference)))
(define-fun site-keeps-text ((s Site)) Bool (and (= (text-next s) (text s)) (= (literal-next s) (literal s))
  (= (settled-next s) (settled s)) (= (waiting-next s) (waiting s))))
(define-fun site-keeps-part ((s Site)) Bool (and (= (role-next s) (role s)) (= (enabled-next s) (enabled s))
  (= (entry-next s) (entry s))))
(define-fun site-stays ((s Site)) Bool (and (site-keeps-text s) (site-keeps-part s) (= (done-next s) (done s))))
(define-fun cpu-keeps-task ((c Cpu)) Bool (and (= (does-next c) (does c)) (= (space-next c) (space c))
  (= (at-next c) (at c))))
(define-fun cpu-stays ((c Cpu)) Bool (and (cpu-keeps-task c) (= (asked-next c) (asked c)) (= (stand-next c) (stand c))
  (= (home-next c) (home c))))
(define-fun window-stays ((c Cpu) (s Site)) Bool (= (window-next c s) (window c s)))

; -- CPUs. c0 acts, and calls or executes site s0.

(declare-const refetches Bool) ; c0 throws away what it has fetched ahead, of every site

(declare-const mine Does)
(assert (= mine (does c0)))
(define-fun is-in ((p Phase)) Bool (= (phase mine) p))
; on: the same CPU in another phase, with nothing of the call left; still: with all of it.
(define-fun on ((p Phase)) Does (cpu p boundary (owes mine) (woken mine) no-act #x0000000000000000 no-promise))
(define-fun still ((p Phase)) Does (cpu p (under mine) (owes mine) (woken mine) (act mine) (loaded mine) (promise mine)))
(define-fun calling-for ((o Word) (p Promise)) Does
  (cpu calling boundary (owes mine) (woken mine) no-act o (ite (= o nop-ops) p no-promise)))
(define-fun returning-as ((p Phase) (a Act)) Does (cpu p boundary (owes mine) (woken mine) a #x0000000000000000 no-promise))

(define-fun becomes ((d Does)) Bool (and (= (does-next c0) d) (= (asked-next c0) (asked c0))
  (= (stand-next c0) (stand c0)) (not refetches)))
(define-fun becomes-fresh ((d Does)) Bool (and (= (does-next c0) d) (= (asked-next c0) (asked c0))
  (= (stand-next c0) (stand c0)) refetches))
(define-fun becomes-asked ((d Does) (a Asked)) Bool (and (= (does-next c0) d) (= (asked-next c0) a)
  (= (stand-next c0) (stand c0)) (not refetches)))

; Borders between two instructions: where interrupts are taken.
(define-fun at-border ((p Phase)) Bool (or (= p boundary) (= p again) (= p entered) (= p calling)))
(define-fun about-a-site ((d Does)) Bool (let ((p (ite (or (= (phase d) interrupted) (= (phase d) syncing)
  (= (phase d) answering)) (under d) (phase d))))
  (not (or (= p boundary) (= p arriving) (= p stopped) (= p resuming)))))

; Something waits that the CPU takes where interrupts are masked, or are not.
(define-fun waits-for ((masked Bool)) Bool (ite (= (asked c0) sync) (or (not masked) rounds-reach-masked)
  (and (not masked) (or (= (asked c0) stop) (= (asked c0) grace) (= (asked c0) grace-of-cpus)))))

(define-fun interrupted-in ((p Phase)) Does
  (cpu interrupted p (owes mine) (woken mine) (act mine) (loaded mine) (promise mine)))
(define-fun looks () Bool (and (at-border (phase mine)) (ite (and (owes mine) (is-in boundary))
  (becomes-asked (cpu boundary boundary false (woken mine) no-act #x0000000000000000 no-promise) nothing)
  (ite (and (woken mine) (is-in boundary)) (becomes (on arriving))
    (and (waits-for false) (becomes (interrupted-in (phase mine))))))))

; flush_smp_call_function_queue, multi_cpu_stop, rcu_qs: takes one request after the other.
(define-fun takes () Bool (and (is-in interrupted) (let ((masked (= (under mine) stopped))) (ite (waits-for masked)
  (ite (= (asked c0) sync) (becomes-asked (still syncing) taken)
  (ite (= (asked c0) stop) (becomes-asked (cpu (ite interrupt-syncs syncing answering) (under mine) (owes mine) true
      (act mine) (loaded mine) (promise mine)) taken)
  (ite (owes mine) (becomes-asked (still answering) taken)
    (becomes-asked (cpu interrupted (under mine) true (woken mine) (act mine) (loaded mine) (promise mine)) taken))))
  (becomes (cpu (under mine) boundary (owes mine) (woken mine) (act mine) (loaded mine) (promise mine)))))))
(define-fun syncs () Bool (and (is-in syncing) (becomes-fresh (still answering))))
(define-fun answers () Bool (and (is-in answering) (becomes-asked (still interrupted) nothing)))

; multi_cpu_stop, kernel/stop_machine.c: interrupts are off until all go on.
(define-fun arrives () Bool (and (is-in arriving) (= (does-next c0)
    (cpu stopped boundary (owes mine) false no-act #x0000000000000000 no-promise))
  (= (asked-next c0) (asked c0)) (= (stand-next c0) stands) (not refetches)))
(define-fun stands-still () Bool (and (is-in stopped) (or
  (and rounds-reach-masked (waits-for true) (becomes (interrupted-in stopped)))
  (and (not (= (stand c0) stands)) (becomes (on resuming))))))
(define-fun goes-on () Bool (and (is-in resuming) (becomes-fresh (on boundary))))

; Fetches s0, at a call or again behind the trap: f is what it gets.
(declare-const f Word)
(declare-const sees Window)
(assert (= sees (bvor (window c0 s0) (bit (text s0)))))
(define-fun fetches () Bool (and (or (is-in boundary) (is-in again)) (fetchable f sees)))
(define-fun traps () Bool (= (bvand f break-mask) break-text))
(define-fun is-version () Bool (agrees sees f #xffffffffffffffff))
(define-fun in-time () Bool (or (= (settled s0) unsettled) (and (= (settled s0) settled-now) (= f (text s0)))))
(define-fun meant () Bool (or (= f old-text) (= f new-text)))
(define-fun promise-now () Promise (ite (= (settled s0) unsettled) no-promise promised))
(define-fun executes () Bool (and fetches (ite traps (becomes (on trapped))
  (and is-version in-time meant (ite (calls f)
    (ite has-literal (becomes (cpu entered boundary (owes mine) (woken mine) no-act #x0000000000000000 promise-now))
      (becomes (calling-for (called f) promise-now)))
    (becomes (on boundary)))))))
(define-fun bad-fetch () Bool (and (not (home c0)) (=> (about-a-site mine) (= (at c0) s0)) fetches (not traps)
  (not (and is-version in-time meant))))

; ftrace_caller loads the ops that the site's literal names, and calls through it.
(define-fun loads-ops () Bool (and (is-in entered) (becomes (calling-for (literal s0) (promise mine)))))
(define-fun outcome ((o Word)) Outcome (ite (= o nop-ops) reaches-nobody (ite (= o new-ops) (of-new ops)
  (ite (= o old-ops) (of-old ops) reaches-wild))))
(define-fun calls-ops () Bool (and (is-in calling) (or
  (and (= (outcome (loaded mine)) reaches-tracer) (becomes (on boundary)))
  (and (= (outcome (loaded mine)) reaches-nobody) (= (promise mine) no-promise) (becomes (on boundary)))
  (and (= (outcome (loaded mine)) reaches-nobody) (not (= (promise mine) no-promise)) (becomes (still doubting))))))
(define-fun bad-call () Bool (and (not (home c0)) (is-in calling) (= (at c0) s0)
  (or (= (outcome (loaded mine)) reaches-freed) (= (outcome (loaded mine)) reaches-wild))))
(define-fun forgives () Bool (and (is-in doubting) (becomes (on boundary))))
(define-fun bad-lost-call () Bool (and (not (home c0)) (is-in doubting) (= (at c0) s0) (= (promise mine) promised)
  (not (= (settled s0) unsettled))))

; smp_text_poke_int3_handler and its like: take a reference, look up, give it back, act.
(define-fun takes-reference () Bool (and (is-in trapped) (becomes (on (ite reference searching missed)))))
(define-fun looks-up () Bool (and (is-in searching) published (becomes (ite (= (entry s0) no-entry) (on leaving)
  (returning-as leaving (ite (calls (ite (= (entry s0) acts-new) new-text old-text)) act-call act-nop))))))
(define-fun bad-lookup () Bool (and (not (home c0)) (is-in searching) (= (at c0) s0)
  (not published)))
(define-fun gives-back () Bool (and (is-in leaving) (becomes (ite (= (act mine) no-act) (on missed) (still returning)))))
(define-fun returns () Bool (and (is-in returning) (let ((d (ite (= (act mine) act-nop) (on boundary)
    (ite has-literal (on entered) (calling-for (called new-text) no-promise)))))
  (ite trap-syncs (becomes-fresh d) (becomes d)))))
; exc_int3 looks at the text again: what is no breakpoint any more is tried again.
(define-fun breakpoint-there () Bool (= (bvand (text s0) break-mask) break-text))
(define-fun looks-again () Bool (and (is-in missed) (not breakpoint-there) (becomes (on retrying))))
(define-fun bad-breakpoint () Bool (and (not (home c0)) (is-in missed) (= (at c0) s0) breakpoint-there))
(define-fun tries-again () Bool (and (is-in retrying) (becomes-fresh (on again))))

(define-fun step-cpu ((c Cpu) (s Site)) Bool (and patcher-stays (site-stays s) (ite (= c c0)
  (and (not (home c0)) (=> (about-a-site mine) (= (at c0) s0)) (= (at-next c0) s0)
    (= (home-next c0) (home c0)) (= (space-next c0) (space c0))
    (= (window-next c0 s) (ite refetches (bit (text s)) (window c0 s)))
    (or looks takes syncs answers arrives stands-still goes-on executes loads-ops calls-ops forgives takes-reference
      looks-up gives-back returns looks-again tries-again))
  (and (cpu-stays c) (window-stays c s)))))

; -- The patcher. Between two updates it sits nowhere; then on some CPU c0 that stands between two
; calls. It enables any of the sites that are disabled, or disables any that are enabled.

(define-fun step-sits ((c Cpu) (s Site)) Bool (and (= op-here rest) (patcher-goes-to after-here) (site-stays s)
  (window-stays c s) (cpu-keeps-task c) (= (asked-next c) (asked c)) (= (stand-next c) (stand c))
  (is-in boundary) (not (owes mine)) (not (woken mine)) (= (home-next c) (or (home c) (= c c0)))))
(define-fun step-leaves ((c Cpu) (s Site)) Bool (and (= op-here choice) (patcher-goes-to back-here) (site-stays s)
  (window-stays c s) (cpu-keeps-task c) (= (asked-next c) (asked c)) (= (stand-next c) (stand c)) (not (home-next c))))

; Nothing but the parts of sites changes; which sites, (chosen s) says.
(define-fun only-parts ((c Cpu) (s Site) (to Place) (r Role) (e Bool)) Bool (and (patcher-goes-to to) (cpu-stays c)
  (window-stays c s) (site-keeps-text s) (= (entry-next s) (entry s)) (= (done-next s) (done s)) (= (role-next s) r)
  (= (enabled-next s) e)))
(define-fun step-first ((c Cpu) (s Site)) Bool (and (= op-here choice) (not (enabled s))
  (only-parts c s start-attaching (ite (chosen s) later (role s)) (or (chosen s) (enabled s)))))
(define-fun step-more ((c Cpu) (s Site)) Bool (and (= op-here choice) (= (of-new ops) reaches-tracer)
  (only-parts c s start-enabling (ite (and (chosen s) (not (enabled s))) later (role s)) (or (chosen s) (enabled s)))))
(define-fun step-disables ((c Cpu) (s Site)) Bool (and (= op-here choice)
  (only-parts c s start-disabling (ite (and (chosen s) (enabled s)) later (role s)) (and (enabled s) (not (chosen s))))))
(define-fun step-begins-batch ((c Cpu) (s Site)) Bool (and (= op-here enter-batch)
  (only-parts c s after-here (ite (and (chosen s) (= (role s) later)) in-batch (role s)) (enabled s))))
(define-fun step-next-batch ((c Cpu) (s Site)) Bool (and (= op-here leave-batch)
  (only-parts c s back-here (ite (= (role s) in-batch) through (role s)) (enabled s))))
(define-fun step-last-batch ((c Cpu) (s Site)) Bool (and (= op-here leave-batch) (not (= (role s) later))
  (only-parts c s after-here (ite (= (role s) in-batch) through (role s)) (enabled s))))
(define-fun step-begins-patch ((c Cpu) (s Site)) Bool (and (= op-here enter-patch) (= (role s0) through-here)
  (only-parts c s after-here (ite (= s s0) current (role s)) (enabled s))))
(define-fun gone-through ((s Site)) Bool (or (= (role s) current) (= (role s) passed)))
(define-fun step-next-patch ((c Cpu) (s Site)) Bool (and (= op-here leave-patch)
  (only-parts c s back-here (ite (gone-through s) passed (role s)) (enabled s))))
(define-fun step-last-patch ((c Cpu) (s Site)) Bool (and (= op-here leave-patch)
  (not (= (role s) through-here))
  (only-parts c s after-here (ite (gone-through s) through-here (role s)) (enabled s))))
(define-fun step-is-last ((c Cpu) (s Site)) Bool (and (= op-here if-last) (not (enabled s))
  (only-parts c s after-here (role s) (enabled s))))
(define-fun step-is-not-last ((c Cpu) (s Site)) Bool (and (= op-here if-last)
  (only-parts c s back-here (role s) (enabled s))))
(define-fun step-is-over ((c Cpu) (s Site)) Bool (and (= op-here finish)
  (only-parts c s back-here none (enabled s))))

; -- Steps that are made site by site, at s0, and that all sites they are about must be through.

(define-fun covers ((r Role)) Bool (ite (= level-here of-patch) (= r current)
  (ite (= level-here of-batch) (or (= r in-batch) (= r current) (= r passed)) (not (= r none)))))
(define-fun works-on ((o Op)) Bool (and (= op-here o) (covers (role s0)) (not (= (done s0) complete))))
(define-fun site-by-site () Bool (or (= op-here verify) (= op-here write) (= op-here settle)))
(define-fun step-through ((c Cpu) (s Site)) Bool (and site-by-site (=> (covers (role s)) (= (done s) complete))
  (patcher-goes-to after-here) (cpu-stays c) (window-stays c s) (site-keeps-text s) (site-keeps-part s)
  (= (done-next s) not-yet)))

; What was promised of s0 when a CPU came there is so no more.
(define-fun older ((d Does)) Does (ite (= (promise d) promised)
  (cpu (phase d) (under d) (owes d) (woken d) (act d) (loaded d) promised-once) d))
(define-fun at-site ((c Cpu) (s Site) (t Word) (l Word) (d Done) (p Settled) (w Waiting) (pushed Bool) (aged Bool)) Bool
  (and patcher-stays (ite (= s s0) (and (= (text-next s) t) (= (literal-next s) l) (= (done-next s) d)
      (= (settled-next s) p) (= (waiting-next s) w) (site-keeps-part s)) (site-stays s))
    (= (does-next c) (ite (and aged (= (at c) s0)) (older (does c)) (does c))) (= (space-next c) (space c))
    (= (at-next c) (at c)) (= (asked-next c) (asked c)) (= (stand-next c) (stand c)) (= (home-next c) (home c))
    (= (window-next c s) (ite (and pushed (= s s0)) (bvor (window c s) (bit t)) (window c s)))))

; The patcher reads its own stores, also those that wait.
(define-fun applied ((x Store) (t Word)) Word (ite (= x no-store) t (bvor (bvand t (keep x)) (put x))))
(declare-const own-text Word)
(assert (= own-text (applied (to-text (waiting s0)) (text s0))))
(declare-const own-literal Word)
(assert (= own-literal (applied (to-literal (waiting s0)) (literal s0))))
(declare-const want-text Word)
(assert (= want-text (ite backwards-here old-text new-text)))
(declare-const want-ops Word)
(assert (= want-ops (ite backwards-here old-ops new-ops)))
(declare-const had-text Word)
(assert (= had-text (ite backwards-here new-text old-text)))
(declare-const had-ops Word)
(assert (= had-ops (ite backwards-here new-ops old-ops)))

(define-fun step-verifies ((c Cpu) (s Site)) Bool (and (works-on verify) (= (done s0) not-yet) (= own-text had-text)
  (at-site c s (text s0) (literal s0) (ite has-literal half complete) unsettled (waiting s0) false true)))
(define-fun step-verifies-literal ((c Cpu) (s Site)) Bool (and (works-on verify) (= (done s0) half)
  (= own-literal had-ops) (at-site c s (text s0) (literal s0) complete (settled s0) (waiting s0) false false)))
(define-fun bad-verify () Bool (and (works-on verify)
  (not (ite (= (done s0) not-yet) (= own-text had-text) (= own-literal had-ops)))))
(define-fun step-settles ((c Cpu) (s Site)) Bool (and (works-on settle)
  (at-site c s (text s0) (literal s0) complete (ite (= (text s0) want-text) settled-now settled-to-come) (waiting s0)
    false false)))

; __text_poke, aarch64_insn_write, patch_insn_write: the part of the site that the plan says.
(define-fun made-of ((mask Word) (w Word)) Store (store (bvnot mask) (bvand mask w)))
(define-fun tail-mask () Word (bvand site-mask (bvnot break-mask)))
(define-fun breaks-in ((t Word)) Bool (= (bvand t break-mask) break-text))
(declare-const the-store Store)
(assert (= the-store (let ((p part-here))
  (ite (= p breakpoint) (made-of break-mask break-text)
  (ite (= p tail) (made-of tail-mask want-text)
  (ite (= p head) (made-of break-mask want-text)
  (ite (= p word) (made-of site-mask want-text)
  (ite (= p literal-low) (made-of #x00000000ffffffff want-ops)
  (ite (= p literal-high) (made-of #xffffffff00000000 want-ops)
    (made-of #xffffffffffffffff want-ops))))))))))
(define-fun stores-text () Bool (not (or (= part-here literal-part) (= part-here literal-low)
  (= part-here literal-high))))
(define-fun nothing-to-store () Bool (or (and (= part-here tail) (= tail-mask #x0000000000000000))
  (and (= part-here head) (breaks-in want-text))))
(define-fun kept-promise () Settled (ite (= (settled s0) settled-to-come) settled-now (settled s0)))
(define-fun text-comes ((c Cpu) (s Site) (x Store) (d Done) (w Waiting)) Bool
  (at-site c s (applied x (text s0)) (literal s0) d kept-promise w true false))
(define-fun literal-comes ((c Cpu) (s Site) (x Store) (d Done) (w Waiting)) Bool
  (at-site c s (text s0) (applied x (literal s0)) d (settled s0) w false false))
(define-fun waits-there () Bool (not (= no-store (ite stores-text (to-text (waiting s0)) (to-literal (waiting s0))))))
(define-fun step-stores-nothing ((c Cpu) (s Site)) Bool (and (works-on write) nothing-to-store
  (at-site c s (text s0) (literal s0) complete (settled s0) (waiting s0) false false)))
(define-fun step-stores ((c Cpu) (s Site)) Bool (and (works-on write) (not nothing-to-store) (not waits-there)
  (ite stores-text (text-comes c s the-store complete (waiting s0))
    (literal-comes c s the-store complete (waiting s0)))))
(define-fun step-store-waits ((c Cpu) (s Site)) Bool (and stores-wait (works-on write) (not nothing-to-store)
  (not waits-there) (at-site c s (text s0) (literal s0) complete (settled s0)
    (ite stores-text (waits the-store (to-literal (waiting s0))) (waits (to-text (waiting s0)) the-store)) false false)))
; A store to the same place goes first.
(define-fun step-older-store ((c Cpu) (s Site)) Bool (and (works-on write) (not nothing-to-store) waits-there
  (ite stores-text (text-comes c s (to-text (waiting s0)) half (waits no-store (to-literal (waiting s0))))
    (literal-comes c s (to-literal (waiting s0)) half (waits (to-text (waiting s0)) no-store)))))
; At any time what waits comes to be seen.
(define-fun step-text-drains ((c Cpu) (s Site)) Bool (and (not (= (to-text (waiting s0)) no-store))
  (text-comes c s (to-text (waiting s0)) (done s0) (waits no-store (to-literal (waiting s0))))))
(define-fun step-literal-drains ((c Cpu) (s Site)) Bool (and (not (= (to-literal (waiting s0)) no-store))
  (literal-comes c s (to-literal (waiting s0)) (done s0) (waits (to-text (waiting s0)) no-store))))

; -- Steps about all CPUs or all sites.

(define-fun drained ((s Site)) Bool (= (waiting s) (waits no-store no-store)))
(define-fun cpu-only-asked ((c Cpu) (a Asked) (t Stand)) Bool (and (cpu-keeps-task c) (= (home-next c) (home c))
  (= (asked-next c) (ite (home c) (asked c) a)) (= (stand-next c) (ite (home c) (stand c) t))))
(define-fun sender-fresh ((c Cpu) (s Site) (yes Bool)) Bool
  (= (window-next c s) (ite (and yes (home c)) (bit (text s)) (window c s))))
(define-fun step-fence ((c Cpu) (s Site)) Bool (and (= op-here fence) (drained s) (patcher-goes-to after-here)
  (site-stays s) (cpu-stays c) (sender-fresh c s true)))

; smp_call_function_many_cond: all but the sender's own CPU are asked, and answer one by one.
(define-fun step-asks ((c Cpu) (s Site)) Bool (and (= op-here round) (= stage-here 0)
  (patcher-goes-to later-here) (site-stays s) (cpu-only-asked c sync (stand c))
  (sender-fresh c s (not round-spares-sender))))
(define-fun answered ((c Cpu)) Bool (= (asked c) nothing))
(define-fun step-answered ((c Cpu) (s Site)) Bool (and (or (= op-here round) (= op-here grace-period))
  (= stage-here 1) (answered c) (patcher-goes-to after-here) (site-stays s) (cpu-stays c) (window-stays c s)))
; synchronize_rcu_tasks orders memory, and waits until every task has been between two calls.
(define-fun step-grace ((c Cpu) (s Site)) Bool (and (= op-here grace-period) (= stage-here 0) (drained s)
  (patcher-goes-to later-here) (site-stays s) (cpu-only-asked c grace (stand c)) (window-stays c s)))
(define-fun asks () Bool (and (= stage-here 0) (or (= op-here round) (= op-here grace-period)
  (= op-here stop-machine))))
(define-fun bad-asked-twice () Bool (and asks (not (answered c0))))

(define-fun step-stop ((c Cpu) (s Site)) Bool (and (= op-here stop-machine) (= stage-here 0)
  (patcher-goes-to later-here) (site-stays s) (cpu-only-asked c stop to-stand) (window-stays c s)))
(define-fun step-all-stand ((c Cpu) (s Site)) Bool (and (= op-here stop-machine) (= stage-here 1) (answered c)
  (not (= (stand c) to-stand)) (patcher-goes-to after-here) (site-stays s) (cpu-stays c) (window-stays c s)))
(define-fun step-resumes-itself ((c Cpu) (s Site)) Bool (and (= op-here resume) (= stage-here 0)
  (patcher-goes-to later-here) (site-stays s) (cpu-stays c) (sender-fresh c s true)))
(define-fun step-lets-go ((c Cpu) (s Site)) Bool (and (= op-here resume) (= stage-here 1)
  (patcher-goes-to after-here) (site-stays s) (cpu-keeps-task c) (window-stays c s) (= (home-next c) (home c))
  (= (asked-next c) (asked c)) (= (stand-next c) runs)))

; smp_text_poke_batch_finish: what handlers look up, and the references on it.
(define-fun tables ((p Place) (o Ops) (found Bool) (held Bool)) Bool (and (= place-next p) (= ops-next o)
  (= published-next found) (= reference-next held)))
(define-fun only-entry ((s Site) (e Entry)) Bool (and (site-keeps-text s) (= (done-next s) (done s))
  (= (role-next s) (role s)) (= (enabled-next s) (enabled s)) (= (entry-next s) e)))
(define-fun step-publishes ((c Cpu) (s Site)) Bool (and (= op-here publish) (tables after-here ops true true)
  (cpu-stays c) (window-stays c s)
  (only-entry s (ite (covers (role s)) (ite backwards-here acts-old acts-new) no-entry))))
(define-fun in-handler ((c Cpu)) Bool (or (= (phase (does c)) searching) (= (phase (does c)) leaving)))
(define-fun bad-published-over () Bool (and (= op-here publish) (in-handler c0) (= (at c0) s0)))
(define-fun step-unpublishes ((c Cpu) (s Site)) Bool (and (= op-here unpublish)
  (tables after-here ops published false) (site-stays s) (cpu-stays c) (window-stays c s)))
(define-fun step-begins-to-wait ((c Cpu) (s Site)) Bool (and (= op-here wait-handlers) (= stage-here 0)
  (patcher-goes-to later-here) (site-stays s) (cpu-stays c) (window-stays c s)))
(define-fun step-none-is-inside ((c Cpu) (s Site)) Bool (and (= op-here wait-handlers) (= stage-here 1)
  (not reference) (not (in-handler c)) (patcher-goes-to later-here) (site-stays s) (cpu-stays c) (window-stays c s)))
(define-fun step-forgets ((c Cpu) (s Site)) Bool (and (= op-here wait-handlers) (= stage-here 2)
  (tables after-here ops false reference) (only-entry s no-entry) (cpu-stays c) (window-stays c s)))

; register_ftrace_function makes the ops callable; unregistering frees what it led to.
(define-fun step-attaches ((c Cpu) (s Site)) Bool (and (= op-here attach)
  (tables after-here (ops-are reaches-tracer (of-old ops)) published reference) (site-stays s) (cpu-stays c)
  (window-stays c s)))
(define-fun step-releases ((c Cpu) (s Site)) Bool (and (= op-here release)
  (tables after-here (ops-are reaches-freed (of-old ops)) published reference) (site-stays s) (cpu-stays c)
  (window-stays c s)))

; What an update leaves: the text that it was to write, unless that still waits.
(define-fun bad-left () Bool (and (= op-here finish) (not (= (role s0) none))
  (= (to-text (waiting s0)) no-store) (not (= (text s0) want-text))))
