// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"
)

// asked is a request as the clients of these tests make it. Records are bits, by
// their place in the list that the service gives.
type asked struct {
	Client, Ops, Key string
	Enable           bool
	Set              uint64
	Expires          int64 // Unix nanoseconds, 0: never
}

// kept is an asked with what the service made of it.
type kept struct {
	asked
	ID    int64
	State string
}

// told is what a service says about an update: not which records, but how many.
type told struct {
	ID               int64
	Client, Ops, Key string
	Enable           bool
	Records          int
	State            string
}

// fits tells whether that may be about a request.
func (u *told) fits(a asked) bool {
	return u.Client == a.Client && u.Ops == a.Ops && u.Key == a.Key && u.Enable == a.Enable &&
		u.Records == bits.OnesCount64(a.Set)
}

// The names of clients and ops; every pair has a set of its own.
var (
	clientNames = []string{"ftrace", "kprobes", "bpf", "live-patch"}
	opsNames    = []string{"function", "graph"}
)

// wanted is the sequential model: the records that each pair of client and ops
// wants. It knows nothing of queues, batches or journals.
type wanted [8]uint64

func (a *asked) slot() int {
	return 2*slices.Index(clientNames, a.Client) + slices.Index(opsNames, a.Ops)
}

// after is what is wanted once a request is live.
func (w wanted) after(a asked) wanted {
	if s := a.slot(); a.Enable {
		w[s] |= a.Set
	} else {
		w[s] &^= a.Set
	}
	return w
}

// enabled is the records that anybody wants.
func (w wanted) enabled() (set uint64) {
	for _, s := range w {
		set |= s
	}
	return set
}

// fold is what is wanted after all that went live, in the order of their numbers.
func (w wanted) fold(all []kept) wanted {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b kept) int { return int(a.ID - b.ID) })
	for _, k := range all {
		if k.State == "live" {
			w = w.after(k.asked)
		}
	}
	return w
}

// look is the input of an operation that reads which records are enabled; its
// output is a set. The input of all others is an asked, the output its last state.
type look struct{}

// from is the model for porcupine, beginning at w. Every update and every look is
// to happen at one moment between its call and its return.
func from(w wanted) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return w },
		Step: func(state, input, output any) (bool, any) {
			had := state.(wanted)
			if _, ok := input.(look); ok {
				return had.enabled() == output.(uint64), had
			}
			if output == "live" {
				return true, had.after(input.(asked))
			}
			return true, had // failed, cancelled and expired leave no trace
		},
		DescribeOperation: func(input, output any) string {
			if _, ok := input.(look); ok {
				return fmt.Sprintf("look: %#x", output)
			}
			a := input.(asked)
			return fmt.Sprintf("%s/%s enable=%t %#x: %s", a.Client, a.Ops, a.Enable, a.Set, output)
		},
	}
}

// TestTheModelSeesWrongHistories: histories that no sequence explains are refused,
// and their right twins are not.
func TestTheModelSeesWrongHistories(t *testing.T) {
	on := asked{Client: "bpf", Ops: "graph", Enable: true, Set: 0b110}
	off := asked{Client: "bpf", Ops: "graph", Set: 0b010}
	other := asked{Client: "ftrace", Ops: "graph", Enable: true, Set: 0b100}
	op := func(call, ret int64, in, out any) porcupine.Operation {
		return porcupine.Operation{Input: in, Call: call, Output: out, Return: ret}
	}
	for _, c := range []struct {
		name    string
		history []porcupine.Operation
		want    bool
	}{
		{"enabled", []porcupine.Operation{op(1, 2, on, "live"), op(3, 4, look{}, uint64(0b110))}, true},
		{"lost", []porcupine.Operation{op(1, 2, on, "live"), op(3, 4, look{}, uint64(0))}, false},
		{"half of it", []porcupine.Operation{op(1, 6, on, "live"), op(3, 4, look{}, uint64(0b010))}, false},
		{"meanwhile, not yet", []porcupine.Operation{op(1, 6, on, "live"), op(3, 4, look{}, uint64(0))}, true},
		{"there and gone again", []porcupine.Operation{op(1, 9, on, "live"), op(2, 3, look{}, uint64(0b110)),
			op(4, 5, look{}, uint64(0))}, false},
		{"failed", []porcupine.Operation{op(1, 2, on, "failed"), op(3, 4, look{}, uint64(0))}, true},
		{"failed, and seen", []porcupine.Operation{op(1, 4, on, "failed"), op(2, 3, look{}, uint64(0b110))}, false},
		{"cancelled, and seen", []porcupine.Operation{op(1, 4, on, "cancelled"), op(5, 6, look{}, uint64(0b110))}, false},
		{"disabled, wanted by another", []porcupine.Operation{
			op(1, 2, on, "live"), op(1, 2, other, "live"), op(3, 4, off, "live"), op(5, 6, look{}, uint64(0b100)),
		}, true},
		{"disabled for all", []porcupine.Operation{
			op(1, 2, on, "live"), op(1, 2, other, "live"),
			op(3, 4, asked{Client: "bpf", Ops: "graph", Set: 0b110}, "live"), op(5, 6, look{}, uint64(0)),
		}, false},
	} {
		if got := porcupine.CheckOperations(from(wanted{}), c.history); got != c.want {
			t.Errorf("%s: linearizable: %t, want %t", c.name, got, c.want)
		}
	}
}

// names is the records of a set.
func names(all []string, set uint64) (out []string) {
	for ; set != 0; set &= set - 1 {
		out = append(out, all[bits.TrailingZeros64(set)])
	}
	return out
}
