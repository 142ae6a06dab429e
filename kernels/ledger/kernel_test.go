// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
)

func mustKernel(t *testing.T, name string) *Kernel {
	t.Helper()
	k, err := Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func mustLedger(t *testing.T, k *Kernel, s Scenario, enable bool) []Entry {
	t.Helper()
	entries, err := k.Ledger(s, enable, nil)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func rounds(entries []Entry) (n int) {
	for _, e := range entries {
		n += e.Rounds()
	}
	return n
}

// TestLedgers: the sums that call stacks gave on 6.12, and what follows from the
// source of other releases (step by step: 33 or 3 a branch for tracepoints, 3 for
// the trampoline, 5 where it is made of cached pages, 6, 1, 6).
func TestLedgers(t *testing.T) {
	for _, tt := range []struct {
		kernel   string
		scenario Scenario
		on, off  int
	}{
		{"x86_64-6.12", FunctionTracer, 49, 46},
		{"x86_64-6.12", FunctionGraph, 67, 64},
		{"x86_64-7.1", FunctionTracer, 33 + 3 + 6 + 1 + 6, 6 + 1 + 6 + 33},
		{"x86_64-7.1", FunctionTracerFirst, 33 + 5 + 6 + 1 + 6, 6 + 1 + 6 + 33},
		{"x86_64-5.0", FunctionTracer, 3*3 + 3 + 6 + 1 + 6, 6 + 1 + 6 + 3*3},
		{"arm64-6.12", FunctionTracer, 4, 4},
		{"arm64-6.12", FunctionGraph, 4, 4},
		{"riscv64-7.2", FunctionTracer, 4, 4},
		{"riscv64-7.2", FunctionGraph, 4, 4},
		{"riscv64-6.12", FunctionTracer, 3, 3},
		{"riscv64-6.12", FunctionGraph, 3, 3},
	} {
		k := mustKernel(t, tt.kernel)
		if got := rounds(mustLedger(t, k, tt.scenario, true)); got != tt.on {
			t.Errorf("%s %s on: %d rounds, want %d", tt.kernel, tt.scenario, got, tt.on)
		}
		if got := rounds(mustLedger(t, k, tt.scenario, false)); got != tt.off {
			t.Errorf("%s %s off: %d rounds, want %d", tt.kernel, tt.scenario, got, tt.off)
		}
	}
}

// TestOrder: the function tracer hooks tracepoints before the records and unhooks
// them after; function_graph the other way round, but for its own probe
// (function_trace_init and graph_trace_init, kernel/trace). The calls inside
// ftrace_caller change before and after; nothing orders loads before.
func TestOrder(t *testing.T) {
	for _, k := range Kernels() {
		for _, s := range Scenarios() {
			for _, enable := range []bool{true, false} {
				entries, err := k.Ledger(s, enable, nil)
				if err != nil {
					continue
				}
				if before, after := Split(entries); !slices.Equal(append(slices.Clone(before), after...), entries) ||
					slices.ContainsFunc(before, func(e Entry) bool { return e.AfterRecords }) ||
					slices.ContainsFunc(after, func(e Entry) bool { return !e.AfterRecords }) {
					t.Errorf("%s %s: parted into %v and %v", k.Name(), s, before, after)
				}
				around := map[bool]int{}
				for i, e := range entries {
					if i > 0 && entries[i-1].AfterRecords && !e.AfterRecords {
						t.Errorf("%s %s: %s after the records' entries", k.Name(), s, e.Part)
					}
					switch {
					case e.Part == "entry-calls":
						around[e.AfterRecords]++
					case e.Cause == cpus.CoreSync && !e.AfterRecords:
						t.Errorf("%s %s: orders loads before the records", k.Name(), s)
					case s != FunctionGraph && e.Part == "command-lines" && e.AfterRecords == enable:
						t.Errorf("%s %s, enable %v: tracepoints on the wrong side", k.Name(), s, enable)
					case s == FunctionGraph && e.Part == "own-probe" && e.AfterRecords == enable:
						t.Errorf("%s %s, enable %v: own probe on the wrong side", k.Name(), s, enable)
					}
				}
				if around[false] != around[true] {
					t.Errorf("%s %s: calls change %d times before and %d after", k.Name(), s, around[false], around[true])
				}
			}
		}
	}
}

// TestDefaults: every instruction set stands for one kernel, whose records cost
// what counting that architecture's own protocol says.
func TestDefaults(t *testing.T) {
	for _, name := range cpus.ArchNames() {
		k := For(name)
		if k == nil {
			t.Fatalf("no kernel for %s", name)
		}
		arch, err := cpus.ParseArch(name)
		if err != nil {
			t.Fatal(err)
		}
		p := poke.Named(poke.Native, arch.Traits())
		if own := poke.Named(k.Protocol, arch.Traits()); own == nil || own.Summary != p.Summary {
			t.Errorf("%s: its protocol %s is not the native one", k.Name(), k.Protocol)
		}
		for _, n := range []int{1, 256, 257, 1000} {
			var count poke.Count
			batches := 0
			site, err := arch.Site(records.Addr(0x1004), p.Layout)
			if err != nil {
				t.Fatal(err)
			}
			shape := poke.Shape{Traits: arch.Traits(), Len: int(site.Len), Patches: n}
			cut := sched.CutFor(p.Batching, n, func(i int) records.Addr { return records.Addr(i) }, sched.Buffer{Slots: 256},
				false)
			err = p.Compile(shape, func(yield func(poke.Range) bool) {
				for b := range cut {
					if batches++; !yield(b.Range) {
						return
					}
				}
			}, count.Add)
			if err != nil {
				t.Fatal(err)
			}
			got := 0
			for _, r := range k.RecordRounds(batches, n) {
				got += r
			}
			if got != count.Rounds {
				t.Errorf("%s, %d records: %d rounds, the plan has %d", k.Name(), n, got, count.Rounds)
			}
		}
	}
	if For("vax") != nil {
		t.Error("a kernel for vax")
	}
	presets := 0
	for _, k := range Kernels() {
		for _, row := range []string{k.SyncRow, k.StopRow} {
			if _, ok := k.Row(row); !ok {
				t.Errorf("%s: no row %s", k.Name(), row)
			}
		}
	}
	for _, b := range builtins() {
		if b.Default {
			presets++
		}
	}
	if presets != len(cpus.ArchNames()) {
		t.Errorf("%d kernels stand for %d instruction sets", presets, len(cpus.ArchNames()))
	}
}

// TestRecordRounds: what the protocols of the releases say.
func TestRecordRounds(t *testing.T) {
	for name, want := range map[string]map[string]int{
		"x86_64-6.12":  {"CAL": 12},
		"x86_64-7.1":   {"CAL": 12},
		"x86_64-5.0":   {"CAL": 3},
		"arm64-6.12":   {},
		"riscv64-7.2":  {"FW_FENCE_I_RECVD": 1001},
		"riscv64-6.12": {"IPI0": 1},
	} {
		got := mustKernel(t, name).RecordRounds(4, 1000)
		if len(got) != len(want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		for row, n := range want {
			if got[row] != n {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
		if none := mustKernel(t, name).RecordRounds(0, 0); len(none) != 0 {
			t.Errorf("%s: nothing is patched, and takes %v", name, none)
		}
	}
}

// TestKprobeEvent: the first kprobe event on a function's entry, with recording of
// command lines off, took 19 on a real 6.12, and the last one to go 16 (4 CPUs, the
// quietest receiver): one record is a batch of three.
func TestKprobeEvent(t *testing.T) {
	x86 := mustKernel(t, "x86_64-6.12")
	s, err := ParseSwitch([]string{"command-lines"})
	if err != nil {
		t.Fatal(err)
	}
	for enable, want := range map[bool]int{true: 19, false: 16} {
		got := x86.Takes(s.Leave(mustLedger(t, x86, FunctionTracer, enable)), 1, 1, false)["CAL"]
		if got != want {
			t.Errorf("enable %v: %d, measured %d", enable, got, want)
		}
	}
}

// TestSwitch: without recording command lines 33 are absent, as where a trace
// event is on already; causes go by their names, and nothing else does.
func TestSwitch(t *testing.T) {
	x86 := mustKernel(t, "x86_64-6.12")
	for _, tt := range []struct {
		without string
		tracer  int
		graph   int
	}{
		{"command-lines", 49 - 33, 67 - 33 + 3}, // it is function_graph's own probe that finds the key of sched_switch off
		{"static-key", 49 - 9, 67 - 9},
		{"static-call", 49 - 24, 67 - 24 - 6 - 12},
		{"static-key,static-call", 16, 16},
		{"entry-calls", 49 - 12, 67 - 12},
		{"entry-call", 49 - 12, 67 - 12},
		{"core-sync,trampoline", 45, 63},
	} {
		s, err := ParseSwitch(strings.Split(tt.without, ","))
		if err != nil {
			t.Fatal(err)
		}
		if got := rounds(s.Leave(mustLedger(t, x86, FunctionTracer, true))); got != tt.tracer {
			t.Errorf("without %s: %d, want %d", tt.without, got, tt.tracer)
		}
		if got := rounds(s.Leave(mustLedger(t, x86, FunctionGraph, true))); got != tt.graph {
			t.Errorf("graph without %s: %d, want %d", tt.without, got, tt.graph)
		}
	}
	for _, bad := range []string{"sync", "stop", "quiesce", "", "static"} {
		if _, err := ParseSwitch([]string{bad}); err == nil || !strings.Contains(err.Error(), "not one of") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestTakes: a patcher takes nothing of its own, but from firmware that counts it.
func TestTakes(t *testing.T) {
	k := mustKernel(t, "riscv64-7.2")
	entries := mustLedger(t, k, FunctionTracer, true)
	for patcher, want := range map[bool]map[string]int{
		false: {"FW_FENCE_I_RECVD": 104, "IPI1": 1},
		true:  {"FW_FENCE_I_RECVD": 104, "IPI1": 0},
	} {
		got := k.Takes(entries, 1, 100, patcher)
		if len(got) != 2 || got["FW_FENCE_I_RECVD"] != want["FW_FENCE_I_RECVD"] || got["IPI1"] != want["IPI1"] {
			t.Errorf("patcher %v: %v, want %v", patcher, got, want)
		}
	}
}

// TestRange: ranges add up, and one without a bound makes the sum a lower bound.
func TestRange(t *testing.T) {
	var r Range
	for _, c := range []struct {
		e    Entry
		want string
	}{
		{Entry{Pokes: 2, RoundsPerPoke: 3}, "6"},
		{Entry{Sent: 4, Fewer: 4, More: 1}, "6..11"},
		{Entry{Pokes: 5, RoundsPerPoke: 1, Fewer: 1, OrMore: true}, "10 or more"},
		{Entry{Sent: 1}, "11 or more"},
	} {
		if r.Add(&c.e); r.String() != c.want {
			t.Errorf("%s, want %s", r, c.want)
		}
	}
}

// TestUnknown: one line that says which names there are.
func TestUnknown(t *testing.T) {
	_, err := Named("x86_64-6.13")
	if err == nil || !strings.Contains(err.Error(), "did you mean x86_64-6.12") {
		t.Error(err)
	}
	_, err = mustKernel(t, "x86_64-5.0").Ledger("function-trace", true, nil)
	if err == nil || !strings.Contains(err.Error(), "did you mean function-tracer") {
		t.Error(err)
	}
}
