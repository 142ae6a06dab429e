// SPDX-License-Identifier: Apache-2.0

package int3lookup

import (
	"context"
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/records"
)

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
