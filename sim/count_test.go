// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
)

func containsText(s, part string) bool { return strings.Contains(s, part) }

// TestCountFormulas compares with what the kernels' authors wrote down:
// 45,000 functions are 176 batches, 528 rounds; 34,274 are 134 batches, 402.
func TestCountFormulas(t *testing.T) {
	for _, tt := range []struct {
		n, slots, cpus        int
		flushes, rounds, ipis int
	}{
		{45000, 256, 64, 176, 528, 528 * 63},
		{34274, 256, 8, 134, 402, 402 * 7},
		{45000, 0, 64, 1, 3, 3 * 63},
		{45000, 170, 8, 265, 795, 795 * 7},
		{256, 256, 2, 1, 3, 3},
		{257, 256, 2, 2, 6, 6},
		{1, 1, 1, 1, 3, 0},
	} {
		c := config(t, "x86_64", "native", fmt.Sprintf("gen:n=%d,order=sorted", tt.n), fmt.Sprint(tt.cpus))
		c.Buffer = sched.Buffer{Slots: tt.slots}
		row, err := newJob(t, c).Count(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if row.Flushes != tt.flushes || row.Rounds != tt.rounds || row.IPIs != tt.ipis {
			t.Errorf("n=%d slots=%d cpus=%d: %d flushes, %d rounds, %d interrupts; want %d, %d, %d",
				tt.n, tt.slots, tt.cpus, row.Flushes, row.Rounds, row.IPIs, tt.flushes, tt.rounds, tt.ipis)
		}
	}
}

// TestCountAgreesWithThePlan: counting holds no plan, and must come to the same.
func TestCountAgreesWithThePlan(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		arch := rapid.SampledFrom(cpus.ArchNames()).Draw(rt, "arch")
		protocol := rapid.SampledFrom([]string{"native", "breakpoint", "word", "stop-machine", "breakpoint-global",
			"per-site"}).Draw(rt, "protocol")
		spec := fmt.Sprintf("gen:n=%d,groups=%d,modules=0.3,misaligned=0.1,seed=%d", rapid.IntRange(20, 400).Draw(rt, "n"),
			rapid.IntRange(1, 5).Draw(rt, "groups"), rapid.IntRange(1, 100).Draw(rt, "seed"))
		c := config(t, arch, protocol, spec, "5")
		c.Buffer = sched.Buffer{Slots: rapid.IntRange(0, 50).Draw(rt, "slots")}
		c.Order = rapid.SampledFrom([]sched.Ordering{sched.Table, sched.Sorted, sched.Shuffled, sched.Descending}).Draw(rt,
			"order")
		c.Lookup = rapid.SampledFrom([]int3.Lookup{int3.BTree, int3.Vector, int3.Groups, int3.Hash}).Draw(rt, "lookup")
		j := newJob(t, c)
		row, err := j.Count(t.Context())
		if err != nil {
			rt.Fatal(err)
		}
		plan, err := j.Plan()
		if err != nil {
			rt.Fatal(err)
		}
		rounds, stops, publishes := 0, 0, 0
		for _, s := range plan {
			switch s.Op.String() {
			case "Sync":
				rounds++
			case "StopMachine":
				stops++
			case "Publish":
				publishes++
			}
		}
		if row.Rounds != rounds || row.Stops != stops || row.IPIs != (rounds+stops)*4 {
			rt.Errorf("%s: %d rounds, %d stops, %d interrupts; the plan has %d, %d", j, row.Rounds, row.Stops, row.IPIs, rounds,
				stops)
		}
		if row.Buffered && row.Flushes != publishes {
			rt.Errorf("%s: %d flushes, %d batches published", j, row.Flushes, publishes)
		}
		if row.Flushes != row.FlushFull+row.FlushOrder+row.FlushFinal {
			rt.Errorf("%s: causes do not add up: %+v", j, row)
		}
		if row.Patches+row.Skipped != row.Records {
			rt.Errorf("%s: %d patches and %d skipped of %d records", j, row.Patches, row.Skipped, row.Records)
		}
	})
}

// TestOrderBreaks: a module below its predecessor closes a batch, on the real
// table with modules exactly as often as addresses descend between records of
// the same batch.
func TestOrderBreaks(t *testing.T) {
	c := config(t, "x86_64", "native", "x86_64-6.12-modules", "8")
	c.Buffer = sched.Dynamic
	row, err := newJob(t, c).Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	breaks := 0
	for i := 1; i < c.Table.Len(); i++ {
		if c.Table.Addr(i) < c.Table.Addr(i-1) {
			breaks++
		}
	}
	if breaks == 0 || row.FlushOrder != breaks || row.Rounds != 3*(breaks+1) {
		t.Errorf("%d flushes for order, %d rounds; the table has %d breaks", row.FlushOrder, row.Rounds, breaks)
	}
	c.Order = sched.Sorted
	row, err = newJob(t, c).Count(t.Context())
	if err != nil || row.Rounds != 3 {
		t.Errorf("sorted: %d rounds, %v; want 3", row.Rounds, err)
	}
}

