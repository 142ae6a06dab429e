// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
)

// TestRealKernels updates all records of the three built-in kernels and holds
// the rounds against what interrupts on the same kernels, booted, showed: the
// part that grows with the number of records (B batches of 256, n records).
func TestRealKernels(t *testing.T) {
	for _, tt := range []struct {
		arch, roles    string
		records        int
		rounds, groups int
	}{
		// x86_64 6.12: CAL 3B + 49, B = ceil(42757/256) = 168.
		{"x86_64", "4", 42757, 3 * 168, 3},
		// arm64 6.12: IPI1 4, none of them for records.
		{"arm64", "4", 48048, 0, 2},
		// riscv64 7.2: fence.i n + 4, of which n + 1 for records.
		{"riscv64", "2", 41845, 41845 + 1, 3},
	} {
		t.Run(tt.arch, func(t *testing.T) {
			if testing.Short() && tt.rounds > 10_000 {
				t.Skip("-short: too many rounds")
			}
			table := map[string]string{"x86_64": "x86_64-6.12", "arm64": "arm64-6.12", "riscv64": "riscv64-7.2"}[tt.arch]
			l := newLive(t, newJob(t, config(t, tt.arch, "native", table, tt.roles)))
			ipis := (len(l.job.Roles) - 1) * tt.rounds
			for _, enable := range []bool{true, false} {
				row := update(t, l, enable)
				if row.Patches != tt.records || row.Rounds != tt.rounds || row.Groups != tt.groups || row.IPIs != ipis {
					t.Errorf("%s: %d patches, %d rounds, %d groups, %d interrupts; want %d, %d, %d, %d", row.Direction,
						row.Patches, row.Rounds, row.Groups, row.IPIs, tt.records, tt.rounds, tt.groups, ipis)
				}
				if row.Violations != 0 || row.Lost != 0 || row.Misses != 0 {
					t.Errorf("%s: %d violations, %d lost calls, %d misses: %v", row.Direction, row.Violations, row.Lost, row.Misses,
						l.Violations())
				}
			}
		})
	}
}

// TestFullProtocols: no violation with the weakest fetch model, at several
// sizes of machine, to and fro for a while (-long: for half a minute each).
func TestFullProtocols(t *testing.T) {
	d := 50 * time.Millisecond
	if *long {
		d = 30 * time.Second
	}
	for _, roles := range []string{"8", "busy=40,idle=8,isolated=8,irqsoff=8", "256"} {
		sound(t, func(arch, protocol string) {
			t.Run(fmt.Sprintf("%s/%s/%s", arch, protocol, roles), func(t *testing.T) {
				c := config(t, arch, protocol, "gen:n=300,groups=3,modules=0.2", roles)
				c.Buffer, c.Migrate = sched.Buffer{Slots: 64}, true
				if row, err := newJob(t, c).Count(t.Context()); err != nil || row.Rounds > c.Table.Len() {
					// Rounds grow with sites: fewer make as many updates.
					few := config(t, arch, protocol, "gen:n=12", roles)
					c.Table = few.Table
				}
				if v := hunt(t, newLive(t, newJob(t, c)), d); len(v) > 0 {
					t.Errorf("%v", v)
				}
			})
		})
	}
}

// TestAnyOrderCanBeSearched: what is published can be found, in whatever order it
// was queued, by every kind of index.
func TestAnyOrderCanBeSearched(t *testing.T) {
	for _, protocol := range []string{"breakpoint", "breakpoint-global"} {
		for _, lookup := range []int3.Lookup{int3.BTree, int3.Vector, int3.Groups, int3.Hash} {
			for _, order := range []sched.Ordering{sched.Table, sched.Sorted, sched.Shuffled, sched.Descending} {
				c := config(t, "x86_64", protocol, "gen:n=60,groups=4", "4")
				c.Lookup, c.Order = lookup, order
				l := newLive(t, newJob(t, c))
				for _, enable := range []bool{true, false} {
					if row := update(t, l, enable); row.Misses != 0 || row.Violations != 0 {
						t.Errorf("%s, lookup %s, order %s: %d misses, %d violations", protocol, lookup, order, row.Misses, row.Violations)
					}
				}
			}
		}
	}
}

