// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/cpus"
)

func parse(t testing.TB, name string, src []byte) *Protocol {
	t.Helper()
	p, err := ParseProtocol(name, src)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// shippedPlan is the shipped file of that name, read as a user's would be.
func shippedPlan(t testing.TB, name string) *Protocol {
	t.Helper()
	for _, sh := range ShippedPlans() {
		if sh.Name == name {
			return parse(t, name+".plan", sh.Text)
		}
	}
	t.Fatalf("no file %s.plan", name)
	return nil
}

func mutationsOf(p *Protocol, s Shape) (names []string) {
	for _, m := range p.Mutations(s) {
		names = append(names, m.Name)
	}
	return names
}

// TestShippedPlans: every embedded file is shipped under the name that it has itself, and
// what is native is what each architecture's kernel does.
func TestShippedPlans(t *testing.T) {
	entries, err := plans.ReadDir("protocols")
	if err != nil {
		t.Fatal(err)
	}
	var files, listed []string
	for _, e := range entries {
		files = append(files, strings.TrimSuffix(e.Name(), path.Ext(e.Name())))
	}
	for _, sh := range ShippedPlans() {
		listed = append(listed, sh.Name)
		if p := shipped()[sh.Name]; p.Name != sh.Name || p.File != "" || p.StatesPath() {
			t.Errorf("%s.plan has the name %q, the file %q, states a path %t", sh.Name, p.Name, p.File, p.StatesPath())
		}
	}
	slices.Sort(files)
	if !slices.Equal(files, listed) {
		t.Errorf("files %v, shipped %v", files, listed)
	}
	for arch, want := range map[string]string{"x86_64": "breakpoint", "arm64": "word", "riscv64": "word-rounds"} {
		a, _ := cpus.ParseArch(arch)
		if p := Named(Native, a.Traits()); p.Name != Native || p.Summary != shipped()[want].Summary {
			t.Errorf("%s: native is %q: %s; want what %s does", arch, p.Name, p.Summary, want)
		}
	}
	a, _ := cpus.ParseArch("riscv64")
	if p := Named(wordRounds, a.Traits()); p != nil {
		t.Errorf("%s can be asked for", wordRounds)
	}
}

// looped has loops in every section, two in one of them, and steps between.
const looped = `name: looped
batching: buffered
once before:
    Fence
    for each patch
        Write literal if literal
        Fence if stores-buffered
    end
every batch:
    for each patch
        Write word
    end
    Sync 1
    for each patch
        Write literal if literal
        Fence
    end
once after:
    for each patch
        Fence if stores-buffered
    end
    Sync 2 if not tail
`

// TestOutline: unrolled by hand, an outline is the plan that Compile makes, with and
// without each defect.
func TestOutline(t *testing.T) {
	protocols := []*Protocol{parse(t, "looped.plan", []byte(looped))}
	for _, sh := range ShippedPlans() {
		protocols = append(protocols, shipped()[sh.Name])
	}
	for _, arch := range cpus.ArchNames() {
		for _, p := range protocols {
			s := shapeOf(t, arch, p, 5, true)
			for _, m := range append(p.Mutations(s), Mutation{}) {
				var want, got []Step
				p.Unfold(s, cut(5, 3), m.Through(func(st Step) { want = append(want, st) }))
				o := p.Outline(s, m)
				all := Range{0, 5}
				byHand(o.Before, all, &got)
				for r := range cut(5, 3) {
					byHand(o.Batch, r, &got)
				}
				byHand(o.After, all, &got)
				byHand(o.Detach, all, &got)
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%s %s %s (-compiled +outline):\n%s", arch, p.Name, m.Name, d)
				}
			}
		}
	}
}

// byHand unrolls a section of an outline about a range of patches.
func byHand(section []Stretch, r Range, out *[]Step) {
	for _, x := range section {
		turns := []Range{r}
		if x.Each {
			turns = nil
			for i := r.From; i < r.To; i++ {
				turns = append(turns, Range{i, i + 1})
			}
		}
		for _, turn := range turns {
			for _, st := range x.Steps {
				if st.To > st.From {
					st.From, st.To = int32(turn.From), int32(turn.To)
				}
				*out = append(*out, st)
			}
		}
	}
}
