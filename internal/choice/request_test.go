// SPDX-License-Identifier: Apache-2.0

package choice_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/internal/choice"
)

// TestRequest: the words of a command line, JSON and fields hold the same value.
func TestRequest(t *testing.T) {
	want := choice.Request{Name: "experiment all", Config: choice.Choices{
		"cpus": {"2", "busy=1,idle=1"}, "out": {""}, "fixed": {"true"}, "limit-states": {"5"},
	}}
	for _, args := range [][]string{
		{"textpoke", "experiment", "all", "--cpus=2", "--cpus=busy=1,idle=1", "--fixed=true", "--limit-states=5", "--out="},
		{"textpoke", "experiment", "all", "--cpus", "2", "--limit-states", "5", "--fixed", "--cpus", "busy=1,idle=1", "--out="},
		{"textpoke", "experiment", "--cpus", "2", "all", "--limit-states", "5", "--cpus", "busy=1,idle=1", "--out=", "--fixed"},
	} {
		if diff := cmp.Diff(want, choice.ParseArgs(args)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", args, diff)
		}
	}
	text, err := json.Marshal(want)
	var read choice.Request
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if diff := cmp.Diff(want, read); err != nil || diff != "" {
		t.Errorf("%v: %s: (-want +got):\n%s", err, text, diff)
	}
	if less := want.Without("out", "cpus"); less.Has("cpus") || !less.Has("fixed") || !want.Has("cpus") {
		t.Errorf("%v, %v", less, want)
	}
}

// TestFill: fields are set by either spelling of their names, and what is of no field is handed back.
func TestFill(t *testing.T) {
	var states, sites int
	var names []string
	fields := []*choice.Field{
		choice.Count(&states, "limit-states", 0, "", 0, math.MaxInt), choice.Count(&sites, "sites", 2, "", 1, 4),
		choice.List(&names, "names", "", "", choice.OneOf([]string{"a", "b"})),
	}
	rest, err := choice.Choices{"limit_states": {"7"}, "names": {"a", "b"}, "bug": {"x"}}.Fill(fields)
	if diff := cmp.Diff(choice.Choices{"bug": {"x"}}, rest); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if states != 7 || sites != 0 || !cmp.Equal(names, []string{"a", "b"}) {
		t.Errorf("%d states, %d sites, %v", states, sites, names)
	}
	if _, err := (choice.Choices{"sites": {"5"}}).Fill(fields); err == nil ||
		err.Error() != `sites "5": want whole numbers from 1 to 4` {
		t.Errorf("%v", err)
	}
}
