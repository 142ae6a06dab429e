// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
)

// Odd costs, so that sums of them are not taken for each other.
const (
	transfer Nanos = 1009
	own      Nanos = 7
)

// crowd is n CPUs in a handler at the same time, all at one phase, with a batch
// published; searching takes a time.
func crowd(t *testing.T, n int, phase cpus.Phase, search Nanos) *Machine {
	t.Helper()
	arch, err := cpus.ParseArch("x86_64")
	if err != nil {
		t.Fatal(err)
	}
	site, err := arch.Site(0x1000, isa.Layout(0))
	if err != nil {
		t.Fatal(err)
	}
	code := &cpus.Code{Arch: arch, Traits: arch.Traits(), Sites: []records.Addr{0x1000}, Len: int(site.Len), Entry: 0x100}
	m, err := New(Config{
		Code: code, Roles: make([]cpus.Role, n), Refs: int3.SharedRef,
		Costs:   &calibration.Costs{LineTransfer: float64(transfer), Reference: float64(own), Comparison: float64(search)},
		Initial: func(int) isa.Text { return arch.Breakpoint() },
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Publish(0, []poke.Patch{{Addr: 0x1000}}, false)
	for i := range m.cpus {
		if m.cpus[i].cpu.Phase = phase; phase == cpus.Leaving && !m.Enter(i) {
			t.Fatal("no reference")
		}
		m.run(i, true)
	}
	return m
}

// over lets everything happen.
func over(t *testing.T, m *Machine) {
	t.Helper()
	if err := m.happenUntil(t.Context(), func() bool { return false }); err != nil {
		t.Fatal(err)
	}
}

// TestLineServesInTurn: n CPUs that want the line at once, and need one visit each,
// leave after 1, 2 to n transfers.
func TestLineServesInTurn(t *testing.T) {
	for _, n := range []int{1, 2, 17, 480} {
		m := crowd(t, n, cpus.Leaving, 0)
		over(t, m)
		for i := range m.cpus {
			if got, want := m.cpus[i].stolen, Nanos(i+1)*(transfer+own); got != want {
				t.Fatalf("%d CPUs: the handler of CPU %d leaves after %d ns, want %d", n, i, got, want)
			}
		}
		if m.References() != 1 {
			t.Errorf("%d CPUs: %d references are left, want the patcher's", n, m.References())
		}
	}
}

// TestLineRetries: n CPUs that want to enter at once, with nobody leaving, read the
// count in one lap. Each lap after it lets the first one in, and spoils the attempts
// of all others: n + (n-1) + ... + 1 attempts. The last one has the line already.
func TestLineRetries(t *testing.T) {
	const never = 1 << 40
	for _, n := range []int{1, 2, 3, 17, 200} {
		m := crowd(t, n, cpus.Trapped, never)
		if err := m.Pass(t.Context(), never/2); err != nil {
			t.Fatal(err)
		}
		attempts := n * (n + 1) / 2
		want := Nanos(n+attempts-1)*transfer + Nanos(attempts)*own
		var last Nanos
		for i := range m.cpus {
			last = max(last, m.cpus[i].stolen%never) // without its search
		}
		if last != want {
			t.Errorf("%d CPUs: the last one is in after %d ns, want %d", n, last, want)
		}
		if got := int(m.References()); got != n+1 {
			t.Errorf("%d references, want %d", got, n+1)
		}
	}
}

// TestLineAlone: a CPU that has the line pays for the change alone, and one that
// finds nothing published has read it.
func TestLineAlone(t *testing.T) {
	m := crowd(t, 1, cpus.Trapped, 0)
	over(t, m)
	if got, want := m.cpus[0].stolen, transfer+2*own; got != want {
		t.Errorf("in and out takes %d ns, want %d", got, want)
	}
	m = crowd(t, 1, cpus.Trapped, 0)
	m.Unpublish()
	over(t, m)
	if got, want := m.cpus[0].stolen, transfer; got != want {
		t.Errorf("finding nothing takes %d ns, want %d", got, want)
	}
}

// TestLineOutOfTurn: when lots are drawn, everybody gets through all the same, and
// not in turn.
func TestLineOutOfTurn(t *testing.T) {
	m := crowd(t, 50, cpus.Leaving, 0)
	m.cfg.OutOfTurn = 1
	over(t, m)
	seen, moved := map[Nanos]bool{}, 0
	for i := range m.cpus {
		at := m.cpus[i].stolen
		if seen[at] = true; at != Nanos(i+1)*(transfer+own) {
			moved++
		}
	}
	if len(seen) != 50 || moved < 25 || m.now != 50*(transfer+own) {
		t.Errorf("%d different times, %d out of turn, over at %d", len(seen), moved, m.now)
	}
}
