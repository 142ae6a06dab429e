// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"strings"

	"github.com/textpoke/textpoke/experiments"
)

// answer is what the rows say that were finished.
type answer struct {
	*experiments.Study[Config, *row]
}

// edge is where one table's sites cease to call directly, on one side.
type edge struct {
	row        // the farthest place that all sites call directly; or the nearest
	All   bool // there is such a place
	None  *row // the nearest place that no site calls directly
	Worst *row // the place with the most missed sites
	More  bool // beyond, sites call ftrace_caller
}

// Edges are those of all tables, in the order of the rows. Distances ascend by
// what is the farthest and the nearest, however they were asked for.
func (a answer) Edges() (out []*edge) {
	of := map[string]*edge{}
	for _, r := range a.Rows {
		key := strings.Join([]string{r.Source, r.Arch, r.Limit.Layout, r.Side()}, " ")
		e := of[key]
		if e == nil {
			e = &edge{row: *r}
			of[key], out = e, append(out, e)
		}
		e.add(r)
	}
	return out
}

func (e *edge) add(r *row) {
	if r.Direct == r.Sites && (!e.All || r.Distance > e.Distance) {
		e.row, e.All = *r, true
	}
	if r.Direct == 0 && (e.None == nil || r.Distance < e.None.Distance) {
		e.None = r
		e.More = e.More || r.throughEntry > 0
	}
	if r.Missed() > 0 && (e.Worst == nil || r.Missed() > e.Worst.Missed()) {
		e.Worst = r
	}
}

// AllTo is the farthest place that all sites call directly; "" if there is none.
func (e *edge) AllTo() string {
	if !e.All {
		return ""
	}
	return experiments.Size(e.Distance)
}

// NoneFrom is the nearest place that no site calls directly; "" if there is none.
func (e *edge) NoneFrom() string {
	if e.None == nil {
		return ""
	}
	return experiments.Size(e.None.Distance)
}

// Lasts are the edges below the text of the first table of each layout.
func (a answer) Lasts() (out []*edge) {
	seen := map[string]bool{}
	for _, e := range a.Edges() {
		if key := e.Arch + e.Limit.Layout; e.Below && !seen[key] && e.All && e.None != nil {
			seen[key], out = true, append(out, e)
		}
	}
	return out
}

// Parts are the places where some sites call directly and some do not.
func (a answer) Parts() []*row {
	return experiments.Where(a.Rows, func(r *row) bool { return r.Direct != 0 && r.Direct != r.Sites })
}
