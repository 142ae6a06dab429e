// SPDX-License-Identifier: Apache-2.0

package tracers_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers"
)

// lab is the core of the function tracer on real sites of a running machine: what
// it decides, the executor of the architecture's own protocol does.
type lab struct {
	core   *tracers.Core
	x      *poke.Executor
	ops    []*tracers.Ops
	stores int // made
	bad    int // that store fails; 0 for none
}

const labOps = 12

// names are the numbers by which literals name ops; sites without literals name
// what they call.
func (l *lab) name(i tracers.Installed) uint64 {
	switch {
	case i.Literal == nil:
		return uint64(i.Calls(l.core.Places.Entry))
	case i.Literal == l.core.NopOps:
		return 1
	case i.Literal == l.core.ListOps:
		return 2
	}
	j := 0
	if _, err := fmt.Sscanf(i.Literal.Name, "ops%d", &j); err != nil {
		return 0
	}
	return uint64(8 * (j + 1))
}

// trampoline is where the i-th ops' direct trampoline is.
func (l *lab) trampoline(i int) records.Addr { return l.core.Places.Trampolines + records.Addr(4096*i) }

// newLab has n of the records of a real kernel, for as many ops as there can be.
func newLab(t *testing.T, arch isa.Arch, n int) *lab {
	t.Helper()
	table, err := records.Open(t.Context(), records.DefaultFor(arch.Traits().Name), records.Options{})
	if err != nil {
		t.Fatal(err)
	}
	addrs := table.Addrs()[:n]
	l := &lab{}
	p := poke.Named(poke.Native, arch.Traits())
	l.core, err = tracers.New(tracers.Config{Arch: arch, Records: addrs,
		Stores: tracers.Stores{Site: func(q *tracers.Patch) error { return l.write(t, p, q) }}})
	if err != nil {
		t.Fatal(err)
	}
	code := &cpus.Code{Arch: arch, Traits: arch.Traits(), Layout: p.Layout, Len: int(l.core.Site(0).Len),
		Entry: l.core.Places.Entry}
	for i := range n {
		code.Sites = append(code.Sites, l.core.Site(i).Addr)
	}
	roles, err := cpus.ParseRoles("busy=2,idle=1")
	if err != nil {
		t.Fatal(err)
	}
	handlers := int3.NewTable(int3.PerCPU, len(roles))
	m, err := cpus.NewMachine(cpus.Config{Code: code, Roles: roles, Handler: handlers, NopOps: 1, Seed: 1,
		Initial: func(i int) isa.Text { return l.core.Text(i).Text }})
	if err != nil {
		t.Fatal(err)
	}
	for j := range labOps {
		l.ops = append(l.ops, nil)
		name := uint64(8 * (j + 1))
		if !arch.Traits().CallOps {
			name = uint64(l.trampoline(j))
		}
		if err := m.AddOps(name); err != nil {
			t.Fatal(err)
		}
	}
	m.Start()
	t.Cleanup(m.Stop)
	l.x = poke.NewExecutor(m, handlers, int3.BTree, cpus.NewRandom(1, 99), 0)
	l.x.Fault = func(poke.Step, int32) error {
		if l.stores++; l.stores == l.bad {
			return poke.ErrInjected
		}
		return nil
	}
	return l
}

// write makes one patch by the protocol.
func (l *lab) write(t *testing.T, p *poke.Protocol, q *tracers.Patch) error {
	patch := poke.Patch{Site: int32(q.Record), Addr: q.Addr, Old: q.From.Text, New: q.To.Text, OldOps: l.name(q.From),
		NewOps: l.name(q.To)}
	s := poke.Shape{Traits: l.core.Traits(), Len: int(l.core.Site(q.Record).Len), Patches: 1}
	u := &poke.Update{Patches: []poke.Patch{patch}, Shape: s, Settles: p.Settles(s)}
	batch := func(yield func(poke.Range) bool) { yield(poke.Range{From: 0, To: 1}) }
	if err := p.Compile(s, batch, func(st poke.Step) { u.Plan = append(u.Plan, st) }); err != nil {
		return err
	}
	return l.x.Run(t.Context(), u)
}

