// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"testing"

	"github.com/textpoke/textpoke/cpus"
)

// TestLedgerGaps: the longest time without an interrupt is found before a grace
// period and behind it, and not in it.
func TestLedgerGaps(t *testing.T) {
	var l ledger
	l.open(2, 1000)
	l.take(0, cpus.Sync, 1010)
	l.take(1, cpus.Sync, 1015)
	l.pause(1020)
	l.goOn(5000)
	l.take(0, cpus.CoreSync, 5050)
	l.take(1, cpus.CoreSync, 5060)
	l.pause(5200)
	for cpu, want := range []Nanos{150, 140} {
		if got := l.page[cpu].gap; got != want {
			t.Errorf("CPU %d: %d ns without an interrupt, want %d", cpu, got, want)
		}
	}
	if quiet := l.page[0].addTo(l.life[0]).Quiet; quiet != 4040 { // a life has no pauses
		t.Errorf("%d ns in all its life, want 4040", quiet)
	}
}
