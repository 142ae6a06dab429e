// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers/metadata"
)

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
	*base
	args  int
	calls []atomic.Bool
	table metadata.Counted
}

// NewGlobalTrampoline has no programs. All functions have so many arguments; a nil table
// is one that grows and shrinks.
func NewGlobalTrampoline(c Config, args int, table metadata.Counted) (*GlobalTrampoline, error) {
	b, err := newBase(c, words{}, false)
	if err = errors.Join(err, checkArgs(args)); err != nil {
		return nil, err
	}
	if table == nil {
		table = metadata.NewResizable()
	}
	g := &GlobalTrampoline{base: b, args: args, calls: make([]atomic.Bool, b.sites), table: table}
	b.users = g.publish
	return g, nil
}

// function is the key of the metadata: the site's address, down to where a number fits before it.
func function(ip records.Addr) records.Addr { return ip &^ 3 }

// publish puts the programs of sites into the table, before the sites call.
func (g *GlobalTrampoline) publish(sites []int) error {
	for _, site := range sites {
		m, at := g.imageOf(site), function(g.ips[site])
		if m == nil {
			g.calls[site].Store(false)
			g.table.Remove(at)
			continue
		}
		r := &metadata.Record{Func: at, Args: uint8(g.args), Origin: len(m.modify)+len(m.exit) > 0, Image: m}
		if err := g.table.Set(r); err != nil {
			return err
		}
		g.calls[site].Store(true)
	}
	return nil
}

// Call implements Way.
func (g *GlobalTrampoline) Call(site int, t *Task) {
	if !g.calls[site].Load() {
		t.body()
		return
	}
	t.save(g.args)
	at := function(g.ips[site])
	record := g.table.Lookup(at)
	if record == nil { // it went meanwhile
		t.body()
		return
	}
	programs := record.Image.(*image).run(g.ips[site], t)
	if t.counts != nil {
		t.count(Counts{Loads: int64(g.table.Cost(at).Loads) + programs, Hashes: 1, Walked: programs})
	}
}

// Cost implements Way, for programs that let the function go on.
func (g *GlobalTrampoline) Cost(site int) Counts {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.imageOf(site).cost(g.args)
	if c != (Counts{}) {
		c.Loads, c.Hashes, c.Walked = int64(g.table.Cost(function(g.ips[site])).Loads)+c.Called, 1, c.Called
	}
	return c
}

// maxPadded is how long a text may be whose padding is to hold numbers: four bytes a
// word of it are taken here.
const maxPadded = 256 << 20

// padding is the table in the functions' padding, for functions at these sites.
func padding(c Config) (metadata.Counted, error) {
	sites := c.Sites
	if len(sites) == 0 {
		return nil, nil // the way says so
	}
	text := metadata.Text{Start: function(slices.Min(sites)) - 64, End: function(slices.Max(sites)) + 64}
	if n := text.End - text.Start; n > maxPadded {
		return nil, fmt.Errorf("padding: the sites lie %d MiB apart, and no more than %d can be held",
			n>>20, maxPadded>>20)
	}
	return metadata.NewPadding(text)
}
