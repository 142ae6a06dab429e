// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim/hardware"
	"github.com/textpoke/textpoke/sim/timed"
)

// TestRowsOfCPUs: a run has a row for each CPU and each of rounds and stops, other causes where they interrupted
// anybody, and none where nothing was executed.
func TestRowsOfCPUs(t *testing.T) {
	c := config(t, "x86_64", "native", "gen:n=4", "busy=1,isolated=1")
	r := RunRow{Counts: cpus.NewCounts(2), Tallies: make([]cpus.Tally, 2)}
	r.Config = &c
	r.Counts.Sent[cpus.CoreSync], r.Counts.Taken[1][cpus.CoreSync], r.Counts.Rounds[0][cpus.Sync] = 1, 9, 3
	r.Tallies[1][cpus.Trap] = 7
	filled := func() (lines []string) {
		table, err := CPUColumns.Fill("cpu", r.CPUs(5))
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range table.Rows {
			lines = append(lines, fmt.Sprint(row))
		}
		return lines
	}
	want := []string{"[5 0 busy sync 0 3 0 ]", "[5 0 busy stop 0 0 0 ]", "[5 0 busy core-sync 0 0 0 ]",
		"[5 1 isolated sync 0 0 7 ]", "[5 1 isolated stop 0 0 7 ]", "[5 1 isolated core-sync 9 0 7 ]"}
	if got := filled(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	r.Stolen = []timed.Nanos{0, 44}
	if got := filled(); got[0] != "[5 0 busy sync 0 3 0 0]" || got[5] != "[5 1 isolated core-sync 9 0 7 44]" {
		t.Errorf("%q", got)
	}
	r.CountedOnly = true
	if got := filled(); got != nil {
		t.Errorf("%q of nothing", got)
	}
}

// TestColumnsOfEngines: what an engine does not know is empty in its rows.
func TestColumnsOfEngines(t *testing.T) {
	for name, change := range map[string]func(*RunRow){
		"live":     func(r *RunRow) {},
		"timed":    func(r *RunRow) { r.Modelled = &Modelled{}; r.Config.Engine = TimedEngine },
		"hardware": func(r *RunRow) { r.Config.Engine, r.Executed = HardwareEngine, &Executed{} },
		"counted":  func(r *RunRow) { r.CountedOnly = true; r.Config.Engine = TimedEngine },
	} {
		c := timedConfig(t, "x86_64", "native", "gen:n=4", "busy=1,isolated=1", plainCosts())
		r := RunRow{Engine: name, Burst: 6, Elapsed: 7, HasIsolated: true}
		r.Config, r.IPIsPerCPU, r.Lazy = &c, 12, 5
		change(&r)
		cells, err := RunColumns.Row(&r)
		if err != nil {
			t.Fatal(err)
		}
		known := map[string]bool{}
		for i, column := range RunColumns {
			known[column.Name] = cells[i] != results.Empty
		}
		for column, engines := range map[string][]string{
			"burst_max": {"live", "timed"}, "elapsed_ns": {"live", "hardware"}, "calls_per_s": {"timed"},
			"entries_per_s": {"timed"}, "traps": {"live", "timed", "hardware"}, "update_ns": {"timed"}, "stores": {"hardware"},
			"fetch": {"live", "timed", "counted"}, "requests": nil, "dispatch": nil, "update_hangs_on": nil,
		} {
			if known[column] != slices.Contains(engines, name) {
				t.Errorf("%s of the %s engine: known %v", column, name, known[column])
			}
		}
		if cells, err = CountedColumns.Row(&r.PlanRow); err != nil || cells[len(cells)-1].String() != "7" {
			t.Errorf("isolated CPUs take %s, %v, want 12 but 5", cells[len(cells)-1], err)
		}
	}
}

// TestSumsOfARow: sums over CPUs, and of isolated ones the most.
func TestSumsOfARow(t *testing.T) {
	roles, err := cpus.ParseRoles("busy=2,isolated=2")
	if err != nil {
		t.Fatal(err)
	}
	r := RunRow{Counts: cpus.NewCounts(4), Tallies: make([]cpus.Tally, 4)}
	for cpu := range 4 {
		r.Counts.Taken[cpu] = taken(uint64(10-cpu), 1)
		r.Counts.Burst[cpu] = int64(cpu % 3)
		for k, n := range map[cpus.Event]uint64{cpus.Trap: 1, cpus.Miss: 2, cpus.Traced: 3, cpus.Untraced: 4, cpus.Lost: 5} {
			r.Tallies[cpu][k] = n
		}
	}
	r.sum(roles)
	got := []uint64{r.Traps, r.Misses, r.Calls, r.Lost, r.Traced, r.Untraced, r.IsolatedMax, uint64(r.Burst)}
	if want := []uint64{4, 8, 48, 20, 12, 36, 9, 2}; !slices.Equal(got, want) || !r.HasIsolated {
		t.Errorf("%d, want %d", got, want)
	}
	if r = (RunRow{Counts: r.Counts, Tallies: r.Tallies}); true {
		if r.sum(roles[:2]); r.HasIsolated || r.IsolatedMax != 0 {
			t.Error("no CPU is isolated")
		}
	}
	var p PlanRow
	for f, n := range map[sched.Flush]int{sched.Full: 1, sched.Order: 2, sched.Final: 3} {
		for range n {
			p.flush(f)
		}
	}
	if p.Flushes != 6 || p.FlushFull != 1 || p.FlushOrder != 2 || p.FlushFinal != 3 {
		t.Errorf("%+v", p)
	}
}

// TestFences: interrupts of each CPU are fences of the firmware where it counts rounds, and there are any.
func TestFences(t *testing.T) {
	for arch, want := range map[string][2]bool{"riscv64": {false, true}, "x86_64": {false, false}} {
		c := config(t, arch, "native", "gen:n=4", "2")
		for rounds, fences := range want {
			r := PlanRow{Config: &c, Rounds: rounds}
			if r.fences() != fences {
				t.Errorf("%s, %d rounds: %v", arch, rounds, r.fences())
			}
			if r.perCPU(rounds, 5); arch == "riscv64" && (r.IPIsPerCPU != 5-4*rounds || r.OtherIPIsPerCPU != 5*rounds) ||
				arch == "x86_64" && (r.IPIsPerCPU != 5+rounds || r.OtherIPIsPerCPU != 0) {
				t.Errorf("%s, %d rounds: %d and %d", arch, rounds, r.IPIsPerCPU, r.OtherIPIsPerCPU)
			}
		}
	}
}

// TestModelledRow: means are of CPUs that are online, isolated ones tell the worst.
func TestModelledRow(t *testing.T) {
	c := timedConfig(t, "x86_64", "native", "gen:n=4", "busy=1,isolated=3,offline=1", plainCosts())
	m := newTimedFor(t, c, timed.HotOnly)
	out := timed.Outcome{Update: 1, Grace: 2, Exposure: 3, Events: 50, LeftOut: 4, CaughtUp: 5,
		Stolen: []timed.Nanos{40, 10, 30, 20, 99}, Quiet: []timed.Nanos{1, 7, 6, 8, 0}}
	var row RunRow
	m.fill(&row, &out, 2*time.Second)
	got := *row.Modelled
	want := Modelled{Calibration: "test", Update: 1, Grace: 2, Exposure: 3, Events: 50, EventRate: 25, Deferred: 4,
		CatchUps: 5, StolenMean: 25, StolenMax: 40, HasQuiet: true, IsolatedStolen: 30, IsolatedQuiet: 6}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	likely := calibration.Spread{Likely: 10, Low: 5, High: 30}
	if got, want := to(likely, 20), (calibration.Spread{Likely: 20, Low: 10, High: 60}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := to(calibration.Spread{High: 3}, 20), (calibration.Spread{Likely: 20, Low: 20, High: 20}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestTimePasses: on a calibrated machine events take time of CPUs between two updates; without times nothing
// happens.
func TestTimePasses(t *testing.T) {
	c := timedConfig(t, "x86_64", "native", "gen:n=4", "busy=1,isolated=1", plainCosts())
	m := newTimedFor(t, c, timed.HotOnly)
	if err := m.Pass(t.Context(), 1e8); err != nil || m.Life(1) == (timed.Life{}) {
		t.Errorf("%+v, %v", m.Life(1), err)
	}
	c.Calibration, c.Engine = nil, TimedEngine
	m = newTimedFor(t, c, timed.HotOnly)
	if err := m.Pass(t.Context(), 1e8); err != nil || m.Life(1) != (timed.Life{}) || m.Violations() != nil {
		t.Errorf("%+v, %v", m.Life(1), err)
	}
}

// TestExecutedRow: of rounds the median, the longest and the sum; what calls lost is the time that those which were
// made would not have taken.
func TestExecutedRow(t *testing.T) {
	out := hardware.Outcome{Stores: 3, Compared: 4, Took: []time.Duration{9, 1, 5, 3}, Elapsed: 1000, Called: 400,
		Callers: 2, Pace: 2000, Counts: cpus.NewCounts(2)}
	out.Counts.Taken[1][cpus.Sync] = 8
	got, want := *executed(&out), Executed{Stores: 3, Compared: 4, Answers: 8, RoundMedian: 5, RoundMax: 9, RoundsAll: 18,
		Pace: 2000, Stolen: 600}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	out.Took, out.Callers = nil, 0
	if got := *executed(&out); got.RoundMedian != 0 || got.Stolen != 0 {
		t.Errorf("%+v of no round and no caller", got)
	}
}

// TestSuspects: plans with a defect, from a file, or that rely on a store that is none run in a process of their own.
func TestSuspects(t *testing.T) {
	for _, tt := range []struct {
		protocol, mutation string
		file, want         bool
	}{{"native", "", false, false}, {"native", "drop-sync-3", false, true}, {"native", "", true, true},
		{"word", "", false, true}, {"stop-machine", "", false, false}} {
		c := config(t, "x86_64", tt.protocol, "gen:n=4", "2")
		c.Mutation = tt.mutation
		j := newJob(t, c)
		if tt.file {
			j.Config.Plan = j.protocol
		}
		if got := j.suspect(); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
	if newJob(t, config(t, "arm64", "native", "gen:n=4", "2")).suspect() {
		t.Error("one store replaces a whole site of arm64")
	}
}
