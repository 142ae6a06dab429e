// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
)

// TestTrapsRepeat: traps that come to what the last one at their site came to are the same traps. A machine with a
// listener makes every step of every handler; one without must do the same to the last nanosecond, call and violation,
// whatever the protocol lacks.
func TestTrapsRepeat(t *testing.T) {
	repeated := 0
	for _, c := range thinningCases() {
		shape := newRig(t, c).shape
		mutations := []string{""}
		for _, m := range newRig(t, c).protocol.Mutations(shape) {
			mutations = append(mutations, m.Name)
		}
		for seed, mutation := range mutations {
			c.Seed, c.mutation = uint64(seed), mutation
			c.Preempt = seed%2 == 1
			c.Refs = []int3.Refs{int3.PerCPU, int3.SharedRef, int3.NoRef}[seed%3]
			c.Listener = &cpus.Listener{}
			each := newRig(t, c)
			want, err := toggled(each)
			c.Listener = nil
			r := newRig(t, c)
			got, failed := toggled(r)
			if (err == nil) != (failed == nil) {
				t.Fatalf("%s %s %s: %v with a listener, %v without", c.arch, c.protocol, mutation, err, failed)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s %s %s: %s", c.arch, c.protocol, mutation, diff)
			}
			all, _ := each.Violations()
			if n, _ := r.Violations(); n != all {
				t.Fatalf("%s %s %s: %d violations with a listener, %d without", c.arch, c.protocol, mutation, all, n)
			}
			for i := range r.traps {
				if r.traps[i].takes > 0 {
					repeated++
				}
			}
		}
	}
	if repeated == 0 {
		t.Error("no trap is there to be repeated")
	}
}

// toggled enables and disables all sites, as far as that gets.
func toggled(r *rig) (out []Outcome, err error) {
	for _, enable := range []bool{true, false} {
		o, err := r.try(enable)
		if err != nil {
			return out, err
		}
		out = append(out, o)
	}
	return out, nil
}
