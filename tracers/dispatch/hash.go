// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"math/bits"

	"github.com/textpoke/textpoke/records"
)

// hash is a set of addresses, each with what it leads to: struct ftrace_hash in
// kernel/trace/ftrace.c. It does not change once it is built; who wants another
// one publishes another one.
type hash struct {
	shift   uint8
	buckets []*funcEntry
}

type funcEntry struct {
	ip   records.Addr
	to   *trampoline // in the hash of direct functions
	next *funcEntry
}

const (
	// maxHashBits is FTRACE_HASH_MAX_BITS, kernel/trace/ftrace.c.
	maxHashBits = 12
	// goldenRatio is GOLDEN_RATIO_64, include/linux/hash.h.
	goldenRatio = 0x61C8864680B583EB
)

// newHash is a hash of addresses. It has fls(n) bits, as dup_hash in kernel
// gives it, twelve at most.
func newHash(ips ...records.Addr) *hash { return hashTo(ips, nil) }

// hashTo is a hash of addresses and what each leads to.
func hashTo(ips []records.Addr, to []*trampoline) *hash {
	n := min(bits.Len(uint(len(ips))), maxHashBits)
	h := &hash{shift: uint8(64 - n), buckets: make([]*funcEntry, 1<<n)}
	for i, ip := range ips {
		e := &funcEntry{ip: ip, next: h.buckets[h.key(ip)]}
		if to != nil {
			e.to = to[i]
		}
		h.buckets[h.key(ip)] = e
	}
	return h
}

// key is hash_long, include/linux/hash.h.
func (h *hash) key(ip records.Addr) uint64 { return uint64(ip) * goldenRatio >> h.shift }

// find looks an address up. It takes a load for the hash, one for the bucket, and one
// for each entry of it that is looked at.
func (h *hash) find(ip records.Addr) (e *funcEntry, loads int64) {
	loads = 2
	for e = h.buckets[h.key(ip)]; e != nil; e = e.next {
		loads++
		if e.ip == ip {
			break
		}
	}
	return e, loads
}
