// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	tracee    records.Addr = 0xffffffff81001000
	elsewhere records.Addr = 0xffffffff81002000
)

// layout is the seed's: tracers that trace the function, and others.
var layout = [][2]int{
	{0, 0}, {0, 1}, {0, 2}, {0, 10}, {0, 100}, {0, 200},
	{1, 0}, {1, 1}, {1, 2}, {1, 10}, {1, 100}, {1, 200},
	{2, 0}, {10, 0}, {100, 0}, {200, 0}, {2, 3},
}

// layout is that of a way: a BPF trampoline has room for 38 programs.
func (k Kind) layout() [][2]int {
	if k.Name != "bpf" {
		return layout
	}
	return slices.DeleteFunc(slices.Clone(layout), func(l [2]int) bool { return l[0] > tracers.MaxTrampLinks })
}

// Sample attaches so many tracers to a site, and as many others as irrelevant says to a function
// elsewhere that is never called, as samples/ftrace/ftrace-ops.c does. All count their calls
// ([tracers.Task.Hits]).
func (k Kind) Sample(w *Way, site, relevant, elsewhere, irrelevant int) error {
	for i := range relevant + irrelevant {
		o := tracers.NewOps(fmt.Sprintf("ops%d", i), tracers.CountHits, 0, site)
		switch {
		case i >= relevant:
			o.Filter = tracers.FunctionsOf(elsewhere)
		case i == 0 && k.Direct:
			o.Func, o.Direct = nil, tracers.CountHits
		}
		if err := w.Attach(o); err != nil {
			return fmt.Errorf("tracer %d of %d: %w", i+1, relevant+irrelevant, err)
		}
	}
	return nil
}

// sample attaches tracers to a new way with one site.
func sample(t testing.TB, k Kind, relevant, irrelevant int) *Way {
	t.Helper()
	w := sole(t, k)
	if err := k.Sample(w, 0, relevant, 1, irrelevant); err != nil {
		t.Fatal(err)
	}
	return w
}

// counted makes calls and counts what each took.
func counted(w *Way, site, calls int) (Counts, *Task) {
	ctx := &Task{}
	var c Counts
	ctx.Count(&c)
	for range calls {
		w.Call(site, ctx)
	}
	return c, ctx
}

// TestCostIsCount holds what is computed against what is counted, and who is called
// against who is attached.
func TestCostIsCount(t *testing.T) {
	const calls = 3
	for _, k := range kinds {
		for _, l := range k.layout() {
			w := sample(t, k, l[0], l[1])
			got, ctx := counted(w, 0, calls)
			if want := k.cost(w, 0).Times(calls); got != want {
				t.Errorf("%s with %d and %d: counted %+v, computed %+v", k.Name, l[0], l[1], got, want)
			}
			if want := calls * int64(l[0]); int64(ctx.Hits) != want || got.Called != want || ctx.Missed != 0 {
				t.Errorf("%s with %d and %d: %d hits, %d called, want %d", k.Name, l[0], l[1], ctx.Hits, got.Called,
					want)
			}
		}
	}
}

