// SPDX-License-Identifier: Apache-2.0

package metadata

import (
	"errors"
	"fmt"

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
	// lookups need not touch, 64 bytes each: what a call finds cold if
	// all functions are called in turn. Nodes and records count as one line each.
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
	for i, n := range kindNames {
		if n == s {
			return TableKind(i), nil
		}
	}
	return 0, fmt.Errorf("metadata table %q: %w", s, spelling.NotOneOf(s, kindNames))
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
