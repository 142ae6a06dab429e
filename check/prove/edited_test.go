// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// edited are the breakpoint protocol's plan with one step left out, with two neighbours
// exchanged and with its first step moved; with -long also with any two exchanged, and any
// one moved anywhere.
func edited() map[string][]string {
	plan := []string{"Publish", "Write breakpoint", "Sync 1", "Write tail", "Sync 2", "Write head", "Sync 3",
		"Unpublish", "WaitHandlers"}
	all := map[string][]string{"as it is": plan}
	for i := range plan {
		all["without "+plan[i]] = slices.Delete(slices.Clone(plan), i, i+1)
		if strings.HasPrefix(plan[i], "Sync") {
			grace := slices.Clone(plan)
			grace[i] = "GracePeriod"
			all["a grace period for "+plan[i]] = grace
		}
		for k := range plan {
			if k > i && (*long || k == i+1) {
				swapped := slices.Clone(plan)
				swapped[i], swapped[k] = swapped[k], swapped[i]
				all[fmt.Sprintf("%s and %s exchanged", plan[i], plan[k])] = swapped
			}
			if rest := all["without "+plan[i]]; k != i && (*long || i == 0 && k > 1 && k < 5) {
				all[fmt.Sprintf("%s moved to %d", plan[i], k)] = slices.Insert(slices.Clone(rest), k, plan[i])
			}
		}
	}
	return all
}

// TestEditedPlans: what is proved of an edited plan no search finds unsafe, though it
// leaves nothing out, and what is not proved it does find: no false proof, no false alarm.
func TestEditedPlans(t *testing.T) {
	s := setup(t, "x86_64", "breakpoint", "")
	asked, proved := 0, 0
	for name, steps := range edited() {
		text := "name: edited\nbatching: whole\nevery batch:\n    " + strings.Join(steps, "\n    ") + "\n"
		p, err := poke.ParseProtocol("edited.plan", []byte(text))
		if err != nil {
			continue // nobody could carry it out
		}
		s.Protocol = p
		proof := closed(t, s)
		if proof.Condition != "" {
			continue
		}
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		r, err := explore.Explore(context.Background(), m, explore.Options{Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		asked++
		if proof.Closed() {
			proved++
		}
		if safe := r.Verdict == explore.Safe; safe != proof.Closed() {
			t.Errorf("%s: the search says %s, the proof lacks %q", name, r.Verdict, proof.Why())
		}
	}
	if asked < 6 || proved == 0 || proved == asked {
		t.Errorf("%d plans were compared, %d of them proved", asked, proved)
	}
}

// TestEveryRole: what is proved of busy CPUs is proved of CPUs that sleep, run in user
// space or have interrupts masked, beside them.
func TestEveryRole(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		m, err := newMachine(setup(t, arch, poke.Native, ""))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []cpus.Role{cpus.Idle, cpus.Isolated, cpus.IrqsOff} {
			m.roles = []cpus.Role{r}
			c, err := m.closeViews(context.Background())
			if err != nil || len(c.broken) > 0 {
				t.Errorf("%s, %s CPUs: %v, broken %v", arch, r, err, c.broken)
			}
			if m, err = newMachine(setup(t, arch, poke.Native, "")); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestWeakHasEveryFetch: what a fetch of any model can come to, a weak one can.
func TestWeakHasEveryFetch(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		weak, err := newMachine(setup(t, arch, "breakpoint", ""))
		if err != nil {
			t.Fatal(err)
		}
		for _, fetch := range cpus.Fetches() {
			s := setup(t, arch, "breakpoint", "")
			s.Fetch = fetch
			m, err := newMachine(s)
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for a := range m.texts.list {
				for b := range m.texts.list {
					for c := range m.texts.list {
						want, got := fetches(weak, a, b, c), fetches(m, a, b, c)
						for what := range got {
							if !want[what] {
								t.Fatalf("%s, fetch %s of %d, %d, %d: %s, which no weak fetch comes to", arch, fetch, a, b, c, what)
							}
						}
						maps.Copy(seen, got)
					}
				}
			}
			if len(seen) < 3 { // calls, traps, and neither
				t.Errorf("%s, fetch %s: only %v", arch, fetch, seen)
			}
		}
	}
}

// fetches are what a call can come to where three texts were stored, the first one first.
func fetches(m *machine, texts ...int) map[string]bool {
	v := m.first
	v[text], v[window] = number(texts[0]), m.onlyText(number(texts[0]))
	for _, x := range texts[1:] {
		v[window] = m.pushed(v[window], number(x))
		v[text] = number(x)
	}
	out := map[string]bool{"nothing": true}
	for _, b := range m.stepsOfCPU(m.cpu(cpus.CPU{}), &v) {
		what := string(b.broken)
		for _, u := range b.then {
			if u.attr == does {
				what += m.doing(u.to)
			}
		}
		out[what] = true
	}
	return out
}
