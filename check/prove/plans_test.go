// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sim/axis"
)

// guarded writes a site before the word that guards it, which its literal is. lazyStop
// leaves CPUs in user space out, and has them wait when they come in.
const (
	guarded = `name: guarded
batching: whole
every batch:
    for each patch
        Write word
        Fence
        Write literal
        Fence
    end
    Sync 1
site:
    await guard
    sync
    fetch site
    load literal
    call
`
	lazyStop = `name: lazy-stop
batching: whole
once before:
    StopMachine lazy
every batch:
    Write word
once after:
    Resume
entry:
    enter
    await resume
    catch up
`
)

// TestStatedPaths: code behind a guard, and CPUs that stop_machine leaves out, are proved,
// with certificates that solvers accept and that the explorer's machines go through; of
// what breaks them both ways say the same.
func TestStatedPaths(t *testing.T) {
	for _, c := range []struct{ arch, text, without string }{
		{"arm64", guarded, ""}, {"x86_64", lazyStop, "    await resume\n"},
	} {
		p, err := poke.ParseProtocol("stated.plan", []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		s := setup(t, c.arch, poke.Native, "")
		s.Protocol = p
		proof := closed(t, s)
		if !proof.Closed() {
			t.Fatalf("%s: %s", p.Name, proof.Why())
		}
		follow(t, s, proof)
		broken := 0
		for _, q := range questions(t, c.arch, c.text, "all") {
			if q.Mutation != "" && !agree(t, q) {
				broken++
			}
		}
		if broken == 0 {
			t.Errorf("%s: no mutation breaks it", p.Name)
		}
		if c.without == "" {
			continue
		}
		q := questions(t, c.arch, strings.Replace(c.text, c.without, "", 1), "none")[0]
		if r, err := Ask(context.Background(), q, nil, explore.Options{}); err != nil || r.Verdict != Refuted {
			t.Errorf("%s without %q: %v, error %v", p.Name, c.without, r, err)
		}
	}
}

// follow holds machines against a certificate, and with -long the certificate against
// solvers.
func follow(t *testing.T, s *explore.Setup, proof *Proof) {
	t.Helper()
	sizes := []size{{2, 1}}
	if *long {
		sizes = append(sizes, size{2, 2}, size{3, 1})
		for _, name := range []string{"z3", "cvc5"} {
			n, open, err := proof.Certify(context.Background(), solver(t, name))
			if err != nil || len(open) > 0 || n < 20 {
				t.Errorf("%s, %s: %d obligations, open %v, error %v", s.Protocol.Name, name, n, open, err)
			}
		}
	}
	for _, size := range sizes {
		sim, err := simulate(context.Background(), proof.closure, small(t, s, size), 1_000_000)
		if err != nil {
			t.Fatalf("%s, %v: %v", s.Protocol.Name, size, err)
		}
		t.Logf("%s, %v: %d states, %d steps, %d of %d views", s.Protocol.Name, size, len(sim.states), sim.steps, len(sim.met),
			proof.Views())
	}
}

// questions are the questions about a plan file with such mutations.
func questions(t *testing.T, arch, text, mutate string) []*check.Question {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stated.plan")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	choices := axis.Choices{"arch": {arch}, "plan": {file}}
	if mutate == "all" {
		choices["mutate"] = []string{mutate}
	}
	list, _, err := check.Questions(choices)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestWhereSitesLie: a plan that is safe with sites that cross a border of quadwords behind
// their fourth byte, and with no others, is not proved. Weak fetches break it anywhere.
func TestWhereSitesLie(t *testing.T) {
	p, err := poke.ParseProtocol("quad.plan", []byte(`name: quad
batching: buffered
every batch:
    Publish
    Write breakpoint
    Sync 1
    Write bytes 4-4
    Sync 2
    Write bytes 0-3
    Sync 3
    Unpublish
    WaitHandlers
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, fetch := range []cpus.Fetch{cpus.Quadword, cpus.Atomic, cpus.Coherent} {
		s := setup(t, "x86_64", "native", "")
		s.Protocol, s.Fetch = p, fetch
		if usual, err := closeWith(t.Context(), s); err != nil || !usual.Closed() {
			t.Errorf("%s: at 4 mod 8: %v, %v", fetch, usual.Why(), err)
		}
		proof, err := Close(t.Context(), s)
		if err != nil || proof.Closed() || !strings.HasPrefix(proof.Why(), "where all sites lie at 5 mod 8: torn-fetch") {
			t.Errorf("%s: %q, %v", fetch, proof.Why(), err)
		}
		for i, name := range explore.OffsetNames() { // asked for one by one
			s.Offset = explore.Offset(i + 1)
			proof, err := Close(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			r, err := explore.Explore(t.Context(), small(t, s, size{2, 1}), explore.Options{Workers: 1})
			if err != nil || proof.Closed() != (r.Verdict == explore.Safe) || name == "4" && !proof.Closed() {
				t.Errorf("%s at %s mod 8: %q; the explorer says %s, %v", fetch, name, proof.Why(), r.Verdict, err)
			}
		}
	}
}

// TestWhereItFails: the search for a machine that breaks lays sites out where the proof fails,
// and a verdict names the place that it is about.
func TestWhereItFails(t *testing.T) {
	for place, want := range map[string]Verdict{"2": Refuted, "4": Proved} {
		list, _, err := check.Questions(axis.Choices{"arch": {"riscv64"}, "layout": {"plain"}, "protocol": {"word"},
			"place": {place}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := Ask(t.Context(), list[0], nil, explore.Options{Workers: 1})
		if err != nil || r.Verdict != want || !strings.Contains(r.Assumes(), "sites at "+place+" mod 8") {
			t.Errorf("at %s: %s, %q, %v; want %s", place, r.Verdict, r.Assumes(), err, want)
		}
		if r.Found != nil && r.Found.Offset.String() != place {
			t.Errorf("found at %q, want %s", r.Found.Offset, place)
		}
	}
}
