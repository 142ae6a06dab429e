// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// smallTable has several groups and modules, and more records than the smaller
// buffers have slots. Where nothing is queued in a buffer, tinyTable does.
const (
	smallTable = "gen:n=300,groups=3,modules=0.2,misaligned=0.1"
	tinyTable  = "gen:n=50,groups=3,modules=0.2,misaligned=0.1"
)

// everyBuffer is buffers and orders that cut batches for every cause.
var everyBuffer = []string{"--buffer", "1,2,170,256,dynamic", "--order", "table,sorted,random,descending"}

// unsafe is what works without being safe: words of five bytes are not written
// atomically.
var unsafe = map[string]bool{"x86_64 word": true}

// TestPlanAndRunAgree compares what plan counts with what run did: all columns
// that they share, for every combination that is possible. What is not possible
// both refuse, in the same words.
func TestPlanAndRunAgree(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range poke.Names() {
			t.Run(arch+"/"+protocol, func(t *testing.T) {
				t.Parallel()
				agree(t, arch, protocol)
			})
		}
	}
}

func agree(t *testing.T, arch, protocol string) {
	args := append([]string{"--arch", arch, "--protocol", protocol, "--cpus", "2", "--format", "csv"}, everyBuffer...)
	buffered := strings.HasPrefix(protocol, "breakpoint") && protocol != "breakpoint-global" || protocol == poke.Native &&
		arch == "x86_64"
	args = append(args, "--records", map[bool]string{true: smallTable, false: tinyTable}[buffered])
	plan, run := textpoke(t, append([]string{"plan"}, args...)...), textpoke(t, append([]string{"run"}, args...)...)
	if plan.code == exitWrong {
		if run != plan {
			t.Errorf("plan says %q and run says %q", plan.err, run.err)
		}
		return
	}
	want := exitDone
	if unsafe[arch+" "+protocol] {
		want = exitNo
	}
	if plan.code != exitDone || run.code != want {
		t.Fatalf("exit codes %d and %d: %.2000s%.2000s", plan.code, run.code, plan.err, run.err)
	}
	counted, ran := mustSheet(t, plan.out), mustSheet(t, run.out)
	among := slices.DeleteFunc(slices.Clone(ran.header), func(c string) bool { return !slices.Contains(counted.header, c) })
	if !slices.Equal(among, counted.header) {
		t.Fatalf("run has not the columns of plan, in their order: %v, and %v", ran.header, counted.header)
	}
	if len(counted.rows) != 20 || len(ran.rows) != 40 {
		t.Fatalf("%d and %d rows", len(counted.rows), len(ran.rows))
	}
	for i, row := range ran.rows {
		if (row["flushes"] != "") != buffered {
			t.Errorf("row %d: flushes %q", i, row["flushes"])
		}
		for _, column := range counted.header {
			if got, want := row[column], counted.rows[i/2][column]; got != want {
				t.Errorf("%s %s, buffer %s, order %s, %s: run's %s is %q, plan's %q",
					arch, protocol, row["buffer"], row["order"], row["direction"], column, got, want)
			}
		}
		if direction := []string{"enable", "disable"}[i%2]; row["direction"] != direction {
			t.Errorf("row %d: direction %s", i, row["direction"])
		}
	}
}

// TestIsolatedAgree compares plan and run on a machine with isolated CPUs. What
// lazy rounds cost is not the plan's alone to say: an isolated CPU may be in the
// kernel when one comes, for a system call of its own or because it has not left
// since it was started, and is interrupted then. So plan gives the least, and run
// must lie between that and rounds that leave nobody out; everything else, and
// what other protocols cost, must be equal.
func TestIsolatedAgree(t *testing.T) {
	const roles, online, isolated = "busy=2,isolated=2,idle=1,offline=1", 5, 2
	for _, protocol := range []string{"breakpoint", "breakpoint-lazy"} {
		args := []string{"--protocol", protocol, "--cpus", roles, "--records", smallTable, "--buffer", "8", "--log", "error",
			"--format", "csv"}
		counted, ran := mustSheet(t, done(t, append([]string{"plan"}, args...)...)), mustSheet(t,
			done(t, append([]string{"run"}, args...)...))
		for i, row := range ran.rows {
			plan := counted.rows[i/2]
			for _, column := range counted.header {
				if column != "ipis" && row[column] != plan[column] {
					t.Errorf("%s %s: run's %s is %q, plan's %q", row["arch"], protocol, column, row[column], plan[column])
				}
			}
			rounds, _ := strconv.Atoi(row["rounds"])
			least, most := rounds*(online-1), rounds*(online-1)
			if protocol == "breakpoint-lazy" {
				least -= rounds * isolated
			}
			if plan["ipis"] != strconv.Itoa(least) || rounds == 0 {
				t.Errorf("%s %s: plan counts %s interrupts for %d rounds, want %d", row["arch"], protocol, plan["ipis"], rounds,
					least)
			}
			if n, _ := strconv.Atoi(row["ipis"]); n < least || n > most {
				t.Errorf("%s %s: run took %d interrupts, want %d to %d", row["arch"], protocol, n, least, most)
			}
		}
	}
}

// TestPlanIsDeterministic repeats plans, also of what is random.
func TestPlanIsDeterministic(t *testing.T) {
	random := func(seed int) []string {
		return []string{"plan", "--log", "error", "--records", smallTable, "--order", "random,table", "--seed",
			fmt.Sprint(seed),
			"--lookup", "btree,vector,groups,hash", "--cpus", "2,64", "--protocol", "native,breakpoint"}
	}
	for _, format := range []string{"csv", "json", "table"} {
		first, again := done(t, append(random(7), "--format", format)...), done(t, append(random(7), "--format", format)...)
		if first != again {
			t.Errorf("two plans with the same seed differ in %s", format)
		}
	}
	steps := append(random(7), "--steps", "--lookup", "btree", "--format", "csv")
	if first, again := done(t, steps...), done(t, steps...); first != again {
		t.Error("the steps of two plans with the same seed differ")
	}
	if one, other := done(t, append(random(7), "--format", "csv")...), done(t, append(random(8), "--format",
		"csv")...); one == other {
		t.Error("another seed gives another random order, but the plans are the same")
	}
}
