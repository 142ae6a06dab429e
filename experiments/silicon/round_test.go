// SPDX-License-Identifier: Apache-2.0

package silicon

import (
	"errors"
	"testing"

	"github.com/textpoke/textpoke/experiments/internal/trial"
	"github.com/textpoke/textpoke/sim/hardware"
)

// TestRound: with the wait every trap finds its entry.
func TestRound(t *testing.T) {
	r := trial.Run(t, Round, "--updates", "20")
	if errors.Is(r.Err, hardware.ErrNone) {
		t.Skip(r.Err)
	}
	if r.Err != nil || r.No != nil {
		t.Fatal(r.Err, r.No)
	}
	if len(r.Table.Rows) != 2 || r.Cell(t, 1, "trap_misses") != "0" || r.Cell(t, 1, "rounds") != "60" {
		t.Errorf("%v", r.Table.Rows)
	}
	if len(r.Document(t, "report.md")) == 0 {
		t.Error("no report")
	}
}
