// SPDX-License-Identifier: Apache-2.0

package uprobes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/textpoke/textpoke/experiments/internal/trial"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRows: each cell is 3 x sites x processes, or nothing, by the table of releases;
// and the report is what it was.
func TestRows(t *testing.T) {
	r := trial.Must(t, Experiment)
	if n := 5 * 2 * 3 * 3; len(r.Table.Rows) != n {
		t.Fatalf("%d rows, want %d", len(r.Table.Rows), n)
	}
	// At 10 sites and 2 processes.
	want := map[string]string{
		"6.12 nop5": "breakpoint 0 10", "6.12 nop10": "refused  ", "6.18 nop5": "call, for good " +
			"60 0", "6.18 nop10": "refused  ",
		"7.1.3 nop5": "call, for good 60 0", "7.1.3 nop10": "refused  ", "7.1.9 nop5": "call, and back 60 60",
		"7.1.9 nop10": "refused  ", "7.2 nop5": "breakpoint 0 0", "7.2 nop10": "call, and back 60 60",
	}
	for i := range r.Table.Rows {
		cell := func(column string) string { return r.Cell(t, i, column) }
		if cell("sites") != "10" || cell("processes") != "2" {
			continue
		}
		name := cell("release") + " " + cell("insn")
		if got := cell("becomes") + " " + cell("ipis_first_hit") + " " + cell("ipis_disable"); got != want[name] {
			t.Errorf("%s: %q, want %q", name, got, want[name])
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("no rows for %v", want)
	}
	trial.Golden(t, "report.md", r.Document(t, "report.md"))
	r.Figure(t)
}

// TestDiffer: a reading that is not what is predicted is the answer no, and so is one
// of a probe that is said to be refused.
func TestDiffer(t *testing.T) {
	for line, want := range map[string]string{
		"7.2,nop10,1,1,first-hit,4\n": "7.2, nop10, 1 sites, 1 processes: 3 interrupts are predicted at first-hit, " +
			"measured are 4",
		"6.12,nop10,1,1,disable,0\n": "6.12, nop10, 1 sites, 1 processes: 0 interrupts are predicted at disable, " +
			"measured are 0",
	} {
		file := filepath.Join(t.TempDir(), "readings.csv")
		if err := os.WriteFile(file, []byte("release,insn,sites,processes,phase,interrupts\n"+line), 0o600); err != nil {
			t.Fatal(err)
		}
		if r := trial.Run(t, Experiment, "--published", file); r.Answer == nil || r.No == nil || r.No.Error() != want {
			t.Errorf("%+v, want %s", r, want)
		}
	}
}

// TestWrong: what cannot be asked is refused in one line.
func TestWrong(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ flag, value, want string }{
		{"--releases", "seven", `release "seven": want two or three numbers`}, {"--program", text, "not an ELF file"},
		{"--sites", "0", "want"}, {"--program", text + "no", "no such file"},
	} {
		r := trial.Run(t, Experiment, c.flag, c.value)
		if r.Err == nil || !strings.Contains(r.Err.Error(), c.want) || strings.Contains(r.Err.Error(), "\n") {
			t.Errorf("%s %s: %v, want %s", c.flag, c.value, r.Err, c.want)
		}
	}
}

// TestNothing: what was cut short before the first row says so.
func TestNothing(t *testing.T) { trial.CutShort(t, Experiment) }
