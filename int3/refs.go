// SPDX-License-Identifier: Apache-2.0

package int3

import (
	"sync/atomic"

	"github.com/textpoke/textpoke/internal/spelling"
)

// Refs counts the handlers that look at what is published.
type Refs uint8

// The variants.
const (
	// PerCPU: a counter for each CPU (Linux 6.16, 4334336e769b).
	PerCPU Refs = iota
	// SharedRef: one counter that every handler changes (5.6 to 6.15, 1f676247f36a).
	SharedRef
	// NoRef: handlers look whether there is a batch and count nothing
	// (5.3 to 5.5; nr_entries of bp_patching).
	NoRef
)

var refsNames = []string{"percpu", "shared", "none"}

// RefsNames lists the variants.
func RefsNames() []string { return refsNames }

func (r Refs) String() string { return refsNames[r] }

// ParseRefs reads a variant's name.
func ParseRefs(s string) (Refs, error) { return spelling.Number[Refs]("refs", s, refsNames) }

// counters are reference counts, stride apart.
type counters struct {
	n      []atomic.Int32
	stride int
}

// lineCounts is how many counts there is room for in a cache line.
const lineCounts = 16

func (c *counters) at(i int) *atomic.Int32 { return &c.n[i*c.stride] }
func (c *counters) len() int               { return len(c.n) / c.stride }

// get takes a reference unless there is none at all (atomic_inc_not_zero).
func get(count *atomic.Int32) bool {
	for {
		n := count.Load()
		if n == 0 {
			return false
		}
		if count.CompareAndSwap(n, n+1) {
			return true
		}
	}
}
