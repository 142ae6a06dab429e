// SPDX-License-Identifier: Apache-2.0

// Package attach asks why attaching to many functions takes minutes, and where the
// time goes.
package attach

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
)

// Config says what is attached, how, and what its time is modelled of.
// Its fields are the flags of attach.experiment.
type Config struct {
	Functions    []int
	Kernels      []string
	Ways         []string
	Calibrations []string
	Published    string
}

//go:embed attach.experiment
var declared string

var spec = experiments.Spec[Config, *row]{
	Form: declared, Columns: columns, Fields: (*Config).fields, Measure: measure,
}

// Experiment is the question.
var Experiment = spec.Experiment()

// Validate tells which field Run would refuse.
func (c Config) Validate() error { return spec.Validate(c) }

func (c *Config) fields() []*experiments.Field {
	ways := ledger.WayNames()
	return []*experiments.Field{
		experiments.List(&c.Kernels,
			"kernel", strings.Join(usual, ","), "`list` of kernels: built-in ones, images or files of facts", kernels),
		experiments.List(&c.Ways, "way", strings.Join(ways, ","), "`list` of ways to attach", experiments.OneOf(ways)),
		experiments.Strings(&c.Calibrations, "calibration", "calibration", "",
			"`calibration` that times rest on, of its instruction set: a built-in one or a file; "+
				"repeatable (default: for each the one whose CPUs are nearest to "+
				"64)", func(s string) bool { return !slices.Contains(calibration.Names(), s) }),
	}
}

// records is how many a table has: as many functions as are attached to at most.
const records = 50000

// nearTo is how many CPUs a machine should have that nobody asked for.
const nearTo = 64

// usual are the kernels that are counted unless others are asked for: interrupts of the
// first two were measured.
var usual = []string{"x86_64-6.12", "x86_64-7.2", "arm64-6.12", "riscv64-7.2"}

// kernels is the kind of their names.
var kernels = experiments.FieldKind[string]{
	Type: "kernel", Names: ledger.Names(), Format: strings.Clone,
	NamesFile: func(s string) bool { return !slices.Contains(ledger.Names(), s) },
	Parse: func(s string) (string, error) {
		_, err := ledger.Open(s)
		return s, err
	},
}

// known opens kernels.
func known(names []string) (out []*ledger.Kernel, err error) {
	for _, name := range names {
		k, err := ledger.Open(name)
		if err != nil {
			return nil, err
		}
		out = append(out, k)
	}
	return out, nil
}

// row is one number of functions, attached or detached in one way.
type row struct {
	Kernel    *ledger.Kernel
	Way       ledger.Way
	direction string
	tally     func() (on, off ledger.Tally, err error)
	Counts    ledger.Tally
	Machine   *ledger.Machine
	Parts     []ledger.Part
	Spread    calibration.Spread // of all of it, in nanoseconds
	seed      uint64
	largest   int // published number of functions of that way
}

// Seconds is the modelled time of all of it.
func (r *row) Seconds() float64 { return ledger.Whole(r.Parts) / 1e9 }

// Range is that time with its range, as people read it.
func (r *row) Range() string {
	s := r.Spread.Scaled(1e-9)
	return fmt.Sprintf("%s (%s to %s)", results.Seconds(r.Seconds()), results.Seconds(s.Low),
		results.Seconds(s.High))
}

// GracePeriods is the modelled time of its waits, in seconds.
func (r *row) GracePeriods() float64 {
	return experiments.First(r.Parts, func(p ledger.Part) bool { return p.Name == "grace periods" }).NS / 1e9
}

// Rounds are those of all causes.
func (r *row) Rounds() int { return r.Counts.AllRounds() }