// TestFilter: only what the filter names is patched.
func TestFilter(t *testing.T) {
	c := config(t, "x86_64", "native", "x86_64-6.12", "8")
	var err error
	if c.Filter, err = records.ParseFilter([]string{"vfs_*"}); err != nil {
		t.Fatal(err)
	}
	j := newJob(t, c)
	want := 0
	for i := range c.Table.Len() {
		if strings.HasPrefix(c.Table.Symbol(i), "vfs_") {
			want++
		}
	}
	if len(j.queue) != want || want == 0 || !slices.IsSorted(j.queue) {
		t.Errorf("%d records, want %d", len(j.queue), want)
	}
}

// TestPlanOfNothing: to change no record takes no round, no stop and no step,
// whatever the protocol; there is nothing to execute then.
func TestPlanOfNothing(t *testing.T) {
	for _, arch := range []string{"x86_64", "arm64", "riscv64"} {
		for _, protocol := range poke.Names() {
			for _, source := range []struct{ table, filter string }{{"gen:n=0", ""}, {"gen:n=9", "fn1 !fn1"}} {
				c := config(t, arch, protocol, source.table, "4")
				if source.filter != "" {
					var err error
					if c.Filter, err = records.ParseFilter([]string{source.filter}); err != nil {
						t.Fatal(err)
					}
				}
				j := newJob(t, c)
				if protocol == "fence-per-write" && arch != "riscv64" {
					continue // impossible there
				}
				row, err := j.Count(t.Context())
				if err != nil || row.Patches+row.Flushes+row.Rounds+row.Stops+row.IPIs != 0 {
					t.Errorf("%s: %+v, %v", j, row, err)
				}
				if _, err := NewLive(j); err == nil || !strings.Contains(err.Error(), "nothing to patch") {
					t.Errorf("%s: %v", j, err)
				}
			}
		}
	}
}

func TestNewJobRefuses(t *testing.T) {
	c := config(t, "x86_64", "native", "gen:n=10", "2")
	for name, change := range map[string]func(*Config){
		"unknown protocol":      func(c *Config) { c.Protocol = "magic" },
		"unknown mutation":      func(c *Config) { c.Mutation = "magic" },
		"mutation not offered":  func(c *Config) { c.Mutation = "misaligned-literal" },
		"table of another arch": func(c *Config) { c.Table, _ = records.Open(t.Context(), "arm64-6.12", records.Options{}) },
		"nothing matches":       func(c *Config) { c.Filter, _ = records.ParseFilter([]string{"no_such_function"}) },
	} {
		bad := c
		change(&bad)
		if _, err := NewJob(bad); err == nil || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "%!") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOf: some records in ascending order fill vectors of b slots ceil(n/b) times,
// three rounds each; all of them are the job itself.
func TestOf(t *testing.T) {
	j := newJob(t, config(t, "x86_64", "native", "gen:n=60,order=sorted", "4"))
	rapid.Check(t, func(t *rapid.T) {
		which := rapid.SliceOfNDistinct(rapid.IntRange(0, 59), 1, 60, rapid.ID[int]).Draw(t, "which")
		slots := rapid.IntRange(1, 70).Draw(t, "slots")
		row, err := j.Of(which, sched.Buffer{Slots: slots}).Count(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rounds := 3 * ((len(which) + slots - 1) / slots)
		if row.Patches != len(which) || row.Rounds != rounds || row.IPIs != 3*rounds {
			t.Errorf("%d of %d slots: %d patches, %d rounds, want %d", len(which), slots, row.Patches, row.Rounds, rounds)
		}
	})
}

// TestKindsOfInterrupts: remote fences of riscv64, which the firmware counts, and
// interrupts of /proc/interrupts are never one number. One fence a site inside of
// one stop: n and 1 there; elsewhere everything is one kind.
func TestKindsOfInterrupts(t *testing.T) {
	for _, c := range []struct {
		arch, protocol string
		perCPU, other  int
	}{
		{"riscv64", "fence-per-write", 30, 1}, {"riscv64", "stop-machine", 1, 0}, {"riscv64", "native", 31, 0},
		{"x86_64", "stop-machine", 1, 0}, {"x86_64", "breakpoint", 3, 0}, {"arm64", "breakpoint", 3, 0},
	} {
		row, err := newJob(t, config(t, c.arch, c.protocol, "gen:n=30,order=sorted", "4")).Count(t.Context())
		if err != nil || row.IPIsPerCPU != c.perCPU || row.OtherIPIsPerCPU != c.other {
			t.Errorf("%s %s: %d and %d per CPU, %v; want %d and %d", c.arch, c.protocol, row.IPIsPerCPU, row.OtherIPIsPerCPU,
				err, c.perCPU, c.other)
		}
	}
}

// TestFirmwareCountsTheSender: the row of riscv64's remote fences shows them on the
// hart that asks too, as the firmware's counter does; other rows do not.
func TestFirmwareCountsTheSender(t *testing.T) {
	for arch, sender := range map[string]int64{"riscv64": 11, "x86_64": 0} {
		l := newLive(t, newJob(t, config(t, arch, "native", "gen:n=10", "2")))
		before := l.Counts()
		row, err := l.Update(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		got := snapshot(row, l.Counts().Since(before)).Rows[0].Counts
		if want := []int64{sender, int64(row.Rounds)}; !slices.Equal(got, want) {
			t.Errorf("%s: %d, want %d", arch, got, want)
		}
	}
}
