// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var long = flag.Bool("long", false, "run slow tests")

// TestKilled kills a sweep again and again, wherever it happens to be, and
// resumes it: the rows are those of a sweep that nobody killed.
func TestKilled(t *testing.T) {
	dir, kills, n := t.TempDir(), 4, 300
	if *long {
		kills, n = 40, 3000
	}
	args := []string{"plan", "--records", "gen:n=5000,groups=5", "--arch", "x86_64", "--order", "random", "--buffer",
		"256", "--seed", manySeeds(n)}
	start := time.Now()
	want := done(t, append(args, "--format", "csv")...)
	took := time.Since(start)

	args = append(args, "--out", dir, "--resume")
	reused := regexp.MustCompile(`^textpoke: reused (\d+) of (\d+) rows\n`)
	last, killed := 0, 0
	for range 10 * kills {
		var stderr bytes.Buffer
		cmd := exec.Command("textpoke", args...)
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if killed < kills { // somewhere in what is left
			time.Sleep(time.Duration(rand.Int64N(int64(took) / int64(kills))))
			_ = cmd.Process.Kill()
		}
		err := cmd.Wait()
		var again, of int
		if reused.MatchString(stderr.String()) {
			if _, err := fmt.Sscanf(stderr.String(), "textpoke: reused %d of %d rows", &again, &of); err != nil ||
				again < last || of != n {
				t.Fatalf("after %d: %s", last, stderr.String())
			}
			last = again
		}
		if err == nil {
			break
		}
		killed++
	}
	t.Logf("killed %d times, %d rows reused at last", killed, last)
	if got, _ := os.ReadFile(filepath.Join(dir, "plan.csv")); string(got) != want {
		t.Error("plan.csv is not that of a sweep that nobody killed")
	}
	if _, err := os.Stat(filepath.Join(dir, "plan.csv.part")); !os.IsNotExist(err) {
		t.Errorf("the journal: %v", err)
	}
	if m := manifest(t, dir); !m.Complete || m.Reused != last {
		t.Errorf("%d rows were reused, the manifest says %d, complete %v", last, m.Reused, m.Complete)
	}
}

// TestResumeAfterASignal cuts a sweep short, and goes on with it.
func TestResumeAfterASignal(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent()) // what tests before it left is theirs
	dir := t.TempDir()
	args := []string{"plan", "--records", "gen:n=500", "--arch", "x86_64", "--format", "csv", "--seed", manySeeds(300)}
	want := done(t, args...)
	args = append(args, "--out", dir)
	ctx, out := cancelled(t, 40)
	if code := run(ctx, append(args, "--jobs", "2"), streams{nil, out, io.Discard}); code != exitCut {
		t.Fatalf("exit code %d", code)
	}
	rest := want // points that were cut short are left out
	for line := range strings.SplitSeq(out.String(), "\n") {
		var ok bool
		if _, rest, ok = strings.Cut(rest, line); !ok {
			t.Errorf("no row, or not in its place: %s", line)
		}
	}
	r := textpoke(t, append(args, "--jobs", "2", "--resume")...)
	if r.code != exitDone || r.out != want || !strings.HasPrefix(r.err, "textpoke: reused ") {
		t.Errorf("exit code %d, stderr %s", r.code, r.err)
	}
	if m := manifest(t, dir); m.Reused < 39 || m.Reused >= 600 {
		t.Errorf("%d rows were reused", m.Reused)
	}
}

// TestWrongIsReused: a violation that was found before the run broke off is one
// afterwards.
func TestWrongIsReused(t *testing.T) {
	dir := t.TempDir()
	args := []string{"run", "--mutate", "drop-sync-1", "--arch", "x86_64", "--records", "gen:n=2000", "--buffer", "1",
		"--cpus", "3", "--seed", "1,2", "--format", "csv", "--out", dir}
	ctx, out := cancelled(t, 3) // the header and the rows of the first combination
	var stderr bytes.Buffer
	if code := run(ctx, args, streams{nil, out, &stderr}); code != exitNo {
		t.Fatalf("exit code %d, stderr: %.2000s", code, stderr.String())
	}
	_, first, ok := strings.Cut(stderr.String(), "\nviolations of ")
	if !ok {
		t.Fatalf("no violations: %s", stderr.String())
	}
	first, _, _ = strings.Cut(first, "repeat with")
	r := textpoke(t, append(args, "--resume")...)
	if r.code != exitNo || !strings.Contains(r.err, first) || !strings.HasPrefix(r.err, "textpoke: reused 2 of 4 rows") {
		t.Errorf("exit code %d, stderr: %.3000s\nwithout\n%s", r.code, r.err, first)
	}
}

// TestSweepSaysHowFar: whoever watches a sweep is told how many rows of how many are there.
func TestSweepSaysHowFar(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent()) // what tests before it left is theirs
	c := newCommon(streams{nil, io.Discard, io.Discard})
	c.progress = &progress{screen: io.Discard, width: func() int { return 80 }}
	root := rootFor(c, nil)
	root.SetArgs([]string{"plan", "--records", "gen:n=2000", "--arch", "x86_64", "--seed", manySeeds(100), "--format", "csv"})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.progress.unwatch()
	if c.progress.line != "200 of 200 rows" {
		t.Errorf("%q", c.progress.line)
	}
}

// BenchmarkSweep goes through 1,000 small combinations on one core and on two.
func BenchmarkSweep(b *testing.B) {
	args := []string{"plan", "--records", "gen:n=3000", "--arch", "x86_64", "--buffer", "256", "--order", "random",
		"--seed", manySeeds(1000), "--format", "csv"}
	var took [2]time.Duration
	for b.Loop() {
		for i := range took {
			start := time.Now()
			if code := run(b.Context(), append(args, "--jobs", fmt.Sprint(i+1)),
				streams{nil, io.Discard, io.Discard}); code != exitDone {
				b.Fatal(code)
			}
			took[i] += time.Since(start)
		}
	}
	b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "speedup")
	b.ReportMetric(1000*float64(b.N)/took[1].Seconds(), "points/s")
}
