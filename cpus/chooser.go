// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
)

// Choice is a question that a step asks of its Chooser.
type Choice uint8

// The choices. n is the number of answers, 0 to n-1.
const (
	ChooseSite    Choice = iota // which of n sites is called next
	ChooseVersion               // which of n versions is fetched, 0 the newest
	ChooseGrain                 // whether a grain comes from the next store
	ChooseMask                  // how many calls to make with interrupts masked
	ChooseMove                  // which of n places a patcher goes on at, 0 where it is
	ChooseLinger                // how many steps to spend in a trampoline
	ChooseDrain                 // whether a buffered store becomes visible now
	ChooseEnter                 // whether a CPU in user space enters the kernel
	ChooseDown                  // whether a CPU goes offline
	ChooseUpdate                // which of n updates a patcher makes next
)

// Chooser is the only source of nondeterminism of a step.
type Chooser interface {
	// Choose answers with a number from 0 to n-1; n is at least 1.
	Choose(what Choice, n int) int
}

// Random answers at random with a bias for trouble: calls prefer the sites of
// the batch that is in flight, fetches prefer the oldest version. It is for one
// goroutine.
type Random struct {
	rng  *rand.PCG
	busy *atomic.Pointer[inFlight] // shared with the patcher

	inFlight bool // the last site was in flight

	sites, stride uint64 // spreads hot sites over a table of this many
}

// NewRandom seeds a Random; the same seed and stream give the same answers.
func NewRandom(seed, stream uint64) *Random {
	return &Random{rng: rand.NewPCG(seed, stream)}
}

// Choose implements Chooser.
func (r *Random) Choose(what Choice, n int) int {
	if n <= 1 {
		return 0
	}
	x := r.rng.Uint64()
	switch what {
	case ChooseSite:
		return r.site(x, n)
	case ChooseVersion:
		if x&3 == 0 { // a quarter of all fetches are as stale as they can be
			return n - 1
		}
	case ChooseMove, ChooseEnter: // rare: once in 64 opportunities
		if x&63 != 0 {
			return 0
		}
	case ChooseDown: // so that most CPUs are online most of the time
		if x&4095 != 0 {
			return 0
		}
		return 1
	case ChooseLinger:
		return r.linger(x, n)
	}
	return upTo(x>>2, n)
}

// site draws from a skewed distribution: log-uniform, so that site i of n is
// called about n/(i+1) times as often as the last one (Zipf's exponent 1; a few
// functions take most calls in real traces). A quarter of the calls go to sites
// in flight, if any, since that is where protocols break.
func (r *Random) site(x uint64, n int) int {
	r.inFlight = false
	if x&3 == 0 && r.busy != nil {
		if b := r.busy.Load(); b != nil && len(b.sites) > 0 {
			r.inFlight = true
			return int(b.sites[upTo(x>>2, len(b.sites))])
		}
	}
	levels := bits.Len(uint(n))
	level := int(x >> 2 & 0xff * uint64(levels) >> 8)
	return r.spread(uint64(upTo(x>>10, max(n>>level, 1))), uint64(n))
}

// linger is seldom anything but 0, but then long enough to outlive an update.
// It only happens while something is being changed: at other times it would prove
// nothing and slow the CPUs down.
func (r *Random) linger(x uint64, n int) int {
	seldom := uint64(1<<12 - 1)
	if r.inFlight {
		seldom = 1<<8 - 1
	}
	if x&seldom != 0 || r.busy == nil {
		return 0
	}
	if b := r.busy.Load(); b == nil || !b.patching {
		return 0
	}
	return upTo(x>>10, n)
}

// spread permutes 0..n-1 so that hot sites are neighbours of cold ones, as in a
// real table.
func (r *Random) spread(i, n uint64) int {
	if r.sites != n {
		r.sites, r.stride = n, Stride(n)
	}
	return int(i * r.stride % n)
}

// Stride is about the golden section of n, and has no divisor in common with it: steps of it go through all numbers
// below n, neighbours far from each other.
func Stride(n uint64) uint64 {
	stride := n*5/8 | 1
	for gcd(stride, n) != 1 {
		stride += 2
	}
	return stride
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// upTo maps the low 54 bits of x to 0..n-1 without a division.
func upTo(x uint64, n int) int {
	hi, _ := bits.Mul64(x<<10, uint64(n))
	return int(hi)
}

// Script is a Chooser that gives every answer in turn: it repeats a prefix of answers
// and goes on with zeros; Next moves to the next answers. The zero Script has no prefix.
type Script struct {
	given  []uint8
	of     []uint8 // how many answers there were to each question
	at     int
	prefix int  // how many answers Restart was given
	misfit bool // an answer was none to its question
}

// Repeat is a script that begins with answers that were recorded.
func Repeat(answers []uint8) *Script {
	s := &Script{}
	s.Restart(answers)
	return s
}

// Choose implements Chooser.
func (s *Script) Choose(what Choice, n int) int {
	switch what {
	case ChooseLinger: // to linger is not to be scheduled
		return 0
	case ChooseDrain: // it only matters whether the answer is 0
		n = min(n, 2)
	}
	return s.Ask(n)
}

// Ask is the answer to a question that has n of them; where there is one it is no question.
func (s *Script) Ask(n int) int {
	if n <= 1 {
		return 0
	}
	if s.at == len(s.given) {
		s.given, s.of = append(s.given, 0), append(s.of, 0)
	}
	s.of[s.at] = uint8(n)
	answer := int(s.given[s.at])
	s.at++
	if answer >= n {
		s.misfit = true
		return 0
	}
	return answer
}

// Next moves on to answers that were not given yet; false when there are none.
func (s *Script) Next() bool {
	s.given, s.of = s.given[:s.at], s.of[:s.at]
	s.at = 0
	for i := len(s.given) - 1; i >= 0; i-- {
		if s.given[i]++; s.given[i] < s.of[i] {
			s.given, s.of = s.given[:i+1], s.of[:i+1]
			return true
		}
	}
	s.given, s.of = s.given[:0], s.of[:0]
	return false
}

// Restart begins with a prefix, such as a recorded action's answers.
func (s *Script) Restart(answers []uint8) {
	s.given = append(s.given[:0], answers...)
	s.of = append(s.of[:0], answers...)
	s.at, s.prefix, s.misfit = 0, len(answers), false
}

// Answers are those that were given so far. They are valid until the next question.
func (s *Script) Answers() []uint8 { return s.given[:s.at] }

// Fits tells whether the answers of the prefix were those to the questions that were
// asked, and there were no others.
func (s *Script) Fits() bool { return s.at == s.prefix && !s.misfit }
