// SPDX-License-Identifier: Apache-2.0

package silicon

import (
	"errors"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/experiments/internal/trial"
	"github.com/textpoke/textpoke/sim/hardware"
)

// TestStraddle: a late publish is met wherever sites lie, and the plan as it is shows
// nothing anywhere.
func TestStraddle(t *testing.T) {
	r := trial.Run(t, Straddle, "--mutate", "none,late-publish", "--updates", "4", "--sites", "16")
	if errors.Is(r.Err, hardware.ErrNone) {
		t.Skip(r.Err)
	}
	if r.Err != nil || r.No != nil {
		t.Fatal(r.Err, r.No)
	}
	if len(r.Table.Rows) != 2*len(places()) {
		t.Fatalf("%d rows", len(r.Table.Rows))
	}
	met := 0
	for i := range r.Table.Rows {
		n := r.Cell(t, i, "met")
		if r.Cell(t, i, "mutation") == sound && n != "0" || r.Cell(t, i, "changes") != "64" {
			t.Errorf("row %v", r.Table.Rows[i])
		}
		if n != "0" {
			met++
		}
	}
	if met == 0 {
		t.Error("a late publish was met nowhere")
	}
	if !strings.Contains(string(r.Document(t, "report.md")), "Absence is no proof") {
		t.Error("the report does not say what absence is")
	}
}

// TestEnough: what is never met is tried until the interval is narrow, and no more often.
// None of n gives an interval of 1 - 0.025^(1/n): 0.308 of ten, 0.285 of eleven.
func TestEnough(t *testing.T) {
	for width, want := range map[string]string{"0.3": "11", "0.31": "10", "0": "12"} {
		r := trial.Run(t, Straddle, "--mutate", "none", "--updates", "12", "--sites", "4", "--width", width)
		if errors.Is(r.Err, hardware.ErrNone) {
			t.Skip(r.Err)
		}
		if r.Err != nil || r.Cell(t, 0, "updates") != want {
			t.Errorf("%s: %v, %v, want %s updates", width, r.Err, r.Table.Rows[0], want)
		}
	}
}
