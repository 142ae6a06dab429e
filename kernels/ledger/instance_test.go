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

// TestOption: the option record-cmd stops the recording of command lines while an event is on, and
// starts it again, 30 interrupts each way on 6.12 and 7.2 of x86_64, as booted kernels showed; a
// second event that is on makes no difference, an option that is set already sends nothing.
func TestOption(t *testing.T) {
	sum := func(r *Replay, action string, on bool) (n int) {
		t.Helper()
		lines, err := r.Switch(action, on)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lines {
			n += l.Rounds()
		}
		return n
	}
	for _, name := range []string{"x86_64-6.12", "x86_64-7.2"} {
		k, err := Named(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, action := range []string{"record-cmd=0", "record-cmd=0:sched/sched_wakeup"} {
			r, err := k.NewReplay(nil)
			if err != nil {
				t.Fatal(err)
			}
			if on, off := sum(r, action, true), sum(r, action, false); on != 30 || off != 30 {
				t.Errorf("%s %s: %d and %d interrupts, want 30", name, action, on, off)
			}
		}
		r, err := k.In([]string{"action=tracepoint:sched_wakeup", "action=tracepoint:sched_waking"}).NewReplay(nil)
		if err != nil {
			t.Fatal(err)
		}
		first, again, back := sum(r, "record-cmd=0", true), sum(r, "record-cmd=0", true), sum(r, "record-cmd=0", false)
		if first != 30 || again != 0 || back != 30 {
			t.Errorf("%s, two events are on: %d, %d and %d interrupts, want 30, 0 and 30", name, first, again, back)
		}
		if r, err = k.In([]string{"record-cmd=off"}).NewReplay(nil); err != nil {
			t.Fatal(err)
		}
		if on, off := sum(r, "record-cmd=0", true), sum(r, "record-cmd=0", false); on != 0 || off != 0 {
			t.Errorf("%s, the option is off and no event is on: %d and %d interrupts", name, on, off)
		}
		if _, err := r.Switch("record-cmd=0:guess", true); err == nil {
			t.Error("an event that there is not is accepted")
		}
	}
}

// TestSetFilter: a filter that is written while all functions are traced changes the others' records.
func TestSetFilter(t *testing.T) {
	for _, k := range Kernels() {
		if k.Table == "" {
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
		r, err := k.NewReplay(table)
		if err != nil {
			t.Fatal(err)
		}
		for _, on := range []bool{true, false} {
			lines, err := r.Switch("setfilter:vfs_*", on)
			if err != nil || len(lines) != 1 || lines[0].Records != table.Len()-len(f.Match(table)) {
				t.Errorf("%s, on %v: %+v, %v", k.Name(), on, lines, err)
			}
		}
	}
}
