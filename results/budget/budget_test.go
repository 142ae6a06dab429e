// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"fmt"
	"slices"
	"testing"

	"github.com/textpoke/textpoke/results"
)

var all = Quantities{{Name: "ipis", Columns: []string{"first", "second"}, Doc: "interrupts"},
	{Name: "update", Columns: []string{"ns"}, Time: true, Doc: "time"}}

func Example() {
	limits, err := all.Parse([]string{"ipis=3", "update=1ms"})
	columns := []results.Column{{Name: "second"}, {Name: "ns"}}
	over, unknown := Exceeded(limits, columns, []results.Value{results.Int(5), results.Int(1_000_000)})
	fmt.Println(Say(over), unknown, err)
	_, unknown = Exceeded(limits, columns, []results.Value{results.Int(3), results.Empty})
	fmt.Println(unknown)
	// Output:
	// ipis 5, 2 over the budget of 3 [] <nil>
	// [update=1ms]
}

// TestFirstColumn: the first column that a row knows counts.
func TestFirstColumn(t *testing.T) {
	limits, err := all.Parse([]string{"ipis=1"})
	if err != nil {
		t.Fatal(err)
	}
	columns := []results.Column{{Name: "second"}, {Name: "first"}}
	for want, row := range map[float64][]results.Value{7: {results.Int(3), results.Int(7)}, 3: {results.Int(3), results.Empty}} {
		if over, _ := Exceeded(limits, columns, row); len(over) != 1 || over[0].Got != want {
			t.Errorf("%v: %v, want %v", row, over, want)
		}
	}
}

// TestParse: limits are read, and what is no limit is refused in words that name it and say how one looks.
func TestParse(t *testing.T) {
	more := append(all[:len(all):len(all)], Quantity{Name: "burst", Per: "/ms", Doc: "in a millisecond"})
	for item, want := range map[string]string{
		"ipis=0": "ipis=0", "burst=5/ms": "burst=5/ms", "update=1500us": "update=1.5ms", "update=0s": "update=0s",
		"ipis=9007199254740992": "ipis=9007199254740992",
	} {
		limits, err := more.Parse([]string{item})
		if err != nil || len(limits) != 1 || limits[0].String() != want {
			t.Errorf("%s: %v, %v; want %s", item, limits, err, want)
		}
	}
	const whole, timed, rate = "want a whole number from 0, such as ipis=5", "want a time with its unit, such as update=2ms",
		"want a whole number from 0, such as burst=5/ms"
	for items, want := range map[[2]string]string{
		{"ipis=x"}:                "budget \"ipis=x\": " + whole,
		{"ipis=-1"}:               "budget \"ipis=-1\": " + whole,
		{"ipis=9007199254740993"}: "budget \"ipis=9007199254740993\": " + whole,
		{"update=5"}:              "budget \"update=5\": " + timed,
		{"update=-1s"}:            "budget \"update=-1s\": " + timed,
		{"burst=5"}:               "budget \"burst=5\": " + rate,
		{"burst=x/ms"}:            "budget \"burst=x/ms\": " + rate,
		{"ipis=1", "ipis=2"}:      "budget \"ipis=2\": ipis is limited twice",
		{"ipes=1"}:                "budget \"ipes=1\": not one of ipis, update, burst; did you mean ipis?",
	} {
		list := slices.DeleteFunc(items[:], func(s string) bool { return s == "" })
		if _, err := more.Parse(list); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", list, err, want)
		}
	}
	if _, err := more.Parse(nil); err == nil || err.Error() != "budget: no limit; want some of ipis, update, burst" {
		t.Errorf("nothing: %v", err)
	}
	if got, want := more.Help(), "ipis (interrupts), update (time), burst (in a millisecond)"; got != want {
		t.Errorf("help: %s, want %s", got, want)
	}
}

// TestEdge: a limit is kept by a row that has just as much, and a time is rounded up, so that it is never shown as kept.
func TestEdge(t *testing.T) {
	limits, err := all.Parse([]string{"ipis=3", "update=2ns"})
	if err != nil {
		t.Fatal(err)
	}
	columns := []results.Column{{Name: "first"}, {Name: "ns"}}
	if over, unknown := Exceeded(limits, columns, []results.Value{results.Int(3), results.Int(2)}); over != nil || unknown != nil {
		t.Errorf("%v, %v", over, unknown)
	}
	over, _ := Exceeded(limits, columns, []results.Value{results.Int(4), results.Float(2.5)})
	if got, want := Say(over), "ipis 4, 1 over the budget of 3; update 3ns, 1ns over the budget of 2ns"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
