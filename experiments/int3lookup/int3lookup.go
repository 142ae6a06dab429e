// Package int3lookup asks which index a breakpoint's handler should search, in
// comparisons, which are exact, and in nanoseconds on the machine that it runs on.
package int3lookup

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/results"
)

const (
	name     = "int3-lookup"
	question = "Which index should a breakpoint's handler search? A walk over groups of records that are sorted inside, or one index over all of " +
		"them: comparisons and time against the number of records and of groups, and where does the walk lose?"
)

// Experiment is the question.
var Experiment = experiments.Legacy{
	Name: name, Question: question,
	Short: "which index? comparisons and nanoseconds of each, and where the walk over groups loses",
	About: "int3-lookup builds every index over batches of some sizes and looks every address up. Comparisons\n" +
		"of addresses are counted, and are the same everywhere. Times are this machine's: the median of\n" +
		"--repeats measurements and the interval that holds it with 95 % confidence; --no-time leaves them\n" +
		"out. Groups ascend inside and are shuffled among themselves, as a kernel's are; they make a\n" +
		"difference to the walk over groups only.",
	Examples: []string{
		"int3-lookup --out int3-lookup",
		"int3-lookup --patches 45000 --groups 1,2,3,4,5,6,7,8 --no-time --format csv",
	},
	Table: table,
	Flags: func(f *pflag.FlagSet) experiments.LegacyRun {
		r := &request{}
		experiments.Register(f, experiments.Lookups(&r.kinds))
		experiments.Register(f, experiments.Counts(&r.patches, "patches", "56,256,45000", "`list` of numbers of patches in a batch", 1, 10_000_000))
		experiments.Register(f, experiments.Counts(&r.groups, "groups", "1,2,3,4,8,16,32,64", "`list` of numbers of groups that they are in; more groups than patches are left out", 1, maxGroups))
		f.BoolVar(&r.noTime, "no-time", false, "count comparisons only: the same bytes on every machine")
		f.IntVar(&r.repeats, "repeats", 15, "`number` of measurements of each index, 6 or more")
		return r.run
	},
}.Experiment()

// maxGroups is as far as crossings are looked for.
const maxGroups = 4096

// request is what the flags ask for.
type request struct {
	kinds           []int3.Kind
	patches, groups []int
	noTime          bool
	repeats         int
}

// row is one index over one batch.
type row struct {
	kind            int3.Kind
	patches, groups int // groups is 0 where they make no difference
	cost            int3.Cost
	time            timing
	timed           bool
}

func table() results.Table {
	return results.Table{Name: name, Columns: []results.Column{
		{Name: "lookup", Doc: "index that is searched"},
		{Name: "patches", Doc: "addresses in it"},
		{Name: "groups", Doc: "groups that they are in; empty where that makes no difference"},
		{Name: "comparisons_mean", Doc: "comparisons of addresses until one is found, mean over all of them"},
		{Name: "comparisons_max", Doc: "and the most"},
		{Name: "find_ns", Doc: "time of one lookup on this machine, median of the measurements"},
		{Name: "find_low_ns", Doc: "lower end of the interval that holds the median with 95 % confidence"},
		{Name: "find_high_ns", Doc: "and its upper end"},
		{Name: "repeats", Detail: true, Doc: "measurements; each is of thousands of lookups"},
	}}
}

func (r *row) cells() []any {
	groups := any(results.Empty)
	if r.groups > 0 {
		groups = r.groups
	}
	cells := []any{r.kind.String(), r.patches, groups, r.cost.Mean(), r.cost.Max}
	if !r.timed {
		return append(cells, results.Empty, results.Empty, results.Empty, results.Empty)
	}
	return append(cells, r.time.median, r.time.low, r.time.high, r.time.repeats)
}

func (r *request) run(ctx context.Context, lab *experiments.Lab) (*experiments.Answer, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	a := &answer{request: r}
	for _, n := range r.patches {
		for _, k := range r.kinds {
			for _, g := range r.groupsOf(k, n) {
				row, err := r.measure(ctx, k, n, g, lab.Seed)
				if err != nil {
					return a.answer(), err
				}
				a.rows = append(a.rows, row)
				if err := lab.Add(row.cells()...); err != nil {
					return a.answer(), err
				}
			}
		}
	}
	for _, n := range r.patches {
		if err := a.cross(ctx, n, lab.Seed); err != nil {
			return a.answer(), err
		}
	}
	return a.answer(), nil
}

// groupsOf are the numbers of groups that make a difference to an index of n
// patches; 0 where none does.
func (r *request) groupsOf(k int3.Kind, n int) (out []int) {
	if k != int3.Groups {
		return []int{0}
	}
	for _, g := range r.groups {
		if g <= n {
			out = append(out, g)
		}
	}
	return out
}

// measure counts the comparisons of one index, and times it.
func (r *request) measure(ctx context.Context, k int3.Kind, n, groups int, seed uint64) (*row, error) {
	batch, err := batchOf(ctx, k, n, groups, seed)
	if err != nil {
		return nil, err
	}
	row := &row{kind: k, patches: n, groups: groups, cost: int3.NewCoster(k).Of(batch)}
	if r.noTime {
		return row, nil
	}
	row.timed = true
	row.time, err = timeFinds(ctx, int3.Build(k, batch), batch.Addrs, r.repeats, seed)
	return row, err
}
