// SPDX-License-Identifier: Apache-2.0

// Package int3lookup asks which index a breakpoint's handler should search, in
// comparisons, which are exact, and in nanoseconds on the machine that it runs on.
package int3lookup

import (
	"context"
	_ "embed"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/clock"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/fit"
	"github.com/textpoke/textpoke/results/plots"
)

// Config says which indexes are searched, over which batches.
// Its fields are the flags of int3-lookup.experiment.
type Config struct {
	Lookups []int3.Lookup
	Patches []int
	Groups  []int
	NoTime  bool
	Repeats int
}

//go:embed int3-lookup.experiment
var declared string

// Experiment is the question.
var Experiment = (&experiments.Spec[Config, *row]{
	Form: declared, Measure: measure,
}).Experiment()

// maxGroups is as far as crossings are looked for.
const maxGroups = 4096

// row is one index over one batch.
type row struct {
	Kind            int3.Lookup
	Patches, Groups int // groups is 0 where they make no difference
	Cost            int3.Cost
	Time            *fit.Estimate // nil with NoTime
	repeats         int
}

// InGroups is the number of groups; "" where it makes no difference.
func (r *row) InGroups() string {
	if r.Groups == 0 {
		return ""
	}
	return fmt.Sprint(r.Groups)
}

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (*experiments.Findings, error) {
	c := &s.Config
	type point struct {
		kind            int3.Lookup
		patches, groups int
	}
	var points []point
	for _, n := range c.Patches {
		for _, k := range c.Lookups {
			for _, g := range c.groupsOf(k, n) {
				points = append(points, point{k, n, g})
			}
		}
	}
	a := &answer{Study: s}
	err := experiments.Each(ctx, s, points, func(p point) (*row, error) {
		return c.measure(ctx, p.kind, p.patches,
			p.groups, s.Seed)
	})
	for _, n := range c.Patches {
		if err != nil {
			break
		}
		err = a.cross(ctx, n, s.Seed)
	}
	return &experiments.Findings{Report: a, Pictures: []experiments.Picture{{Picture: a.chart().Picture()}}}, err
}

// groupsOf are the numbers of groups that make a difference to an index of n
// patches; 0 where none does.
func (c *Config) groupsOf(k int3.Lookup, n int) (out []int) {
	if k != int3.Groups {
		return []int{0}
	}
	for _, g := range c.Groups {
		if g <= n {
			out = append(out, g)
		}
	}
	return out
}

// measure counts the comparisons of one index, and times it.
func (c *Config) measure(ctx context.Context, k int3.Lookup, n, groups int, seed uint64) (*row, error) {
	batch, err := batchOf(ctx, k, n, groups, seed)
	if err != nil {
		return nil, err
	}
	r := &row{Kind: k, Patches: n, Groups: groups, Cost: int3.CostOf(k, batch)}
	if !c.NoTime {
		r.repeats = c.Repeats
		r.Time, err = timeFinds(ctx, int3.Build(k, batch), batch.Addrs, c.Repeats, seed)
	}
	return r, err
}

// keysPerRepeat is so many lookups that no branch predictor learns them, as none
// learns which site traps next.
const keysPerRepeat = 1 << 15

// timeFinds times lookups of addresses in random order. Nothing is done with the
// answers: what is called through an interface is called all the same.
func timeFinds(ctx context.Context, x int3.Index, addrs []records.Addr, repeats int, seed uint64) (*fit.Estimate,
	error) {
	rng := rand.New(rand.NewPCG(seed, uint64(len(addrs))))
	keys := make([]records.Addr, keysPerRepeat)
	for i := range keys {
		keys[i] = addrs[rng.IntN(len(addrs))]
	}
	return clock.Time(ctx, repeats, len(keys), func() {
		var p cpus.Probe
		for _, at := range keys {
			x.Find(at, &p)
		}
	})
}

