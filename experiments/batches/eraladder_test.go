// SPDX-License-Identifier: Apache-2.0

package batches

import (
	"strings"
	"testing"

	"github.com/textpoke/textpoke/experiments/grid"
	"github.com/textpoke/textpoke/experiments/internal/trial"
)

// TestEraLadderLadder holds the compiled plans against what is written down of each era:
// rounds for 1, 256 and 45,000 sites, and standstills.
func TestEraLadderLadder(t *testing.T) {
	want := []struct {
		era    string
		rounds [3]string
		stops  string
	}{
		{"x86_64 ftrace -3.4", [3]string{"0", "0", "0"}, "1"},
		{"x86_64 ftrace 3.5-5.5", [3]string{"3", "3", "3"}, "0"},
		{"x86_64 ftrace 5.6-", [3]string{"3", "3", "528"}, "0"}, // 176 batches of 256
		{"x86_64 jump label 3.12-5.2", [3]string{"3", "768", "135000"}, "0"},
		{"x86_64 jump label 5.3-5.4", [3]string{"3", "6", "1056"}, "0"}, // 352 batches of 128
		{"x86_64 jump label 5.5-5.5", [3]string{"3", "6", "795"}, "0"},  // 265 batches of 170
		{"x86_64 jump label 5.6-", [3]string{"3", "3", "528"}, "0"},
		{"arm64 ftrace 5.0-6.2", [3]string{"0", "0", "0"}, "0"},
		{"arm64 ftrace 6.3-", [3]string{"0", "0", "0"}, "0"},
		{"arm64 jump label -4.20", [3]string{"0", "0", "0"}, "1"},
		{"arm64 jump label 5.0-6.10", [3]string{"0", "0", "0"}, "0"},
		{"arm64 jump label 6.11-", [3]string{"1", "1", "1"}, "0"},
		{"riscv64 ftrace 5.0-6.2", [3]string{"1", "256", "45000"}, "1"},
		{"riscv64 ftrace 6.3-6.9", [3]string{"1", "256", "45000"}, "1"},
		{"riscv64 ftrace 6.10-6.15", [3]string{"0", "0", "0"}, "1"},
		{"riscv64 ftrace without CALL_OPS 6.16-", [3]string{"1", "1", "1"}, "0"},
		{"riscv64 ftrace 6.16-", [3]string{"2", "257", "45001"}, "0"},
		{"riscv64 jump label -6.9", [3]string{"1", "256", "45000"}, "0"},
		{"riscv64 jump label 6.10-6.10", [3]string{"0", "0", "0"}, "0"},
		{"riscv64 jump label 6.11-", [3]string{"1", "1", "1"}, "0"},
	}
	r := trial.Must(t, EraLadder)
	if len(r.Table.Rows) != 3*len(want) {
		t.Fatalf("%d rows, want %d eras with 3 numbers of sites", len(r.Table.Rows), len(want))
	}
	for i := range r.Table.Rows {
		w := want[i/3]
		cell := func(column string) string { return r.Cell(t, i, column) }
		if era := cell("arch") + " " + cell("client") + " " + cell("from") + "-" + cell("to"); era != w.era {
			t.Fatalf("row %d is of %s, want %s", i, era, w.era)
		}
		if cell("rounds") != w.rounds[i%3] || cell("stops") != w.stops || cell("formula_rounds") != w.rounds[i%3] {
			t.Errorf("%s, %s sites: %s rounds (formula %s), %s stops; want %s, %s", w.era, cell("sites"), cell("rounds"),
				cell("formula_rounds"), cell("stops"), w.rounds[i%3], w.stops)
		}
		if fences := cell("remote_fences"); (fences != "") != strings.HasPrefix(w.era, "riscv64") || fences != "" &&
			fences != w.rounds[i%3] {
			t.Errorf("%s: %q remote fences", w.era, fences)
		}
		if cell("source") == "" || !strings.Contains("source commit inferred", cell("basis")) {
			t.Errorf("%s: basis %q, source %q", w.era, cell("basis"), cell("source"))
		}
	}
	trial.Golden(t, "era-ladder.md", r.Document(t, "report.md"))
	r.Figure(t)
	if svg := string(r.Document(t, "era-ladder.svg")); !strings.Contains(svg, ">135,000<") {
		t.Error("the picture lacks a bar's label")
	}
}

// TestEraLadderDiffer: a count that is not the formula's is the answer no.
func TestEraLadderDiffer(t *testing.T) {
	const era, line = "x86_64 ftrace 3.5 to 5.5: 3 rounds and 0 stops for 10 sites, not ", "breakpoint-global,,3,0,"
	for to, want := range map[string]string{"breakpoint-global,,4,0,": "4 and 0", "breakpoint-global,,3,1,": "3 and 1"} {
		other := grid.Must("other", strings.Replace(text("era-ladder.experiment"), line, to, 1), grid.More{Open: open})
		if r := trial.Run(t, other, "--sites", "10", "--arch", "x86_64"); r.Err != nil || r.No == nil || r.No.Error() != era+want {
			t.Errorf("%v, %+v", r.Err, r.Answer)
		}
	}
}

func TestEraLadderFlags(t *testing.T) {
	r := trial.Must(t, EraLadder, "--arch", "arm64", "--sites", "7", "--cpus", "2")
	if len(r.Table.Rows) != 5 || r.Cell(t, 4, "ipis_per_cpu") != "1" {
		t.Errorf("%v", r.Table.Rows)
	}
	for _, tt := range [][2]string{{"--sites=0", "want whole numbers from 1"}, {"--arch=amr64", "did you mean arm64"}} {
		if r := trial.Run(t, EraLadder, tt[0]); r.Err == nil || !strings.Contains(r.Err.Error(), tt[1]) {
			t.Errorf("%s: %v", tt[0], r.Err)
		}
	}
}

// TestEraLadderNothing: what was cut short before the first row says so.
func TestEraLadderNothing(t *testing.T) {
	trial.CutShort(t, EraLadder)
}
