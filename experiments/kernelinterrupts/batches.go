// SPDX-License-Identifier: Apache-2.0

package kernelinterrupts

import (
	"context"
	"fmt"

	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
)

// vector is the kernel's own: TP_VEC_MAX entries of 16 bytes in a page
// (arch/x86/kernel/alternative.c, since Linux 5.6).
var vector = sched.Buffer{Slots: 256}

// noBatches stands for kernels that do not batch.
const noBatches = -1

// cutter cuts what was patched into batches, from the kernels' own tables.
type cutter struct {
	tables map[string]*records.Table
	done   map[cutKey]int
}

type cutKey struct {
	kernel    *ledger.Kernel
	load      ledger.Load
	functions int
}

func newCutter() *cutter {
	return &cutter{map[string]*records.Table{}, map[cutKey]int{}}
}

// batches counts the batches of one measurement; noBatches where the kernel has
// none.
func (c *cutter) batches(ctx context.Context, m *ledger.Measured) (int, error) {
	if m.Kernel.Records.PerBatch == 0 || !m.Load.Switches() {
		return noBatches, nil
	}
	key := cutKey{m.Kernel, m.Load, m.Functions}
	if n, ok := c.done[key]; ok {
		return n, nil
	}
	addrs, err := c.patched(ctx, key)
	if err != nil {
		return 0, fmt.Errorf("kernel %s, scenario %s: %w", m.Kernel.Name(), m.Scenario, err)
	}
	n := 0
	for range sched.Cut(len(addrs), func(i int) records.Addr { return addrs[i] }, vector, false) {
		n++
	}
	c.done[key] = n
	return n, nil
}

// patched is the addresses of what a load patches, in the order of the table.
func (c *cutter) patched(ctx context.Context, key cutKey) ([]records.Addr, error) {
	name := key.kernel.Table
	if key.load == ledger.ModulesAll || key.load == ledger.ModulesOnly {
		name = key.kernel.ModulesTable
	}
	t, err := c.table(ctx, name)
	if err != nil {
		return nil, err
	}
	all, n := t.Addrs(), key.functions
	switch {
	case n > len(all):
		return nil, fmt.Errorf("%d functions: table %s has %d", n, name, len(all))
	case key.load == ledger.First:
		return all[:n], nil
	case key.load == ledger.Spread:
		out := make([]records.Addr, n)
		for i := range out {
			out[i] = all[i*len(all)/n]
		}
		return out, nil
	case key.load == ledger.ModulesOnly:
		all = nil
		for i, a := range t.Addrs() {
			if t.Module(i) != "" {
				all = append(all, a)
			}
		}
	}
	if len(all) != n {
		return nil, fmt.Errorf("%d functions: of table %s it would be %d", n, name, len(all))
	}
	return all, nil
}

func (c *cutter) table(ctx context.Context, name string) (*records.Table, error) {
	if t, ok := c.tables[name]; ok {
		return t, nil
	}
	t, err := records.Open(ctx, name, records.Options{})
	if err != nil {
		return nil, err
	}
	c.tables[name] = t
	return t, nil
}
