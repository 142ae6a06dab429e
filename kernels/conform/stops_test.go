// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/kernels/record"
)

// TestStands: text changes in a stopped machine once every CPU stands still, and no earlier.
func TestStands(t *testing.T) {
	for late := range 4 {
		r := &record.Recording{Arch: "x86_64", CPUs: 3, Protocol: "stop-machine"}
		r.Steps = []record.Step{{Kind: record.Stop, Name: "f"}, {Kind: record.Stand}, {CPU: 1, Kind: record.Stand},
			{CPU: 2, Kind: record.Stand}, {Kind: record.Go}, {CPU: 1, Kind: record.Go},
			{CPU: 2, Kind: record.Go}, {Kind: record.Resume, Name: "f"}}
		store := record.Step{CPU: 1, Kind: record.Store, At: 64, Old: []byte{0x0f, 0x1f, 0x44, 0, 0}, New: []byte{0xe8, 1, 2, 3, 4}}
		r.Steps = slices.Insert(r.Steps, 4-late, store)
		got, err := Check(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("%d of 3 CPUs stand still", 3-late); (got.Misfit == nil) != (late == 0) ||
			late > 0 && !strings.Contains(got.Misfit.What, want) {
			t.Errorf("%d late: %v", late, got.Misfit)
		}
	}
}

// TestStandsOnce: a CPU stands still once in a stop, and leaves it once.
func TestStandsOnce(t *testing.T) {
	for kind, want := range map[record.Kind]string{
		record.Stand: "the CPU stands still already", record.Go: "the CPU does not stand still",
	} {
		r := recorded(t, x86)
		r.Steps = append(r.Steps, record.Step{Kind: record.Stand}, record.Step{Kind: record.Go})
		i := len(r.Steps)
		if kind == record.Stand {
			i--
		}
		r.Steps = slices.Insert(r.Steps, i, record.Step{Kind: kind})
		if got, err := Check(r, nil); err != nil || got.Misfit == nil || got.Misfit.Step != i+1 ||
			!strings.Contains(got.Misfit.What, want) {
			t.Errorf("%s: %v, %v", kind, err, got.Misfit)
		}
	}
}

// TestMoves: a task that changes CPU anywhere within a batch goes on with what it has begun, and its recording fits.
func TestMoves(t *testing.T) {
	patcher := []record.Kind{record.Begin, record.End, record.Store, record.Round, record.Done, record.Publish, record.Unpublish}
	at := recorded(t, x86)
	for i := find(t, at, record.Publish, 0); i <= find(t, at, record.End, 0); i++ {
		r := recorded(t, x86)
		if !slices.Contains(patcher, r.Steps[i].Kind) {
			continue
		}
		from := r.Steps[i].CPU
		to := (from + 1) % r.CPUs
		for n := i; n < len(r.Steps); n++ {
			if s := &r.Steps[n]; s.CPU == from && slices.Contains(patcher, s.Kind) {
				s.CPU = to
			}
		}
		r.Steps = slices.Insert(r.Steps, i, record.Step{CPU: to, Kind: record.Move, Name: fmt.Sprint(from)})
		if got, err := Check(r, nil); err != nil || got.Misfit != nil {
			t.Errorf("moved before step %d: %v, %v", i+1, err, got.Misfit)
		}
	}
}

// TestTwoStops: where a second CPU stops the machine before the first stop is over, nothing is said.
func TestTwoStops(t *testing.T) {
	r := &record.Recording{Arch: "x86_64", CPUs: 2, Protocol: "stop-machine", Release: "6.1"}
	r.Steps = []record.Step{{Kind: record.Stop, Name: "f"}, {CPU: 1, Kind: record.Stop, Name: "g"}}
	if _, err := Check(r, nil); err == nil || err.Error() !=
		"6.1: step 2: CPU 1: stop g: another stop of the machine is not over: whose stores follow cannot be told" {
		t.Errorf("%v", err)
	}
	r.Steps = slices.Insert(r.Steps, 1, record.Step{Kind: record.Resume, Name: "f"})
	if _, err := Check(r, nil); err != nil {
		t.Error(err)
	}
}

// TestStopIsOver: once every CPU has left a stop of the machine others store as they do, though its task has not gone on.
func TestStopIsOver(t *testing.T) {
	r := recorded(t, x86)
	i := find(t, r, record.End, 0) + 1
	stop := []record.Step{{CPU: 1, Kind: record.Stop, Name: "f"}}
	for _, kind := range []record.Kind{record.Stand, record.Go} {
		for cpu := range r.CPUs {
			stop = append(stop, record.Step{CPU: cpu, Kind: kind})
		}
	}
	r.Steps = slices.Insert(r.Steps, i, stop...)
	r.Steps = slices.Insert(r.Steps, find(t, r, record.End, 1), record.Step{CPU: 1, Kind: record.Resume, Name: "f"})
	if got, err := Check(r, nil); err != nil || got.Misfit != nil {
		t.Errorf("%v, %v", err, got.Misfit)
	}
}