// fresh makes the ops anew, as a client does for another try.
func (l *lab) fresh(n int) {
	for j := range l.ops {
		l.ops[j] = tracers.NewOps(fmt.Sprintf("ops%d", j), nil, tracers.OpsDynamic)
		for rec := j * n / labOps; rec < (j+1)*n/labOps; rec++ {
			l.ops[j].Filter = append(l.ops[j].Filter, rec)
		}
	}
}

// state is every byte, literal, flag and link.
func (l *lab) state(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("%v %d %v %v", l.x.Peek(i).Format(8), l.x.Literal(i), l.core.Text(i),
			l.core.DirectOf(i)))
		if l.core.Flags(i)&^(tracers.Touched|tracers.Modified) != 0 {
			out = append(out, fmt.Sprintf("record %d has flags %v", i, l.core.Flags(i)))
		}
	}
	return append(out, fmt.Sprintf("%d ops", l.core.Len()))
}

// attachAll registers direct ops one after the other: all of them, or none. When one
// fails, those before it are taken away again, the last one first, as a link to many
// functions does that cannot be made (bpf_trampoline_multi_attach, Linux 7.2).
func attachAll(c *tracers.Core, ops []*tracers.Ops, trampoline func(i int) records.Addr) error {
	for i, o := range ops {
		if _, err := c.RegisterDirect(o, trampoline(i)); err != nil {
			err = fmt.Errorf("attach %d of %d: %w", i+1, len(ops), err)
			for _, done := range slices.Backward(ops[:i]) {
				if _, back := c.UnregisterDirect(done); back != nil {
					err = errors.Join(err, fmt.Errorf("take %s away: %w", done.Name, back))
				}
			}
			return err
		}
	}
	return nil
}

// TestAllOrNothing: twelve ops attach to functions of a real kernel under running
// CPUs. A store that fails, whichever it is, leaves every byte, literal, count
// and link as they were; without a failure everything is attached, and goes
// again.
func TestAllOrNothing(t *testing.T) {
	for _, name := range cpus.ArchNames() {
		t.Run(name, func(t *testing.T) {
			arch, err := cpus.ParseArch(name)
			if err != nil {
				t.Fatal(err)
			}
			const n = 60
			l := newLab(t, arch, n)
			before := l.state(n)
			failed := 0
			for k := 1; ; k += 7 {
				l.fresh(n)
				l.stores, l.bad = 0, k
				err := attachAll(l.core, l.ops, l.trampoline)
				if err == nil {
					break // there are fewer stores
				}
				failed++
				if !errors.Is(err, poke.ErrInjected) {
					t.Fatal(err)
				}
				same(t, fmt.Sprintf("store %d failed", k), before, l.state(n))
			}
			l.bad = 0
			if failed < n/7 {
				t.Errorf("%d stores failed", failed)
			}
			for j, o := range l.ops {
				for _, rec := range o.Filter {
					if got := l.core.DirectOf(rec); got != l.trampoline(j) ||
						l.x.Peek(rec) == arch.Disabled(l.core.Site(rec)) {
						t.Fatalf("record %d calls %s", rec, got)
					}
				}
			}
			// A function that somebody has already: nothing is attached.
			taken := l.ops[labOps-1]
			for _, o := range l.ops[:labOps-1] {
				if _, err := l.core.UnregisterDirect(o); err != nil {
					t.Fatal(err)
				}
			}
			again := l.state(n)
			l.fresh(n)
			var busy *tracers.Error
			if err := attachAll(l.core, l.ops, l.trampoline); !errors.As(err, &busy) || busy.Errno != tracers.EBUSY {
				t.Errorf("a function twice: %v", err)
			}
			same(t, "a function twice", again, l.state(n))
			if _, err := l.core.UnregisterDirect(taken); err != nil {
				t.Fatal(err)
			}
			same(t, "everything is detached", before, l.state(n))
			if n, first := l.x.Machine.Violations(); n > 0 {
				t.Errorf("%d violations, first %v", n, first[0])
			}
		})
	}
}

func same(t *testing.T, when string, want, got []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d lines of state, want %d: %v", when, len(got), len(want), got[len(got)-1])
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%s:\n%s, want\n%s", when, got[i], want[i])
		}
	}
}
