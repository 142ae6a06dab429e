// SPDX-License-Identifier: Apache-2.0

// Package metadata holds the records that a global trampoline needs about the function
// that called it, and finds them by the function's address.
//
// A BPF trampoline is made for one function and has that function's programs and
// number of arguments in its instructions. A global trampoline is one piece of
// code for all functions; it has to look them up at each call (Menglong Dong, "bpf:
// tracing multi-link support", RFC v1 28 May 2025, v2 3 July 2025). The tables:
//
//	fixed-256, fixed-1024  chains behind a fixed number of buckets. 256 is what
//	                       fprobe's table of addresses had (FPROBE_IP_HASH_BITS = 8,
//	                       kernel/trace/fprobe.c, Linux 6.14 to 6.18), 1024 what BPF
//	                       trampolines' has (TRAMPOLINE_HASH_BITS = 10,
//	                       kernel/bpf/trampoline.c)
//	resizable              grows and shrinks with the functions in it, as the series'
//	                       v2, and as rhltable in fprobe since 6.19
//	padding                the number of a record stands in the bytes before the
//	                       function, as in the series' v1; records lie in an array
//	sync-map, rwmutex-map  the maps of Go programs, as rivals
//
// # Promises of all tables
//
// Any goroutine may call any method at any time. Changes wait for each other; a lookup allocates
// nothing and, but in rwmutex-map, never waits. Each operation is as if it happened at one moment
// between its call and its return. A record is never written once it is in a table. To change one,
// set another in its place; the garbage collector stands for the grace period after which the old
// one is freed.
package metadata

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/records"
)

// MaxArgs is the most arguments of a function that a trampoline can be made for
// (MAX_BPF_FUNC_ARGS, include/linux/bpf.h).
const MaxArgs = 12

// Record is what the global trampoline knows of a function.
type Record struct {
	Func  records.Addr
	Args  uint8 // arguments to save
	Image any   // what the trampoline calls; tables do not look at it
}

func (r *Record) check() error {
	switch {
	case r.Func == 0:
		return errors.New("metadata: no function is at address 0")
	case r.Args > MaxArgs:
		return fmt.Errorf("metadata of %v: %d arguments: a trampoline saves %d at most", r.Func, r.Args, MaxArgs)
	}
	return nil
}

// Table finds records by their functions.
type Table interface {
	// Lookup is the record of the function at an address, or nil.
	Lookup(at records.Addr) *Record
	// Set puts a record in, instead of the one that its function may have. On an
	// error nothing has changed.
	Set(*Record) error
	// Remove takes a function's record out, and says whether there was one.
	Remove(at records.Addr) bool
	// Len is the number of records.
	Len() int
}

// Counted is a table that can say what its lookups do.
type Counted interface {
	Table
	// Cost is what Lookup does for this address. It may not run beside a change.
	Cost(at records.Addr) Cost
	// Bytes is the memory of the table, without the records and without what the
	// allocator adds. It may not run beside a change.
	Bytes() int
}

// Cost is what one lookup does.
type Cost struct {
	Comparisons int // of addresses
	// Loads is the longest row of loads that each need the one before, to the
	// record's contents.
	Loads int
	// Lines are the cache lines that these loads touch and that other functions'
	// lookups need not touch, 64 bytes each: the cold lines of a call if all functions are
	// called in turn. Nodes and records count as one line each.
	Lines int
}

// TableKind names a Table; the zero value is what fprobe had first.
type TableKind uint8

// The kinds.
const (
	Fixed256 TableKind = iota
	Fixed1024
	ResizableHash
	FunctionPadding
	SyncMap
	RWMutexMap
)

var kindNames = []string{"fixed-256", "fixed-1024", "resizable", "padding", "sync-map", "rwmutex-map"}

// KindNames lists the kinds.
func KindNames() []string { return kindNames }

func (k TableKind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", k)
}

// ParseKind reads a kind's name.
func ParseKind(s string) (TableKind, error) {
	return spelling.Number[TableKind]("metadata table", s, kindNames)
}

// New makes an empty table for functions in text; only padding needs to know
// where that is.
func New(k TableKind, text Text) (Table, error) {
	switch k {
	case Fixed256:
		return NewFixed(256), nil
	case Fixed1024:
		return NewFixed(1024), nil
	case FunctionPadding:
		return NewPadding(text)
	case SyncMap:
		return &syncMap{}, nil
	case RWMutexMap:
		return &lockedMap{m: map[records.Addr]*Record{}}, nil
	case ResizableHash:
		return NewResizable(), nil
	}
	return nil, fmt.Errorf("metadata: %v: there is no such table", k)
}

// home is Fibonacci hashing (Knuth, TAOCP vol. 3, 6.4), as the kernel's hash_64
// (include/linux/hash.h). shift is 64 less the bits wanted.
func home(at records.Addr, shift uint8) uint64 {
	return uint64(at) * 0x61C8864680B583EB >> shift
}

// changes are what all tables have: changes wait for each other, and records are counted.
type changes struct {
	change sync.Mutex
	n      atomic.Int64
}

// Len implements Table.
func (c *changes) Len() int { return int(c.n.Load()) }

// set lets put store a record, and say whether its function had none.
func (c *changes) set(r *Record, put func() (added bool)) error {
	if err := r.check(); err != nil {
		return err
	}
	c.change.Lock()
	defer c.change.Unlock()
	if put() {
		c.n.Add(1)
	}
	return nil
}

// remove lets take remove a record, and say whether there was one.
func (c *changes) remove(take func() (had bool)) bool {
	c.change.Lock()
	defer c.change.Unlock()
	had := take()
	if had {
		c.n.Add(-1)
	}
	return had
}

// syncMap is the standard library's map for readers that do not wait.
type syncMap struct {
	changes
	m sync.Map
}

func (s *syncMap) Lookup(at records.Addr) *Record {
	if r, ok := s.m.Load(at); ok {
		return r.(*Record)
	}
	return nil
}

func (s *syncMap) Set(r *Record) error {
	return s.set(r, func() bool {
		_, had := s.m.Swap(r.Func, r)
		return !had
	})
}

func (s *syncMap) Remove(at records.Addr) bool {
	return s.remove(func() bool {
		_, had := s.m.LoadAndDelete(at)
		return had
	})
}

// lockedMap is a plain map behind a lock that readers share.
type lockedMap struct {
	changes
	mu sync.RWMutex
	m  map[records.Addr]*Record
}

func (l *lockedMap) Lookup(at records.Addr) *Record {
	l.mu.RLock()
	r := l.m[at]
	l.mu.RUnlock()
	return r
}

func (l *lockedMap) Set(r *Record) error {
	return l.set(r, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		had := l.m[r.Func] != nil
		l.m[r.Func] = r
		return !had
	})
}

func (l *lockedMap) Remove(at records.Addr) bool {
	return l.remove(func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		had := l.m[at] != nil
		delete(l.m, at)
		return had
	})
}

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
	changes
	buckets []atomic.Pointer[node]
	shift   uint8
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
	return f.set(r, func() bool {
		if n, _ := f.find(r.Func); n != nil {
			n.rec.Store(r)
			return false
		}
		head := f.bucket(r.Func)
		n := &node{at: r.Func}
		n.rec.Store(r)
		n.next.Store(head.Load())
		head.Store(n)
		return true
	})
}

// Remove implements Table.
func (f *Fixed) Remove(at records.Addr) bool {
	return f.remove(func() bool {
		n, link := f.find(at)
		if n != nil {
			link.Store(n.next.Load())
		}
		return n != nil
	})
}

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
