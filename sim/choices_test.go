// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sim/axis"
	"github.com/textpoke/textpoke/sim/hardware"
)

// TestAxesHaveNames: what stands on the command line is a word, and what explains it is longer.
func TestAxesHaveNames(t *testing.T) {
	word := regexp.MustCompile(`^[a-z]+(-[a-z]+)?$`)
	for _, a := range Axes {
		if !word.MatchString(a.Name) || a.Name != "seed" && len(a.Name) >= len(a.Doc) {
			t.Errorf("%q: %q", a.Name, a.Doc)
		}
	}
}

// TestChosenWords: each choice is read, and said again by the words that choose it; what a scenario leaves open its
// kernel says, and an engine that takes no times from a calibration says none.
func TestChosenWords(t *testing.T) {
	const machine = "--cpus 8 --fetch weak --lookup btree --refs percpu --buffer 256 "
	for _, tt := range []struct {
		uses    uint
		choices axis.Choices
		want    string
	}{
		{UsePlan, axis.Choices{"scenario": {"function-tracer"}, "kernel": {"x86_64-5.0"}, "state": {"recording=on",
			"sched_schedstats=on"}, "without-cause": {"core-sync", "static-key"}},
			"--arch x86_64 --records x86_64-6.12 --protocol breakpoint-global --order table " + machine +
				"--scenario function-tracer --kernel x86_64-5.0 --state recording=on,sched_schedstats=on " +
				"--without-cause core-sync,static-key --seed 0"},
		{UsePlan, axis.Choices{"scenario": {"function-tracer"}, "kernel": {"arm64-6.12"}, "protocol": {"word"}, "cpus": {"4"},
			"seed": {"7"}, "records": {"gen:n=4"}, "filter": {"fn1"}},
			"--arch arm64 --records gen:n=4 --filter fn1 --protocol word --order table " +
				strings.Replace(machine, "8", "4", 1) + "--scenario function-tracer --kernel arm64-6.12 --seed 7"},
		{UseLive | UseTimed, axis.Choices{"arch": {"x86_64"}, "records": {"gen:n=4"}, "buffer": {"256"}, "dispatch": {"list"},
			"tracers": {"relevant=2,irrelevant=3"}, "migrate": {"true"}},
			"--arch x86_64 --records gen:n=4 --protocol native --order table " + machine +
				"--dispatch list --tracers relevant=2,irrelevant=3 --seed 0 --migrate"},
		{UseLive | UseTimed, axis.Choices{"arch": {"x86_64"}, "records": {"gen:n=4"}, "buffer": {"256"}, "engine": {"timed"},
			"calibration": {"vm-2"}, "calls": {"7"}, "entries": {"0.5"}, "preempt": {"true"}, "mutate": {"drop-sync-3"}},
			"--arch x86_64 --records gen:n=4 --protocol native --mutate drop-sync-3 --order table " + machine +
				"--seed 0 --engine timed --calibration vm-2 --calls 7 --entries 0.5 --preempt"},
	} {
		configs, _, err := grid(t, tt.uses, tt.choices).Combinations(t.Context())
		if err != nil || len(configs) != 1 {
			t.Fatalf("%d combinations, %v", len(configs), err)
		}
		if diff := cmp.Diff(tt.want, strings.Join(configs[0].Flags(), " ")); diff != "" {
			t.Error(diff)
		}
	}
}

