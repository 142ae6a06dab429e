// SPDX-License-Identifier: Apache-2.0

package axis_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/sim/axis"
)

// trip is a combination: who travels, how, and how far.
type trip struct {
	by    string
	miles int
	fast  bool
}

const (
	car uint = 1 << iota
	boat
)

var trips = axis.Table[trip]{
	{
		Spec:  choice.Spec{Name: "by", Doc: "means", Names: []string{"road", "river"}, Closed: true, Default: "road"},
		Uses:  car | boat,
		Parse: func(by string) (axis.Set[trip], error) { return func(t *trip) error { t.by = by; return nil }, nil },
		Print: func(t *trip) string { return t.by },
	},
	{
		Spec: choice.Spec{Name: "miles", Doc: "distances"}, Uses: car | boat, Column: "distance",
		Parse: func(value string) (axis.Set[trip], error) {
			n, err := strconv.Atoi(value)
			return func(t *trip) error {
				if t.by == "river" && n > 100 {
					return axis.Unfit("no river is so long")
				}
				t.miles = n
				return nil
			}, err
		},
		Print: func(t *trip) string { return strconv.Itoa(t.miles) },
	},
	func() axis.Axis[trip] {
		fast := axis.Bool("fast", "as fast as it goes", func(t *trip) *bool { return &t.fast })
		fast.Uses, fast.Needs = car, "miles"
		fast.Applies = func(t *trip) bool { return t.by == "road" }
		return fast
	}(),
}

// A command's flags, help and cross product follow from a table of axes.
func Example() {
	g, err := trips.Read(axis.Choices{"by": {"road", "river"}, "miles": {"7", "300"}, "fast": {"true"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	all, err := g.Cross([]trip{{}}, func(_ string, so []trip) ([]trip, error) { return so, nil })
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range all {
		fmt.Println(strings.Join(trips.Flags(&all[i]), " "))
	}
	fmt.Println(trips.Named("by").Usage())
	// Output:
	// --by road --miles 7 --fast
	// --by road --miles 300 --fast
	// --by river --miles 7
	// `list` of means: road, river
}

// TestShort: presets are left out, whatever else was chosen.
func TestShort(t *testing.T) {
	for want, c := range map[string]trip{"--miles 7": {"road", 7, false}, "--by river --miles 0 --fast": {"river", 0, true}} {
		if got := strings.Join(trips.Short(&c), " "); got != want {
			t.Errorf("%+v: %s, want %s", c, got, want)
		}
	}
}

// TestInPlace: an axis that another one stands in for has no presets then, and both together are refused.
func TestInPlace(t *testing.T) {
	by := trips[0]
	raft := by
	raft.Name, raft.Default, raft.Replaces, raft.Names = "raft", "", "by", []string{"log"}
	table := axis.Table[trip]{by, raft}
	for want, choices := range map[int]axis.Choices{1: {}, 2: {"by": {"road", "river"}}} {
		if g, err := table.Read(choices); err != nil || g.Points() != want {
			t.Errorf("%v: %v, %v", choices, g, err)
		}
	}
	g, err := table.Read(axis.Choices{"raft": {"log"}})
	if err != nil {
		t.Fatal(err)
	}
	all, err := g.Cross([]trip{{}}, func(_ string, so []trip) ([]trip, error) { return so, nil })
	if err != nil || len(all) != 1 || all[0].by != "log" {
		t.Errorf("%+v, %v", all, err)
	}
	for want, choices := range map[string]axis.Choices{
		"raft goes in place of by: want one of them": {"raft": {"log"}, "by": {"road"}},
		"by: empty list": {"by": {}},
	} {
		if _, err := table.Read(choices); err == nil || err.Error() != want {
			t.Errorf("%v: %v, want %s", choices, err, want)
		}
	}
}

func TestRead(t *testing.T) {
	for _, tt := range []struct {
		choices axis.Choices
		want    string
	}{
		{axis.Choices{"by": {"rail"}}, `by "rail": not one of road, river`},
		{axis.Choices{"by": {}}, "by: empty list"},
		{axis.Choices{"miles": {"x"}}, "miles strconv.Atoi"},
		{axis.Choices{"fast": {"true"}}, "fast goes with miles"},
		{axis.Choices{"wide": {"1"}}, "wide: there is no such axis"},
	} {
		if _, err := trips.Read(tt.choices); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %s", tt.choices, err, tt.want)
		}
	}
}

// TestUnfit: a value that fits nowhere is an error, and not silence.
func TestUnfit(t *testing.T) {
	g, err := trips.Read(axis.Choices{"by": {"river"}, "miles": {"300", "400"}})
	if err != nil {
		t.Fatal(err)
	}
	if n := g.Points(); n != 2 {
		t.Errorf("%d points", n)
	}
	if several := g.Several(); len(several) != 1 || !several["distance"] {
		t.Errorf("several %v", several)
	}
	if _, err := g.Cross([]trip{{}}, func(_ string, so []trip) ([]trip, error) { return so, nil }); err == nil ||
		err.Error() != "no river is so long" {
		t.Errorf("%v", err)
	}
}

// TestRefuse: what was chosen is refused where something in use does not know it, unless
// its silence shows beside one that does.
func TestRefuse(t *testing.T) {
	all := []axis.Engine{{Name: "car", Uses: car}, {Name: "boat", Uses: boat}}
	silent := slices.Clone(trips)
	silent.Named("fast").Silent = true
	for _, tt := range []struct {
		table axis.Table[trip]
		inUse []string
		want  string
	}{
		{trips, []string{"car"}, ""},
		{trips, []string{"boat"}, "fast goes with engine car: the boat engine does not know it"},
		{trips, []string{"car", "boat"}, "fast goes with engine car: the boat engine does not know it"},
		{silent, []string{"car", "boat"}, ""},
		{silent, []string{"boat"}, "fast goes with engine car: the boat engine does not know it"},
	} {
		g, err := tt.table.Read(axis.Choices{"miles": {"1"}, "fast": {"true"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Refuse(all, tt.inUse); (err == nil) != (tt.want == "") || err != nil && err.Error() != tt.want {
			t.Errorf("%v: %v, want %q", tt.inUse, err, tt.want)
		}
	}
	if known := trips.For(boat); len(known) != 2 || known.Named("fast") != nil {
		t.Errorf("a boat knows %d axes", len(known))
	}
}
