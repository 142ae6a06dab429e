(* SPDX-License-Identifier: Apache-2.0 *)

(** What is computed of a table, and why that is enough for machines of any CPUs and sites. *)

From Coq Require Import NArith List Bool FMapPositive.
Import ListNotations.
Require Import Machine.
Open Scope N_scope.

(** What a CPU and a site show: where the CPU is not at the site, what it looks like from there. *)
Definition look (T : table) (at_ : bool) (f : attr -> N) : list N :=
  map (fun a => match a with does => if at_ then f does else entry_of (elsewhere T) (f does) | _ => f a end) all.

(** * What is computed *)

(** Views by a number of each, so that one is found at once. Two views of one number would only lose one. *)
Fixpoint digits (x p : positive) : positive :=
  match x with xH => p~0 | x~0 => (digits x p)~1~0 | x~1 => (digits x p)~1~1 end%positive.
Definition key (v : list N) : positive := fold_left (fun p x => digits (N.succ_pos x) p) v 1%positive.
Definition index_of (l : list (list N)) : PositiveMap.t (list N) :=
  fold_left (fun m v => PositiveMap.add (key v) v m) l (PositiveMap.empty _).
Fixpoint same_list (v w : list N) : bool :=
  match v, w with [], [] => true | x :: v, y :: w => if x =? y then same_list v w else false | _, _ => false end.
Definition inside (ix : PositiveMap.t (list N)) (v : list N) : bool :=
  match PositiveMap.find (key v) ix with Some w => same_list v w | None => false end.

(** Views by the patcher that they have. *)
Definition patcher (f : attr -> N) : positive := key (map f [place; ops; published; reference]).
Definition beside (m : PositiveMap.t (list (list N))) (p : positive) : list (list N) :=
  match PositiveMap.find p m with Some l => l | None => [] end.
Definition crowds (l : list (list N)) : PositiveMap.t (list (list N)) :=
  fold_left (fun m v => let p := patcher (get v) in PositiveMap.add p (v :: beside m p) m) l (PositiveMap.empty _).

(** All that a CPU and a site can have if they show a view, and whether the CPU is at the site: what it does it
    shows to its own site. *)
Definition doing (T : table) : list N := nodup N.eq_dec (map (fun v => get v does) (views T)).
Definition behind (T : table) (ds : list N) (v : list N) : list (bool * (attr -> N)) :=
  (true, get v) ::
  map (fun d => (false, fun a => match a with does => d | _ => get v a end))
    (filter (fun d => entry_of (elsewhere T) d =? get v does) ds).
Definition choosing (k : bool) (f : attr -> N) (a : attr) : N :=
  match a with chosen => if k then 1 else 0 | _ => f a end.

Definition both := [true; false].
Definition concerns (mine here : bool) (t : test) :=
  (mine || negb (per_cpu (reads t))) && (here || negb (per_site (reads t))).

(** Whether two sites are in the same state. *)
Definition of_sites := [text; literal; role; done; enabled; settled; entry; waiting].
Definition same_site_of (f g : attr -> N) : bool := forallb (fun a => f a =? g a) of_sites.

(** Whether a condition may hold, by what one CPU and one site have. *)
Definition may (crowd : PositiveMap.t (list (list N))) (mine here : bool) (f : attr -> N) (k : cond) : bool :=
  match k with
  | Own l => if forallb (concerns mine here) l then existsb (holds f) l else true
  | EveryCpu l => if forallb (concerns true false) l then existsb (holds f) l else true
  | EverySite l => if forallb (concerns false true) l then existsb (holds f) l else true
  | SomeCpu l => if forallb (concerns true false) l then
      existsb (fun w => existsb (holds (get w)) l) (beside crowd (patcher f))
      else true
  | SomeHere l => if forallb (concerns true false) l then
      existsb (fun w => existsb (holds (get w)) l && (negb here || same_site_of f (get w))) (beside crowd (patcher f))
      else true
  end.

Definition touches (b : step) (mine here : bool) : bool :=
  (at_site b && mine) || existsb (fun u => reaches mine here true u) (effects b).

