// SPDX-License-Identifier: Apache-2.0

// Package int3lookup asks which index a breakpoint's handler should search, in
// comparisons, which are exact, and in nanoseconds on the machine that it runs on.
package int3lookup

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/clock"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results/fit"
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

// Experiment is the question.
var Experiment = experiments.New("int3lookup/int3-lookup.experiment", measure)

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

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (any, error) {
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
	most := slices.Max(c.Patches)
	var crossings []*crossing
	var means []shown
	err := experiments.Each(ctx, s, points, func(p point) (*row, error) {
		r, err := c.measure(ctx, p.kind, p.patches, p.groups, s.Seed)
		if err == nil && p.patches == most {
			means = append(means, c.means(r)...)
		}
		return r, err
	})
	for _, n := range c.Patches {
		if err != nil {
			break
		}
		var some []*crossing
		some, err = c.cross(ctx, n, s.Seed)
		crossings = append(crossings, some...)
	}
	return s, cmp.Or(err, experiments.Beside(s, "crossings", crossings), experiments.Beside(s, "means", means))
}

// shown is the mean of the comparisons that an index makes among so many groups.
type shown struct {
	Kind   int3.Lookup
	Groups int
	Mean   float64
}

// means are those of a row: where groups make no difference, the same for all of them.
func (c *Config) means(r *row) (out []shown) {
	groups := []int{r.Groups}
	if r.Groups == 0 {
		groups = c.groupsOf(int3.Groups, r.Patches)
	}
	for _, g := range groups {
		out = append(out, shown{r.Kind, g, r.Cost.Mean()})
	}
	return out
}

// groupsOf are the numbers of groups that make a difference to an index of n
// patches; 0 where none does.
func (c *Config) groupsOf(k int3.Lookup, n int) []int {
	if k != int3.Groups {
		return []int{0}
	}
	return spelling.Where(c.Groups, func(g int) bool { return g <= n })
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
// answers: a call through an interface is made all the same.
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
	UpTo    int     // groups to which it was looked for
}

// cross finds the crossings for n patches.
func (c *Config) cross(ctx context.Context, n int, seed uint64) (out []*crossing, err error) {
	if !slices.Contains(c.Lookups, int3.Groups) {
		return nil, nil
	}
	for _, k := range c.Lookups {
		if k == int3.Groups {
			continue
		}
		b, err := batchOf(ctx, k, n, 0, seed)
		if err != nil {
			return nil, err
		}
		out = append(out, &crossing{Patches: n, Rival: k, Rivals: int3.CostOf(k, b).Mean(), UpTo: min(n, maxGroups)})
	}
	open := slices.Clone(out)
	for g := 1; g <= min(n, maxGroups) && len(open) > 0; g++ {
		b, err := batchOf(ctx, int3.Groups, n, g, seed)
		if err != nil {
			return nil, err
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
	return out, nil
}
