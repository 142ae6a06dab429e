// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
)

// TestUpdatesEnd: an update also ends where NMIs come, and where CPUs come online. TestShippedProtocols asks the others.
func TestUpdatesEnd(t *testing.T) {
	for _, text := range []string{withNMI(t, "breakpoint", "call a site"), trapsUp} {
		if p := closed(t, &questions(t, "x86_64", text, "none")[0].Setup); !p.Closed() || p.Stuck != "" {
			t.Errorf("%s: %s, stays at %q", text, p.Why(), p.Stuck)
		}
	}
}

// TestUpdatesThatStay: a grace period never ends where CPUs wait for a guard that the same update is
// to disarm. The explorer says so, too; without the guard every update ends.
func TestUpdatesThatStay(t *testing.T) {
	const text = `batching: whole
every batch:
    Write word
    Fence
    GracePeriod
    Write literal
    Fence
    Sync 1
`
	const awaits = "site:\n    await guard\n    sync\n    fetch site\n    load literal\n    call\n"
	for path, want := range map[string]string{awaits: "patcher: GracePeriod back, where a CPU looks at the guard", "": ""} {
		s := looped(t, "arm64", text+path)
		p := closed(t, s)
		if !p.Closed() || p.Stuck != want {
			t.Errorf("%q: closed %t, stays at %q, want %q: %s", path, p.Closed(), p.Stuck, want, p.Why())
		}
		r, err := explore.Liveness(t.Context(), small(t, s, size{2, 1}), explore.Options{})
		if err != nil || (r.Violation == nil) != (want == "") ||
			r.Violation != nil && r.Violation.Property != cpus.StuckUpdate {
			t.Errorf("%q: the explorer finds %v, %v", path, r.Violation, err)
		}
	}
}

// TestMaskedCPUsThatWait: a CPU that waits for a guard with interrupts masked answers no round.
func TestMaskedCPUsThatWait(t *testing.T) {
	s := looped(t, "arm64", strings.TrimPrefix(guarded, "name: guarded\n"))
	if p := closed(t, s); !p.Closed() || p.Stuck != "patcher: Sync 1 back, where a CPU looks at the guard" {
		t.Errorf("%s, stays at %q", p.Why(), p.Stuck)
	}
	s.Workload, s.Roles = explore.Endless, []cpus.Role{cpus.Busy, cpus.IrqsOff}
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	r, err := explore.Liveness(t.Context(), m, explore.Options{})
	if err != nil || r.Violation == nil || r.Violation.Property != cpus.StuckUpdate {
		t.Errorf("the explorer finds %v, %v", r.Violation, err)
	}
}

// TestWhatOthersDecide: where other CPUs decide which step a CPU makes, each of them must lead on.
func TestWhatOthersDecide(t *testing.T) {
	l := leads{bound: []int{1, 2}}
	if l.any(map[int]bool{1: true}) || !l.any(map[int]bool{1: true, 2: true}) || (leads{}).any(nil) {
		t.Error("one of two leads on, and the other does not")
	}
}

// TestHandlersThatRelieveEachOther: behind Unpublish a handler still enters where handlers share a count
// and another one holds a reference, so that a breakpoint that stays may keep the count above zero.
// Where each CPU counts for itself none enters.
func TestHandlersThatRelieveEachOther(t *testing.T) {
	p, err := poke.ParseProtocol("relieve.plan", []byte(`name: relieve
batching: buffered
every batch:
    Publish
    Write breakpoint
    Sync 1
    Unpublish
    WaitHandlers
    Write tail
    Sync 2
    Write head
    Sync 3
miss:
    skip
`))
	if err != nil {
		t.Fatal(err)
	}
	for refs, want := range map[int3.Refs]string{
		int3.SharedRef: "patcher: WaitHandlers back, where a CPU tries to take a reference on the batch", int3.PerCPU: "",
	} {
		s := setup(t, "x86_64", poke.Native, "")
		s.Protocol, s.Refs = p, refs
		if p := closed(t, s); !p.Closed() || p.Stuck != want {
			t.Errorf("refs %s: %s, stays at %q, want %q", refs, p.Why(), p.Stuck, want)
		}
	}
}
