// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/kernels/gdb"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/records/fakekernel"
)

// TestReferences: where a kernel counts references, over the releases.
func TestReferences(t *testing.T) {
	for option, want := range map[string]struct {
		variable string
		references
	}{
		"-DLINUX_6_1":  {"bp_desc", references{12, 4, "bp_desc.refs"}}, // behind a pointer and an int
		"-DBEFORE_6_1": {"bp_desc", references{0, 8, "bp_desc"}},
		"-DSINCE_6_16": {"text_poke_array_refs", references{0, 4, "text_poke_array_refs"}},
	} {
		k := image.Of(fakekernel.Compile(t, "testdata/patchers.c", option))
		got, perCPU := referencesOf(k)
		at, ok := k.Addr(want.variable)
		if want.at += at; !ok || got != want.references || (perCPU != 0) != (option == "-DSINCE_6_16") {
			t.Errorf("%s: %+v, %#x, want %+v", option, got, perCPU, want)
		}
	}
}

// TestReferencesAreWatched: the word of references is watched as it is, or each CPU's of it; how it is found is
// told.
func TestReferencesAreWatched(t *testing.T) {
	const word, offsets = key, key + 0x100
	for name, c := range map[string]struct {
		symbols map[string]uint64
		points  []string
		refs    map[uint64]count
		note    string
	}{
		"none": {nil, nil, map[uint64]count{}, "no rule finds what publishes a batch: it is not recorded"},
		"one": {map[string]uint64{"bp_desc": word}, []string{fmt.Sprintf("Z2,%x,8", uint64(word))},
			map[uint64]count{word: {size: 8}},
			"publish bp_desc (bp_desc is there)"},
		"of each CPU": {map[string]uint64{"text_poke_array_refs": word, "__per_cpu_offset": offsets},
			[]string{fmt.Sprintf("Z2,%x,4", uint64(word+0x10)), fmt.Sprintf("Z2,%x,4", uint64(word+0x20))},
			map[uint64]count{word + 0x10: {4, 0, "0"}, word + 0x20: {4, 0, "1"}},
			"publish text_poke_array_refs (text_poke_array_refs is there)"},
		"without offsets": {map[string]uint64{"text_poke_array_refs": word}, nil, map[uint64]count{},
			"no rule finds what publishes a batch: it is not recorded"},
	} {
		x, m := recorderOf(t)
		for symbol, at := range c.symbols {
			x.kernel.Add(symbol, at)
		}
		m.put(offsets, 0x10, 0, 0, 0, 0, 0, 0, 0, 0x20)
		if err := x.watchReferences(0); err != nil {
			t.Fatal(err)
		}
		refs := map[uint64]count{}
		for at, c := range x.refs {
			refs[at] = *c
		}
		if !slices.Equal(m.done, c.points) || !maps.Equal(refs, c.refs) || !slices.Equal(x.Watched, []string{c.note}) {
			t.Errorf("%s: %q, %+v, %q", name, m.done, refs, x.Watched)
		}
		if m.refuses = "Z2"; c.points != nil && x.watchReferences(0) == nil {
			t.Errorf("%s: points are refused", name)
		}
	}
}

// TestReferencesAreCounted: a word that grows is a batch that is published, or a handler that takes it, and one that
// shrinks the opposite; one that stays is nothing; a word that is not watched is an error. Where two CPUs have stored at a
// time the instruction tells what one did; a handler that has to try again has taken its reference once, and one of which the
// server does not tell is found where it stands.
func TestReferencesAreCounted(t *testing.T) {
	x, m := recorderOf(t)
	const word = key
	x.refs = map[uint64]*count{word: {size: 4, name: "1"}}
	at := func(cpu int, pc, watched uint64) error {
		m.regs[cpu][2], m.regs[cpu][32] = map[int]uint64{0: oneTask, 1: anotherTask}[cpu], pc
		r, err := x.Registers(cpu)
		if err != nil {
			t.Fatal(err)
		}
		return x.stopped(gdb.Stop{CPU: cpu, Watched: watched}, r)
	}
	watch := func(cpu int, pc uint64, value byte) {
		t.Helper()
		m.put(word, value, 0, 0, 0, 9)
		if err := at(cpu, pc, word); err != nil {
			t.Fatal(err)
		}
	}
	const publishes, takes, gives, unpublishes = 1, 2, 3, 4
	handled := func() { x.returns[back] = []pending{{cpu: 1, kind: Leave, sp: anotherTask}} }
	watch(0, publishes, 1)
	watch(0, 5, 1)
	handled()
	watch(1, takes, 2)
	watch(1, gives, 1)
	handled()
	watch(1, takes, 1) // another one gave its reference
	watch(1, takes, 2) // and this was the second try
	watch(1, gives, 3)
	handled()
	m.regs[1][32] = takes // the server tells of the other one
	for range 2 {
		if err := at(0, site, 0); err != nil {
			t.Fatal(err)
		}
	}
	watch(1, gives, 3)
	watch(0, unpublishes, 0)
	watch(0, publishes, 0)
	want := []string{"CPU 0: publish 1", "CPU 1: take 1", "CPU 1: give 1", "CPU 1: take 1", "CPU 1: give 1",
		"CPU 1: take 1", "CPU 1: give 1", "CPU 0: unpublish 1", "CPU 0: publish 1"}
	if d := cmp.Diff(want, x.told()); d != "" {
		t.Error(d)
	}
	if err := at(0, publishes, word+4); err == nil ||
		err.Error() != fmt.Sprintf("the machine stopped for a store to %#x, which is not watched", uint64(word+4)) {
		t.Error(err)
	}
}
