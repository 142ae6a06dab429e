package dispatch

import (
	"slices"
	"sync/atomic"

	"github.com/textpoke/textpoke/records"
)

// Metadata is what a global trampoline has to know of a function: its programs. It does
// not change once it is in a table; another one takes its place.
type Metadata struct{ entry, modify, exit *link }

// link is one program.
type link struct {
	of   *Ops
	next *link
}

// Table finds the metadata of a function by its address, nil if it has none, and says
// how many loads that took, that of the metadata's address among them and that of the
// metadata itself not. Set replaces it, and nil removes it, while others look up.
type Table interface {
	Find(ip records.Addr) (md *Metadata, loads int64)
	Set(ip records.Addr, md *Metadata)
}

// GlobalTrampoline is one trampoline for all functions with the same number of
// arguments, that looks the function's programs up: Menglong Dong, "bpf: tracing multi-link
// support", v1 2025-05-28.
//
//	site -> trampoline[arguments] -> table ... -> metadata -> link -> program
//	                                                           \-> next link ...
//
// The table's loads, one for the metadata, and one for every program of its three
// lists. No image is generated for a function: attaching changes the table and a site.
type GlobalTrampoline struct {
	attached
	args  func(site int) int
	calls []atomic.Bool
	table Table
}

// NewGlobalTrampoline has no programs. args says how many arguments a site's function has.
func NewGlobalTrampoline(sites []records.Addr, args func(site int) int, table Table) *GlobalTrampoline {
	return &GlobalTrampoline{attached: newAttached(sites), args: args, calls: make([]atomic.Bool, len(sites)), table: table}
}

// publish puts the programs of a site into the table, before the site calls.
func (g *GlobalTrampoline) publish(site int) {
	users := g.users[site]
	if len(users) == 0 {
		g.calls[site].Store(false)
		g.table.Set(g.ips[site], nil)
		return
	}
	m, md := imageOf(users), &Metadata{}
	for _, list := range []struct {
		from []*Ops
		to   **link
	}{{m.entry, &md.entry}, {m.modify, &md.modify}, {m.exit, &md.exit}} {
		for _, o := range slices.Backward(list.from) {
			*list.to = &link{o, *list.to}
		}
	}
	g.table.Set(g.ips[site], md)
	g.calls[site].Store(true)
}

// Attach implements Way.
func (g *GlobalTrampoline) Attach(o *Ops) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	sites, err := g.add(o)
	for _, i := range sites {
		g.publish(i)
	}
	return err
}

// Detach implements Way.
func (g *GlobalTrampoline) Detach(o *Ops) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	sites, err := g.remove(o)
	for _, i := range sites {
		g.publish(i)
	}
	return err
}

// Call implements Way.
func (g *GlobalTrampoline) Call(site int, ctx *Context) {
	if !g.calls[site].Load() {
		ctx.body()
		return
	}
	ctx.save(g.args(site))
	ip := g.ips[site]
	md, loads := g.table.Find(ip)
	if md == nil { // it went meanwhile
		ctx.body()
		return
	}
	called, skip := int64(0), false
	for l := md.entry; l != nil; l = l.next {
		called++
		l.of.Func(ip, l.of, ctx)
	}
	for l := md.modify; l != nil && !skip; l = l.next {
		called++
		skip = l.of.Modify(ip, ctx) != 0
	}
	if !skip {
		ctx.body()
	}
	if md.modify != nil || md.exit != nil {
		ctx.save(1)
	}
	for l := md.exit; l != nil; l = l.next {
		called++
		l.of.Exit(ip, l.of, ctx)
	}
	if c := ctx.counts; c != nil {
		c.Loads, c.Hashes, c.Walked, c.Called = c.Loads+loads+1+called, c.Hashes+1, c.Walked+called, c.Called+called
	}
}

// Cost implements Way, for programs that let the function go on.
func (g *GlobalTrampoline) Cost(site int) Counts {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.users[site]) == 0 {
		return Counts{}
	}
	b := BPF{args: g.args(site)}
	c := b.cost(g.users[site])
	_, loads := g.table.Find(g.ips[site])
	c.Loads, c.Hashes, c.Walked = loads+1+c.Called, 1, c.Called
	return c
}

// FixedTable is a Table with so many buckets for ever.
type FixedTable struct {
	shift   uint8
	buckets []atomic.Pointer[mdEntry]
}

// mdEntry does not change: a bucket is published anew.
type mdEntry struct {
	ip   records.Addr
	md   *Metadata
	next *mdEntry
}

// NewFixedTable has 1 << bits buckets.
func NewFixedTable(bits uint8) *FixedTable {
	return &FixedTable{64 - bits, make([]atomic.Pointer[mdEntry], 1<<bits)}
}

func (t *FixedTable) bucket(ip records.Addr) *atomic.Pointer[mdEntry] {
	return &t.buckets[uint64(ip)*goldenRatio>>t.shift]
}

// Find implements Table: a load for the bucket and one for each entry.
func (t *FixedTable) Find(ip records.Addr) (*Metadata, int64) {
	loads := int64(1)
	for e := t.bucket(ip).Load(); e != nil; e = e.next {
		loads++
		if e.ip == ip {
			return e.md, loads
		}
	}
	return nil, loads
}

// Set implements Table. One writer at a time.
func (t *FixedTable) Set(ip records.Addr, md *Metadata) {
	b := t.bucket(ip)
	var head *mdEntry
	for e := b.Load(); e != nil; e = e.next {
		if e.ip != ip {
			head = &mdEntry{e.ip, e.md, head}
		}
	}
	if md != nil {
		head = &mdEntry{ip, md, head}
	}
	b.Store(head)
}
