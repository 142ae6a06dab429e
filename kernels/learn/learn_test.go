// SPDX-License-Identifier: Apache-2.0

package learn

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/internal/golden"
	"github.com/textpoke/textpoke/kernels/conform"
	"github.com/textpoke/textpoke/kernels/record"
)

func recorded(t *testing.T, name string) *record.Recording {
	t.Helper()
	r, err := record.Open(filepath.Join("..", "record", "testdata", name+".recording.gz"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func has(notes []string, what string) bool {
	return slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, what) })
}

// TestLearned: what is learned of two kernels makes the steps of the protocols that are shipped for them, and the
// recordings conform to it.
func TestLearned(t *testing.T) {
	for name, protocol := range map[string]string{"x86_64-6.1-vfs": "breakpoint", "riscv64-7.2-vfs": "native",
		"riscv64-6.12-vfs": "stop-machine"} {
		r := recorded(t, name)
		l, err := Plan([]*record.Recording{r, r})
		if err != nil {
			t.Fatal(err)
		}
		if !has(l.Notes, "it makes the steps of "+protocol+", for batches of 1 to 3 sites") ||
			has(l.Notes, "does not conform") {
			t.Errorf("%s: %q", name, l.Notes)
		}
		if pair := strings.Contains(string(l.Text), "\nlayout:   pair\n"); pair != (protocol == "stop-machine") {
			t.Errorf("%s: its sites are pairs: %v", name, pair)
		}
		if got, err := conform.Check(r, l.Protocol); err != nil || got.Misfit != nil {
			t.Errorf("%s: %v, %v", name, err, got.Misfit)
		}
	}
}

// TestLearnsDefects: a kernel without the third round has a plan without it, and differs from the shipped one there.
func TestLearnsDefects(t *testing.T) {
	r := recorded(t, "x86_64-6.1-vfs")
	rounds := 0
	for i := 0; i < len(r.Steps); i++ {
		if r.Steps[i].Kind == record.Round {
			if rounds++; rounds%3 == 0 {
				end := i
				for r.Steps[end].Kind != record.Done {
					end++
				}
				r.Steps = slices.Delete(r.Steps, i, end+1)
				i--
			}
		}
	}
	l, err := Plan([]*record.Recording{r})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(l.Text), "\n    Sync 3") || !has(l.Notes, `step 8 is "Unpublish", there "Sync 3"`) {
		t.Errorf("%s", l.Text)
	}
}

// TestOneDefect: a kernel that leaves out a round in one batch of many has no plan that all of its batches conform to, and
// that is told as more than a comment.
func TestOneDefect(t *testing.T) {
	r := recorded(t, "x86_64-6.1-vfs")
	rounds := 0
	for i := range r.Steps {
		if r.Steps[i].Kind != record.Round {
			continue
		}
		if rounds++; rounds == 12 {
			n := slices.IndexFunc(r.Steps[i:], func(s record.Step) bool { return s.Kind == record.Done })
			r.Steps = slices.Delete(r.Steps, i, i+n+1)
			break
		}
	}
	l, err := Plan([]*record.Recording{r})
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Misfits) != 1 || !strings.Contains(l.Misfits[0].Error(), "does not conform to the plan: step 85: CPU 0: unpublish") {
		t.Errorf("%v", l.Misfits)
	}
}

// TestAnyStores: whatever is stored where, it is learned or refused, and held against a protocol.
func TestAnyStores(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	kinds := []record.Kind{record.Begin, record.End, record.Round, record.Stop, record.Resume, record.Publish, record.Trap, record.Leave}
	for range 5000 {
		r := &record.Recording{Arch: []string{"x86_64", "riscv64", "arm64"}[rng.IntN(3)], CPUs: 2, Release: "x"}
		for range 16 {
			s := record.Step{CPU: rng.IntN(2), Kind: kinds[rng.IntN(len(kinds))], Name: "f"}
			if rng.IntN(2) == 0 {
				s.Kind, s.At = record.Store, uint64(64+rng.IntN(24))
				s.New = []byte{0xcc, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}[rng.IntN(2):][:[]int{1, 4, 5, 8, 15}[rng.IntN(5)]]
				s.Old = make([]byte, len(s.New))
			}
			r.Steps = append(r.Steps, s)
		}
		_, _ = conform.Check(r, nil) // that they return is the test
		_, _ = Plan([]*record.Recording{r})
	}
}

