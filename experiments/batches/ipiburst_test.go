// SPDX-License-Identifier: Apache-2.0

package batches

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/experiments/internal/trial"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results/interrupts"
)

// TestIPIBurstBurst holds the rounds against the formulas: 3 ceil(n / slots), 3 for
// everything, 0 on arm64, n + 1 on riscv64.
func TestIPIBurstBurst(t *testing.T) {
	r := trial.Must(t, IPIBurst, "--cpus", "64")
	want := map[string]string{
		"x86_64-6.12 native 170": "756", "x86_64-6.12 native 256": "504", "x86_64-6.12 native " +
			"dynamic": "3", "x86_64-6.12 breakpoint-global ": "3",
		"gen x86_64 native 170": "795", "gen x86_64 native 256": "528", "gen x86_64 native dynamic": "3", "gen x86_64 " +
			"breakpoint-global ": "3",
		"arm64-6.12 native ": "0", "arm64-6.12 breakpoint 170": "849", "arm64-6.12 breakpoint 256": "564", "arm64-6.12 " +
			"breakpoint dynamic": "3", "arm64-6.12 breakpoint-global ": "3",
		"gen arm64 native ": "0", "gen arm64 breakpoint 170": "795", "gen arm64 breakpoint 256": "528", "gen arm64 " +
			"breakpoint dynamic": "3", "gen arm64 breakpoint-global ": "3",
		"riscv64-7.2 native ": "41846", "riscv64-7.2 breakpoint 170": "741", "riscv64-7.2 breakpoint " +
			"256": "492", "riscv64-7.2 breakpoint dynamic": "3", "riscv64-7.2 breakpoint-global ": "3",
		"gen riscv64 native ": "45001", "gen riscv64 breakpoint 170": "795", "gen riscv64 breakpoint " +
			"256": "528", "gen riscv64 breakpoint dynamic": "3", "gen riscv64 breakpoint-global ": "3",
	}
	if len(r.Table.Rows) != len(want) {
		t.Fatalf("%d rows, want %d", len(r.Table.Rows), len(want))
	}
	for i := range r.Table.Rows {
		source := r.Cell(t, i, "source")
		if source == "gen:n=45000,order=sorted" {
			source = "gen " + r.Cell(t, i, "arch")
		}
		key := source + " " + r.Cell(t, i, "protocol") + " " + r.Cell(t, i, "buffer")
		if got := r.Cell(t, i, "rounds"); got != want[key] || r.Cell(t, i, "ipis_per_cpu") != got {
			t.Errorf("%s: %s rounds, %s interrupts per CPU; want %s", key, got, r.Cell(t, i, "ipis_per_cpu"), want[key])
		}
		if key == "gen x86_64 native 256" && r.Cell(t, i, "ipis") != "33264" { // 176 x 3 x 63
			t.Errorf("%s: %s interrupts", key, r.Cell(t, i, "ipis"))
		}
	}
}

// splitPublished takes the published counts apart, the last reading first if
// reversed.
func splitPublished(t *testing.T, reversed bool) []*measurement {
	t.Helper()
	counts, err := published.Interrupts.Read("")
	if err != nil {
		t.Fatal(err)
	}
	readings, err := published.Readings(counts)
	if err != nil {
		t.Fatal(err)
	}
	if reversed {
		slices.Reverse(readings)
	}
	all, err := apart(readings)
	if err != nil || len(all) != 4 {
		t.Fatalf("%d measurements, %v", len(all), err)
	}
	return all
}

// TestIPIBurstSplit: three of the old scheme's rounds are for records. Every number of
// batches is tried: 3 B rounds leave a rest that is not negative and not above
// the old kernel's, in both directions, for B from 183 to 219.
func TestIPIBurstSplit(t *testing.T) {
	all := splitPublished(t, false)
	for i, want := range []struct{ rounds, rest int64 }{{120, 117}, {115, 112}} {
		if m := all[i]; m.Rounds != want.rounds || m.Rest.Lo != want.rest || m.Rest.Hi != want.rest || m.Functions.Hi != 0 {
			t.Errorf("%+v", m)
		}
	}
	low, high := int64(0), int64(0)
	for b := int64(1); b <= 300; b++ {
		on, off := 657-3*b, 661-3*b
		if on >= 0 && on <= 117 && off >= 0 && off <= 112 {
			if low == 0 {
				low = b
			}
			high = b
		}
	}
	for _, m := range all[2:] {
		if m.Batches.Lo != low || m.Batches.Hi != high || m.Functions.Lo != (low-1)*170+1 || m.Functions.Hi != high*170 ||
			m.Rest.Lo != m.Rounds-3*high || m.Rest.Hi != m.Rounds-3*low {
			t.Errorf("%s: batches %v, functions %v, rest %v; want %d to %d batches", m.Name(), m.Batches, m.Functions, m.Rest,
				low, high)
		}
	}
	// Which reading comes first makes no difference.
	for i, m := range splitPublished(t, true) {
		if other := all[3-i]; m.Batches != other.Batches || m.Rest != other.Rest || m.Functions != other.Functions {
			t.Errorf("%s: %+v, and %+v when it comes later", m.Name(), m, other)
		}
	}
	// The records of a kernel of that time, 134 pages of 256: 34,274.
	if f := all[2].Functions; 34274 < f.Lo || 34274 > f.Hi {
		t.Errorf("34,274 functions lie outside %v", f)
	}
}

