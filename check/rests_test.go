// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/sim/axis"
)

// TestVerdictsSayWhatTheyRestOn: who sends no round promises nothing, and says so beside
// "safe"; every verdict, whatever it is, says what it assumes.
func TestVerdictsSayWhatTheyRestOn(t *testing.T) {
	write := func(name, locks string) string {
		return planFile(t, "name: "+name+"\n"+locks+"every batch:\n    Write word\n    Fence\n")
	}
	plan, bare := write("silent", ""), write("bare", "locks: plan\n")
	two := func(plan string) axis.Choices {
		return axis.Choices{"arch": {"arm64"}, "layout": {"plain"}, "plan": {plan}, "patchers": {"2"}, "cpus": {"3"},
			"workload": {"once"}}
	}
	for _, c := range []struct {
		choices         axis.Choices
		limit           uint64
		verdict         explore.Verdict
		promises, tells string
	}{
		{axis.Choices{"arch": {"arm64"}, "layout": {"plain"}, "plan": {plan}}, 0, explore.Safe, "nothing",
			"promises: nothing; assumes: workload endless; fetch weak"},
		// A plan of one's own that changes no literal is about sites without, unless a layout is asked for.
		{axis.Choices{"arch": {"arm64"}, "plan": {plan}}, 0, explore.Safe, "nothing", "promises: nothing; assumes: "},
		{axis.Choices{"arch": {"arm64"}, "layout": {"call-ops"}, "plan": {plan}}, 0, explore.Unsafe, "", ": unsafe; assumes: "},
		{axis.Choices{"arch": {"x86_64"}}, 0, explore.Safe, "new text", "promises: new text; assumes: workload endless"},
		{axis.Choices{"arch": {"x86_64"}, "mutate": {"drop-sync-1"}}, 0, explore.Unsafe, "",
			": unsafe; assumes: workload endless; fetch weak; the return from a trap fetches afresh; not modelled: "},
		{axis.Choices{"arch": {"x86_64"}, "workload": {"once"}}, 10, explore.Incomplete, "",
			": incomplete; assumes: workload once"},
		{two(plan), 0, explore.Safe, "nothing", "fetch weak; text_mutex held around every update; not modelled"},
		{two(bare), 0, explore.Safe, "nothing", "fetch weak; no text_mutex; not modelled"},
	} {
		all, _, err := Questions(c.choices)
		if err != nil {
			t.Fatal(err)
		}
		r, err := all[0].Ask(t.Context(), explore.Options{LimitStates: c.limit})
		if err != nil {
			t.Fatal(err)
		}
		cells := map[string]any{}
		for _, col := range Columns {
			cells[col.Name] = col.Cell(&r)
		}
		if cells["verdict"] != string(c.verdict) || cells["assumes"] == "" || c.promises != "" &&
			cells["promises"] != c.promises {
			t.Errorf("%v: %v, promises %v, assumes %v; want %s, %s", c.choices, cells["verdict"], cells["promises"],
				cells["assumes"], c.verdict, c.promises)
		}
		if told := strings.Join(strings.Fields(r.RestsOn(0)), " "); !strings.Contains(told, c.tells) ||
			strings.Contains(told, "promises") != (c.promises != "") {
			t.Errorf("%v: %q, want %q", c.choices, told, c.tells)
		}
	}
}
