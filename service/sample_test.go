package service

import "testing"

// TestTrapsLeaveRoom: however often CPUs trap, what the patcher does meanwhile and
// whom it interrupts is told, and what is left out is counted.
func TestTrapsLeaveRoom(t *testing.T) {
	const traps, steps = 10_000, 20
	r := newRing()
	for i := range int64(traps) {
		r.add(Event{Kind: Trapped, UntilNS: i})
		if i%(traps/steps) == 0 {
			r.add(Event{Kind: Stepped, UntilNS: i})
			r.add(Event{Kind: Interrupted, UntilNS: i})
		}
	}
	r.add(Event{Kind: RoundSent, UntilNS: sampleNS})
	past, _, cancel, gap := r.read(0)
	defer cancel()
	told, skipped := map[Kind]int{}, uint64(0)
	for _, e := range past {
		told[e.Kind]++
		skipped += e.Skipped
	}
	if gap || told[Trapped] != sample/3 || told[Stepped] != steps || told[Interrupted] != steps || told[RoundSent] != 1 || skipped != traps-sample/3 {
		t.Errorf("gap %t, told %v, %d skipped", gap, told, skipped)
	}
}
