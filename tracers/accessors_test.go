// SPDX-License-Identifier: Apache-2.0

package tracers

import (
	"fmt"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

// Len is how many ops are attached.
func (c *Core) Len() int { return c.list.n }

// Site is where a record's patchable bytes are.
func (c *Core) Site(rec int) isa.Site { return c.sites[rec] }

// Refused are the records that the architecture refuses.
func (c *Core) Refused() []int { return c.refused }

// DirectOf is a record's entry in direct_functions, 0 if there is none.
func (c *Core) DirectOf(rec int) records.Addr { return c.direct[rec] }

// Image is what a function's site calls when it calls the trampoline directly.
func (b *BPF) Image(rec int) records.Addr {
	if t := b.tramps[rec]; t != nil {
		return t.image
	}
	return 0
}

// Addrs are the addresses of the patches, in the order in which they are made.
func (r *Report) Addrs() (out []records.Addr) {
	for _, p := range r.Passes {
		for i := range p.Patches {
			out = append(out, p.Patches[i].Addr)
		}
	}
	return out
}

// Released tells whether the ops was attached once and no call can reach it any
// more: it may be freed.
func (o *Ops) Released() bool { return o.alive == released }

// Free reuses an ops' memory. It fails while a call may still be
// on its way to the ops; the kernel's Detach would not have returned yet.
func (c *Core) Free(o *Ops) error {
	if o.alive == attached || o.alive == leaving {
		return fmt.Errorf("ops %s: a call may be on its way to it", o.Name)
	}
	o.alive = freed
	return nil
}

// FreeAtOnce is the defect: an ops and its trampoline are freed without waiting.
func (c *Core) FreeAtOnce(o *Ops) {
	o.alive = freed
	if t := c.tramps[o.Trampoline]; t != nil {
		t.gone = true
	}
}
