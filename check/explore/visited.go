// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"
)

// visited is the set of states that were reached.
type visited interface {
	// insert adds a state and tells whether it is new. Any number of goroutines
	// may insert at once.
	insert(fp uint64, words []uint64) bool
	// insertAll does so with many, as if one after the other.
	insertAll(b *arrivals)
	bytes() uint64
	each(f func(fp uint64, words []uint64) error) error
}

// fingerprint is a state's hash, never 0. Two states of n that are different
// have the same one with a probability of about n*n/2^65; see collision.
func fingerprint(words []uint64) uint64 {
	const k0, k1, k2 = 0xa0761d6478bd642f, 0xe7037ed1a0b428db, 0x8ebc6af09c88c6e3
	h := uint64(k2)
	for i, w := range words {
		hi, lo := bits.Mul64(w^k0, h^k1+uint64(i))
		h = hi ^ lo ^ w
	}
	hi, lo := bits.Mul64(h^k0, k1)
	return max(hi^lo, 1)
}

// collision is the probability that among n states two different ones have the
// same fingerprint, so that one of them was not looked at: at most the number of
// pairs over the number of fingerprints.
func collision(n uint64) float64 {
	return float64(n) * float64(n-min(n, 1)) / 2 / (1 << 32) / (1 << 32)
}

// segments is how many parts a set has, each with a lock of its own: so many that growing one holds
// up no other and takes little room beside the rest.
const segments = 1 << segmentBits

const segmentBits = 6

func segment(fp uint64) int { return int(fp >> (64 - segmentBits)) }

// prints is a set of fingerprints.
type prints [segments]printSegment

// printSegment is open addressing with linear probing.
type printSegment struct {
	mu      sync.Mutex
	slots   []uint64
	n       int
	touched uint64   // so that a touch is not left out
	_       [64]byte // no two locks in one cache line
}

// The set is at most so full, and grows by half, so that a state takes 9.4 to 14.1
// bytes. A little set grows faster: it needs little memory anyway.
const (
	fullNum, fullDen = 17, 20
	firstSlots       = 64
	littleSlots      = 4096 // of a segment
)

// slot spreads the lower bits of a fingerprint over n slots.
func slot(fp uint64, n int) int {
	hi, _ := bits.Mul64(fp<<segmentBits, uint64(n))
	return int(hi)
}

func (p *prints) insert(fp uint64, _ []uint64) bool {
	s := &p[segment(fp)]
	s.mu.Lock()
	isNew := s.insert(fp)
	s.mu.Unlock()
	return isNew
}

func (s *printSegment) insert(fp uint64) bool {
	if s.n*fullDen >= len(s.slots)*fullNum {
		s.grow()
	}
	i := slot(fp, len(s.slots))
	for ; s.slots[i] != 0; i++ {
		if s.slots[i] == fp {
			return false
		}
		if i == len(s.slots)-1 {
			i = -1
		}
	}
	s.slots[i] = fp
	s.n++
	return true
}

func (p *prints) insertAll(b *arrivals) {
	starts := b.sort()
	from := 0
	for i, to := range starts {
		if from < int(to) {
			p[i].insertAll(b, b.order[from:to])
		}
		from = int(to)
	}
}

// sort puts the batch into the order of segments, equal ones in the order in which they
// came, and returns where each segment ends. It marks none as new.
func (b *arrivals) sort() (ends [segments]uint16) {
	n := len(b.fps)
	b.order, b.fresh = slices.Grow(b.order[:0], n)[:n], slices.Grow(b.fresh[:0], n)[:n]
	clear(b.fresh)
	for _, fp := range b.fps {
		ends[segment(fp)]++
	}
	var sum uint16
	for i, k := range ends {
		ends[i] = sum
		sum += k
	}
	for i, fp := range b.fps {
		at := &ends[segment(fp)]
		b.order[*at] = uint16(i)
		*at++
	}
	return ends
}

// insertAll inserts some of a batch. All slots are touched first: the loads do not
// wait for each other.
func (s *printSegment) insertAll(b *arrivals, which []uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for (s.n+len(which))*fullDen >= len(s.slots)*fullNum {
		s.grow()
	}
	for _, i := range which {
		s.touched ^= s.slots[slot(b.fps[i], len(s.slots))]
	}
	for _, i := range which {
		b.fresh[i] = s.insert(b.fps[i])
	}
}

func (s *printSegment) grow() {
	old := s.slots
	more := len(old) / 2
	if len(old) < littleSlots {
		more = 3 * len(old)
	}
	s.slots = make([]uint64, max(firstSlots, len(old)+more))
	s.n = 0
	for _, fp := range old {
		if fp != 0 {
			s.insert(fp)
		}
	}
}

func (p *prints) bytes() (n uint64) {
	for i := range p {
		p[i].mu.Lock()
		n += 8 * uint64(len(p[i].slots))
		p[i].mu.Unlock()
	}
	return n
}

func (p *prints) each(f func(fp uint64, words []uint64) error) error {
	for i := range p {
		for _, fp := range p[i].slots {
			if fp != 0 {
				if err := f(fp, nil); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// exact is a set of whole states: no two are ever taken for one.
type exact [segments]exactSegment

type exactSegment struct {
	mu  sync.Mutex
	set map[string]struct{}
	n   uint64 // bytes
}

func (e *exact) insert(fp uint64, words []uint64) bool {
	key := stateKey(make([]byte, 0, 128), words) // on the stack: most states are there
	s := &e[segment(fp)]
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, seen := s.set[string(key)]; seen {
		return false
	}
	if s.set == nil {
		s.set = map[string]struct{}{}
	}
	s.set[string(key)] = struct{}{}
	s.n += uint64(len(key)) + 40 // about what a map takes for an entry
	return true
}

func (e *exact) insertAll(b *arrivals) {
	n := len(b.fps)
	b.fresh = slices.Grow(b.fresh[:0], n)[:n]
	words := len(b.words) / max(n, 1)
	for i, fp := range b.fps {
		b.fresh[i] = e.insert(fp, b.words[i*words:(i+1)*words])
	}
}

func (e *exact) bytes() (n uint64) {
	for i := range e {
		e[i].mu.Lock()
		n += e[i].n
		e[i].mu.Unlock()
	}
	return n
}

func (e *exact) each(f func(fp uint64, words []uint64) error) error {
	for i := range e {
		for key := range e[i].set {
			if err := f(0, unpackKey(key)); err != nil {
				return err
			}
		}
	}
	return nil
}

// stateKey appends what tells states apart.
func stateKey(key []byte, words []uint64) []byte {
	for _, w := range words {
		key = binary.AppendUvarint(key, w)
	}
	return key
}

// unpackKey is the words that a key was made of.
func unpackKey(key string) (words []uint64) {
	for b := []byte(key); len(b) > 0; {
		w, n := binary.Uvarint(b)
		words, b = append(words, w), b[n:]
	}
	return words
}