// TestLoads holds loads and entries walked against formulas from the paths that the
// types' docs draw, where one site is looked up in hashes without collisions: a test of
// a hash is three loads if it has the address, and two or three if it has another one.
func TestLoads(t *testing.T) {
	other := int64(2)
	if h := newHash(elsewhere); h.key(tracee) == h.key(elsewhere) {
		other = 3
	}
	const hit = 3
	list := func(r, i int64) int64 { return 1 + r*(1+hit) + i*(1+other) }
	several := func(one int64, before int64) func(r, i int64) int64 {
		return func(r, i int64) int64 {
			if r == 1 {
				return one
			}
			return before + list(r, i)
		}
	}
	fixed := func(f func(r int64) int64) func(r, i int64) int64 {
		return func(r, _ int64) int64 { return f(r) }
	}
	want := map[string]func(r, i int64) int64{
		"list": list,
		"global": func(r, i int64) int64 {
			if r+i == 1 {
				return 1
			}
			return 1 + list(r, i)
		},
		"call-ops": several(2, 2), "direct": several(0, 2), "direct-ops": several(2, 2),
		"intermediate": several(3, 3), "ops-trampoline": several(1, 1), "site-trampoline": several(1, 2),
		"single-direct":     several(0, 2+hit), // the address is looked up once more
		"single-direct-far": several(2+hit, 2+hit),
		"fprobe":            func(r, i int64) int64 { return several(2, 2)(r, i) + r },
		"fprobe-2022":       func(r, i int64) int64 { return list(r, i) + 4*r },
		"kprobe":            fixed(func(r int64) int64 { return 2 + r }),
		"kprobe-stepped":    fixed(func(r int64) int64 { return 2 + r }),
		"bpf":               fixed(func(int64) int64 { return 0 }),
		"global-trampoline": fixed(func(r int64) int64 { return 3 + r }), // bucket, node, record
		// The table, where its cells are, the cell, the record; or the number, where
		// the array is, the record.
		"global-trampoline-resizable": fixed(func(r int64) int64 { return 4 + r }),
		"global-trampoline-padding":   fixed(func(r int64) int64 { return 3 + r }),
	}
	walks := map[string]bool{"list": true, "global": true, "fprobe-2022": true}
	for _, k := range kinds {
		for _, l := range k.layout() {
			if l[0] == 0 {
				continue
			}
			r, i := int64(l[0]), int64(l[1])
			c, _ := counted(sample(t, k, l[0], l[1]), 0, 1)
			if got, want := c.Loads, want[k.Name](r, i); got != want {
				t.Errorf("%s with %d and %d: %d loads, want %d", k.Name, r, i, got, want)
			}
			if walks[k.Name] && r+i > 1 && (c.Walked != r+i || c.Hashes != r+i) {
				t.Errorf("%s with %d and %d: %d entries walked, %d hashes", k.Name, r, i, c.Walked, c.Hashes)
			}
		}
	}
}

// TestNoAllocations: nothing is allocated on any way, counted or not.
func TestNoAllocations(t *testing.T) {
	for _, k := range kinds {
		for _, l := range [][2]int{{0, 3}, {1, 0}, {3, 3}} {
			w, ctx := sample(t, k, l[0], l[1]), &Task{}
			if n := testing.AllocsPerRun(100, func() { w.Call(0, ctx) }); n != 0 {
				t.Errorf("%s with %d and %d: %v allocations", k.Name, l[0], l[1], n)
			}
		}
	}
}

// TestHash holds the hash against a map.
func TestHash(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 2, 3, 100, 9000} {
		in := map[records.Addr]bool{}
		var ips []records.Addr
		for len(in) < n {
			if ip := tracee + records.Addr(rng.IntN(1<<18))*16; !in[ip] {
				in[ip] = true
				ips = append(ips, ip)
			}
		}
		h := newHash(ips...)
		for range 2000 {
			ip := tracee + records.Addr(rng.IntN(1<<18))*16
			if n > 0 && rng.IntN(2) == 0 {
				ip = ips[rng.IntN(n)]
			}
			e, loads := h.find(ip)
			if (e != nil) != in[ip] || h.contains(ip) != in[ip] || h.cost(ip) != (Counts{Hashes: 1, Loads: loads}) {
				t.Fatalf("%v in a hash of %d: %v after %d loads, computed %+v", ip, n, e, loads, h.cost(ip))
			}
		}
	}
	if got := len(newHash(make([]records.Addr, 9000)...).buckets); got != 4096 {
		t.Errorf("%d buckets, want FTRACE_HASH_MAX_BITS of them", got)
	}
}

func TestParse(t *testing.T) {
	for _, name := range Names() {
		if k, err := Parse(name); err != nil || k.Name != name || k.Doc == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Parse("call-op"); err == nil || err.Error() == "" {
		t.Error("call-op is no way")
	}
}
