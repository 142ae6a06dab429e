// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
)

// TestStoreOfSixteenBytes: an aligned store of sixteen bytes can change a site and the
// literal before it at once (Intel SDM vol. 3A, 9.1.1, of AVX; ldp and stp with LSE2, Arm
// DDI 0487, B2.2.1). A CPU sees of it what it sees of two stores, the literal's first: it
// fetches, and then it loads. The other order shows it more.
func TestStoreOfSixteenBytes(t *testing.T) {
	for _, arch := range []string{"arm64", "riscv64"} {
		s := setup(t, arch, "word", "", 2, 1)
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		patch := m.Programs[0].Patches[0]
		code := func(w *world) { w.Store(0, 0, m.Code.Len, patch.New) }
		literal := func(w *world) { w.StoreLiteral(0, patch.NewOps) }
		both := func(w *world) { code(w); literal(w) }
		whole := outcomes(m, both)
		if len(whole) != 4 { // a CPU that does not synchronise may fetch the old text after the new one
			t.Errorf("%s: one store shows %v, want two calls of nobody or of the new ops", arch, whole)
		}
		if two := outcomes(m, literal, code); !maps.Equal(two, whole) {
			t.Errorf("%s: the literal first shows %v, one store %v", arch, two, whole)
		}
		if two := outcomes(m, code, literal); len(two) <= len(whole) {
			t.Errorf("%s: the text first shows %v, no more than one store, %v", arch, two, whole)
		}
	}
}

// outcomes are what a CPU makes of its first two calls while stores are made, one behind
// the other: what it called through, by call.
func outcomes(m *Model, stores ...func(*world)) map[string]bool {
	found := map[string]bool{}
	var try func(words []uint64, stores []func(*world), calls []string)
	w := newWorld(m)
	try = func(words []uint64, left []func(*world), calls []string) {
		if len(calls) == 2 {
			found[strings.Join(calls, ", ")] = true
			return
		}
		if len(left) > 0 {
			w.unpack(words)
			left[0](w)
			next := slices.Clone(words)
			w.pack(next)
			try(next, left[1:], calls)
		}
		var sc cpus.Script
		for more := true; more; more = sc.Next() {
			w.unpack(words)
			was := w.cpu[1]
			w.stepCPU(1, &sc)
			done := calls
			switch {
			case was.Phase == cpus.Calling && was.Polled():
				done = append(slices.Clone(calls), fmt.Sprintf("%#x", was.Ops))
			case w.event == cpus.Untraced:
				done = append(slices.Clone(calls), "nobody")
			}
			next := slices.Clone(words)
			if w.pack(next); !slices.Equal(next, words) || len(done) > len(calls) {
				try(next, left, done)
			}
		}
	}
	words := make([]uint64, m.layout.words)
	w.pack(words)
	try(words, stores, nil)
	return found
}