// batchOf is n addresses in groups that are shuffled among themselves, in the
// order that the kind of index needs.
func batchOf(ctx context.Context, k int3.Lookup, n, groups int, seed uint64) (int3.Batch, error) {
	t, err := records.Open(ctx, fmt.Sprintf("gen:n=%d,groups=%d,order=grouped,seed=%d", n, max(groups, 1), seed),
		records.Options{})
	if err != nil {
		return int3.Batch{}, err
	}
	b := int3.Batch{Addrs: slices.Clone(t.Addrs())}
	if k != int3.Groups {
		slices.Sort(b.Addrs)
		return b, nil
	}
	for _, g := range t.Groups()[1:] {
		b.Starts = append(b.Starts, g.First)
	}
	return b, nil
}

// crossing is where the walk over groups begins to need more comparisons than
// another index over the same addresses.
type crossing struct {
	Patches int
	Rival   int3.Lookup
	Rivals  float64 // its mean
	Groups  int     // the fewest groups; 0 if none up to maxGroups
	Walk    float64 // the walk's mean there
}

// UpTo is as far as the crossing was looked for.
func (c *crossing) UpTo() int { return min(c.Patches, maxGroups) }

// cross finds the crossings for n patches.
func (a *answer) cross(ctx context.Context, n int, seed uint64) error {
	var open []*crossing
	for _, k := range a.Config.Lookups {
		if k == int3.Groups {
			continue
		}
		b, err := batchOf(ctx, k, n, 0, seed)
		if err != nil {
			return err
		}
		c := &crossing{Patches: n, Rival: k, Rivals: int3.CostOf(k, b).Mean()}
		a.Crossings = append(a.Crossings, c)
		open = append(open, c)
	}
	if !slices.Contains(a.Config.Lookups, int3.Groups) {
		a.Crossings = nil
		return nil
	}
	for g := 1; g <= min(n, maxGroups) && len(open) > 0; g++ {
		b, err := batchOf(ctx, int3.Groups, n, g, seed)
		if err != nil {
			return err
		}
		walk := int3.CostOf(int3.Groups, b).Mean()
		open = slices.DeleteFunc(open, func(c *crossing) bool {
			if walk <= c.Rivals {
				return false
			}
			c.Groups, c.Walk = g, walk
			return true
		})
	}
	return nil
}

// answer is what the rows and crossings say that were finished.
type answer struct {
	*experiments.Study[Config, *row]
	Crossings []*crossing
}

// Largest are the crossings of the largest batch.
func (a *answer) Largest() []*crossing {
	n := slices.Max(a.Config.Patches)
	return experiments.Where(a.Crossings, func(c *crossing) bool { return c.Patches == n })
}

// Keys is how many lookups a measurement has at least.
func (a *answer) Keys() int { return keysPerRepeat }

// chart is the mean comparisons in the largest batch against groups.
func (a *answer) chart() *plots.Chart {
	n := slices.Max(a.Config.Patches)
	c := &plots.Chart{
		Title:    "A walk over groups loses to one index over everything",
		Subtitle: fmt.Sprintf("%s patches, in groups that are shuffled among themselves", results.Thousands(n)),
		X: plots.Axis{Label: "groups",
			Log: true}, Y: plots.Axis{Label: "comparisons until an address is found (mean)"},
	}
	for _, k := range a.Config.Lookups {
		s := plots.Series{Name: k.String()}
		for _, r := range a.Rows {
			if r.Kind != k || r.Patches != n {
				continue
			}
			if r.Groups == 0 { // the same for all
				for _, g := range a.Config.groupsOf(int3.Groups, n) {
					s.X, s.Y = append(s.X, float64(g)), append(s.Y, r.Cost.Mean())
				}
				continue
			}
			s.X, s.Y = append(s.X, float64(r.Groups)), append(s.Y, r.Cost.Mean())
		}
		c.Series = append(c.Series, s)
	}
	return c
}
