// SPDX-License-Identifier: Apache-2.0

// Package attach asks why attaching to many functions takes minutes, and where the
// time goes.
package attach

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
)

// Config says to how many functions a tracer is attached, how, and by which calibrations its time is modelled.
// Its fields are the flags of attach.experiment.
type Config struct {
	Functions    []int
	Kernels      []string
	Ways         []string
	Calibrations []string
	Published    string
}

// Experiment is the question.
var Experiment = (&experiments.Spec[Config, *row]{
	Form: experiments.Text("attach/attach.experiment"), Cells: cells, Fields: (*Config).fields, Measure: measure,
}).Experiment()

func (c *Config) fields() []*choice.Field {
	ways := ledger.WayNames()
	return []*choice.Field{
		choice.List(&c.Kernels,
			"kernel", strings.Join(usual, ","), "`list` of kernels: built-in ones, images or files of facts", kernels),
		choice.List(&c.Ways, "way", strings.Join(ways, ","), "`list` of ways to attach", choice.OneOf(ways)),
		choice.Strings(&c.Calibrations, "calibration", "calibration", "",
			"`calibration` that times rest on, of its instruction set: a built-in one or a file; "+
				"repeatable (default: for each the one whose CPUs are nearest to "+
				"64)", func(s string) bool { return !slices.Contains(calibration.Names(), s) }),
	}
}

// records is how many a table has: as many functions as are attached to at most.
const records = 50000

// nearTo is how many CPUs a machine should have if none is asked for.
const nearTo = 64

// usual are the kernels that are counted unless others are asked for: interrupts of the
// first two were measured.
var usual = []string{"x86_64-6.12", "x86_64-7.2", "arm64-6.12", "riscv64-7.2"}

// kernels is the kind of their names.
var kernels = choice.Kind[string]{
	Type: "kernel", Names: ledger.Names(), Format: strings.Clone,
	NamesFile: func(s string) bool { return !slices.Contains(ledger.Names(), s) },
	Parse: func(s string) (string, error) {
		if slices.Contains(ledger.Names(), s) { // what has a name is good: it is read where it is counted
			return s, nil
		}
		_, err := ledger.Open(s)
		return s, err
	},
}

// row is one number of functions, attached or detached in one way.
type row struct {
	Kernel    *ledger.Kernel
	Way       ledger.Way
	Direction string
	attached  *row // the same functions being attached, where this row detaches them
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

// Rounds are those of all causes.
func (r *row) Rounds() int { return r.Counts.AllRounds() }

// cells are those that no field and no method is: rounds by cause, and times by part.
var cells = func() map[string]func(*row) any {
	out := map[string]func(*row) any{}
	for c := range ledger.NumKinds {
		out["rounds_"+column(ledger.Kind(c).String())] = func(r *row) any { return r.Counts.Rounds[c] }
	}
	for i, p := range ledger.PartNames {
		out[column(p)+"_ns"] = func(r *row) any { return r.Parts[i].NS }
	}
	return out
}()

// Modelled is the modelled time of all of it, in nanoseconds.
func (r *row) Modelled() float64 { return ledger.Whole(r.Parts) }

// column makes a name fit a column.
func column(s string) string {
	return strings.NewReplacer(" ", "_", "-", "_").Replace(s)
}

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (any, error) {
	times, err := published.AttachTimes.Read(s.Config.Published)
	if err != nil {
		return nil, err
	}
	all, err := spelling.ReadEach(s.Config.Kernels, ledger.Open)
	if err != nil {
		return nil, err
	}
	machines, err := s.Config.machines(all)
	if err != nil {
		return nil, err
	}
	a := &answer{Study: s}
	counts := tallies{}
	measured, err := counts.compare()
	if err != nil {
		return nil, err
	}
	predicted, err := counts.predict(times)
	if err != nil {
		return nil, err
	}
	for _, p := range predicted {
		s.Predictions = append(s.Predictions, p.Pair())
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
	err = experiments.Each(ctx, s, rows, func(r *row) (*row, error) { return r, r.count(counts) })
	return a, cmp.Or(err, experiments.Beside(s, "measured", measured),
		experiments.Beside(s, "predicted", predicted), experiments.Beside(s, "parts", parts(s.Rows)))
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
			return nil, fmt.Errorf("calibration %s is of %s: no kernel is of that", name, c.Arch)
		}
		out[c.Arch] = ledger.NewMachine(c, ledger.AssumedExtra)
	}
	return out, nil
}

// rows are the rows to make, attaching and detaching in turn. Ways that a kernel does not
// have are left out.
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
				on := &row{
					Kernel: k, Way: w, Direction: published.Attach, Counts: ledger.Tally{Functions: n},
					Machine: machines[k.Arch], seed: seed, largest: largest(times, w.Name),
				}
				off := *on
				off.Direction, off.attached = published.Detach, on
				out = append(out, on, &off)
			}
		}
	}
	return out, nil
}

// count fills a row in.
func (r *row) count(t tallies) (err error) {
	if r.Counts, err = t.of(r.Kernel, r.Way, r.Direction, r.Counts.Functions, records); err != nil {
		return err
	}
	r.Parts = r.Machine.Waterfall(&r.Counts, r.attached == nil)
	r.Spread = r.Machine.Spread(&r.Counts, r.attached == nil, r.seed)
	return nil
}

// tallies are what attaching to functions and detaching from them takes, each counted once.
type tallies map[counting][2]ledger.Tally

type counting struct {
	kernel   *ledger.Kernel
	way      string
	n, total int
}

// of is one direction of attaching to n functions.
func (counts tallies) of(k *ledger.Kernel, w ledger.Way, direction string, n, total int) (ledger.Tally, error) {
	key := counting{k, w.Name, n, total}
	if _, known := counts[key]; !known {
		on, off, err := k.Attach(w, n, total)
		if err != nil {
			return on, err
		}
		counts[key] = [2]ledger.Tally{on, off}
	}
	if direction == published.Detach {
		return counts[key][1], nil
	}
	return counts[key][0], nil
}

// answer is what the template is filled with, besides the rows.
type answer struct {
	*experiments.Study[Config, *row]
	Unknown []string // published cases of which it is not known how they were attached
}

// Assumed is what is assumed of records, hashes and allocations.
func (a *answer) Assumed() ledger.Extra { return ledger.AssumedExtra }

// part is what a part of attaching, or of detaching, takes.
type part struct {
	ledger.Part
	Direction string
	Functions int
}

// parts are those of the way that takes longest for the most functions: rows that attach stand before those that detach.
func parts(rows []*row) (out []part) {
	var dearest *row
	for _, r := range rows {
		if r.attached != nil && (dearest == nil || r.Counts.Functions > dearest.Counts.Functions ||
			r.Counts.Functions == dearest.Counts.Functions && r.both() > dearest.both()) {
			dearest = r
		}
	}
	if dearest == nil {
		return nil
	}
	n := dearest.Counts.Functions
	for i, p := range dearest.attached.Parts {
		out = append(out, part{p, published.Attach, n}, part{dearest.Parts[i], published.Detach, n})
	}
	return out
}

// both is the time of attaching and of detaching, in seconds.
func (r *row) both() float64 { return r.attached.Seconds() + r.Seconds() }
