// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"slices"

	"github.com/textpoke/textpoke/results/plots"
)

// Curves are series of a chart that are made a point at a time, each from its first
// point on.
type Curves struct {
	Kind   plots.Mark
	Series []plots.Series
}

// Add takes a point of the series of that name, with what stands beside it.
func (c *Curves) Add(name string, x, y float64, label ...string) *plots.Series {
	i := slices.IndexFunc(c.Series, func(s plots.Series) bool { return s.Name == name })
	if i < 0 {
		i = len(c.Series)
		c.Series = append(c.Series, plots.Series{Name: name, Kind: c.Kind})
	}
	s := &c.Series[i]
	s.X, s.Y, s.Labels = append(s.X, x), append(s.Y, y), append(s.Labels, label...)
	return s
}

// Between takes a point with its interval.
func (c *Curves) Between(name string, x, y, low, high float64) {
	s := c.Add(name, x, y)
	s.Low, s.High = append(s.Low, low), append(s.High, high)
}
