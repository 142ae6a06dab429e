// SPDX-License-Identifier: Apache-2.0

package poke_test

import (
	"testing"

	"github.com/textpoke/textpoke/cpus/x86_64"
	"github.com/textpoke/textpoke/poke"
)

// TestRoundsPerBatch: three phases take three rounds, and a site of one byte has no tail (arch/x86/kernel/alternative.c,
// Linux 6.12, smp_text_poke_batch_finish: do_sync only where a tail was written).
func TestRoundsPerBatch(t *testing.T) {
	if n := poke.RoundsPerBatch(); n != 3 {
		t.Errorf("%d rounds, want 3", n)
	}
	p := poke.Named("breakpoint", x86_64.Arch.Traits())
	if n := p.RoundsOfBatch(x86_64.Arch.Traits(), 1); n != 2 {
		t.Errorf("%d rounds for one byte, want 2", n)
	}
}
