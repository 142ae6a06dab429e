// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/textpoke/textpoke/records"
)

// TestInstance: an instance that comes and goes sends what the action of that name does, and one
// that goes from some records to others only the rounds of the records that change.
func TestInstance(t *testing.T) {
	for _, k := range Kernels() {
		if k.Facts == nil || k.Table == "" { // no records are known of it
			continue
		}
		table, err := records.Open(t.Context(), k.Table, records.Options{Arch: k.Arch})
		if err != nil {
			t.Fatal(err)
		}
		f, err := records.ParseFilter([]string{"vfs_*"})
		if err != nil {
			t.Fatal(err)
		}
		which := f.Match(table)
		by, err := k.NewReplay(table)
		if err != nil {
			t.Fatal(err)
		}
		as, err := k.NewReplay(table)
		if err != nil {
			t.Fatal(err)
		}
		for _, on := range []bool{true, false} {
			want, err := by.Switch("instance:vfs_*", on)
			if err != nil {
				t.Fatalf("%s: %v", k.Name(), err)
			}
			some := which
			if !on {
				some = nil
			}
			got, err := as.Instance(some)
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Line{}, Entry{})); err != nil || diff != "" {
				t.Errorf("%s, on %v: %v %s", k.Name(), on, err, diff)
			}
		}
		if _, err := as.Instance(which[:1]); err != nil {
			t.Fatal(err)
		}
		lines, err := as.Instance(which)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0
		for _, l := range lines {
			if l.Cause != k.Records.Cause {
				t.Errorf("%s: a larger filter sends %v", k.Name(), l.Cause)
			}
			sum += l.Rounds()
		}
		if want := k.Records.Rounds(1, len(which)-1); sum != want {
			t.Errorf("%s: a larger filter sends %d rounds, want %d", k.Name(), sum, want)
		}
		if nothing, err := as.Instance(which); err != nil || len(nothing) != 0 {
			t.Errorf("%s: the same filter sends %v, %v", k.Name(), nothing, err)
		}
	}
}