Definition leads_inside (T : table) ix crowd (b : step) (mine here there k at_ : bool) (raw : attr -> N) : bool :=
  let f := choosing k raw in
  if (if breaks b then mine && here else touches b mine here) then
    if (if here then eqb at_ there else negb (at_ && there)) then
      if (if at_site b && mine && N.testbit (about T) (f does) then there else true) then
        if forallb (may crowd mine here f) (when b) then
          if breaks b then false else
            let f' := new T mine here there f (effects b) in
            inside ix (look T (if at_site b && mine then here else at_) f')
        else true
      else true
    else true
  else true.

(** What can be told at once, of the patcher, and of the acting CPU where it is that one. *)
Definition early (mine : bool) (f : attr -> N) (k : cond) : bool :=
  match k with Own l => if forallb (concerns mine false) l then existsb (holds f) l else true | _ => true end.

(** Effects that are about CPUs go by what CPUs have, and those about sites by what sites have. *)
Definition proper (u : update) : bool :=
  negb (attr_beq (what u) chosen) &&
  forallb (fun t => implb (per_cpu (reads t)) (per_cpu (what u)) && implb (per_site (reads t)) (per_site (what u)))
    (provided u) &&
  match how u with Become _ => true | Older => attr_beq (what u) does | _ => attr_beq (what u) window end.

(** A step asks of few things whether a site is chosen, or where a CPU is: elsewhere one answer stands for both. *)
Definition tests (k : cond) := match k with Own l | EveryCpu l | EverySite l | SomeCpu l | SomeHere l => l end.
Definition plain (t : test) := negb (attr_beq (reads t) chosen).
Definition choices (b : step) : list bool :=
  if forallb plain (flat_map tests (when b)) && forallb (fun u => forallb plain (provided u)) (effects b)
  then [false] else both.
Definition stays (u : update) := match how u with Older => false | _ => true end.
Definition places (b : step) (here at_ : bool) : list bool :=
  if forallb stays (effects b) then [eqb here at_] else both.

Definition check (T : table) : bool :=
  let ix := index_of (views T) in
  let crowd := crowds (views T) in
  let ds := doing T in
  forallb (fun b => forallb proper (effects b)) (steps T) &&
  forallb (fun d => forallb (fun at_ =>
    inside ix (look T at_ (fun a => match a with does => d | _ => get (first T) a end))) both) (idle T) &&
  forallb (fun v =>
    let near := filter (fun b => forallb (early false (get v)) (when b)) (steps T) in
    forallb (fun r => forallb (fun b => forallb (fun mine =>
      if forallb (early mine (snd r)) (when b) then
        if (if breaks b then mine else touches b mine true) then
          forallb (fun here => forallb (fun there => forallb (fun k =>
            leads_inside T ix crowd b mine here there k (fst r) (snd r)) (choices b)) (places b here (fst r))) both
        else true
      else true) both) near) (behind T ds v)) (views T).

(** * Why that is enough *)

Lemma attr_beq_true : forall a b, attr_beq a b = true -> a = b.
Proof. exact internal_attr_dec_bl. Qed.

Lemma same_list_true : forall v w, same_list v w = true -> v = w.
Proof.
  induction v; destruct w; simpl; try discriminate; auto.
  destruct (N.eqb_spec a n); try discriminate. intros. f_equal; auto.
Qed.

Lemma indexed : forall V l m, (forall k w, PositiveMap.find k m = Some w -> In w V) -> (forall v, In v l -> In v V) ->
  forall k w, PositiveMap.find k (fold_left (fun m v => PositiveMap.add (key v) v m) l m) = Some w -> In w V.
Proof.
  induction l; simpl; intros m Hm Hl; auto.
  apply IHl; auto. intros k w. destruct (Pos.eq_dec k (key a)).
  - subst. rewrite PositiveMap.gss. intros E; inversion E; subst; auto.
  - rewrite PositiveMap.gso by auto. apply Hm.
Qed.

Lemma inside_In : forall l v, inside (index_of l) v = true -> In v l.
Proof.
  intros l v. unfold inside. destruct (PositiveMap.find (key v) (index_of l)) eqn:E; try discriminate.
  intros S. apply same_list_true in S. subst. revert E. apply indexed; auto.
  intros k w. rewrite PositiveMap.gempty. discriminate.
Qed.

Lemma crowded : forall V v, In v V -> In v (beside (crowds V) (patcher (get v))).
Proof.
  intros V v. unfold crowds. generalize (PositiveMap.empty (list (list N))).
  assert (K : forall l m, In v (beside m (patcher (get v))) -> In v (beside (fold_left (fun m v =>
      let p := patcher (get v) in PositiveMap.add p (v :: beside m p) m) l m) (patcher (get v)))).
  { induction l as [|w l IH]; intros m H; [exact H|]. apply IH. cbv zeta. unfold beside at 1.
    destruct (Pos.eq_dec (patcher (get v)) (patcher (get w))) as [E|E].
    - rewrite E, PositiveMap.gss. right. rewrite <- E. exact H.
    - rewrite PositiveMap.gso by exact E. exact H. }
  induction V as [|w V IH]; intros m H; [destruct H|destruct H as [->|H]].
  - cbn [fold_left]. apply K. unfold beside. rewrite PositiveMap.gss. left. reflexivity.
  - cbn [fold_left]. apply IH. exact H.
Qed.

Lemma holds_ext : forall f g l, (forall t, In t l -> f (reads t) = g (reads t)) ->
  existsb (holds f) l = existsb (holds g) l.
Proof.
  induction l; simpl; intros H; auto. rewrite IHl by auto. unfold holds at 1 3. rewrite H by auto. reflexivity.
Qed.

Lemma all_hold_ext : forall f g l, (forall t, In t l -> f (reads t) = g (reads t)) ->
  forallb (holds f) l = forallb (holds g) l.
Proof.
  induction l; simpl; intros H; auto. rewrite IHl by auto. unfold holds at 1 3. rewrite H by auto. reflexivity.
Qed.

(** What a step makes of an attribute goes by no more than what that attribute is about. *)
Lemma new_ext : forall T m h t m' h' t' f g us a,
  forallb proper us = true -> a <> chosen ->
  (per_cpu a = true -> m = m' /\ t = t') -> (per_site a = true -> h = h') ->
  (forall x, implb (per_cpu x) (per_cpu a) && implb (per_site x) (per_site a) = true -> f x = g x) ->
  new T m h t f us a = new T m' h' t' g us a.
Proof.
  intros T m h t m' h' t' f g us a P Ha Hm Hh Hf. unfold new.
  assert (Ea : f a = g a) by (apply Hf; destruct (per_cpu a), (per_site a); reflexivity).
  rewrite Ea. generalize (g a) at 2 4. induction us as [|u us IH]; intros n; [reflexivity|].
  cbn [fold_left forallb] in *. apply andb_prop in P as [Pu P].
  assert (E : (if attr_beq (what u) a && (reaches m h t u && forallb (holds f) (provided u))
      then changed T f (how u) (g a) else n)
            = (if attr_beq (what u) a && (reaches m' h' t' u && forallb (holds g) (provided u))
      then changed T g (how u) (g a) else n)).
  { destruct (attr_beq (what u) a) eqn:W; [|reflexivity]. apply attr_beq_true in W. subst a.
    unfold proper in Pu. apply andb_prop in Pu as [Pu Ph]. apply andb_prop in Pu as [_ Pp].
    rewrite forallb_forall in Pp. cbn [andb].
    rewrite (all_hold_ext f g) by (intros; apply Hf; apply Pp; assumption).
    assert (R : reaches m h t u = reaches m' h' t' u).
    { unfold reaches. destruct (how u);
      try (apply attr_beq_true in Ph; rewrite Ph in Hm; destruct (Hm eq_refl); assumption);
      destruct (per_cpu (what u)); try (destruct (Hm eq_refl) as [<- _]);
      destruct (per_site (what u)); try (rewrite (Hh eq_refl)); rewrite ?orb_true_r; reflexivity. }
    rewrite R. destruct (reaches m' h' t' u && forallb (holds g) (provided u)); [|reflexivity].
    destruct (how u); simpl; try reflexivity. apply attr_beq_true in Ph.
    rewrite (Hf text); [reflexivity|]. rewrite Ph. reflexivity. }
  rewrite E. apply IH; assumption.
Qed.

Lemma touches_false : forall T b m h t f a, touches b m h = false -> new T m h t f (effects b) a = f a.
Proof.
  intros T b m h t f a H. unfold touches in H. apply orb_false_elim in H as [_ H]. unfold new.
  generalize (f a) at 2 3. induction (effects b) as [|u us IH]; intros n; [reflexivity|].
  cbn [existsb fold_left] in *. apply orb_false_elim in H as [Hu H].
  assert (R : reaches m h t u = false).
  { revert Hu. unfold reaches. destruct (how u); auto. discriminate. }
  rewrite R, andb_false_r. apply IH. exact H.
Qed.

Lemma new_same : forall T m h t f g us a, (forall x, f x = g x) -> new T m h t f us a = new T m h t g us a.
Proof.
  intros T m h t f g us a E. unfold new. rewrite E. generalize (g a) at 2 4.
  induction us as [|u us IH]; intros n; [reflexivity|]. cbn [fold_left].
  rewrite (all_hold_ext f g (provided u) (fun t _ => E (reads t))).
  assert (C : forall y, changed T f (how u) y = changed T g (how u) y)
    by (intros y; unfold changed; destruct (how u); auto; now rewrite E).
  rewrite C. apply IH.
Qed.

Lemma in_both : forall b, In b both.
Proof. intros []; simpl; auto. Qed.

Lemma look_ext : forall T at1 f g, (forall a, a <> chosen -> f a = g a) -> look T at1 f = look T at1 g.
Proof.
  intros T at1 f g H. unfold look. apply map_ext_in. intros a Ha. rewrite <- (H does) by discriminate.
  assert (a <> chosen) by (intros ->; simpl in Ha; intuition discriminate).
  destruct a; auto.
Qed.

Lemma choices_are : forall b, choices b = [false] \/ choices b = both.
Proof. intros b. unfold choices. destruct (_ && _); auto. Qed.

Lemma plain_tests : forall k raw l, forallb plain l = true -> forall t, In t l ->
  choosing k raw (reads t) = choosing false raw (reads t).
Proof.
  intros k raw l P t Ht. rewrite forallb_forall in P. specialize (P t Ht). unfold plain in P.
  destruct (reads t); try reflexivity; discriminate.
Qed.

(** Whether a site is chosen makes no difference to a step that does not ask. *)
Lemma unasked : forall T ix crowd b mine here there k at_ raw, choices b = [false] ->
  leads_inside T ix crowd b mine here there k at_ raw = leads_inside T ix crowd b mine here there false at_ raw.
Proof.
  intros T ix crowd b mine here there k at1 raw H. unfold choices in H. destruct (_ && _) eqn:P in H; [|discriminate].
  apply andb_prop in P as [Pw Pe]. rewrite forallb_forall in Pe.
  assert (M : forallb (may crowd mine here (choosing k raw)) (when b) =
              forallb (may crowd mine here (choosing false raw)) (when b)).
  { induction (when b) as [|c cs IH]; [reflexivity|]. cbn [flat_map forallb] in *. rewrite forallb_app in Pw.
    apply andb_prop in Pw as [Pc Pw]. rewrite IH by assumption. f_equal.
    assert (E : existsb (holds (choosing k raw)) (tests c) = existsb (holds (choosing false raw)) (tests c))
      by (apply holds_ext, plain_tests; assumption).
    destruct c; cbn [tests may] in *; rewrite ?E; reflexivity. }
  unfold leads_inside. cbv zeta. rewrite M. change (choosing k raw does) with (choosing false raw does).
  erewrite (look_ext T _ (new T mine here there (choosing k raw) (effects b))); [reflexivity|].
  intros a Ha. unfold new. assert (E : choosing k raw a = choosing false raw a) by (destruct a; auto; contradiction).
  rewrite E. generalize (choosing false raw a) at 2 4.
  induction (effects b) as [|u us IH]; intros n; [reflexivity|]. cbn [fold_left].
  rewrite (all_hold_ext _ (choosing false raw) (provided u)) by (apply plain_tests, Pe; left; reflexivity).
  change (changed T (choosing k raw) (how u)) with (changed T (choosing false raw) (how u)).
  apply IH. intros v Hv. apply Pe. right. exact Hv.
Qed.

(** Where the acting CPU is makes no difference to a step that takes no promise back, but that some cannot be. *)
Lemma anywhere : forall T ix crowd b mine here there k at_ raw, forallb stays (effects b) = true ->
  leads_inside T ix crowd b mine here (eqb here at_) k at_ raw = true ->
  leads_inside T ix crowd b mine here there k at_ raw = true.
Proof.
  intros T ix crowd b mine here there k at1 raw P. unfold leads_inside. cbv zeta.
  assert (E : forall a, new T mine here (eqb here at1) (choosing k raw) (effects b) a =
                        new T mine here there (choosing k raw) (effects b) a).
  { intros a. unfold new. generalize (choosing k raw a) at 2 4.
    induction (effects b) as [|u us IH]; intros n; [reflexivity|]. cbn [forallb fold_left] in *.
    apply andb_prop in P as [Pu P]. replace (reaches mine here (eqb here at1) u) with (reaches mine here there u);
      [now apply IH|]. unfold reaches, stays in *. destruct (how u); try reflexivity. discriminate. }
  erewrite (look_ext T _ (new T mine here (eqb here at1) (choosing k raw) (effects b))) by (intros; apply E).
  destruct (at_site b && mine && N.testbit (about T) (choosing k raw does)), here, there, at1; cbn [eqb negb andb];
    auto; destruct (if breaks b then _ else _); auto.
Qed.

Section Safe.
  Variable T : table.
  Variables Cpu Site : Type.
  Variable same_cpu : forall x y : Cpu, {x = y} + {x <> y}.
  Variable same_site : forall x y : Site, {x = y} + {x <> y}.
  Hypothesis checked : check T = true.

  Notation state := (state Cpu Site).
  Notation value := (value Cpu Site).
  Notation after := (after T Cpu Site same_cpu same_site).
  Notation can := (can T Cpu Site).
  Notation at_ := (at_ Cpu Site).

  Definition none (_ : Site) := false.

  (** What a CPU and a site show is a view. *)
  Definition shown (st : state) : Prop := forall c s,
    In (look T (is same_site (at_ st c) s) (value st none c s)) (views T).

  Lemma chosen_only : forall st ch c s a, a <> chosen -> value st ch c s a = value st none c s a.
  Proof. intros st ch c s a H. destruct a; try reflexivity. contradiction. Qed.

  Lemma value_site : forall st ch c s s' a, per_site a = false -> value st ch c s a = value st ch c s' a.
  Proof. intros st ch c s s' a H. destruct a; try discriminate H; reflexivity. Qed.

  Lemma value_cpu : forall st ch c c' s a, per_cpu a = false -> value st ch c s a = value st ch c' s a.
  Proof. intros st ch c c' s a H. destruct a; try discriminate H; reflexivity. Qed.

  Lemma get_look : forall at1 f a, a <> chosen -> a <> does -> get (look T at1 f) a = f a.
  Proof. intros at1 f a H H'. destruct a; try reflexivity; contradiction. Qed.

  (** Whatever a CPU and a site have is behind some view. *)
  Lemma cover : forall st, shown st -> forall ch c s, exists v r,
    In v (views T) /\ In r (behind T (doing T) v) /\ fst r = is same_site (at_ st c) s /\
    forall a, choosing (ch s) (snd r) a = value st ch c s a.
  Proof.
    intros st H ch c s. pose proof (H c s) as Hv.
    set (v := look T (is same_site (at_ st c) s) (value st none c s)) in *. exists v.
    destruct (is same_site (at_ st c) s) eqn:E.
    - exists (true, get v). repeat split; auto. { left; reflexivity. } intros a; destruct a; reflexivity.
    - exists (false, fun a => match a with does => value st none c s does | _ => get v a end). repeat split; auto.
      + right. apply in_map_iff. eexists. split; [reflexivity|]. apply filter_In. split; [|apply N.eqb_refl].
        unfold doing. apply nodup_In, in_map_iff. exists (look T true (value st none c (at_ st c))).
        split; [reflexivity|]. pose proof (H c (at_ st c)) as Ho. unfold is in Ho.
        destruct (same_site _ _) in Ho; [exact Ho|contradiction].
      + intros a; destruct a; reflexivity.
  Qed.

  Lemma parts : forallb (fun b => forallb proper (effects b)) (steps T) = true /\
    forallb (fun d => forallb (fun at_ =>
      inside (index_of (views T)) (look T at_ (fun a => match a with does => d | _ => get (first T) a end)))
        both) (idle T) = true /\
    forall v r b mine here there k, In v (views T) -> In r (behind T (doing T) v) -> In b (steps T) ->
      forallb (early false (get v)) (when b) = true -> forallb (early mine (snd r)) (when b) = true ->
      (if breaks b then mine else touches b mine true) = true ->
      leads_inside T (index_of (views T)) (crowds (views T)) b mine here there k (fst r) (snd r) = true.
  Proof.
    generalize checked. unfold check. cbv zeta. intros H. apply andb_prop in H as [H H3].
    apply andb_prop in H as [H1 H2].
    repeat split; auto. intros v r b mine here there k Hv Hr Hb E1 E2 E3. clear H1 H2.
    rewrite forallb_forall in H3. specialize (H3 v Hv). rewrite forallb_forall in H3. specialize (H3 r Hr).
    rewrite forallb_forall in H3. specialize (H3 b). rewrite filter_In in H3. specialize (H3 (conj Hb E1)).
    rewrite forallb_forall in H3. specialize (H3 mine (in_both _)). rewrite E2, E3 in H3.
    rewrite forallb_forall in H3. specialize (H3 here (in_both _)).
    assert (K : forall t, In t (places b here (fst r)) ->
      leads_inside T (index_of (views T)) (crowds (views T)) b mine here t k (fst r) (snd r) = true).
    { intros t Ht. rewrite forallb_forall in H3. specialize (H3 t Ht). rewrite forallb_forall in H3.
      destruct (choices_are b) as [C|C]; [rewrite unasked by exact C|]; apply H3; rewrite C;
        [left; reflexivity|apply in_both]. }
    unfold places in K. destruct (forallb stays (effects b)) eqn:S; [|apply K, in_both].
    apply anywhere; auto. apply K. left. reflexivity.
  Qed.

  (** What cannot be, told at once, cannot be. *)
  Lemma not_early : forall ix crowd b m mine here there k at1 g raw,
    (m = true -> mine = true) -> (forall a, (per_cpu a = true -> m = true) -> per_site a = false -> g a = raw a) ->
    forallb (early m g) (when b) = false -> leads_inside T ix crowd b mine here there k at1 raw = true.
  Proof.
    intros ix crowd b m mine here there k at1 g raw Hm Hg E. unfold leads_inside. cbv zeta.
    assert (M : forallb (may crowd mine here (choosing k raw)) (when b) = false).
    { destruct (forallb (may _ _ _ _) _) eqn:M; auto. rewrite <- E. symmetry. apply forallb_forall. intros x Hx.
      rewrite forallb_forall in M. specialize (M x Hx). destruct x as [l|l|l|l|l]; auto. unfold early. unfold may in M.
      destruct (forallb (concerns m false) l) eqn:C; auto. rewrite forallb_forall in C.
      assert (C' : forallb (concerns mine here) l = true).
      { apply forallb_forall. intros t Ht. specialize (C t Ht). unfold concerns in *. apply andb_prop in C as [C1 C2].
        simpl in C2. rewrite C2, orb_true_r, andb_true_r. destruct m; [rewrite Hm by reflexivity; reflexivity|].
        simpl in C1. rewrite C1. apply orb_true_r. }
      rewrite C' in M. rewrite <- M. apply holds_ext. intros t Ht. specialize (C t Ht). unfold concerns in C.
      apply andb_prop in C as [C1 C2]. simpl in C2. apply negb_true_iff in C2. rewrite Hg; auto.
      - destruct (reads t); try reflexivity; discriminate.
      - intros P. rewrite P in C1. destruct m; auto. }
    rewrite M. repeat match goal with |- context [if ?x then _ else true] => destruct x end; reflexivity.
  Qed.

  Lemma leads : forall v r b mine here there k, In v (views T) -> In r (behind T (doing T) v) -> In b (steps T) ->
    leads_inside T (index_of (views T)) (crowds (views T)) b mine here there k (fst r) (snd r) = true.
  Proof.
    intros v r b mine here there k Hv Hr Hb. destruct (forallb (early false (get v)) (when b)) eqn:E1.
    - destruct (forallb (early mine (snd r)) (when b)) eqn:E2; [|now apply not_early with mine (snd r)].
      destruct (if breaks b then mine else touches b mine true) eqn:E3; [destruct parts as [_ [_ H]]; eauto|].
      unfold leads_inside. destruct (breaks b); [now rewrite E3|].
      replace (touches b mine here) with false; auto. symmetry. unfold touches in *.
      apply orb_false_elim in E3 as [E4 E3]. rewrite E4. cbn [orb]. induction (effects b) as [|u us IH]; [reflexivity|].
      cbn [existsb] in *. apply orb_false_elim in E3 as [E3 E5]. rewrite (IH E5), orb_false_r.
      revert E3. unfold reaches. destruct (how u); auto; destruct here; auto;
        rewrite ?orb_true_r, ?andb_true_r; cbn [orb]; intros ->; reflexivity.
    - apply not_early with false (get v); auto; try discriminate. intros a Hc Hs.
      destruct Hr as [<-|Hr]; [reflexivity|]. apply in_map_iff in Hr as (d & <- & _). simpl.
      destruct a; try reflexivity. specialize (Hc eq_refl). discriminate.
  Qed.

  Lemma is_true : forall {A} (eq : forall x y : A, {x = y} + {x <> y}) x y, is eq x y = true -> x = y.
  Proof. unfold is. intros A eq x y. destruct (eq x y); auto; discriminate. Qed.

  Lemma is_refl : forall {A} (eq : forall x y : A, {x = y} + {x <> y}) x, is eq x x = true.
  Proof. unfold is. intros A eq x. destruct (eq x x); auto; contradiction. Qed.

  (** A condition that the acting CPU and site meet may hold, to each CPU and site. *)
  Lemma met : forall st, shown st -> forall ch c0 s0 c s k f, meets Cpu Site st ch c0 s0 k ->
    (forall a, f a = value st ch c s a) -> may (crowds (views T)) (is same_cpu c c0) (is same_site s s0) f k = true.
  Proof.
    intros st Hst ch c0 s0 c s k f Hk Hf. destruct k as [l|l|l|l|l]; cbn [meets] in Hk; unfold may; cbv beta.
    - destruct (forallb _ l) eqn:C; auto. refine (eq_trans _ Hk). apply holds_ext. intros t Ht. rewrite Hf.
      rewrite forallb_forall in C. specialize (C t Ht). unfold concerns in C. apply andb_prop in C as [Cc Cs].
      transitivity (value st ch c0 s (reads t)).
      + destruct (is same_cpu c c0) eqn:E; [apply is_true in E; subst; auto|]. apply value_cpu. now apply negb_true_iff.
      + destruct (is same_site s s0) eqn:E; [apply is_true in E; subst; auto|].
        apply value_site. now apply negb_true_iff.
    - destruct (forallb _ l) eqn:C; auto. refine (eq_trans _ (Hk c)). apply holds_ext. intros t Ht. rewrite Hf.
      rewrite forallb_forall in C. specialize (C t Ht). unfold concerns in C. apply andb_prop in C as [_ Cs].
      apply value_site. now apply negb_true_iff.
    - destruct (forallb _ l) eqn:C; auto. refine (eq_trans _ (Hk s)). apply holds_ext. intros t Ht. rewrite Hf.
      rewrite forallb_forall in C. specialize (C t Ht). unfold concerns in C. apply andb_prop in C as [Cc _].
      apply value_cpu. now apply negb_true_iff.
    - destruct (forallb (concerns true false) l) eqn:C; auto. destruct Hk as [c9 Hk].
      set (s9 := at_ st c9). set (w := look T true (value st none c9 s9)).
      assert (G : forall a, a <> chosen -> a <> does -> get w a = value st none c9 s9 a)
        by (intros a H1 H2; apply get_look; assumption).
      assert (Gd : get w does = value st none c9 s9 does) by reflexivity.
      apply existsb_exists. exists w. split.
      + replace (patcher f) with (patcher (get w)).
        * apply crowded. pose proof (Hst c9 s9) as H. unfold s9 in H. rewrite is_refl in H. exact H.
        * unfold patcher. f_equal. cbn [map]. rewrite !Hf. reflexivity.
      + refine (eq_trans _ Hk). apply holds_ext. intros t Ht. rewrite forallb_forall in C. specialize (C t Ht).
        unfold concerns in C. simpl in C. apply negb_true_iff in C.
        assert (reads t <> chosen) by (intros E; rewrite E in C; discriminate).
        rewrite (chosen_only st ch) by assumption. transitivity (value st none c9 s9 (reads t));
          [|apply value_site; assumption].
        destruct (attr_eq_dec (reads t) does) as [->|]; auto.
    - destruct (forallb (concerns true false) l) eqn:C; auto. destruct Hk as [c9 [Hat Hk]].
      set (w := look T true (value st none c9 s0)).
      assert (G : forall a, a <> chosen -> get w a = value st none c9 s0 a).
      { intros a H1. destruct (attr_eq_dec a does) as [->|]; [reflexivity|apply get_look; assumption]. }
      apply existsb_exists. exists w. split.
      + replace (patcher f) with (patcher (get w)).
        * apply crowded. pose proof (Hst c9 s0) as H. rewrite Hat, is_refl in H. exact H.
        * unfold patcher. f_equal. cbn [map]. rewrite !Hf. reflexivity.
      + apply andb_true_intro. split.
        * refine (eq_trans _ Hk). apply holds_ext. intros t Ht. rewrite forallb_forall in C. specialize (C t Ht).
          unfold concerns in C. simpl in C. apply negb_true_iff in C.
          assert (reads t <> chosen) by (intros E; rewrite E in C; discriminate).
          rewrite (chosen_only st ch) by assumption. apply G. assumption.
        * destruct (is same_site s s0) eqn:E; [|reflexivity]. apply is_true in E. subst s. cbn [negb orb].
          unfold same_site_of. apply forallb_forall. intros a Ha. apply N.eqb_eq. rewrite Hf.
          rewrite G by (intros ->; simpl in Ha; intuition discriminate). simpl in Ha.
          intuition (subst; reflexivity).
  Qed.

  (** What everything is behind a step is what the step makes of it there. *)
  Lemma value_after : forall st ch c0 s0 b c s a, In b (steps T) -> a <> chosen ->
    value (after st ch c0 s0 b) none c s a =
    new T (is same_cpu c c0) (is same_site s s0) (is same_site (at_ st c) s0) (value st ch c s) (effects b) a.
  Proof.
    intros st ch c0 s0 b c s a Hb Ha. destruct parts as [P _]. rewrite forallb_forall in P. specialize (P b Hb).
    assert (V : forall st', value st' none c s a = match per_cpu a, per_site a with
      | false, false => of_patcher _ _ st' a | false, true => of_site _ _ st' s a
      | true, false => of_cpu _ _ st' c a | true, true => of_pair _ _ st' c s a end)
      by (intros st'; destruct a; try reflexivity; contradiction).
    rewrite V. unfold Machine.after. cbn [of_patcher of_site of_cpu of_pair].
    destruct (per_cpu a) eqn:Ec, (per_site a) eqn:Es; try reflexivity; apply new_ext; auto; try congruence;
      intros x; rewrite Ec, Es; destruct (per_cpu x) eqn:Xc, (per_site x) eqn:Xs; try discriminate; intros _;
      rewrite ?(value_site st ch _ s0 s x Xs), ?(value_cpu st ch c0 c _ x Xc); auto;
      transitivity (value st ch c s0 x); auto using value_site, value_cpu.
  Qed.

  Lemma begin_shown : forall st, begins T Cpu Site st -> shown st.
  Proof.
    intros st [Hf Hi] c s. destruct parts as [_ [P _]]. rewrite forallb_forall in P. specialize (P _ (Hi c)).
    rewrite forallb_forall in P. erewrite look_ext; [apply inside_In; apply (P _ (in_both _))|].
    intros a Ha. destruct a; try reflexivity; apply Hf; discriminate.
  Qed.

  Lemma step_leads : forall st, shown st -> forall ch c0 s0 b, In b (steps T) -> can st ch c0 s0 b ->
    breaks b = false /\ shown (after st ch c0 s0 b).
  Proof.
    intros st Hst ch c0 s0 b Hb [Habout Hwhen].
    assert (L : forall c s, exists at1 raw, at1 = is same_site (at_ st c) s /\
      (forall a, choosing (ch s) raw a = value st ch c s a) /\
      leads_inside T (index_of (views T)) (crowds (views T)) b
        (is same_cpu c c0) (is same_site s s0) (is same_site (at_ st c) s0)
        (ch s) at1 raw = true).
    { intros c s. destruct (cover st Hst ch c s) as (v & r & Hv & Hr & Ha & Hf).
      exists (fst r), (snd r). repeat split; auto. now apply leads with v. }
    assert (M : forall c s f, (forall a, f a = value st ch c s a) ->
      forallb (may (crowds (views T)) (is same_cpu c c0) (is same_site s s0) f) (when b) = true).
    { intros c s f Hf. apply forallb_forall. intros k Hk. apply met with st ch; auto. }
    assert (A : forall c s, (if is same_site s s0 then eqb (is same_site (at_ st c) s) (is same_site (at_ st c) s0)
      else negb (is same_site (at_ st c) s && is same_site (at_ st c) s0)) = true).
    { intros c s. destruct (is same_site s s0) eqn:E.
      - apply is_true in E. subst. apply eqb_reflx.
      - destruct (is same_site (at_ st c) s) eqn:E1; auto. destruct (is same_site (at_ st c) s0) eqn:E2; auto.
        apply is_true in E1. apply is_true in E2. rewrite <- E1, E2, is_refl in E. discriminate. }
    assert (B : forall c s f, (forall a, f a = value st ch c s a) ->
      (if at_site b && is same_cpu c c0 && N.testbit (about T) (f does)
        then is same_site (at_ st c) s0 else true) = true).
    { intros c s f Hf. rewrite Hf. destruct (at_site b) eqn:E1; [|reflexivity].
      destruct (is same_cpu c c0) eqn:E2; [|reflexivity]. apply is_true in E2. subst c.
      destruct (N.testbit (about T) (value st ch c0 s does)) eqn:E3; [|reflexivity].
      cbn [andb]. rewrite (Habout eq_refl E3). apply is_refl. }
    assert (Q : breaks b = false).
    { destruct (breaks b) eqn:E; auto. destruct (L c0 s0) as (at1 & raw & -> & Hf & H). revert H.
      unfold leads_inside. cbv zeta. rewrite E, !is_refl. cbn [andb].
      specialize (A c0 s0). rewrite !is_refl in A. rewrite A.
      specialize (B c0 s0 _ Hf). rewrite !is_refl in B. rewrite B.
      specialize (M c0 s0 _ Hf). rewrite !is_refl in M. rewrite M. auto. }
    split; auto. intros c s. destruct (L c s) as (at1 & raw & -> & Hf & H).
    assert (W : forall a, a <> chosen -> value (after st ch c0 s0 b) none c s a =
      new T (is same_cpu c c0) (is same_site s s0) (is same_site (at_ st c) s0) (value st ch c s) (effects b) a)
      by (intros; now apply value_after).
    assert (At : is same_site (at_ (after st ch c0 s0 b) c) s =
      (if at_site b && is same_cpu c c0 then is same_site s s0 else is same_site (at_ st c) s)).
    { unfold Machine.after. simpl. destruct (at_site b && is same_cpu c c0); auto.
      unfold is. destruct (same_site s0 s), (same_site s s0); auto; congruence. }
    rewrite At. revert H. unfold leads_inside. cbv zeta. rewrite Q, (A c s), (B c s _ Hf), (M c s _ Hf).
    destruct (touches b _ _) eqn:Ht.
    - assert (F : forall a,
        new T (is same_cpu c c0) (is same_site s s0) (is same_site (at_ st c) s0) (choosing (ch s) raw) (effects b) a =
        new T (is same_cpu c c0) (is same_site s s0) (is same_site (at_ st c) s0) (value st ch c s) (effects b) a).
      { intros a. apply new_same. exact Hf. }
      intros H. erewrite look_ext; [apply inside_In; exact H|].
      intros a Ha. cbv beta. rewrite W, F by assumption. reflexivity.
    - intros _. pose proof (fun a => touches_false T b _ _ (is same_site (at_ st c) s0) (value st ch c s) a Ht) as N.
      assert (at_site b && is same_cpu c c0 = false) as ->.
      { unfold touches in Ht. now apply orb_false_elim in Ht. }
      erewrite look_ext; [exact (Hst c s)|].
      intros a Ha. cbv beta. rewrite W, N by assumption. apply chosen_only. assumption.
  Qed.

  Theorem safe : forall st, reachable T Cpu Site same_cpu same_site st ->
    forall b, In b (steps T) -> breaks b = true -> forall ch c0 s0, ~ can st ch c0 s0 b.
  Proof.
    intros st R b Hb Hbreaks ch c0 s0 Hcan. assert (S : shown st).
    { clear b Hb Hbreaks ch c0 s0 Hcan. induction R as [st H|st ch c0 s0 b R IH Hb Q Hc].
      - now apply begin_shown.
      - now apply step_leads. }
    destruct (step_leads st S ch c0 s0 b Hb Hcan). congruence.
  Qed.
End Safe.
