// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/results/interrupts"
)

// TestRowsOfNext: who took most is the first of those that took as many; of isolated CPUs the one with most is told, 0
// as well; rows that nothing explains, that did not grow, or that have no CPUs are none.
func TestRowsOfNext(t *testing.T) {
	w := Watcher{Isolated: []int{1, 2}}
	text := func(cal, rest string) interrupts.Snapshot {
		s, err := interrupts.Parse("reading",
			strings.NewReader("     CPU0 CPU1 CPU2 CPU3\nCAL: "+cal+"  Function call interrupts\nERR: "+rest+"\nXYZ: "+cal+
				"  Something else\n"))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if rows, err := w.Next(text("0 0 0 0", "1"), 0, 0); rows != nil || err != nil {
		t.Errorf("the first reading: %v, %v", rows, err)
	}
	rows, err := w.Next(text("9 3 9 0", "5"), 2*time.Second, time.Second)
	if err != nil || len(rows) != 1 {
		t.Fatalf("%+v, %v", rows, err)
	}
	r := &rows[0]
	if r.Name != "CAL" || r.Burst != 9 || r.BurstCPU != 0 || r.Isolated != 9 || r.At != 2*time.Second ||
		r.Interval != time.Second || r.Calls != "" {
		t.Errorf("%+v", r)
	}
	if rows, err = w.Next(text("9 3 9 0", "7"), 3*time.Second, time.Second); len(rows) != 0 || err != nil {
		t.Errorf("nothing grew: %v, %v", rows, err)
	}
	if rows, err = w.Next(text("9 3 9 4", "7"), 4*time.Second, time.Second); len(rows) != 1 || rows[0].Isolated != 0 ||
		err != nil {
		t.Errorf("no isolated CPU took any: %+v, %v", rows, err)
	}
}

// TestSentences: each part of a row's sentence, where there is something to say.
func TestSentences(t *testing.T) {
	row := func(change func(r *Row), cal ...int64) string {
		var w Watcher
		none := make([]int64, len(cal))
		if _, err := w.Next(reading(t, none...), 0, 0); err != nil {
			t.Fatal(err)
		}
		rows, err := w.Next(reading(t, cal...), 1500*time.Millisecond, time.Second)
		if err != nil || len(rows) != 1 {
			t.Fatal(rows, err)
		}
		change(&rows[0])
		return rows[0].Sentence()
	}
	keep := func(*Row) {}
	for want, got := range map[string]string{
		"   1.500 s  CAL: 30 rounds by CPU 1; 30 on CPU 0":             row(keep, 30, 0, 30),
		"   1.500 s  CAL: about 30 rounds by CPU 1; 31 on CPU 0":       row(keep, 31, 0, 30),
		"   1.500 s  CAL: of two CPUs nothing follows; 5 on CPU 1":     row(keep, 0, 5),
		"   1.500 s  CAL: no rounds explain half of it; 1000 on CPU 2": row(keep, 0, 0, 1000, 0),
		"   1.500 s  CAL: 30 rounds by CPU 1; 30 on CPU 0, 0 on an isolated one": row(func(r *Row) { r.Isolated = 0 }, 30, 0,
			30),
		"   1.500 s  CAL: 30 rounds by CPU 1; 30 on CPU 0; f 3": row(func(r *Row) { r.Calls = "f 3" }, 30, 0,
			30),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestCPULists: single ones and ranges, up to the largest number that a CPU may have; and the file that has one.
func TestCPULists(t *testing.T) {
	for list, want := range map[string][]int{"": nil, "0": {0}, "3-3": {3}, "65536": {65536}, "1,3-4": {1, 3, 4}} {
		got, err := ParseCPUs(list)
		if !slices.Equal(got, want) || err != nil {
			t.Errorf("%q: %v, %v", list, got, err)
		}
		file := filepath.Join(t.TempDir(), "isolated")
		if err := os.WriteFile(file, []byte(list+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := IsolatedCPUs(file); !slices.Equal(got, want) {
			t.Errorf("a file with %q: %v", list, got)
		}
	}
	for _, list := range []string{"65537", "2-1", "x-3", "3-x", ",", "1-2-3", "0x3", "99999999999"} {
		if got, err := ParseCPUs(list); got != nil || err == nil ||
			err.Error() != fmt.Sprintf("CPUs %q: want a list such as 2,4-7", list) {
			t.Errorf("%q: %v, %v", list, got, err)
		}
		file := filepath.Join(t.TempDir(), "isolated")
		if err := os.WriteFile(file, []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := IsolatedCPUs(file); got != nil {
			t.Errorf("a file with %q: %v", list, got)
		}
	}
}

// TestCellsOfRows: an interval in milliseconds; rounds and whether they are exact where something follows; isolated
// CPUs where there are any.
func TestCellsOfRows(t *testing.T) {
	cells := func(r *Row) map[string]any {
		facts := map[string]any{}
		if err := Columns.AddTo(facts, r); err != nil {
			t.Fatal(err)
		}
		return facts
	}
	var w Watcher
	for i, cal := range [][]int64{{0, 0, 0}, {30, 0, 30}, {61, 0, 60}, {61, 0, 60}} {
		rows, err := w.Next(reading(t, cal...), time.Duration(i)*time.Second, 1500*time.Microsecond)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			got := cells(&r)
			want := map[string]any{"at_s": float64(i), "interval_ms": 1.5, "rounds": int64(30), "exact": i == 1,
				"isolated": nil, "burst": int64(29 + i)}
			for name, value := range want {
				if got[name] != value {
					t.Errorf("interval %d: %s is %v, want %v", i, name, got[name], value)
				}
			}
			if r.Isolated = 0; cells(&r)["isolated"] != int64(0) {
				t.Errorf("isolated CPUs took none: %v", cells(&r)["isolated"])
			}
		}
	}
	var two Watcher
	for _, cal := range [][]int64{{0, 0}, {0, 5}} {
		rows, err := two.Next(reading(t, cal...), time.Second, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if got := cells(&r); got["rounds"] != nil || got["exact"] != nil {
				t.Errorf("of two CPUs follow %v rounds, exact %v", got["rounds"], got["exact"])
			}
		}
	}
}

// TestTimelineOfRows: rounds with the functions that were called, and each CPU's counter, which is up during the
// interval and 0 at its end; a row without rounds has no slice.
func TestTimelineOfRows(t *testing.T) {
	var got []string
	for _, track := range timelineOf(t, map[int]string{1: "f 21"}, reading(t, 0, 0, 0, 0), reading(t, 0, 7, 7, 7),
		reading(t, 0, 7, 7, 1007)) {
		for _, s := range track.Slices {
			got = append(got, fmt.Sprintf("%s: %s %d-%d", track.Name, s.Name, s.From, s.Until))
		}
		if track.Name == "CPU 3" {
			got = append(got, fmt.Sprint(track.Values))
		}
	}
	if d := cmp.Diff([]string{"rounds: 7 by CPU 0: f 21 0-1000000000",
		"[{0 7} {999999000 0} {1000000000 1000} {1999999000 0}]"}, got); d != "" {
		t.Error(d)
	}
}