// steps of a batch of two sites; the second may lack something.
func batch(tails bool) *record.Recording {
	r := &record.Recording{Arch: "x86_64", Release: "6.18", CPUs: 2, Protocol: "breakpoint"}
	store := func(at uint64, old, now byte) {
		r.Steps = append(r.Steps, record.Step{Kind: record.Store, At: at, Old: []byte{old}, New: []byte{now}})
	}
	round := func() {
		r.Steps = append(r.Steps, record.Step{Kind: record.Round, Name: "f"}, record.Step{Kind: record.Answer, Name: "f"},
			record.Step{CPU: 1, Kind: record.Answer, Name: "f"}, record.Step{Kind: record.Done})
	}
	for _, long := range []bool{true, tails} {
		r.Steps = append(r.Steps, record.Step{Kind: record.Begin, Name: "b"}, record.Step{Kind: record.Publish})
		for _, at := range []uint64{64, 128} {
			store(at, 0x90, 0xcc)
		}
		round()
		if long {
			store(65, 1, 2)
			store(129, 1, 2)
			round()
		}
		for _, at := range []uint64{64, 128} {
			store(at, 0xcc, map[bool]byte{true: 0xeb, false: 0xc3}[long])
		}
		round()
		r.Steps = append(r.Steps, record.Step{Kind: record.Unpublish}, record.Step{Kind: record.End, Name: "b"})
	}
	return r
}

// TestConditions: a round that goes with the tails has their condition, where that was seen.
func TestConditions(t *testing.T) {
	l, err := Plan([]*record.Recording{batch(true)})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(l.Text), "if rest") || !has(l.Notes, "no batch of sites without a tail was seen") {
		t.Errorf("%s", l.Text)
	}
	if l, err = Plan([]*record.Recording{batch(false)}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(l.Text), "Sync 2            if rest") || has(l.Notes, "does not conform") {
		t.Errorf("%s", l.Text)
	}
}

// TestText: the whole file, with what was seen before it.
func TestText(t *testing.T) {
	for name, list := range map[string][]*record.Recording{
		"tails": {batch(false), batch(true)}, "vfs": {recorded(t, "x86_64-6.1-vfs")}, "stopped": {recorded(t, "riscv64-6.12-vfs")},
	} {
		l, err := Plan(list)
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, filepath.Join("testdata", name+".plan"), l.Text)
	}
}

// TestCannotLearn: nothing of several sites, two kernels, or a protocol that is none.
func TestCannotLearn(t *testing.T) {
	foreign := batch(true)
	foreign.Protocol = "by-magic"
	if _, err := Plan([]*record.Recording{foreign}); err == nil || !strings.Contains(err.Error(), `protocol "by-magic"`) {
		t.Errorf("%v", err)
	}
	r := batch(true)
	for i := 0; i < len(r.Steps); i++ {
		if r.Steps[i].At >= 128 {
			r.Steps = slices.Delete(r.Steps, i, i+1)
			i--
		}
	}
	if _, err := Plan([]*record.Recording{r}); err == nil || !strings.Contains(err.Error(), "none of more than one site") {
		t.Errorf("%v", err)
	}
	if _, err := Plan([]*record.Recording{batch(true), recorded(t, "x86_64-6.1-vfs")}); err == nil ||
		!strings.HasPrefix(err.Error(), recorded(t, "x86_64-6.1-vfs").Name()+": a recording of another kernel than ") {
		t.Errorf("%v", err)
	}
}
