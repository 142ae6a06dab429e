// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/internal/readtrace"
	"github.com/textpoke/textpoke/kernels/tracefs"
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

// heard is the causes of a text.
func heard(t *testing.T, text io.Reader) (c *Causes, calls string) {
	t.Helper()
	c = &Causes{source: &events{pipe: io.NopCloser(text), isolated: []int{3}}}
	calls, err := c.Take()
	if err != nil {
		t.Fatal(err)
	}
	return c, calls
}

// TestCalls: what Debian's 6.12 for x86_64 recorded in an emulator with four CPUs while CPU 0 switched one static key:
// three rounds to three CPUs each, and wakeups. CPU 3 is isolated.
func TestCalls(t *testing.T) {
	text, err := os.Open("testdata/trace-6.12.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	c, calls := heard(t, text)
	if calls != "do_sync_core 9, sched_ttwu_pending 3, nohz_csd_func 2" {
		t.Error(calls)
	}
	got := map[string]int64{}
	for _, tally := range c.Tallies() {
		got[fmt.Sprint(tally.Kind, " ", tally.Task)] += 100*tally.Isolated + tally.Times
	}
	if d := cmp.Diff(map[string]int64{"text init": 309, "reschedule init": 101, "reschedule kworker/0:2": 2, "timer init": 2}, got); d != "" {
		t.Error(d)
	}
}

// TestCauses: events of every kind, in pieces that end anywhere.
func TestCauses(t *testing.T) {
	const text = "             a b-12      [000] d..1. 1.000001: csd_queue_cpu: cpu=3 callsite=x+0x1/0x2 func=flush_tlb_func csd=1\n" +
		"             app-13      [001] d..1. 1.000002: csd_queue_cpu: cpu=2 callsite=x+0x1/0x2 func=ipi_mb csd=1\n" +
		"             app-13      [001] d..1. 1.000003: ipi_send_cpu: cpu=3 callsite=x+0x1/0x2 callback=0x0\n" +
		"             app-13      [001] d..1. 1.000004: ipi_send_cpu: cpu=3 callsite=x callback=generic_smp_call_function_single_interrupt+0x0/0x2\n" +
		"          <idle>-0      [003] d..1. 1.000005: hrtimer_expire_entry: hrtimer=1 function=tick_nohz_handler now=7\n" +
		"          <idle>-0      [003] d..1. 1.000006: tlb_flush: pages:1 reason:remote shootdown (1)\n" +
		"CPU:3 [LOST 9 EVENTS]\n"
	c, _ := heard(t, iotest.OneByteReader(strings.NewReader(text)))
	var got []string
	for _, tally := range c.Tallies() {
		got = append(got, fmt.Sprint(*tally))
	}
	want := []string{"{{reschedule  app 13} 1 1 1}", "{{timer tick_nohz_handler  0} 1 1 1}", "{{tlb   0} 1 1 1}",
		"{{tlb flush_tlb_func a b 12} 1 1 1}", "{{membarrier ipi_mb app 13} 1 0 1}"}
	if d := cmp.Diff(want, got); d != "" || c.Lost() != 9 {
		t.Errorf("%s, %d lost", d, c.Lost())
	}
}

// TestCausesAreBounded: senders beyond the bound are told by name, and when there are too many names, summed up.
func TestCausesAreBounded(t *testing.T) {
	var c Causes
	for pid := range 3 * mostCauses {
		c.add(Cause{Kind: "tlb", Task: "app", PID: pid + 1}, 1, 0)
	}
	if n := len(c.Tallies()); n != mostCauses+1 || c.tallies[Cause{Kind: "tlb", Task: "app"}].Times != 2*mostCauses {
		t.Errorf("%d causes, %+v", n, c.Tallies()[0])
	}
	for name := range 3 * mostCauses {
		c.add(Cause{Kind: "tlb", Task: fmt.Sprint("app", name), PID: 1}, 1, 0)
	}
	if n := len(c.Tallies()); n != 2*mostCauses+1 || c.tallies[Cause{Kind: "tlb", Task: "others"}].Times != 2*mostCauses+1 {
		t.Errorf("%d causes, %+v", n, c.Tallies()[0])
	}
}

// FuzzCauses: whatever the kernel prints, each line is one cause at most.
func FuzzCauses(f *testing.F) {
	f.Add("           sh-1      [000] d..1. 1.200000: csd_queue_cpu: cpu=1 callsite=a+0x1/0x2 func=do_sync_core csd=1\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, _ := heard(t, strings.NewReader(text))
		sum := int64(0)
		for _, tally := range c.Tallies() {
			sum += tally.Times
		}
		if sum > int64(strings.Count(text, "\n")) {
			t.Errorf("%d causes of %q", sum, text)
		}
	})
}

// TestNamesOfNoTracing: where there is no tracing, one line says so.
func TestNamesOfNoTracing(t *testing.T) {
	for _, by := range append(Sources, "", "guesses") {
		if _, _, err := Listen(tracefs.At(t.TempDir()), nil, by); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("by %q: %v", by, err)
		}
	}
}

// timelineOf is what another reader finds in a timeline of readings, one a second. The i-th row calls what calls has.
func timelineOf(t *testing.T, calls map[int]string, readings ...interrupts.Snapshot) []*readtrace.Track {
	t.Helper()
	var b bytes.Buffer
	w, line := Watcher{}, NewTimeline(&b)
	for i, s := range readings {
		rows, err := w.Next(s, time.Duration(i)*time.Second, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			r.Calls = calls[i]
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
	return f.Under("CAL Function call interrupts")
}

// TestTimeline: another reader finds the rounds as slices and each CPU's counter.
func TestTimeline(t *testing.T) {
	var slices []string
	for _, track := range timelineOf(t, nil, reading(t, 0, 0, 0), reading(t, 0, 7, 7), reading(t, 0, 10, 10)) {
		for _, s := range track.Slices {
			slices = append(slices, fmt.Sprintf("%s %d-%d", s.Name, s.From, s.Until))
		}
	}
	if d := cmp.Diff([]string{"7 by CPU 0 0-1000000000", "3 by CPU 0 1000000000-2000000000"}, slices); d != "" {
		t.Error(d)
	}
}
