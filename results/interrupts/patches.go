// SPDX-License-Identifier: Apache-2.0

package interrupts

import (
	"fmt"
	"math"

	"github.com/textpoke/textpoke/internal/spelling"
)

// Range is the numbers from Lo to Hi, both included.
type Range struct{ Lo, Hi int64 }

// Interval is how many patches a number of rounds allows.
type Interval struct {
	// Min and Max bound the patches, both included. Max holds however the batches
	// were cut; Min takes every batch but the last to be full.
	Min, Max int64
	// Batches bounds the batches.
	Batches Range
	// Exact is false when the rounds are no whole number of batches, whichever
	// number of other rounds is taken. Rest rounds then come from something that
	// the caller did not know of, and the interval is that of the rounds without
	// them. Reason says so in a sentence; it is empty when Exact.
	Exact  bool
	Rest   int64
	Reason string
}

// Patches turns rounds into an interval of patches, for a protocol whose batches take
// perBatch rounds each, with a buffer of the given number of slots.
//
// A batch holds at most slots patches. other is how
// many of the rounds are known not to belong to batches: a range, because such
// knowledge often is one. Every number o in it for which rounds-o is a multiple
// of perBatch gives B = (rounds-o)/perBatch batches. If batches are closed only when they are
// full, or at the end, all but the last are full, so that there were between
// (B-1)*slots+1 and B*slots patches. The result spans all B that are possible.
//
// Batches that an address out of order closed are not full: with those, Max still
// holds, and the true minimum is one patch a batch.
//
// If no o fits, the rounds cannot all be what the caller takes them for. Then B
// is rounded down from the smallest of other, Exact is false, and Rest says how
// many rounds are unexplained: the interval is then only as good as the guess
// that no other rounds came from elsewhere.
func Patches(rounds, perBatch int64, slots int, other Range) (Interval, error) {
	switch {
	case rounds < 0:
		return Interval{}, fmt.Errorf("patches from rounds: %d rounds", rounds)
	case perBatch < 1:
		return Interval{}, fmt.Errorf("patches from rounds: batches of %d rounds", perBatch)
	case slots < 1:
		return Interval{}, fmt.Errorf("patches from rounds: a buffer of %d slots holds nothing", slots)
	case other.Lo < 0 || other.Hi < other.Lo:
		return Interval{}, fmt.Errorf("patches from rounds: %d to %d other rounds is no range", other.Lo, other.Hi)
	case rounds/perBatch > math.MaxInt64/int64(slots):
		return Interval{}, fmt.Errorf("patches from rounds: %d rounds of %d slots are too many", rounds, slots)
	}
	if other.Lo > rounds {
		// Even the rounds that should be there at least are not.
		return Interval{Rest: rounds, Reason: fmt.Sprintf("there are fewer rounds than the %d that are known not to patch",
			other.Lo)}, nil
	}
	// The most batches leave the fewest other rounds, and the other way round.
	most := (rounds - other.Lo) / perBatch
	fewest := (max(rounds-other.Hi, 0) + perBatch - 1) / perBatch
	if fewest <= most {
		i := interval(fewest, most, slots)
		i.Exact = true
		return i, nil
	}
	i := interval(most, most, slots)
	i.Rest = (rounds - other.Lo) % perBatch
	i.Reason = fmt.Sprintf("no whole number of batches: at least %s must come from elsewhere",
		spelling.Several(int(i.Rest), "more round"))
	return i, nil
}

func interval(fewest, most int64, slots int) Interval {
	i := Interval{Batches: Range{fewest, most}, Max: most * int64(slots)}
	if fewest > 0 {
		i.Min = (fewest-1)*int64(slots) + 1
	}
	return i
}
