// SPDX-License-Identifier: Apache-2.0

package silicon

import (
	"errors"
	"testing"

	"github.com/textpoke/textpoke/experiments/internal/trial"
	"github.com/textpoke/textpoke/sim/hardware"
)

// TestSilicon: rounds are three a batch, on real CPUs too, and both columns of times are
// there.
func TestSilicon(t *testing.T) {
	r := trial.Run(t, Silicon, "--records", "gen:n=96,order=sorted", "--buffer", "32,dynamic", "--repeats", "6")
	if errors.Is(r.Err, hardware.ErrNone) {
		t.Skip(r.Err)
	}
	if r.Err != nil || r.No != nil {
		t.Fatal(r.Err, r.No)
	}
	if len(r.Table.Rows) != 2 || r.Cell(t, 0, "rounds") != "9" || r.Cell(t, 1, "rounds") != "3" {
		t.Errorf("%v", r.Table.Rows)
	}
	for i := range r.Table.Rows {
		if r.Cell(t, i, "update_ns") == "0" || r.Cell(t, i, "modelled_update_ns") == "0" {
			t.Errorf("%v", r.Table.Rows[i])
		}
	}
	if len(r.Document(t, "report.md")) == 0 || len(r.Document(t, "silicon.svg")) == 0 {
		t.Error("no report, or no picture")
	}
}
