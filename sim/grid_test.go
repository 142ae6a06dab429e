// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sim/axis"
)

func grid(t *testing.T, uses uint, choices axis.Choices) *Grid {
	t.Helper()
	g, err := NewGrid(uses, choices, records.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestPoints: as many combinations are foretold as there are, each is another, and its
// flags choose just it.
func TestPoints(t *testing.T) {
	var plans []string
	for _, p := range poke.ShippedPlans()[:3] {
		path := filepath.Join(t.TempDir(), p.Name)
		if err := os.WriteFile(path, p.Text, 0o666); err != nil {
			t.Fatal(err)
		}
		plans = append(plans, path)
	}
	lists := axis.Choices{
		"records": {"gen:n=5", "gen:n=7"}, "arch": cpus.ArchNames(), "protocol": {poke.Native, "stop-machine"}, "plan": plans,
		"buffer": {"2", "dynamic"}, "order": {"table", "random"}, "lookup": {"btree", "hash"}, "fetch": {"weak", "atomic"},
		"cpus": {"1", "2", "3"}, "filter": {"fn*,fn1"}, "seed": {"1", "2", "3"}, "refs": {"percpu", "shared"},
	}
	rapid.Check(t, func(rt *rapid.T) {
		choices := axis.Choices{"records": lists["records"][:1]}
		for _, flag := range slices.Sorted(maps.Keys(lists)) {
			if n := rapid.IntRange(0, len(lists[flag])).Draw(rt, flag); n > 0 {
				choices[flag] = lists[flag][:n]
			}
		}
		if choices["plan"] != nil {
			delete(choices, "protocol")
		}
		g := grid(t, UsePlan, choices)
		configs, _, err := g.Combinations(t.Context())
		if err != nil {
			rt.Fatal(err)
		}
		if len(configs) != g.Points() {
			rt.Errorf("%d combinations, %d were foretold", len(configs), g.Points())
		}
		seen := map[string]bool{}
		for i := range configs {
			flags := configs[i].Flags()
			if key := strings.Join(flags, " "); seen[key] {
				rt.Errorf("twice: %s", key)
			} else {
				seen[key] = true
			}
			if i%len(flags) == 0 { // some will do
				again, _, err := grid(t, UsePlan, chosenBy(flags)).Combinations(t.Context())
				if err != nil || len(again) != 1 || !slices.Equal(again[0].Flags(), flags) {
					rt.Errorf("%s chooses %d combinations: %v", flags, len(again), err)
				}
			}
		}
	})
}

// chosenBy reads flags that Axes.Flags has made.
func chosenBy(flags []string) axis.Choices {
	choices := axis.Choices{}
	for i := 0; i < len(flags); i++ {
		flag := strings.TrimPrefix(flags[i], "--")
		if Axes.Named(flag).Form == axis.Switch {
			choices[flag] = []string{"true"}
			continue
		}
		i++
		choices[flag] = flags[i : i+1]
	}
	return choices
}

// TestPointsOfBuiltins: tables that are of one architecture are not multiplied by
// the others, unless they were asked for, which is an error later.
func TestPointsOfBuiltins(t *testing.T) {
	choices := axis.Choices{"buffer": {"256"}}
	for _, b := range records.Builtins() {
		choices["records"] = append(choices["records"], b.Name)
	}
	g := grid(t, UsePlan, choices)
	configs, _, err := g.Combinations(t.Context())
	if err != nil || len(configs) != len(choices["records"]) || g.Points() != len(configs) {
		t.Errorf("%d combinations of %d tables, %d were foretold: %v", len(configs), len(choices["records"]), g.Points(), err)
	}
}

// TestPointsOverflow: what nobody could count is still too many.
func TestPointsOverflow(t *testing.T) {
	many := func(value string) []string { return slices.Repeat([]string{value}, 1<<16) }
	g := grid(t, UsePlan, axis.Choices{
		"arch": {"x86_64"}, "protocol": many(poke.Native), "order": many("table"), "lookup": many("hash"), "seed": many("1"),
	})
	if got := g.Points(); got != math.MaxInt {
		t.Errorf("2^64 points are %d", got)
	}
}

// TestNoBufferNoRows: who runs it and has not asked for sizes of a vector gets one row
// where nothing is queued in one. Counting, and who has asked, get the cross product.
func TestNoBufferNoRows(t *testing.T) {
	buffers := func(uses uint, choices axis.Choices) (got []string) {
		configs, _, err := grid(t, uses, choices).Combinations(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range configs {
			got = append(got, fmt.Sprintf("%s %s", c.Arch.Traits().Name, c.Buffer))
		}
		return got
	}
	every := []string{"x86_64 256", "x86_64 dynamic", "arm64 256", "arm64 dynamic", "riscv64 256", "riscv64 dynamic"}
	for _, tt := range []struct {
		uses    uint
		choices axis.Choices
		want    []string
	}{
		{UseLive | UseTimed, axis.Choices{}, []string{"x86_64 256", "x86_64 dynamic", "arm64 256", "riscv64 256"}},
		{UseLive | UseTimed, axis.Choices{"buffer": {"256", "dynamic"}}, every},
		{UsePlan, axis.Choices{}, every},
	} {
		tt.choices["records"] = []string{"gen:n=9"}
		if diff := cmp.Diff(tt.want, buffers(tt.uses, tt.choices)); diff != "" {
			t.Error(diff)
		}
	}
}

// TestRefused: what an engine does not know is refused by name, and so is what makes no
// sense together.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		choices axis.Choices
		want    string
	}{
		{axis.Choices{"preempt": {"true"}}, "preempt goes with engine timed: the live engine does not know it"},
		{axis.Choices{"engine": {"timed", "live"}, "preempt": {"true"}},
			"preempt goes with engine timed: the live engine"},
		{axis.Choices{"engine": {"live"}, "calls": {"7"}}, "calls goes with engine timed: the live engine"},
		{axis.Choices{"engine": {"live", "timed"}, "scenario": {"function-tracer"}},
			"scenario goes with engine timed: the live engine"},
		{axis.Choices{"kernel": {"x86_64-6.12"}}, "kernel goes with scenario"},
		{axis.Choices{"tracers": {"relevant=2"}}, "tracers goes with dispatch"},
		{axis.Choices{"plan": {"x"}, "protocol": {"word"}}, "plan goes in place of protocol"},
		{axis.Choices{"arch": {}}, "arch: empty list"},
		{axis.Choices{"fetch": {"waek"}}, `fetch "waek": not one of`},
		{axis.Choices{"sites": {"2"}}, "sites: there is no such axis"},
		{axis.Choices{"engine": {"timed"}, "scenario": {"function-tracer"}, "kernel": {"x86_64-6.12"}, "arch": {"arm64"}},
			"kernel x86_64-6.12 does not go with arch arm64"},
	} {
		_, err := NewGrid(UseLive|UseTimed, tt.choices, records.Options{})
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %s", tt.choices, err, tt.want)
		}
	}
	for _, choices := range []axis.Choices{
		{"engine": {"live", "timed"}, "calibration": {"vm-2"}},
		{"engine": {"timed"}, "preempt": {"true"}, "calls": {"7"}, "dispatch": {"list"}, "tracers": {"relevant=2"}},
	} {
		grid(t, UseLive|UseTimed, choices)
	}
}