// TestIPIBurstInterruptsText: what is printed reads back as the published counters.
func TestIPIBurstInterruptsText(t *testing.T) {
	r := trial.Must(t, IPIBurst, "--arch", "arm64")
	text := string(r.Document(t, "interrupts.txt"))
	trial.Golden(t, "interrupts.txt", []byte(text))
	parts := strings.Split(strings.TrimSpace(text), "\n\n")
	if len(parts) != 8 {
		t.Fatalf("%d readings", len(parts))
	}
	for i, want := range []int64{120, 115, 657, 661} {
		var pair [2]interrupts.Snapshot
		for side := range pair {
			_, table, _ := strings.Cut(parts[2*i+side], "\n")
			s, err := interrupts.Parse("text", strings.NewReader(table))
			if err != nil {
				t.Fatal(err)
			}
			pair[side] = s
		}
		deltas, err := interrupts.Diff(pair[0], pair[1])
		if err != nil {
			t.Fatal(err)
		}
		if e := deltas[0].Explain(); e.Rounds != want || !e.Consistent {
			t.Errorf("reading %d: %+v, want %d rounds", i, e, want)
		}
	}
	if got, want := string(r.Document(t,
		"split.csv")), "text-poke-batched,disable,661,549,657,4,112,183,219,30941,37230\n"; !strings.HasSuffix(got, want) {
		t.Errorf("split.csv:\n%s", got)
	}
}

func TestIPIBurstReport(t *testing.T) {
	r := trial.Must(t, IPIBurst)
	trial.Golden(t, "ipi-burst.md", r.Document(t, "report.md"))
	r.Figure(t)
}

// TestIPIBurstOthers: somebody else's counters, and those that cannot be.
func TestIPIBurstOthers(t *testing.T) {
	const header = "patching,action,cpu,before,after,delta,source\n"
	file := filepath.Join(t.TempDir(), "counts.csv")
	put := func(rows string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(header+rows), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	three := func(patching, action, n string) string {
		return patching + "," + action + ",0,0,0,0,me\n" + patching + "," + action + ",1,0," + n + "," + n + ",me\n" +
			patching + "," + action + ",2,0," + n + "," + n + ",me\n"
	}
	put(three(published.Batched, "enable", "12"))
	r := trial.Must(t, IPIBurst, "--arch", "arm64", "--published", file)
	if got, want := string(r.Document(t,
		"split.csv")), "text-poke-batched,enable,12,0,12,0,12,0,4,1,680\n"; !strings.HasSuffix(got, want) {
		t.Errorf("nothing is known of the rest:\n%s", got)
	}
	if report := string(r.Document(t, "report.md")); strings.Contains(report, "151") ||
		!strings.Contains(report, "nothing is compared") {
		t.Errorf("the report speaks of the mail's counters:\n%s", report)
	}
	for rows, want := range map[string]string{
		three(published.OwnBreakpoints, "enable", "2"): "2 rounds are fewer than the 3 that records take",
		three(published.OwnBreakpoints, "enable", "3") + three(published.OwnBreakpoints, "disable", "3") +
			three(published.Batched, "enable", "30") + three(published.Batched, "disable",
			"60"): "no number of batches in common",
		strings.Replace(three(published.Batched, "enable", "12"), ",0,0,0,0,", ",0,0,1,1,",
			1): "no rounds explain these interrupts",
	} {
		put(rows)
		if r := trial.Run(t, IPIBurst, "--published", file); r.Err == nil || !strings.Contains(r.Err.Error(), want) {
			t.Errorf("%q: %v, want %s", rows, r.Err, want)
		}
	}
}

// TestIPIBurstNothing: what was cut short before the first row says so.
func TestIPIBurstNothing(t *testing.T) {
	trial.CutShort(t, IPIBurst)
}
