// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/records"
)

// Kernel is one release on one instruction set.
type Kernel struct {
	Arch, Release string
	Table         string // built-in table of its records, "" if there is none
	ModulesTable  string // the same with modules loaded
	Protocol      string // of its records, as package poke names it
	SyncRow       string // where rounds of records are counted
	StopRow       string // where it is counted that stoppers are woken
	Records       Records

	Facts *Facts         // that its ledgers follow from
	Own   *records.Table // of its image; nil where only their number is known
	File  string         // that it was read from; "" for a built-in kernel

	state   []string // what is so already, see [Kernel.In]
	callRow string   // where smp_call_function is counted
	rows    []Row
}

// Records is what the update of the records themselves sends.
type Records struct {
	Cause                          cpus.Cause // Sync or Stop
	PerBatch, PerRecord, PerUpdate int        // rounds
	Source                         string
}

// Rounds is what the update of n records sends, in so many batches.
func (r Records) Rounds(batches, n int) int {
	if n == 0 {
		return 0
	}
	return batches*r.PerBatch + n*r.PerRecord + r.PerUpdate
}

// Row is one row of /proc/interrupts, or a counter of the firmware. It may be a line of rows.csv.
type Row struct {
	Kernel    string `col:"kernel,key"` // of which it is one; "" where that follows from an image
	Name      string `col:"row,key"`
	Modelled  bool   `col:"modelled"`   // ledgers say what is to be seen in it
	SenderToo bool   `col:"sender_too"` // a round is counted on the CPU that asks for it as well
	About     string `col:"about"`
}

// Firmware tells whether a row is a counter of the firmware, which
// /proc/interrupts does not show.
func Firmware(row string) bool { return strings.HasPrefix(row, "FW_") }

// Scenario is what is switched.
type Scenario string

// The scenarios. Where a ledger tells the first use since boot from later ones it
// is one of its own: the tracer's trampoline is made then.
const (
	FunctionTracer      Scenario = "function-tracer"
	FunctionTracerFirst Scenario = "function-tracer-first"
	FunctionGraph       Scenario = "function-graph"
)

// Scenarios are all of them.
func Scenarios() []Scenario {
	return []Scenario{FunctionTracer, FunctionTracerFirst, FunctionGraph}
}

// Basis is how a number of an entry is known.
type Basis string

// The ways.
const (
	Sourced Basis = "source"  // read in that release's source
	Assumed Basis = "assumed" // as on another kernel, which the entry names; or where an image does not say

	FromTables Basis = "image" // counted in the image's tables
	FromCode   Basis = "rule"  // what the kernel's mechanism sends, which its code shows
)

// Entry is pokes of one kind that a tracer makes besides those of the records.
type Entry struct {
	Part          string // of the tracer's work, such as command-lines
	Cause         cpus.Cause
	Row           string // where its rounds are counted
	Pokes         int    // keys, sites or calls
	RoundsPerPoke int
	AfterRecords  bool // it follows the update of the records
	Sent          int  // rounds, in place of the product of the two, where they differ
	Fewer, More   int  // rounds by which it may be less, and more: as it was seen, or as the code allows
	OrMore        bool // More is no upper end either: the number is unknown
	Basis         Basis
	Source        string
}

// Rounds is how many interrupts every other CPU takes for the entry.
func (e Entry) Rounds() int { return e.Sent + e.Pokes*e.RoundsPerPoke }

// Range is between what numbers of interrupts a prediction lies.
type Range struct {
	Least, Most int
	OrMore      bool // Most is no bound
}

// Add adds what an entry may send.
func (r *Range) Add(e *Entry) {
	r.Least += e.Rounds() - e.Fewer
	r.Most += e.Rounds() + e.More
	r.OrMore = r.OrMore || e.OrMore
}

// String is 598, 598..612 or "598 or more".
func (r Range) String() string {
	switch {
	case r.OrMore:
		return fmt.Sprint(r.Least, " or more")
	case r.Least == r.Most:
		return strconv.Itoa(r.Least)
	}
	return fmt.Sprint(r.Least, "..", r.Most)
}

