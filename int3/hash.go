// SPDX-License-Identifier: Apache-2.0

package int3

import (
	"math/bits"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/records"
)

// hash is open addressing with linear probing, at most half full. It answers
// exact addresses only: which site an address lies in, a sorted index can tell
// and a hash cannot.
type hash struct {
	cells []cell
	shift uint
	n     int
}

type cell struct {
	at   records.Addr // 0: empty; no site is at 0
	slot int32
}

func newHash(b Batch) *hash {
	size := uint(max(bits.Len(uint(2*len(b.Addrs))), 1))
	h := &hash{cells: make([]cell, 1<<size), shift: 64 - size, n: len(b.Addrs)}
	for slot, at := range b.Addrs {
		i := h.home(at)
		for h.cells[i].at != 0 {
			i = (i + 1) & (len(h.cells) - 1)
		}
		h.cells[i] = cell{at, int32(slot)}
	}
	return h
}

// home is Fibonacci hashing (Knuth, TAOCP vol. 3, 6.4), as the kernel's hash_64.
func (h *hash) home(at records.Addr) int {
	return int(uint64(at) * 0x9e3779b97f4a7c15 >> h.shift)
}

func (h *hash) Find(at records.Addr, p *cpus.Probe) (int, bool) {
	for i := h.home(at); h.cells[i].at != 0; i = (i + 1) & (len(h.cells) - 1) {
		p.Comparisons++
		if h.cells[i].at == at {
			return int(h.cells[i].slot), true
		}
	}
	return 0, false
}

func (h *hash) Len() int { return h.n }
