// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring"
)

// Wants is what every client wants, by client and ops.
func (s *Store) Wants() []Want { return s.wanted(func(owner) bool { return true }, nil) }

// WantedBy is which of some records are wanted, by client and ops.
func (s *Store) WantedBy(records []int) []Want {
	some := newWhich(records)
	return s.wanted(func(owner) bool { return true }, &some)
}

// WantsOf is what a client wants, by ops.
func (s *Store) WantsOf(client string) []Want {
	return s.wanted(func(o owner) bool { return o.client == client }, nil)
}

// WantsAfter is what the first owners behind one want, by client and ops.
func (s *Store) WantsAfter(client, ops string, limit int) []Want {
	s.mu.RLock()
	owners := slices.Collect(maps.Keys(s.state.wants))
	s.mu.RUnlock()
	owners = slices.DeleteFunc(owners, func(o owner) bool { return compareOwners(o, owner{client, ops}) <= 0 })
	slices.SortFunc(owners, compareOwners) // there may be many: it is done without the lock
	some := map[owner]bool{}
	for _, o := range owners[:min(limit, len(owners))] {
		some[o] = true
	}
	return s.wanted(func(o owner) bool { return some[o] }, nil)
}

// HalfOver tells whether half of a client's lease is over.
func (s *Store) HalfOver(client string, at time.Time) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for who, l := range s.state.lease {
		if who.client == client && l.Until.Sub(at) < time.Duration(l.Seconds)*time.Second/2 {
			return true
		}
	}
	return false
}

// wanted is what some owners want, of some records where those are given.
func (s *Store) wanted(whose func(owner) bool, some *which) (out []Want) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var owners []owner
	for who := range maps.Keys(s.state.wants) {
		if whose(who) && (some == nil || s.state.wants[who].Intersects(some.Bitmap)) {
			owners = append(owners, who)
		}
	}
	slices.SortFunc(owners, compareOwners)
	for _, who := range owners {
		mine := s.state.wants[who]
		tag := tagOf(mine)
		if some != nil {
			mine = roaring.And(mine, some.Bitmap)
		}
		out = append(out, Want{who.client, who.ops, which{mine}.numbers(), tag, s.state.lease[who]})
	}
	return out
}

// Renew has the leases of a client begin again; of "", which no client is, those of all.
func (s *Store) Renew(client string, at time.Time) error {
	return s.change(func(tx *txn) error {
		for who := range tx.lease {
			if client == "" || who.client == client {
				tx.add(entry{Renew: &renewed{client, at.UTC()}})
				return nil
			}
		}
		return nil
	})
}

// Over is what is wanted by leases that are over.
func (s *Store) Over(at time.Time) (out []Want) {
	return s.wanted(func(o owner) bool {
		l, leased := s.state.lease[o]
		return leased && !l.Until.After(at)
	}, nil)
}

// Tag is another text for each thing that a client may want with one ops.
func (s *Store) Tag(client, ops string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return tagOf(s.state.wants[owner{client, ops}])
}

// tagOf is a hash of a bitmap's numbers, however it holds them; nil is one without any.
func tagOf(b *roaring.Bitmap) string {
	if b == nil {
		b = roaring.New()
	}
	text, err := binary.Append(nil, binary.LittleEndian, b.ToArray())
	if err != nil { // numbers are of a fixed size
		panic(err)
	}
	return sha(text)[:32]
}

// HasWants tells whether a client wants anything with one ops.
func (s *Store) HasWants(client, ops string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.state.wants[owner{client, ops}] != nil
}