// Kernels are the built-in kernels. Shared: do not write.
func Kernels() []*Kernel {
	return spelling.Each(builtins(), func(b builtIn) *Kernel { return b.open() })
}

// Names are their names.
func Names() []string { return spelling.Each(builtins(), func(b builtIn) string { return b.Name }) }

// Named finds a kernel by a name such as Arch-6.12.
func Named(name string) (*Kernel, error) {
	b, err := spelling.Find("kernel", name, builtins(), func(b builtIn) string { return b.Name })
	if err != nil {
		return nil, err
	}
	return b.open(), nil
}

// For is the kernel that an architecture stands for, nil if there is none.
func For(arch string) *Kernel {
	for _, b := range builtins() {
		if b.Default && strings.HasPrefix(b.Name, arch+"-") {
			return b.open()
		}
	}
	return nil
}

// Name is the architecture and the release.
func (k *Kernel) Name() string { return k.Arch + "-" + k.Release }

// Rows are the rows that the kernel counts interrupts in. Shared: do not write.
func (k *Kernel) Rows() []Row { return k.rows }

// Row finds one of them.
func (k *Kernel) Row(name string) (Row, bool) {
	i := slices.IndexFunc(k.rows, func(r Row) bool { return r.Name == name })
	if i < 0 {
		return Row{}, false
	}
	return k.rows[i], true
}

// Ledger is what switching sends besides the rounds of the records, in order: one of the
// scenarios, or any of [Actions] that changes the records of a table once. The table may
// be nil where a scenario names none of its records. It fails if a fact of the kernel is not
// known. The slice is the caller's.
func (k *Kernel) Ledger(s Scenario, enable bool, t *records.Table) (entries []Entry, err error) {
	lines, _, err := k.replayed(s, enable, t)
	if err != nil {
		return nil, err
	}
	updates := 0
	for _, l := range lines {
		if l.Records > 0 {
			updates++
			continue
		}
		if l.Waits() {
			continue
		}
		l.AfterRecords = updates > 0
		entries = merge(entries, l.Entry)
	}
	if updates > 1 {
		return nil, fmt.Errorf("kernel %s, scenario %s: it updates records %d times, which only predictions tell",
			k.Name(), s, updates)
	}
	return entries, nil
}

// Picks are the records of a table that a scenario changes, as the kernel walks them. all
// is true where the scenario leaves it to others which they are.
func (k *Kernel) Picks(s Scenario, t *records.Table) (which []records.Addr, all bool, err error) {
	lines, free, err := k.replayed(s, true, t)
	if err != nil || free {
		return nil, free, err
	}
	for _, l := range lines {
		if l.pass != nil {
			for i := range l.pass.Patches {
				which = append(which, l.pass.Patches[i].Addr)
			}
		}
	}
	return which, false, nil
}

// anyRecord stands for the records of a scenario, which somebody else chooses.
var anyRecord = sync.OnceValues(func() (*records.Table, error) {
	return records.New("any", "", []records.Raw{{Addr: 16, Symbol: "any"}})
})

// replayed is what a scenario sends on a kernel in its state. free is true where the
// scenario takes any records: then one stands for all, unless the state names some.
func (k *Kernel) replayed(s Scenario, enable bool, t *records.Table) (lines []Line, free bool, err error) {
	action, arg, err := ParseAction(actions, string(s))
	if err != nil {
		return nil, false, fmt.Errorf("kernel %s, scenario: %w", k.Name(), err)
	}
	free = arg == "" && action.Argument == "FILTER"
	named := slices.ContainsFunc(k.state, func(fact string) bool { return strings.HasPrefix(fact, "action=") })
	if free && (!named || t == nil && k.Facts != nil && k.Facts.Records == 0) {
		if t, err = anyRecord(); err != nil {
			return nil, false, err
		}
	}
	r, err := k.NewReplay(t)
	if err != nil {
		return nil, false, err
	}
	lines, err = r.Switch(string(s), true)
	if err == nil && !enable {
		lines, err = r.Switch(string(s), false)
	}
	return lines, free, err
}