// TestMutationsAreFound: take away a step that the protocol needs, and the live
// machine breaks in the way that the step prevents.
func TestMutationsAreFound(t *testing.T) {
	any := []cpus.Property{cpus.StaleAfterCompletion, cpus.LostCall}
	for _, tt := range []struct {
		arch, protocol, mutation string
		want                     []cpus.Property
	}{
		{"x86_64", "breakpoint", "drop-sync-1", []cpus.Property{cpus.TornFetch}},
		{"x86_64", "breakpoint", "drop-sync-2", []cpus.Property{cpus.TornFetch}},
		{"x86_64", "breakpoint", "drop-sync-3-no-recheck", []cpus.Property{cpus.UnhandledBreakpoint}},
		{"x86_64", "breakpoint", "no-breakpoint", []cpus.Property{cpus.TornFetch}},
		{"x86_64", "breakpoint", "late-publish", []cpus.Property{cpus.UnhandledBreakpoint}},
		{"x86_64", "breakpoint", "unsorted-batch", []cpus.Property{cpus.UnhandledBreakpoint}},
		{"x86_64", "breakpoint", "overfull-batch", []cpus.Property{cpus.Overflow}},
		{"x86_64", "breakpoint", "early-release", []cpus.Property{cpus.UnhandledBreakpoint}},
		{"x86_64", "breakpoint", "no-grace-period", []cpus.Property{cpus.UseAfterFree}},
		{"x86_64", "breakpoint-global", "drop-sync-1", []cpus.Property{cpus.TornFetch}},
		{"x86_64", "per-site", "drop-sync-1", []cpus.Property{cpus.TornFetch}},
		{"x86_64", "stop-machine", "no-stop", []cpus.Property{cpus.TornFetch, cpus.StaleAfterCompletion}},
		{"arm64", "native", "misaligned-literal", []cpus.Property{cpus.TornLiteral}},
		{"arm64", "native", "no-grace-period", []cpus.Property{cpus.UseAfterFree}},
		{"arm64", "breakpoint", "late-publish", []cpus.Property{cpus.UnhandledBreakpoint}},
		{"arm64", "breakpoint", "drop-sync-3-no-recheck", []cpus.Property{cpus.UnhandledBreakpoint}},
		{"riscv64", "native", "drop-sync-2", any},
		{"riscv64", "native", "no-fence", any},
		{"riscv64", "native", "misaligned-literal", []cpus.Property{cpus.TornLiteral}},
		{"riscv64", "breakpoint", "early-release", []cpus.Property{cpus.UnhandledBreakpoint}},
		{"riscv64", "stop-machine", "no-stop", []cpus.Property{cpus.HalfPair, cpus.StaleAfterCompletion}},
		{"riscv64", "fence-per-write", "no-stop", []cpus.Property{cpus.HalfPair, cpus.StaleAfterCompletion}},
	} {
		t.Run(tt.arch+"/"+tt.protocol+"/"+tt.mutation, func(t *testing.T) {
			c := config(t, tt.arch, tt.protocol, "gen:n=100,groups=2", "6")
			c.Mutation, c.Buffer, c.Lookup, c.Order = tt.mutation, sched.Buffer{Slots: 32}, int3.Vector, sched.Shuffled
			if tt.mutation != "unsorted-batch" {
				c.Order = sched.Sorted
			}
			v := find(t, newLive(t, newJob(t, c)), 50_000)
			if len(v) == 0 {
				t.Fatal("nothing found")
			}
			if got := v[0].Property; !slices.Contains(tt.want, got) {
				t.Errorf("found %s first (%v), want %v", got, properties(v), tt.want)
			}
		})
	}
}

// TestHarmlessMutations: steps that are there for speed, for other machines, or
// whose absence the handler forgives. If one of these breaks, the page that says
// so is wrong.
func TestHarmlessMutations(t *testing.T) {
	for _, tt := range []struct{ arch, mutation, why string }{
		{"x86_64", "drop-sync-3", "a handler that finds no entry sees that the breakpoint has gone"},
		{"arm64", "drop-sync-1", "sites are one word: under the breakpoint only data changes"},
		{"arm64", "drop-sync-2", "and a new branch always finds the new literal"},
	} {
		c := config(t, tt.arch, "breakpoint", "gen:n=100,groups=2", "6")
		c.Mutation, c.Buffer = tt.mutation, sched.Buffer{Slots: 32}
		if v := hunt(t, newLive(t, newJob(t, c)), 300*time.Millisecond); len(v) > 0 {
			t.Errorf("%s on %s: %v, though %s", tt.mutation, tt.arch, v[0], tt.why)
		}
	}
}