var columns = slices.Concat(results.Columns[*row]{
	{Name: "kernel", Doc: "instruction set and release", Cell: func(r *row) any { return r.Kernel.Name() }},
	{Name: "way", Doc: "how functions are attached to", Cell: func(r *row) any { return r.Way.Name }},
	{Name: "direction", Doc: "attach or detach", Cell: func(r *row) any { return r.direction }},
	{Name: "functions", Kind: results.Integer, Doc: "attached to, of a table of 50,000",
		Cell: func(r *row) any { return r.Counts.Functions }},
	{Name: "ops", Kind: results.Integer,
		Doc: "objects that they are attached through", Cell: func(r *row) any { return r.Counts.Ops }},
	{Name: "calls", Kind: results.Integer, Doc: "of the kernel's interface, one after the other",
		Cell: func(r *row) any { return r.Counts.Calls }},
	{Name: "trampolines", Kind: results.Integer, Doc: "generated, or given up", Detail: true,
		Cell: func(r *row) any { return r.Counts.Images }},
	{Name: "rounds", Kind: results.Integer,
		Doc: "of interrupts that each other CPU takes", Cell: func(r *row) any { return r.Rounds() }},
}, causeColumns(), results.Columns[*row]{
	{Name: "site_stores", Kind: results.Integer, Doc: "stores to sites and their literals", Detail: true,
		Cell: func(r *row) any { return r.Counts.SiteStores }},
	{Name: "records_walked", Kind: results.Integer, Doc: "records that the kernel's loops look at",
		Cell: func(r *row) any { return r.Counts.Walked }},
	{Name: "entries_copied", Kind: results.Integer,
		Doc: "entries of hashes made", Cell: func(r *row) any { return r.Counts.Copied }},
	{Name: "allocations", Kind: results.Integer, Doc: "of memory, entries included", Detail: true,
		Cell: func(r *row) any { return r.Counts.Allocations }},
	{Name: "list_changes", Kind: results.Integer, Doc: "of the list of ops", Detail: true,
		Cell: func(r *row) any { return r.Counts.ListChanges }},
	{Name: "grace_periods", Kind: results.Integer, Doc: "waits until every task has scheduled, one after the other",
		Cell: func(r *row) any { return r.Counts.Waits }},
	{Name: "calibration", Doc: "machine that times are modelled for",
		Cell: func(r *row) any { return r.Machine.Name }},
}, partColumns(), results.Columns[*row]{
	{Name: "modelled_ns", Kind: results.Number, Doc: "modelled time of all of it",
		Cell: func(r *row) any { return ledger.Whole(r.Parts) }},
	{Name: "modelled_range_low_ns", Kind: results.Number,
		Doc:  "lower end of it: 95 % of draws of the quantities are within",
		Cell: func(r *row) any { return r.Spread.Low }},
	{Name: "modelled_range_high_ns", Kind: results.Number,
		Doc: "and its upper end", Cell: func(r *row) any { return r.Spread.High }},
	{Name: "modelled_hangs_on", Doc: "quantity that moves it most",
		Cell: func(r *row) any { return results.OrEmpty(r.Spread.On()) }},
	{Name: "modelled_assumed_percent", Kind: results.Number,
		Doc:  "share of it that rests on quantities which are assumed",
		Cell: func(r *row) any { return 100 * r.Spread.Assumed }},
	{Name: "extrapolated", Kind: results.Boolean, Doc: "more functions than in any published case of the way",
		Cell: func(r *row) any { return r.Counts.Functions > r.largest }},
})

// causeColumns are the rounds by cause.
func causeColumns() (out results.Columns[*row]) {
	for c := range ledger.NumKinds {
		out = append(out, results.Col[*row]{Name: "rounds_" + column(ledger.Kind(c).String()), Kind: results.Integer,
			Doc: "of these, for " +
				roundDocs[c], Detail: true,
			Cell: func(r *row) any { return r.Counts.Rounds[c] }})
	}
	return out
}

// partColumns are the modelled times by part.
func partColumns() (out results.Columns[*row]) {
	for i, p := range ledger.PartNames {
		out = append(out, results.Col[*row]{Name: column(p) + "_ns", Kind: results.Number,
			Doc: "modelled time of: " + p, Detail: true,
			Cell: func(r *row) any { return r.Parts[i].NS }})
	}
	return out
}

