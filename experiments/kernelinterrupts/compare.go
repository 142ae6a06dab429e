// SPDX-License-Identifier: Apache-2.0

package kernelinterrupts

import (
	"context"
	"fmt"

	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/kernels/vm"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
)

// Row is one measurement with the ledger's number.
type Row struct {
	ledger.Measured
	Batches  int // noBatches where there are none
	Modelled bool
	Model    int    // of modelled rows
	Why      string // it differs, or nothing models it; "" where it agrees
}

// Difference is what was measured beyond the model.
func (r *Row) Difference() int { return r.Delta - r.Model }

// Answer is every measurement beside the model.
type Answer struct {
	Rows      []Row
	Summaries []Summary
}

// Compare holds measurements against the ledgers of their kernels.
func Compare(ctx context.Context, measured []ledger.Measured) (*Answer, error) {
	a := &Answer{Rows: make([]Row, len(measured))}
	c := &cutter{map[string]*records.Table{}, map[cutKey]int{}}
	for i, m := range measured {
		r := &a.Rows[i]
		r.Measured = m
		var err error
		if r.Batches, err = c.batches(ctx, &m); err != nil {
			return nil, err
		}
		if err := r.model(); err != nil {
			return nil, err
		}
	}
	a.explain()
	return a, nil
}

// explain summarizes the rows, and says why any differs.
func (a *Answer) explain() {
	a.summarize()
	rest := a.rest()
	for i := range a.Rows {
		r := &a.Rows[i]
		r.Why = r.why(rest[rowKey{r.Kernel, r.CPUs, r.Measured.Row}].idle)
	}
	for i := range a.Summaries {
		s := &a.Summaries[i]
		of := rest[rowKey{s.Kernel, s.CPUs, s.Row}]
		s.Why, s.Quiet = s.why(of.idle), of.quiet
	}
}

// model fills in the ledger's number.
func (r *Row) model() error {
	row, ok := r.Kernel.Row(r.Measured.Row)
	if !ok {
		return fmt.Errorf("kernel %s: no row %s", r.Kernel.Name(), r.Measured.Row)
	}
	if r.Modelled = row.Modelled; !r.Modelled || !r.Load.Switches() {
		return nil
	}
	entries, err := r.Kernel.Ledger(r.Load.Scenario(), r.Enable, nil)
	if err != nil {
		return err
	}
	r.Model = r.Kernel.Takes(entries, max(r.Batches, 0), r.Functions, r.Patcher)[r.Measured.Row]
	return nil
}

// Why things differ.
const (
	sharedInterrupt = "two calls shared one interrupt"
	unexplained     = "fewer than the model: not explained"
	notSwitched     = "background: nothing was switched"
	oneReceiver     = "background: the only receiver takes all of the machine's"
	someBackground  = "background: idle balancing, RCU and worker threads"
	everyReceiver   = "every receiver took more: not explained"
)

// why says why a row differs. idle is the clean value of the same row in a second
// in which nothing is switched.
func (r *Row) why(idle float64) string {
	row, _ := r.Kernel.Row(r.Measured.Row)
	switch d := r.Difference(); {
	case !r.Modelled:
		return "not modelled: " + row.About
	case d == 0:
		return ""
	case d == -1 && !r.Patcher:
		return sharedInterrupt
	case d < 0:
		return unexplained
	case !r.Load.Switches():
		return notSwitched
	case !r.Patcher && r.CPUs == 2:
		return oneReceiver
	case !r.Patcher && idle > 0 && float64(d) == idle:
		return asIdle(idle)
	}
	return someBackground
}

func asIdle(idle float64) string {
	return fmt.Sprintf("background: %g in a second in which nothing is switched, too", idle)
}

// rowKey is one interrupt row of one machine.
type rowKey struct {
	kernel *ledger.Kernel
	cpus   int
	row    string
}

// atRest is what a row shows while nothing is switched: its clean value in an idle second, and whether some receiver
// takes none. Only such a row has no background, and its clean values can be compared with the model exactly.
type atRest struct {
	idle  float64
	quiet bool
}