// TestStaleness: after an update arm64's native protocol lets a CPU run the old
// branch until its next context synchronisation; all that synchronise every CPU
// do not. Either way nothing calls a tracer once a disable is through.
func TestStaleness(t *testing.T) {
	c := config(t, "arm64", "native", "gen:n=1", "2")
	l := newLive(t, newJob(t, c))
	update(t, l, true)
	if got := l.Machine.Settled(0).Seq(); got != 0 {
		t.Errorf("arm64 native promised something: %d", got)
	}
	sound(t, func(arch, protocol string) {
		l := newLive(t, newJob(t, config(t, arch, protocol, "gen:n=12", "4")))
		for range 3 {
			update(t, l, true)
			update(t, l, false)
			sum := goOn(t, l)
			if sum[cpus.Traced] != 0 || sum.Calls() == 0 {
				t.Errorf("%s %s: %d of %d calls reached a tracer after it was disabled", arch, protocol, sum[cpus.Traced],
					sum.Calls())
			}
		}
	})
}

// TestEnabledMeansTraced: where every CPU is synchronised, every call after an
// enable that covers all sites reaches the tracer.
func TestEnabledMeansTraced(t *testing.T) {
	sound(t, func(arch, protocol string) {
		j := newJob(t, config(t, arch, protocol, "gen:n=12", "4"))
		if !j.protocol.Settles(j.shape) {
			return
		}
		l := newLive(t, j)
		update(t, l, true)
		sum := goOn(t, l)
		if sum[cpus.Untraced] != 0 || sum[cpus.Lost] != 0 || sum[cpus.Traced] == 0 {
			t.Errorf("%s %s: %d traced, %d untraced, %d lost", arch, protocol, sum[cpus.Traced], sum[cpus.Untraced],
				sum[cpus.Lost])
		}
	})
}

// TestWarning: what cannot be replaced by one store is said before it is tried.
func TestWarning(t *testing.T) {
	for _, tt := range []struct {
		arch, protocol string
		want           bool
	}{
		{"x86_64", "word", true}, {"x86_64", "native", false}, {"x86_64", "stop-machine", false},
		{"arm64", "native", false}, {"arm64", "word", false}, {"riscv64", "native", false},
	} {
		w := newJob(t, config(t, tt.arch, tt.protocol, "gen:n=10", "2")).Warnings()
		if (len(w) > 0) != tt.want {
			t.Errorf("%s %s: %q", tt.arch, tt.protocol, w)
		}
	}
}

// TestWarningAboutSkippedRecords: what is left out is said.
func TestWarningAboutSkippedRecords(t *testing.T) {
	j := newJob(t, config(t, "arm64", "native", "gen:n=100,misaligned=0.2", "2"))
	want := fmt.Sprintf("records gen:n=100,misaligned=0.2: arm64 refuses %d of 100 for their alignment; they are left out",
		j.skipped)
	if w := j.Warnings(); j.skipped == 0 || len(w) != 1 || w[0] != want {
		t.Errorf("%d skipped: %q", j.skipped, w)
	}
}

// TestWarningAboutFilters: an expression that matches nothing is named, though
// another one matches.
func TestWarningAboutFilters(t *testing.T) {
	c := config(t, "x86_64", "native", "gen:n=10", "2")
	c.Filter, _ = records.ParseFilter([]string{"fn1", "nosuch_*"})
	if w := newJob(t, c).Warnings(); len(w) != 1 || !containsText(w[0], `filter "nosuch_*" matches no record`) {
		t.Errorf("%q", w)
	}
}

// TestFailedUpdateIsReported with the state that it left.
func TestFailedUpdateIsReported(t *testing.T) {
	l := newLive(t, newJob(t, config(t, "x86_64", "native", "gen:n=600", "4")))
	stores := 0
	l.patcher.Fault = func(st poke.Step, _ int32) error {
		if stores++; stores == 900 { // in the second batch
			return poke.ErrInjected
		}
		return nil
	}
	_, err := l.Update(t.Context(), true)
	if err == nil {
		t.Fatal("no error")
	}
	if want := "every site is all old"; !containsText(err.Error(), want) {
		t.Errorf("%q does not say %q", err, want)
	}
	for i := range l.sites.enable {
		if p := &l.sites.enable[i]; l.Machine.Peek(i) != p.Old {
			t.Fatalf("site %d is not old", i)
		}
	}
}

// TestLiteralsAreHeldAgainstTheUpdate: a site whose text is right and whose ops
// is not is broken all the same.
func TestLiteralsAreHeldAgainstTheUpdate(t *testing.T) {
	l := newLive(t, newJob(t, config(t, "arm64", "native", "gen:n=4", "2")))
	update(t, l, true)
	patches := []poke.Patch{l.sites.patch(0, true), l.sites.patch(1, true)}
	l.Machine.StoreLiteral(1, nopOps)
	l.checkSites(patches)
	if vs := l.Violations(); len(vs) != 1 || vs[0].Property != cpus.BrokenSite || vs[0].Site != 1 {
		t.Errorf("violations %v, want one at site 1", vs)
	}
}
