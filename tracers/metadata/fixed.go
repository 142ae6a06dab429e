// SPDX-License-Identifier: Apache-2.0

package metadata

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/textpoke/textpoke/records"
)

// Fixed is a hash with as many buckets as on the first day, each the head of a
// chain:
//
//	bucket -> node -> node -> node
//	            |       |       |
//	          record  record  record
//
// New nodes come first in their chain (hlist_add_head_rcu). A node that was taken
// out still points at the one behind it, so that who stands on it finds on.
type Fixed struct {
	buckets []atomic.Pointer[node]
	shift   uint8
	change  sync.Mutex
	n       atomic.Int64
}

type node struct {
	at   records.Addr
	rec  atomic.Pointer[Record]
	next atomic.Pointer[node]
}

// NewFixed makes a hash with a number of buckets, rounded up to a power of two; 0 is 256.
func NewFixed(buckets int) *Fixed {
	if buckets <= 0 {
		buckets = 256
	}
	buckets = 1 << bits.Len(uint(buckets-1))
	return &Fixed{buckets: make([]atomic.Pointer[node], buckets), shift: uint8(64 - bits.Len(uint(buckets-1)))}
}

func (f *Fixed) bucket(at records.Addr) *atomic.Pointer[node] { return &f.buckets[home(at, f.shift)] }

// Lookup implements Table.
func (f *Fixed) Lookup(at records.Addr) *Record {
	for n := f.bucket(at).Load(); n != nil; n = n.next.Load() {
		if n.at == at {
			return n.rec.Load()
		}
	}
	return nil
}

// find is the node of a function, or nil, and what points at it, or at where the
// chain ends.
func (f *Fixed) find(at records.Addr) (*node, *atomic.Pointer[node]) {
	link := f.bucket(at)
	n := link.Load()
	for n != nil && n.at != at {
		link = &n.next
		n = link.Load()
	}
	return n, link
}

// Set implements Table.
func (f *Fixed) Set(r *Record) error {
	if err := r.check(); err != nil {
		return err
	}
	f.change.Lock()
	defer f.change.Unlock()
	if n, _ := f.find(r.Func); n != nil {
		n.rec.Store(r)
		return nil
	}
	head := f.bucket(r.Func)
	n := &node{at: r.Func}
	n.rec.Store(r)
	n.next.Store(head.Load())
	head.Store(n)
	f.n.Add(1)
	return nil
}

// Remove implements Table.
func (f *Fixed) Remove(at records.Addr) bool {
	f.change.Lock()
	defer f.change.Unlock()
	n, link := f.find(at)
	if n == nil {
		return false
	}
	link.Store(n.next.Load())
	f.n.Add(-1)
	return true
}

// Len implements Table.
func (f *Fixed) Len() int { return int(f.n.Load()) }

// Cost implements Counted: the bucket, a node a comparison (its address and its
// pointers at once), and the record.
func (f *Fixed) Cost(at records.Addr) Cost {
	c := Cost{Loads: 1, Lines: 1}
	for n := f.bucket(at).Load(); n != nil; n = n.next.Load() {
		c.Comparisons++
		c.Loads++
		c.Lines++
		if n.at == at {
			c.Loads++
			c.Lines++
			break
		}
	}
	return c
}

// Bytes implements Counted.
func (f *Fixed) Bytes() int {
	return int(unsafe.Sizeof(*f)) + len(f.buckets)*int(unsafe.Sizeof(f.buckets[0])) + f.Len()*int(unsafe.Sizeof(node{}))
}