// rest is that of each row.
func (a *Answer) rest() map[rowKey]atRest {
	out := map[rowKey]atRest{}
	for i := range a.Summaries {
		s := &a.Summaries[i]
		if s.Load.Switches() {
			continue
		}
		key := rowKey{s.Kernel, s.CPUs, s.Row}
		r, before := out[key]
		if r.quiet = (r.quiet || !before) && s.Quietest == 0; s.Load == ledger.Idle {
			r.idle = s.Quietest
		}
		out[key] = r
	}
	return out
}

// Summary is one modelled row of one toggle, over receivers and repetitions.
type Summary struct {
	Kernel      *ledger.Kernel
	CPUs        int
	Load        ledger.Load
	Scenario    string
	Functions   int
	Row         string
	Receivers   int
	Repetitions int
	Batches     int // noBatches where there are none
	Records     int // rounds of the records that the row shows
	Model       int
	Quietest    float64 // the smallest of the receivers' medians over repetitions: the clean value
	Median      float64 // of all receivers' readings
	Mode        int     // of them: the most frequent, of several the smallest
	ExactShare  float64 // of the receivers' readings that are the model's
	Background  float64 // median of what readings exceed the model by
	Why         string  // the clean value differs; "" where it agrees
	Quiet       bool    // some receiver takes none while nothing is switched
}

// Difference is what the clean value exceeds the model by.
func (s *Summary) Difference() float64 { return s.Quietest - float64(s.Model) }

// Unexplained tells whether it must agree, does not, and nothing explains it.
func (s Summary) Unexplained() bool {
	return s.Load.Switches() && (s.Why == everyReceiver || s.Why == unexplained)
}

func (s *Summary) why(idle float64) string {
	switch d := s.Difference(); {
	case d == 0:
		return ""
	case d < 0:
		return unexplained
	case !s.Load.Switches():
		return notSwitched
	case s.Receivers == 1:
		return oneReceiver
	case d == idle:
		return asIdle(idle)
	}
	return everyReceiver
}

// summarize fills the summaries, in the order of the rows.
func (a *Answer) summarize() {
	type key struct {
		rowKey
		scenario  string
		functions int
	}
	of := map[key][]*Row{}
	var order []key
	for i := range a.Rows {
		r := &a.Rows[i]
		if r.Patcher || !r.Modelled {
			continue
		}
		k := key{rowKey{r.Kernel, r.CPUs, r.Measured.Row}, r.Scenario, r.Functions}
		if of[k] == nil {
			order = append(order, k)
		}
		of[k] = append(of[k], r)
	}
	for _, k := range order {
		a.Summaries = append(a.Summaries, summaryOf(of[k]))
	}
}

// summaryOf is the summary of rows that differ in receiver and repetition only.
func summaryOf(rows []*Row) Summary {
	r := rows[0]
	s := Summary{
		Kernel: r.Kernel, CPUs: r.CPUs, Load: r.Load, Scenario: r.Scenario, Functions: r.Functions, Row: r.Measured.Row,
		Batches: r.Batches, Model: r.Model, Records: r.Kernel.RecordRounds(max(r.Batches, 0), r.Functions)[r.Measured.Row],
	}
	byCPU := map[int][]int{}
	var beyond, readings []int
	exact := 0
	for _, r := range rows {
		byCPU[r.CPU] = append(byCPU[r.CPU], r.Delta)
		beyond, readings = append(beyond, r.Difference()), append(readings, r.Delta)
		if r.Difference() == 0 {
			exact++
		}
	}
	s.Receivers, s.ExactShare, s.Background = len(byCPU), float64(exact)/float64(len(rows)), vm.Median(beyond)
	s.Median, s.Mode = vm.Median(readings), mode(readings)
	first := true
	for _, deltas := range byCPU {
		s.Repetitions = max(s.Repetitions, len(deltas))
		if m := vm.Median(deltas); first || m < s.Quietest {
			s.Quietest, first = m, false
		}
	}
	return s
}

// mode is the most frequent of some numbers, the smallest of several.
func mode(of []int) int {
	count, best := map[int]int{}, of[0]
	for _, n := range of {
		count[n]++
	}
	for n, times := range count {
		if times > count[best] || times == count[best] && n < best {
			best = n
		}
	}
	return best
}

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

// patched is the addresses that a load patches, in the order of the table.
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
