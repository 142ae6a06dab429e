package dispatch

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers/metadata"
)

// lists are a function's programs by when they run: what its metadata's record holds.
// They do not change; others take their place.
type lists struct{ entry, modify, exit *link }

// link is one program.
type link struct {
	of   *Ops
	next *link
}

// GlobalTrampoline is one trampoline for all functions with the same number of
// arguments, that looks the function's programs up: Menglong Dong, "bpf: tracing multi-link
// support", v1 2025-05-28.
//
//	site -> trampoline[arguments] -> table ... -> record -> link -> program
//	                                                         \-> next link ...
//
// The table's loads, that of the record among them (metadata.Cost), and one for every
// program of its three lists. No image is generated for a function: attaching changes the
// table and a site.
type GlobalTrampoline struct {
	attached
	args  func(site int) int
	calls []atomic.Bool
	table metadata.Counted
}

// NewGlobalTrampoline has no programs. args says how many arguments a site's function has.
func NewGlobalTrampoline(sites []records.Addr, args func(site int) int, table metadata.Counted) *GlobalTrampoline {
	return &GlobalTrampoline{attached: newAttached(sites), args: args, calls: make([]atomic.Bool, len(sites)), table: table}
}

// function is what metadata is looked up by: the site's address, down to where a number
// fits before it.
func function(ip records.Addr) records.Addr { return ip &^ 3 }

// publish puts the programs of a site into the table, before the site calls.
func (g *GlobalTrampoline) publish(site int) error {
	users, at := g.users[site], function(g.ips[site])
	if len(users) == 0 {
		g.calls[site].Store(false)
		g.table.Remove(at)
		return nil
	}
	m, image := imageOf(users), &lists{}
	for _, list := range []struct {
		from []*Ops
		to   **link
	}{{m.entry, &image.entry}, {m.modify, &image.modify}, {m.exit, &image.exit}} {
		for _, o := range slices.Backward(list.from) {
			*list.to = &link{o, *list.to}
		}
	}
	record := &metadata.Record{
		Func: at, Args: uint8(g.args(site)), Origin: image.modify != nil || image.exit != nil, Image: image,
	}
	if err := g.table.Set(record); err != nil {
		return err
	}
	g.calls[site].Store(true)
	return nil
}

// Attach implements Way: at all sites or, where the table takes one of them not, at none.
func (g *GlobalTrampoline) Attach(o *Ops) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	sites, err := g.add(o)
	for _, i := range sites {
		if err = g.publish(i); err != nil {
			err = errors.Join(fmt.Errorf("attach: %w", err), g.takeOut(o))
			break
		}
	}
	return err
}

// Detach implements Way.
func (g *GlobalTrampoline) Detach(o *Ops) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.takeOut(o)
}

// takeOut takes an ops out of wherever it is.
func (g *GlobalTrampoline) takeOut(o *Ops) error {
	sites, err := g.remove(o)
	for _, i := range sites {
		err = errors.Join(err, g.publish(i))
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
	at := function(ip)
	record := g.table.Lookup(at)
	if record == nil { // it went meanwhile
		ctx.body()
		return
	}
	md := record.Image.(*lists)
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
		c.Loads, c.Hashes, c.Walked, c.Called = c.Loads+int64(g.table.Cost(at).Loads)+called, c.Hashes+1, c.Walked+called, c.Called+called
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
	c.Loads, c.Hashes, c.Walked = int64(g.table.Cost(function(g.ips[site])).Loads)+c.Called, 1, c.Called
	return c
}

// maxPadded is how long a text may be whose padding is to hold numbers: four bytes a
// word of it are taken here.
const maxPadded = 256 << 20

// padding is the table in the functions' padding, for functions at these sites.
func padding(sites []records.Addr) metadata.Counted {
	text := metadata.Text{Start: function(slices.Min(sites)) - 64, End: function(slices.Max(sites)) + 64}
	if n := text.End - text.Start; n > maxPadded {
		return refused{metadata.NewFixed(1), fmt.Errorf("padding: the sites lie %d MiB apart, and no more than %d can be held", n>>20, maxPadded>>20)}
	}
	table, err := metadata.NewPadding(text)
	if err != nil {
		return refused{metadata.NewFixed(1), err}
	}
	return table
}

// refused is a table that takes nothing, and says why.
type refused struct {
	metadata.Counted
	why error
}

// Set implements metadata.Table.
func (r refused) Set(*metadata.Record) error { return r.why }
