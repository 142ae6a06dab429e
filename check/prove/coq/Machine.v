(* SPDX-License-Identifier: Apache-2.0 *)

(** A machine of any CPUs and any sites, and what a table of views says of it.

    A table is what textpoke prove has found of one protocol: every step that a CPU or the patcher
    can make, and the views (what one CPU and one site are to each other). The machine below makes
    these steps; it knows nothing of views. [safe] says: where [check] computes to true, no state that
    the machine reaches, of any CPUs and sites, allows a step that breaks a property. *)

From Coq Require Import NArith List Bool FMapPositive.
Import ListNotations.
Open Scope N_scope.

(** * What a table says *)

(** What a state has, each as a number. [chosen] is whether a choice of sites takes this one. *)
Inductive attr :=
  | place | ops | published | reference
  | text | literal | role | done | enabled | settled | entry | waiting | chosen
  | does | asked | stand | home | space
  | window.
Scheme Equality for attr.

(** The order of a view's values. *)
Definition all := [place; ops; published; reference;
  text; literal; role; done; enabled; settled; entry; waiting;
  does; asked; stand; home; space; window].

(** A view's value of an attribute. *)
Fixpoint find (a : attr) (names : list attr) (v : list N) : N :=
  match names, v with
  | n :: names, x :: v => if attr_beq n a then x else find a names v
  | _, _ => 0
  end.
Definition get (v : list N) (a : attr) := find a all v.

(** Whether each CPU has its own, and each site. The patcher's are neither, a window is both. *)
Definition per_cpu a := match a with does | asked | stand | home | space | window => true | _ => false end.
Definition per_site a := match a with
  | text | literal | role | done | enabled | settled | entry | waiting | chosen | window => true | _ => false end.

(** An attribute has one of some values: bit x of [among] is set for value x. *)
Record test := Test { reads : attr; among : N }.

(** One of some tests holds: of the CPU and the site that act, of every CPU, of every site, of some CPU,
    of some CPU that is at the site. *)
Inductive cond := Own (l : list test) | EveryCpu (l : list test) | EverySite (l : list test) | SomeCpu (l : list test)
  | SomeHere (l : list test).

(** A value; a window with a text more; a window of the text that is there; what a CPU does without its promise. *)
Inductive change := Become (x : N) | Push (t : nat) | Fresh | Older.

(** An effect on the CPU that acts or on each, of the site or of each, where all tests hold of them. Older
    is about the CPUs that are at the site. *)
Record update := Update { what : attr; how : change; each_cpu : bool; each_site : bool; provided : list test }.

(** A step that changes something, or breaks a property. [at_site]: the CPU that makes it is then at the site. *)
Record step := Step { breaks : bool; at_site : bool; when : list cond; effects : list update }.

Record table := Table {
  views : list (list N);
  steps : list step;
  first : list N; (* all at the beginning, but for what CPUs do: *)
  idle : list N;
  about : N; (* what CPUs do that is about their site *)
  elsewhere : list N; (* what a CPU looks like from sites that it is not at, by what it does *)
  older : list N; (* what it does without its promise *)
  push : list (list N); (* by the text: windows by windows *)
  just : list N (* by the text: the window that has nothing else *)
}.

Definition holds (f : attr -> N) (t : test) := N.testbit (among t) (f (reads t)).
Definition entry_of (l : list N) (x : N) := nth (N.to_nat x) l 0.

(** Whether an update is about a CPU and a site: the acting CPU or not, the acting site or not, and whether
    the CPU is at the acting site. *)
Definition reaches (mine here there : bool) (u : update) :=
  match how u with
  | Older => there
  | _ => (each_cpu u || mine || negb (per_cpu (what u))) && (each_site u || here || negb (per_site (what u)))
  end.

Definition changed (T : table) (f : attr -> N) (h : change) (old : N) :=
  match h with
  | Become x => x
  | Push t => entry_of (nth t (push T) []) old
  | Fresh => entry_of (just T) (f text)
  | Older => entry_of (older T) old
  end.

(** An attribute behind a step, from what everything was before it. *)
Definition new (T : table) (mine here there : bool) (f : attr -> N) (us : list update) (a : attr) : N :=
  fold_left (fun x u => if attr_beq (what u) a && (reaches mine here there u && forallb (holds f) (provided u))
    then changed T f (how u) (f a) else x) us (f a).

(** * The machine *)

Definition is {A} (eq : forall x y : A, {x = y} + {x <> y}) x y := if eq x y then true else false.

Section Machine.
  Variable T : table.
  Variables Cpu Site : Type.
  Variable same_cpu : forall x y : Cpu, {x = y} + {x <> y}.
  Variable same_site : forall x y : Site, {x = y} + {x <> y}.

  Record state := State {
    of_patcher : attr -> N;
    of_site : Site -> attr -> N;
    of_cpu : Cpu -> attr -> N;
    of_pair : Cpu -> Site -> attr -> N;
    at_ : Cpu -> Site (* a CPU that is between two calls may be at any *)
  }.

  (** What a CPU and a site have in a state, while some sites are chosen. *)
  Definition value (st : state) (ch : Site -> bool) (c : Cpu) (s : Site) (a : attr) : N :=
    match a with
    | chosen => if ch s then 1 else 0
    | _ => match per_cpu a, per_site a with
           | false, false => of_patcher st a
           | false, true => of_site st s a
           | true, false => of_cpu st c a
           | true, true => of_pair st c s a
           end
    end.

  Definition meets st ch c0 s0 (k : cond) : Prop :=
    match k with
    | Own l => existsb (holds (value st ch c0 s0)) l = true
    | EveryCpu l => forall c, existsb (holds (value st ch c s0)) l = true
    | EverySite l => forall s, existsb (holds (value st ch c0 s)) l = true
    | SomeCpu l => exists c, existsb (holds (value st ch c s0)) l = true
    | SomeHere l => exists c, at_ st c = s0 /\ existsb (holds (value st ch c s0)) l = true
    end.

  (** A CPU and a site can make a step. A CPU that is in the middle of something goes on at its site. *)
  Definition can st ch c0 s0 (b : step) : Prop :=
    (at_site b = true -> N.testbit (about T) (of_cpu st c0 does) = true -> at_ st c0 = s0) /\
    forall k, In k (when b) -> meets st ch c0 s0 k.

  Definition after st ch c0 s0 (b : step) : state :=
    let new c s :=
      new T (is same_cpu c c0) (is same_site s s0) (is same_site (at_ st c) s0) (value st ch c s) (effects b) in
    State (new c0 s0) (fun s => new c0 s) (fun c => new c s0) new
      (fun c => if at_site b && is same_cpu c c0 then s0 else at_ st c).

  Definition begins st : Prop :=
    (forall c s a, a <> does -> value st (fun _ => false) c s a = get (first T) a) /\
    (forall c, In (of_cpu st c does) (idle T)).

  Inductive reachable : state -> Prop :=
  | Begin : forall st, begins st -> reachable st
  | Next : forall st ch c0 s0 b, reachable st -> In b (steps T) -> breaks b = false -> can st ch c0 s0 b ->
      reachable (after st ch c0 s0 b).
End Machine.