// merge adds an entry to those before it: to one of its kind if there is one, so that a
// part's static keys are one entry, and its static calls.
func merge(entries []Entry, e Entry) []Entry {
	for i := range entries {
		b := &entries[i]
		if b.Part == e.Part && b.Cause == e.Cause && b.Row == e.Row && b.AfterRecords == e.AfterRecords &&
			b.RoundsPerPoke == e.RoundsPerPoke && b.Sent == 0 && e.Sent == 0 && b.Basis == e.Basis {
			b.Pokes += e.Pokes
			b.Fewer, b.More, b.OrMore = b.Fewer+e.Fewer, b.More+e.More, b.OrMore || e.OrMore
			b.Source += "; " + e.Source
			return entries
		}
	}
	return append(entries, e)
}

// RowOf is where rounds of records, or wakeups of stoppers, are counted.
func (k *Kernel) RowOf(records cpus.Cause) string {
	if records == cpus.Stop {
		return k.StopRow
	}
	return k.SyncRow
}

// RecordRounds is what every other CPU takes for the records themselves: n of
// them, in so many batches, by row.
func (k *Kernel) RecordRounds(batches, n int) map[string]int {
	if sum := k.Records.Rounds(batches, n); sum > 0 {
		return map[string]int{k.RowOf(k.Records.Cause): sum}
	}
	return map[string]int{}
}

// Split parts a ledger into what precedes the records and what follows them.
func Split(entries []Entry) (before, after []Entry) {
	i := slices.IndexFunc(entries, func(e Entry) bool { return e.AfterRecords })
	if i < 0 {
		i = len(entries)
	}
	return entries[:i], entries[i:]
}

// LedgerRounds is what every other CPU takes for entries of a ledger, by row.
func LedgerRounds(entries []Entry) map[string]int {
	sum := map[string]int{}
	for _, e := range entries {
		sum[e.Row] += e.Rounds()
	}
	return sum
}

// Takes is what a CPU takes when n records are switched in so many batches, by
// modelled row, in the order of the rows: a patcher only what is counted on it too.
func (k *Kernel) Takes(entries []Entry, batches, n int, patcher bool) map[string]int {
	sum := LedgerRounds(entries)
	for row, rounds := range k.RecordRounds(batches, n) {
		sum[row] += rounds
	}
	takes := map[string]int{}
	for _, r := range k.rows {
		switch {
		case r.Modelled && patcher && !r.SenderToo:
			takes[r.Name] = 0
		case r.Modelled:
			takes[r.Name] = sum[r.Name]
		}
	}
	return takes
}

// Switch leaves parts of ledgers out.
type Switch struct{ off map[string]bool }

// ParseSwitch reads what is to be left out: causes, such as static-key, or parts
// of a tracer's work, such as command-lines, which is absent in a kernel that has
// a trace event on already.
func ParseSwitch(without []string) (Switch, error) {
	s, names := Switch{map[string]bool{}}, SwitchNames()
	for _, name := range without {
		if !slices.Contains(names, name) {
			return Switch{}, fmt.Errorf("cause %q: %w", name, spelling.NotOneOf(name, names))
		}
		s.off[name] = true
	}
	return s, nil
}

// SwitchNames are the causes and parts that occur in ledgers of scenarios.
func SwitchNames() []string {
	names := []string{"command-lines", "tracer-trampoline", "entry-calls", "own-probe", "fast-path", "graph-jump"}
	for _, c := range []cpus.Cause{cpus.StaticKey, cpus.StaticCall, cpus.Trampoline, cpus.EntryCall, cpus.CoreSync,
		cpus.PageAttributes} {
		names = append(names, c.String())
	}
	slices.Sort(names)
	return names
}

// Leave is the entries that are not left out.
func (s Switch) Leave(entries []Entry) []Entry {
	return spelling.Where(entries, func(e Entry) bool { return !s.off[e.Part] && !s.off[e.Cause.String()] })
}

// String is what is left out, as ParseSwitch reads it, separated by commas.
func (s Switch) String() string { return strings.Join(slices.Sorted(maps.Keys(s.off)), ",") }
