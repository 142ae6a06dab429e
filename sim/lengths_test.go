// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
)

// TestCountLengths: a batch of which every site has one byte sends two rounds, others
// three; batches are cut by a loop of its own.
func TestCountLengths(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		lengths := rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 1, 1, 2, 5, 6}), 1, 60).Draw(rt, "lengths")
		slots := rapid.IntRange(1, 7).Draw(rt, "slots")
		var csv strings.Builder
		csv.WriteString("address,symbol,module,group,length\n")
		rounds := 0
		for i, n := range lengths {
			length := ""
			if n > 0 {
				length = fmt.Sprint(n)
			}
			fmt.Fprintf(&csv, "%x,f%d,,,%s\n", 0x1000+16*i, i, length)
			if i%slots == 0 {
				long := false
				for _, n := range lengths[i:min(i+slots, len(lengths))] {
					long = long || n != 1
				}
				if rounds += 2; long {
					rounds++
				}
			}
		}
		tab, err := records.Read(t.Context(), "t", strings.NewReader(csv.String()), records.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := config(t, "x86_64", "native", "gen:n=1", "4")
		c.Table, c.Buffer = tab, sched.Buffer{Slots: slots}
		row, err := newJob(t, c).Count(t.Context())
		if err != nil || row.Patches != len(lengths) || row.Rounds != rounds {
			t.Errorf("%d slots, %v: %d patches, %d rounds, %v; want %d", slots, lengths, row.Patches, row.Rounds, err, rounds)
		}
	})
}

// TestRunLengths: on the live machine sites of all lengths go there and back without
// a mixture, and every round is sent that was counted, and no other.
func TestRunLengths(t *testing.T) {
	for _, c := range []struct {
		lengths string
		rounds  int // of 100 sites in one batch
	}{{"1", 2}, {"2", 3}, {"5", 3}, {"6", 3}, {"1+2+5+6", 3}} {
		cfg := config(t, "x86_64", "native", "gen:n=100,order=sorted,lengths="+c.lengths, "4")
		l := newLive(t, newJob(t, cfg))
		for _, enable := range []bool{true, false} {
			row, err := l.Update(t.Context(), enable)
			if err != nil || row.Violations != 0 || row.Rounds != c.rounds {
				t.Errorf("%s, %s: %d rounds, %d violations, %v: %v", c.lengths, row.Direction, row.Rounds, row.Violations, err,
					l.Violations())
			}
		}
	}
	bad := config(t, "arm64", "native", "gen:n=10,lengths=2", "4")
	if _, err := NewJob(bad); err == nil || !strings.Contains(err.Error(), "sites of 2 bytes: on arm64") {
		t.Errorf("arm64: %v", err)
	}
	bad = config(t, "x86_64", "native", "gen:n=10,lengths=3", "4")
	if _, err := NewJob(bad); err == nil || !strings.Contains(err.Error(), "x86_64 patches [5 1 2 6]") {
		t.Errorf("3 bytes: %v", err)
	}
}