// TestSilentAxes: rows of the live engine have no calibration, and are not multiplied by
// several.
func TestSilentAxes(t *testing.T) {
	configs, _, err := grid(t, UseLive|UseTimed, axis.Choices{
		"arch": {"x86_64"}, "records": {"gen:n=9"}, "buffer": {"4"}, "engine": {"live", "timed"},
		"calibration": {"vm-2", "sg2042", "refcount-480"}, "calls": {"1", "2"},
	}).Combinations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range configs {
		name := ""
		if c.Calibration != nil {
			name = c.Calibration.Name
		}
		calls := "the calibration's"
		if c.Calls != nil {
			calls = fmt.Sprint(*c.Calls)
		}
		got = append(got, fmt.Sprintf("%s %s %s", c.Engine, name, calls))
	}
	want := []string{"live  the calibration's", "timed vm-2 1", "timed vm-2 2", "timed refcount-480 1",
		"timed refcount-480 2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	_, _, err = grid(t, UseLive|UseTimed, axis.Choices{
		"arch": {"x86_64"}, "records": {"gen:n=9"}, "engine": {"timed"}, "calibration": {"sg2042"},
	}).Combinations(t.Context())
	if err == nil || !strings.Contains(err.Error(), "calibration sg2042 is of a machine of riscv64") {
		t.Errorf("%v", err)
	}
}

func TestSplitSources(t *testing.T) {
	for values, want := range map[string][]string{
		"":                          {""},
		"x86_64-6.12,arm64-6.12":    {"x86_64-6.12", "arm64-6.12"},
		"gen:n=5,groups=2":          {"gen:n=5,groups=2"},
		"gen:n=5,groups=2,gen:n=3":  {"gen:n=5,groups=2", "gen:n=3"},
		"gen:n=5,arm64-6.12,nosuch": {"gen:n=5", "arm64-6.12", "nosuch"},
		"arm64-6.12,gen:n=5,oops":   {"arm64-6.12", "gen:n=5,oops"},
		"a,":                        {"a", ""},
	} {
		if got, err := splitSources([]string{values}); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q: %v", values, got, want, err)
		}
	}
}

func TestAlternatives(t *testing.T) {
	for list, want := range map[string][]string{
		"a": {"a"}, "a,b": {"a", "b"}, "[a,b]c,d": {"[a,b]c", "d"}, `a\,b,c`: {`a\,b`, "c"}, "": {""}, ",": {"", ""},
		`a\`: {`a\`}, "[a,b": {"[a,b"}, "a],b": {"a]", "b"},
	} {
		if got := alternatives(list); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", list, got, want)
		}
	}
	if got, err := splitFilters([]string{"a,b", "!c,d"}); err != nil ||
		!slices.Equal(got, []string{"a !c", "a d", "b !c", "b d"}) {
		t.Errorf("%q: %v", got, err)
	}
	if _, err := splitFilters(slices.Repeat([]string{"a,b"}, 64)); err == nil || !strings.Contains(err.Error(),
		"more than 100000 filters") {
		t.Errorf("2^64 filters: %v", err)
	}
}
