// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/internal/readtrace"
	"github.com/textpoke/textpoke/results/budget"
	"github.com/textpoke/textpoke/results/interrupts"
)

// Nothing here is slow; the flag lets go test ./... -long pass through.
var _ = flag.Bool("long", false, "run slow tests")

// reading is one of four CPUs.
func reading(t *testing.T, cal ...int64) interrupts.Snapshot {
	t.Helper()
	header, row := "     ", "CAL: "
	for i, n := range cal {
		header += fmt.Sprintf(" CPU%d", i)
		row += fmt.Sprintf(" %d", n)
	}
	s, err := interrupts.Parse("reading", strings.NewReader(header+"\n"+row+"  Function call interrupts\n"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestNext: each interval's rounds, sender, burst and isolated CPUs.
func TestNext(t *testing.T) {
	w := Watcher{Isolated: []int{3}}
	var said []string
	for i, s := range []interrupts.Snapshot{
		reading(t, 5, 5, 5, 5),
		reading(t, 662, 662, 5, 663),   // 657 rounds by CPU 2, one stray
		reading(t, 662, 662, 5, 663),   // nothing
		reading(t, 662, 692, 35, 693),  // 30 by CPU 0
		reading(t, 662, 692, 35, 1693), // no rounds
		reading(t, 662, 692, 35),       // CPU 3 went
		reading(t, 672, 702, 45),
	} {
		rows, err := w.Next(s, time.Duration(i)*time.Second, time.Second)
		var gone *Lost
		if errors.As(err, &gone) {
			said = append(said, err.Error())
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			said = append(said, r.Sentence())
		}
	}
	want := []string{
		"   1.000 s  CAL: about 657 rounds by CPU 2; 658 on CPU 3, 658 on an isolated one",
		"   3.000 s  CAL: 30 rounds by CPU 0; 30 on CPU 1, 30 on an isolated one",
		"   4.000 s  CAL: no rounds explain half of it; 1000 on CPU 3, 1000 on an isolated one",
		"CPU 3 went: this interval tells nothing",
		"   6.000 s  CAL: 15 rounds by CPU 0 (5), CPU 1 (5), CPU 2 (5); 10 on CPU 0",
	}
	if d := cmp.Diff(want, said); d != "" {
		t.Error(d)
	}
}

// TestLost: every CPU that came or went is named.
func TestLost(t *testing.T) {
	for _, c := range []struct {
		before, after []int
		want          string
	}{
		{[]int{0, 1, 2}, []int{0, 3}, "CPU 3 came, CPU 1 went, CPU 2 went: this interval tells nothing"},
		{[]int{0, 1}, []int{1, 0}, "the CPUs stand in another order: this interval tells nothing"},
	} {
		if got := lost(c.before, c.after).Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestBudget: a limit is kept up to its value, and what no row knows is not over it.
func TestBudget(t *testing.T) {
	b, err := Limits.Parse([]string{"isolated=0", "burst=20", "rounds=5"})
	if err != nil {
		t.Fatal(err)
	}
	r := Row{Burst: 20, Isolated: -1}
	r.Known = true
	exceeded := func() string {
		cells, err := Columns.Row(&r)
		if err != nil {
			t.Fatal(err)
		}
		over, _ := budget.Exceeded(b, Columns.Table("watch").Columns, cells)
		return budget.Say(over)
	}
	if over := exceeded(); over != "" {
		t.Error(over)
	}
	r.Isolated, r.Rounds = 1, 7
	if got, want := exceeded(), "isolated 1, 1 over the budget of 0; rounds 7, 2 over the budget of 5"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, bad := range []string{"isolated", "isolated=-1", "isolatd=1", "burst=x", ""} {
		if _, err := Limits.Parse([]string{bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestParseCPUs: as the kernel writes lists.
func TestParseCPUs(t *testing.T) {
	got, err := ParseCPUs("2,4-7")
	if err != nil || !slices.Equal(got, []int{2, 4, 5, 6, 7}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"x", "3-1", "1,", "-1", "0-99999999"} {
		if got, err := ParseCPUs(bad); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
	if got := IsolatedCPUs(filepath.Join(t.TempDir(), "none")); got != nil {
		t.Errorf("%v", got)
	}
}

// TestCalls: what Debian's 6.12 for x86_64 recorded in an emulator with four CPUs while CPU 0 switched one static key:
// three rounds to three CPUs each, and wakeups.
func TestCalls(t *testing.T) {
	f, err := os.Open("testdata/trace-6.12.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := Calls(f)
	if err != nil || got != "do_sync_core 9, sched_ttwu_pending 3, nohz_csd_func 2" {
		t.Errorf("%q, %v", got, err)
	}
}

// FuzzCalls: whatever the kernel prints, each line is one call at most.
func FuzzCalls(f *testing.F) {
	f.Add("  sh-1  [000] d..1. 1.2: csd_queue_cpu: cpu=1 callsite=a+0x1/0x2 func=do_sync_core csd=1\n")
	f.Add(": ipi_send_cpu: cpu=1 callsite=x callback=rcu_x+0x0/0x1")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Calls(strings.NewReader(text))
		if err == nil && strings.Count(got, ",") > strings.Count(text, ",")+mostCalls {
			t.Errorf("%q of %q", got, text)
		}
	})
}

// TestNamesOfNoTracing: where there is no tracing, one line says so.
func TestNamesOfNoTracing(t *testing.T) {
	if _, err := Listen(t.TempDir()); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}

// TestTimeline: another reader finds the rounds as slices and each CPU's counter.
func TestTimeline(t *testing.T) {
	var b bytes.Buffer
	w, line := Watcher{}, NewTimeline(&b)
	for i, s := range []interrupts.Snapshot{reading(t, 0, 0, 0), reading(t, 0, 7, 7), reading(t, 0, 10, 10)} {
		rows, err := w.Next(s, time.Duration(i)*time.Second, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			line.Add(&r)
		}
	}
	if err := line.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := readtrace.Read(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	var slices []string
	for _, track := range f.Under("CAL Function call interrupts") {
		for _, s := range track.Slices {
			slices = append(slices, fmt.Sprintf("%s %d-%d", s.Name, s.From, s.Until))
		}
	}
	if d := cmp.Diff([]string{"7 by CPU 0 0-1000000000", "3 by CPU 0 1000000000-2000000000"}, slices); d != "" {
		t.Error(d)
	}
}
