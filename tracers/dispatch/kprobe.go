package dispatch

import (
	"slices"
	"sync/atomic"

	"github.com/textpoke/textpoke/records"
)

// Kprobe is a breakpoint at the site, and a table of probes by address:
//
//	site -> breakpoint -> exception -> bucket -> kprobe ... -> handlers
//	  then the copied instruction: jumped to (boosted), or stepped -> exception
//
// A lookup in a hash that is there from the start: a load for the bucket, and one for each probe in it up to the one that is meant; then
// one for every handler, as several at one address are a list (aggr_pre_handler).
// Exceptions are one, or two where the instruction has to be single-stepped, and each
// saves all registers. kernel/kprobes.c; kprobe_table has 64 buckets.
//
// Exceptions are counted here and not taken: the time of a call is that of the rest.
type Kprobe struct {
	attached
	boosted bool
	traps   []atomic.Bool // the sites' instructions: breakpoints
	table   [kprobeBuckets]atomic.Pointer[kprobe]
}

// kprobe is all probes at one address.
type kprobe struct {
	ip       records.Addr
	handlers []*Ops
	next     *kprobe
}

// kprobeBits is KPROBE_HASH_BITS, kernel/kprobes.c.
const (
	kprobeBits    = 6
	kprobeBuckets = 1 << kprobeBits
)

// NewKprobe has no probes.
func NewKprobe(sites []records.Addr, boosted bool) *Kprobe {
	return &Kprobe{attached: newAttached(sites), boosted: boosted, traps: make([]atomic.Bool, len(sites))}
}

// kprobeKey is hash_ptr, include/linux/hash.h.
func kprobeKey(ip records.Addr) uint64 { return uint64(ip) * goldenRatio >> (64 - kprobeBits) }

// publish builds the buckets of some sites anew.
func (k *Kprobe) publish(sites []int) {
	dirty := map[uint64]bool{}
	for _, i := range sites {
		dirty[kprobeKey(k.ips[i])] = true
	}
	heads := map[uint64]*kprobe{}
	for i, ip := range k.ips {
		if key := kprobeKey(ip); dirty[key] && len(k.users[i]) > 0 {
			heads[key] = &kprobe{ip, slices.Clone(k.users[i]), heads[key]}
		}
	}
	for key := range dirty {
		k.table[key].Store(heads[key])
	}
}

// Attach implements Way: the probe is in the table before the breakpoint is there.
func (k *Kprobe) Attach(o *Ops) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	sites, err := k.add(o)
	if err != nil {
		return err
	}
	k.publish(sites)
	for _, i := range sites {
		k.traps[i].Store(true)
	}
	return nil
}

// Detach implements Way.
func (k *Kprobe) Detach(o *Ops) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	sites, err := k.remove(o)
	if err != nil {
		return err
	}
	for _, i := range sites {
		k.traps[i].Store(len(k.users[i]) > 0)
	}
	k.publish(sites)
	return nil
}

// Call implements Way. A probe that is hit while one is handled is missed: kprobe_running.
func (k *Kprobe) Call(site int, ctx *Context) {
	if !k.traps[site].Load() {
		return
	}
	ctx.save(AllRegisters)
	ip := k.ips[site]
	loads := int64(1)
	p := k.table[kprobeKey(ip)].Load()
	for ; p != nil; p = p.next {
		loads++
		if p.ip == ip {
			break
		}
	}
	if c := ctx.counts; c != nil {
		c.Loads += loads
		c.Hashes++
		c.Traps++
	}
	if p != nil {
		k.handle(p, ctx)
	}
	if !k.boosted {
		ctx.save(AllRegisters)
		if c := ctx.counts; c != nil {
			c.Traps++
		}
	}
}

// handle calls the handlers of a probe.
func (k *Kprobe) handle(p *kprobe, ctx *Context) {
	if ctx.probing {
		ctx.Missed++
		return
	}
	ctx.probing = true
	for _, o := range p.handlers {
		o.Func(p.ip, o, ctx)
	}
	ctx.probing = false
	if c := ctx.counts; c != nil {
		n := int64(len(p.handlers))
		c.Loads, c.Walked, c.Called = c.Loads+n, c.Walked+n, c.Called+n
	}
}

// Cost implements Way.
func (k *Kprobe) Cost(site int) Counts {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := int64(len(k.users[site]))
	if n == 0 {
		return Counts{}
	}
	// A bucket has its later sites first.
	c := Counts{Loads: 1 + n, Hashes: 1, Walked: n, Called: n, Saved: AllRegisters, Traps: 1}
	for i := site; i < len(k.ips); i++ {
		if len(k.users[i]) > 0 && kprobeKey(k.ips[i]) == kprobeKey(k.ips[site]) {
			c.Loads++
		}
	}
	if !k.boosted {
		c.Traps, c.Saved = 2, 2*AllRegisters
	}
	return c
}
