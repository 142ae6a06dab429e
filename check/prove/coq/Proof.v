(* SPDX-License-Identifier: Apache-2.0 *)

(** The protocol of Table.v is safe on machines of any CPUs and any sites. *)

Require Import Machine Safe Table.

Lemma checked : check protocol = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

(** No state that a machine reaches allows a step that breaks a property. *)
Theorem proved : forall (Cpu Site : Type)
    (same_cpu : forall x y : Cpu, {x = y} + {x <> y}) (same_site : forall x y : Site, {x = y} + {x <> y})
    (st : state Cpu Site), reachable protocol Cpu Site same_cpu same_site st ->
  forall b, List.In b (steps protocol) -> breaks b = true -> forall ch c s, ~ can protocol Cpu Site st ch c s b.
Proof. exact (fun Cpu Site same_cpu same_site => safe protocol Cpu Site same_cpu same_site checked). Qed.

Print Assumptions proved.
