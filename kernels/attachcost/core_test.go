// SPDX-License-Identifier: Apache-2.0

package attachcost

import (
	"fmt"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers"
)

const textBase = 0xffffffff81000004

func newCore(t testing.TB, k *Kernel, total int) *tracers.Core {
	t.Helper()
	arch, err := cpus.ParseArch(k.Arch)
	if err != nil {
		t.Fatal(err)
	}
	recs := make([]records.Addr, total)
	for i := range recs {
		recs[i] = textBase + records.Addr(64*i)
	}
	c, err := tracers.New(tracers.Config{Arch: arch, Records: recs})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// span is the numbers from a to b.
func span(a, b int64) (out []int) {
	for i := a; i < b; i++ {
		out = append(out, int(i))
	}
	return out
}

// run attaches to the first n records by the core of the function tracer, and
// detaches them; what each change did goes to on and off.
func run(t testing.TB, c *tracers.Core, k *Kernel, w Way, n int64) (on, off []tracers.Report) {
	t.Helper()
	must := func(r tracers.Report, err error) tracers.Report {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	m := w.calls(n)
	part := func(j int64) []int { return span(j*n/m, (j+1)*n/m) }
	trampoline := func(j int) records.Addr { return c.Places.Trampolines + records.Addr(64*j) }
	switch {
	case !w.Direct:
		o := tracers.NewOps("fprobe", tracers.CountHits, 0, 0)
		if k.SharedProbeOps {
			must(c.Attach(o)) // the ops is not new: it has its trampoline
			must(c.Detach(o))
		} else {
			o.Flags |= tracers.OpsDynamic
		}
		o.Filter = span(0, n)
		return []tracers.Report{must(c.Attach(o))}, []tracers.Report{must(c.Detach(o))}
	case k.SharedDirectOps:
		o := tracers.NewOps("direct", nil, 0)
		of := make([]map[int]records.Addr, m)
		for j := range of {
			of[j] = map[int]records.Addr{}
			for _, rec := range part(int64(j)) {
				of[j][rec] = trampoline(rec)
			}
			on = append(on, must(c.DirectAdd(o, of[j])))
		}
		for j := range of {
			off = append(off, must(c.DirectDel(o, of[j])))
		}
		return on, off
	}
	all := make([]*tracers.Ops, m)
	for j := range all {
		all[j] = tracers.NewOps(fmt.Sprintf("ops%d", j), nil, tracers.OpsDynamic)
		all[j].Filter = part(int64(j))
		on = append(on, must(c.RegisterDirect(all[j], trampoline(j))))
	}
	for _, o := range all {
		off = append(off, must(c.UnregisterDirect(o)))
	}
	return on, off
}

// sum is what reports of the core come to. Trampolines of BPF and the entries of
// an ops' own filter are not the core's.
func sum(k *Kernel, w Way, direction string, n, total int64, all []tracers.Report) (c Counts) {
	for i := range all {
		r := &all[i]
		for _, p := range r.Passes {
			patches := int64(len(p.Patches))
			c.SiteStores += k.Stores * patches
			c.Rounds[Records] += k.PerBatch*((patches+slots-1)/slots) + k.PerRecord*patches + k.PerUpdate
			c.Rounds[EntryCall] += k.CallUpdate * int64(p.FuncUpdates)
			c.Rounds[Order] += k.OrderSync * int64(p.Syncs)
			c.Walked += (k.Replace - 1) * total // what the core counts once
		}
		c.Rounds[OwnEntry] += k.ProbeMade*int64(r.Trampolines) + k.ProbeAimed*int64(r.Reaims) +
			k.ProbeFreed*int64(r.Freed)
		c.Walked += int64(r.Walked)
		c.Copied += int64(r.HashEntries)
		c.ListChanges += int64(r.ListChanges)
		c.Waits += int64(r.Tasks)
	}
	if direction == published.Detach {
		c.Walked += total // the list is empty: all flags are looked at, which the core does not count
		if w.Direct && k.SharedDirectOps {
			// Nor does it count that the smaller filter's owner is asked about the
			// instruction pointer (ftrace_hash_ipmodify_update in ftrace_hash_move).
			c.Walked += total * int64(len(all)-1)
		}
	}
	if direction == published.Attach && !(w.Direct && k.SharedDirectOps) {
		c.Copied += n // filters, which are set before
	}
	return c
}

// TestCore: the counts are what the core of the function tracer counts when it
// does all of it.
func TestCore(t *testing.T) {
	all, err := Kernels()
	if err != nil {
		t.Fatal(err)
	}
	const total = 700
	for _, k := range all {
		for _, w := range Ways() {
			if w.In(k) != nil {
				continue
			}
			for _, n := range []int64{1, 2, 13, 255, 256, 257, 600} {
				on, off := run(t, newCore(t, k, total), k, w, n)
				for direction, got := range map[string]Counts{published.Attach: sum(k, w, published.Attach, n, total,
					on), published.Detach: sum(k, w, published.Detach, n, total, off)} {
					want := counted(t, k, w.Name, direction, n, total)
					for _, cause := range []Cause{Image, OldImage} { // not the core's
						want.Rounds[cause] = 0
					}
					if got.Rounds != want.Rounds || got.SiteStores != want.SiteStores || got.Walked != want.Walked ||
						got.Copied != want.Copied ||
						got.ListChanges != want.ListChanges || got.Waits != want.Waits {
						t.Errorf("%s %s %s of %d\n the core %+v\ncounted here %+v", k.Name, w.Name, direction, n, got,
							want)
					}
				}
			}
		}
	}
}
