// SPDX-License-Identifier: Apache-2.0

package watch

import (
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/budget"
	"github.com/textpoke/textpoke/results/interrupts"
)

// declared are the columns of the package's tables.
//
//go:embed columns.txt
var declared string

// Row is what one row of function calls did in one interval.
type Row struct {
	interrupts.Comparison
	At       time.Duration // the interval's end, since watching began
	Interval time.Duration
	Burst    int64 // the most that one CPU took
	BurstCPU int
	Isolated int64  // the most that one of the isolated CPUs took; -1 where there are none
	Calls    string // the functions that were called; "" where they are not known
}

// Watcher turns readings into rows.
type Watcher struct {
	// Isolated are the CPUs that are to be left alone.
	Isolated []int
	// Options choose the rows, as of interrupts.Compare.
	Options interrupts.Options

	last *interrupts.Snapshot
}

// Lost is an interval that tells nothing: its counters are not those of one set of CPUs. The
// next interval begins anew.
type Lost struct{ Came, Went []int }

func (l *Lost) Error() string {
	var what []string
	for _, c := range []struct {
		cpus []int
		verb string
	}{{l.Came, "came"}, {l.Went, "went"}} {
		for _, cpu := range c.cpus {
			what = append(what, fmt.Sprintf("CPU %d %s", cpu, c.verb))
		}
	}
	if len(what) == 0 {
		what = []string{"the CPUs stand in another order"}
	}
	return strings.Join(what, ", ") + ": this interval tells nothing"
}

// lost compares the CPUs of two readings.
func lost(before, after []int) *Lost {
	without := func(a, b []int) []int {
		return slices.DeleteFunc(slices.Clone(a), func(cpu int) bool { return slices.Contains(b, cpu) })
	}
	return &Lost{Came: without(after, before), Went: without(before, after)}
}

// Next takes the next reading and gives what happened since the last one: the rows that
// grew, none for the first reading. When a CPU came or went in between it fails with a *Lost;
// the next reading is compared with this one.
func (w *Watcher) Next(s interrupts.Snapshot, at, interval time.Duration) ([]Row, error) {
	last := w.last
	w.last = &s
	if last == nil {
		return nil, nil
	}
	if !slices.Equal(last.CPUs, s.CPUs) {
		return nil, lost(last.CPUs, s.CPUs)
	}
	found, err := interrupts.Compare(interrupts.Pair{Before: *last, After: s}, w.Options)
	if err != nil {
		return nil, err
	}
	var rows []Row
	for _, f := range found {
		if !f.Explained || f.Missing() != "" || !f.Changed() || f.CPUs == nil {
			continue
		}
		r := Row{Comparison: f, At: at, Interval: interval, Isolated: -1}
		for i, n := range f.Delta {
			if n > r.Burst {
				r.Burst, r.BurstCPU = n, f.CPUs[i]
			}
			if slices.Contains(w.Isolated, f.CPUs[i]) {
				r.Isolated = max(r.Isolated, n)
			}
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// Sentence is what a row says, for people.
func (r *Row) Sentence() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%8.3f s  %s: ", r.At.Seconds(), r.Name)
	switch rounds, follows := r.About(); {
	case !follows && len(r.CPUs) == 2:
		b.WriteString("of two CPUs nothing follows")
	case !follows:
		b.WriteString("no rounds explain half of it")
	case rounds == 0:
		b.WriteString("no rounds")
	default:
		if !r.Known {
			b.WriteString("about ")
		}
		fmt.Fprintf(&b, "%d rounds by %s", rounds, r.SentBy())
	}
	fmt.Fprintf(&b, "; %d on CPU %d", r.Burst, r.BurstCPU)
	if r.Isolated >= 0 {
		fmt.Fprintf(&b, ", %d on an isolated one", r.Isolated)
	}
	if r.Calls != "" {
		b.WriteString("; " + r.Calls)
	}
	return b.String()
}

// IsolatedFile is where Linux lists the CPUs that isolcpus leaves alone.
const IsolatedFile = "/sys/devices/system/cpu/isolated"

// IsolatedCPUs reads them; none where there is no such file.
func IsolatedCPUs(file string) []int {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	cpus, err := ParseCPUs(strings.TrimSpace(string(b)))
	if err != nil {
		return nil
	}
	return cpus
}

// mostCPU is what a number of a CPU may be: more than any machine has.
const mostCPU = 1 << 16

// ParseCPUs reads a list of CPUs as the kernel writes them, such as 2,4-7.
func ParseCPUs(list string) (cpus []int, err error) {
	if list == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(list, ",") {
		lo, hi, ranged := strings.Cut(part, "-")
		if !ranged {
			hi = lo
		}
		a, err1 := strconv.ParseUint(lo, 10, 31)
		b, err2 := strconv.ParseUint(hi, 10, 31)
		if err1 != nil || err2 != nil || b < a || b > mostCPU {
			return nil, fmt.Errorf("CPUs %q: want a list such as 2,4-7", list)
		}
		for c := a; c <= b; c++ {
			cpus = append(cpus, int(c))
		}
	}
	return cpus, nil
}

// Columns are those of rows.
var Columns = results.Declare(declared, "rows", map[string]func(*Row) any{
	"interval_ms": func(r *Row) any { return float64(r.Interval.Microseconds()) / 1000 },
	"rounds": func(r *Row) any {
		rounds, follows := r.About()
		return results.If(follows, rounds)
	},
	"exact":    func(r *Row) any { return results.If(r.Known || r.Near != nil, r.Known) },
	"isolated": func(r *Row) any { return results.If(r.Isolated >= 0, r.Isolated) },
})

// Limits are what rows can be limited in.
var Limits = budget.Quantities{
	{Name: "rounds", Columns: []string{"rounds"}, Doc: "of an interval"},
	{Name: "burst", Columns: []string{"burst"}, Doc: "interrupts that a CPU takes in an interval"},
	{Name: "isolated", Columns: []string{"isolated"}, Doc: "the same of isolated CPUs"},
}
