// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"slices"
	"sync/atomic"

	"github.com/textpoke/textpoke/records"
)

// kprobes is a breakpoint at the site, and a table of probes by address:
//
//	site -> breakpoint -> exception -> bucket -> kprobe ... -> handlers
//	  then the copied instruction: jumped to (boosted), or stepped -> exception
//
// A lookup in a hash that is there from the start: a load for the bucket, and one for each
// probe in it up to the one that is meant; then one for every handler, as several at one
// address are a list (aggr_pre_handler).
// Exceptions are one, or two where the instruction has to be single-stepped, and each
// saves all registers. kernel/kprobes.c; kprobe_table has 64 buckets.
//
// Exceptions are counted here and not taken: the time of a call is that of the rest.
type kprobes struct {
	*Way
	boosted bool
	table   [kprobeBuckets]atomic.Pointer[kprobe]
}

// kprobe is all probes at one address.
type kprobe struct {
	ip       records.Addr
	handlers []*entry // the newest first: list_add_rcu in add_new_kprobe
	next     *kprobe
}

// kprobeBits is KPROBE_HASH_BITS, kernel/kprobes.c.
const (
	kprobeBits    = 6
	kprobeBuckets = 1 << kprobeBits
)

// newKprobe has no probes.
func newKprobe(c Config, boosted bool) (*Way, error) {
	w, err := newWay(c, words{}, false)
	if err != nil {
		return nil, err
	}
	k := &kprobes{Way: w, boosted: boosted}
	w.users, w.path = k.publish, k.call
	return w, nil
}

// kprobeKey is hash_ptr, include/linux/hash.h.
func kprobeKey(ip records.Addr) uint64 { return uint64(ip) * goldenRatio >> (64 - kprobeBits) }

// handlers are what the users of a site call, the newest first.
func (k *kprobes) handlers(site int) (out []*entry) {
	for _, o := range slices.Backward(k.core.Users(site)) {
		if e := k.entries[o]; e.run != nil {
			out = append(out, e)
		}
	}
	return out
}

// publish builds the buckets of some sites anew. A probe is in the table while there is
// a breakpoint.
func (k *kprobes) publish(sites []int) error {
	dirty, heads := map[uint64]bool{}, map[uint64]*kprobe{}
	for _, site := range sites {
		dirty[kprobeKey(k.ips[site])] = true
		if len(k.core.Users(site)) == 0 {
			k.calls[site].Store(false)
		}
	}
	for site, ip := range k.ips[:k.sites] {
		if key := kprobeKey(ip); dirty[key] && len(k.core.Users(site)) > 0 {
			heads[key] = &kprobe{ip, k.handlers(site), heads[key]}
		}
	}
	for key := range dirty {
		k.table[key].Store(heads[key])
	}
	for _, site := range sites {
		k.calls[site].Store(len(k.core.Users(site)) > 0)
	}
	return nil
}

// call is missed where the probe is hit while one is handled: kprobe_running.
func (k *kprobes) call(site int, t *Task) {
	t.save(AllRegisters)
	ip := k.ips[site]
	loads := int64(1)
	p := k.table[kprobeKey(ip)].Load()
	for ; p != nil; p = p.next {
		loads++
		if p.ip == ip {
			break
		}
	}
	if c := t.counts; c != nil {
		c.Loads += loads
		c.Hashes++
		c.Traps++
	}
	if p != nil {
		k.handle(p, t)
	}
	if !k.boosted {
		t.save(AllRegisters)
		if c := t.counts; c != nil {
			c.Traps++
		}
	}
}

// handle calls the handlers of a probe.
func (k *kprobes) handle(p *kprobe, t *Task) {
	if t.probing {
		t.Missed++
		return
	}
	t.probing = true
	for _, e := range p.handlers {
		e.run(p.ip, t)
	}
	t.probing = false
	n := int64(len(p.handlers))
	t.count(Counts{Loads: n, Walked: n})
}