var roundDocs = [ledger.NumKinds]string{"the sites", "the calls in the common entries",
	"the order of what entries load", "trampolines that are made",
	"programs that are patched out of trampolines", "an ops' own trampoline", "CPUs that are woken for RCU",
	"anything else, such as function_graph's own probe"}

// column makes a name fit a column.
func column(s string) string {
	return strings.NewReplacer(" ", "_", "-", "_").Replace(s)
}

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (*experiments.Findings, error) {
	times, err := published.AttachTimes.Read(s.Config.Published)
	if err != nil {
		return nil, err
	}
	all, err := known(s.Config.Kernels)
	if err != nil {
		return nil, err
	}
	machines, err := s.Config.machines(all)
	if err != nil {
		return nil, err
	}
	a := &answer{Study: s}
	if a.Measured, err = compare(); err != nil {
		return nil, err
	}
	if a.Predicted, err = predict(times); err != nil {
		return nil, err
	}
	for i := range times {
		if wayOf(&times[i]) == "" {
			a.Unknown = append(a.Unknown, times[i].Case)
		}
	}
	rows, err := s.Config.rows(all, machines, times, s.Lab.Seed)
	if err != nil {
		return nil, err
	}
	err = experiments.Each(ctx, s, rows, func(r *row) (*row, error) { return r, r.count() })
	return a.findings(), err
}

// machines finds the machine for each instruction set.
func (c *Config) machines(all []*ledger.Kernel) (map[string]*ledger.Machine, error) {
	out := map[string]*ledger.Machine{}
	for _, k := range all {
		out[k.Arch] = ledger.NewMachine(calibration.Nearest(k.Arch, nearTo), ledger.AssumedExtra)
	}
	for _, name := range c.Calibrations {
		c, err := calibration.Open(name)
		if err != nil {
			return nil, err
		}
		if _, known := out[c.Arch]; !known {
			return nil, fmt.Errorf("calibration %s is of %s, of which no kernel is", name, c.Arch)
		}
		out[c.Arch] = ledger.NewMachine(c, ledger.AssumedExtra)
	}
	return out, nil
}

// rows are those to come, attaching and detaching in turn: what a kernel cannot do is
// left out.
func (c *Config) rows(all []*ledger.Kernel, machines map[string]*ledger.Machine,
	times []published.AttachTime, seed uint64) (out []*row, err error) {
	for _, k := range all {
		for _, way := range c.Ways {
			w, err := ledger.ParseWay(way)
			if err != nil {
				return nil, err
			}
			if w.In(k) != nil {
				continue
			}
			for _, n := range c.Functions {
				tally := counting(k, w, n, records)
				for _, direction := range []string{published.Attach, published.Detach} {
					out = append(out, &row{
						Kernel: k, Way: w, direction: direction, tally: tally, Counts: ledger.Tally{Functions: n},
						Machine: machines[k.Arch], seed: seed, largest: largest(times, w.Name),
					})
				}
			}
		}
	}
	return out, nil
}

// counting counts both directions when one of them is asked for, once.
func counting(k *ledger.Kernel, w ledger.Way, n, total int) func() (on, off ledger.Tally, err error) {
	var on, off ledger.Tally
	once := sync.OnceValue(func() (err error) {
		on, off, err = k.Attach(w, n, total)
		return err
	})
	return func() (ledger.Tally, ledger.Tally, error) {
		err := once()
		return on, off, err
	}
}

// count fills a row in.
func (r *row) count() error {
	on, off, err := r.tally()
	if r.Counts = on; r.direction == published.Detach {
		r.Counts = off
	}
	if err == nil {
		r.Parts = r.Machine.Waterfall(&r.Counts, r.direction == published.Attach)
		r.Spread = r.Machine.Spread(&r.Counts, r.direction == published.Attach, r.seed)
	}
	return err
}

// counted is one direction of attaching to n functions.
func counted(k *ledger.Kernel, w ledger.Way, direction string, n, total int) (ledger.Tally, error) {
	on, off, err := k.Attach(w, n, total)
	if direction == published.Detach {
		on = off
	}
	return on, err
}