// TestScenarioChooses: a scenario asks for one size of vectors and its kernel's own architecture and protocol, but
// for what is chosen; another kernel's is refused.
func TestScenarioChooses(t *testing.T) {
	for _, tt := range []struct {
		more      axis.Choices
		protocols []string
	}{
		{axis.Choices{}, []string{"breakpoint-global"}}, {axis.Choices{"protocol": {"word"}}, []string{"word"}},
		{axis.Choices{"plan": {"x.plan"}}, nil},
	} {
		tt.more["scenario"], tt.more["kernel"] = []string{"function-tracer"}, []string{"x86_64-5.0"}
		got, err := follow(tt.more)
		if err != nil || !slices.Equal(got["protocol"], tt.protocols) || !slices.Equal(got["arch"], []string{"x86_64"}) ||
			!slices.Equal(got["buffer"], []string{"256"}) {
			t.Errorf("%v, %v", got, err)
		}
	}
	got, err := follow(axis.Choices{"scenario": {"function-tracer"}, "buffer": {"7", "8"}})
	if err != nil || len(got["buffer"]) != 2 || got["arch"] != nil {
		t.Errorf("%v, %v", got, err)
	}
}

// TestMachineChooses: the hardware engine alone leaves the open axes to this machine.
func TestMachineChooses(t *testing.T) {
	skipWithout(t)
	allowed, err := hardware.Allowed()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		choices    axis.Choices
		arch, cpus string
	}{
		{axis.Choices{"engine": {"hardware"}}, "x86_64", fmt.Sprint(allowed)},
		{axis.Choices{"engine": {"hardware"}, "arch": {"arm64"}, "cpus": {"3"}}, "arm64", "3"},
		{axis.Choices{"engine": {"hardware", "live"}}, "", ""}, {axis.Choices{}, "", ""},
	} {
		got, err := here(tt.choices)
		if arch, cpus := strings.Join(got["arch"], ","), strings.Join(got["cpus"], ","); err != nil || arch != tt.arch ||
			cpus != tt.cpus {
			t.Errorf("%v: arch %q, cpus %q, %v", tt.choices, arch, cpus, err)
		}
	}
}

// TestWhatCannotBe: a defect that one protocol lacks is left out where another one has it, and told; engines need
// something to patch, which counting does not; and tables of other architectures leave nothing to do.
func TestWhatCannotBe(t *testing.T) {
	two := axis.Choices{"arch": {"x86_64"}, "records": {"gen:n=4"}, "buffer": {"4"}, "protocol": {"breakpoint", "word"},
		"mutate": {"drop-sync-3"}}
	configs, warnings, err := grid(t, UsePlan, two).Combinations(t.Context())
	if err != nil || len(configs) != 1 || configs[0].Protocol != "breakpoint" || len(warnings) != 1 ||
		!strings.Contains(warnings[0], "drop-sync-3") {
		t.Errorf("%d combinations, %q, %v", len(configs), warnings, err)
	}
	two["protocol"] = []string{"word"}
	if _, _, err := grid(t, UsePlan, two).Combinations(t.Context()); err == nil || !strings.Contains(err.Error(),
		"drop-sync-3") {
		t.Errorf("%v", err)
	}
	none := axis.Choices{"arch": {"x86_64"}, "records": {"gen:n=0"}, "buffer": {"4"}}
	if _, _, err := grid(t, UsePlan, none).Combinations(t.Context()); err != nil {
		t.Error(err)
	}
	if _, _, err := grid(t, UseLive, none).Combinations(t.Context()); err == nil || !strings.Contains(err.Error(),
		"nothing to patch") {
		t.Errorf("%v", err)
	}
	warned := axis.Choices{"arch": {"x86_64"}, "records": {"gen:n=4"}, "protocol": {"word"}, "buffer": {"4", "5"}}
	if _, warnings, err := grid(t, UsePlan, warned).Combinations(t.Context()); err != nil || len(warnings) != 1 {
		t.Errorf("%q, %v, want one warning of two combinations", warnings, err)
	}
	g := grid(t, UsePlan, axis.Choices{"arch": {"arm64"}, "records": {"x86_64-6.12"}})
	if _, _, err := g.Combinations(t.Context()); err == nil {
		t.Error("records of another architecture")
	}
	if _, err := NewGrid(UseLive, axis.Choices{"preempt": {"true"}}, records.Options{}); err == nil {
		t.Error("the live engine preempts")
	}
}
