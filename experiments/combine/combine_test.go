// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/textpoke/textpoke/experiments/internal/trial"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// perBatch is what x86_64 sends for so many patches: three rounds for each 256 of them.
func perBatch(patches int) int { return 3 * ((patches + 255) / 256) }

// TestSaturated: clients that never pause, against formulas. The first that asks is
// carried out alone, and from then on it and all others take turns, so that combining
// takes two batches where one would do. Lingering gathers all from the second batch on.
// Sharing, where all others' stores fit into one round, takes two rounds a phase.
func TestSaturated(t *testing.T) {
	const m, patches = 7, 4
	r := trial.Must(t, Experiment, "--clients", "1,2,3,8,32,64,65,66,129", "--load", "1", "--updates", strconv.Itoa(m))
	for i := range r.Table.Rows {
		n := int(r.Number(t, i, "clients"))
		one, others := perBatch(patches), perBatch((n-1)*patches)
		want := map[string]int{"mutex": n * m * one, "combine": m * (one + others),
			"linger": one + others + (m-1)*perBatch(n*patches), "share": 2 * one * m}
		if n == 1 {
			want = map[string]int{"mutex": 3 * m, "combine": 3 * m, "linger": 3 * m, "share": 3 * m}
		}
		way := r.Cell(t, i, "scheme")
		rounds := int(r.Number(t, i, "rounds"))
		if way == "share" && n > 32 { // stores of one phase take longer than a round
			if rounds <= want[way] || rounds > n*m*3 {
				t.Errorf("share, %d clients: %d rounds", n, rounds)
			}
		} else if rounds != want[way] {
			t.Errorf("%s, %d clients: %d rounds, want %d", way, n, rounds, want[way])
		}
		if got := int(r.Number(t, i, "updates")); got != n*m {
			t.Errorf("%s, %d clients: %d updates, want %d", way, n, got, n*m)
		}
		if cpus := int(r.Number(t, i, "cpus")); int(r.Number(t, i, "ipis")) != rounds*(cpus-1) {
			t.Errorf("%s, %d clients: interrupts are not rounds times the other CPUs", way, n)
		}
	}
}

// TestBounds: at every load nobody sends more rounds than today or fewer than the
// ideal, and who is alone saves nothing. Two batches, or two shared rounds, in a row
// serve all clients at most: so much company is twice the ideal, and two clients find none.
func TestBounds(t *testing.T) {
	r := trial.Must(t, Experiment, "--clients", "1,2,5,20", "--load", "0.001,0.03,0.2,0.7,1", "--calibration",
		"jump-label-24,vm-2@8,refcount-480")
	if want := 4 * 5 * 3 * len(schemes); len(r.Table.Rows) != want {
		t.Fatalf("%d rows, want %d", len(r.Table.Rows), want)
	}
	for i := range r.Table.Rows {
		saved, times := r.Number(t, i, "saved"), r.Number(t, i, "times_ideal")
		alone, now := r.Cell(t, i, "clients") == "1", r.Cell(t, i, "scheme") == "mutex"
		if saved < 0 || times < 1 || (alone || now) && saved != 0 || alone && r.Number(t, i, "contended") != 0 {
			t.Errorf("%v", r.Table.Rows[i])
		}
		if way := r.Cell(t, i, "scheme"); way == "combine" || way == "share" {
			n, updates, rounds := r.Number(t, i, "clients"), r.Number(t, i, "updates"), r.Number(t, i, "rounds")
			// Half a pair may be left over at the end.
			if n > 1 && n*rounds < 2*3*updates-3*n || n == 2 && rounds != 3*updates {
				t.Errorf("%s, %g clients: %g rounds for %g updates", way, n, rounds, updates)
			}
		}
	}
}

func TestReport(t *testing.T) {
	r := trial.Must(t, Experiment)
	trial.Golden(t, "report.md", r.Document(t, "report.md"))
	r.Figure(t)
	const want = "It depends on contention: a client alone saves nothing; 64 clients at a load of 1 each save 96.88 % "
	if !strings.HasPrefix(r.Headline, want) {
		t.Errorf("%q", r.Headline)
	}
	lone := trial.Must(t, Experiment, "--clients", "1", "--load", "0.5")
	if !strings.Contains(lone.Headline, "It depends on contention: a client alone saves nothing") {
		t.Errorf("%q", lone.Headline)
	}
}

func TestWrong(t *testing.T) {
	for flag, want := range map[string]string{
		"--load=0":      "want numbers above 0, to 1",
		"--load=1.1":    "want numbers above 0, to 1",
		"--clients=0":   "want whole numbers from 1 to 1024",
		"--patches=65":  "want whole numbers from 1 to 64",
		"--updates=x":   "want whole numbers from 1 to 10000",
		"--calibration": "flag needs an argument",
	} {
		if r := trial.Run(t, Experiment, flag); r.Err == nil || !strings.Contains(r.Err.Error(), want) {
			t.Errorf("%s: %v, want %s", flag, r.Err, want)
		}
	}
	// arm64 stores words, and sends nothing
	if r := trial.Run(t, Experiment, "--calibration", "graviton2"); r.Err == nil ||
		!strings.Contains(r.Err.Error(), "send no rounds that could be shared") {
		t.Error(r.Err)
	}
}

// TestNothing: what was cut short before the first row says so.
func TestNothing(t *testing.T) {
	trial.CutShort(t, Experiment)
}
