// SPDX-License-Identifier: Apache-2.0

package int3

import (
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/records"
)

// vector is one sorted run of addresses, searched as the kernel's __inline_bsearch
// does (include/linux/bsearch.h): one three-way comparison a probe.
type vector []records.Addr

func newVector(b Batch) vector { return vector(b.Addrs) }

func (v vector) Find(at records.Addr, p *cpus.Probe) (int, bool) {
	return search(v, at, p)
}

func (v vector) Len() int { return len(v) }

// search is a binary search over ascending addresses.
func search(v []records.Addr, at records.Addr, p *cpus.Probe) (int, bool) {
	lo, hi := 0, len(v)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		p.Comparisons++
		switch {
		case v[mid] == at:
			return mid, true
		case v[mid] < at:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return 0, false
}
