// SPDX-License-Identifier: Apache-2.0

package buffersize

// front is costs of which less is better. A size is on it unless another one is
// no worse in all of them and better in one.
type front struct {
	name   string // the costs, for people
	column string
	detail bool
	costs  []func(*row) float64
}

// The costs.
func interrupts(r *row) float64 { return float64(r.IPIsPerCPU) }
func exposure(r *row) float64   { return float64(r.Modelled.Exposure) }
func memory(r *row) float64     { return float64(r.BufferBytes) }
func updateTime(r *row) float64 { return float64(r.Modelled.Update) }
func stolen(r *row) float64     { return r.Modelled.StolenMean }

const numFronts = 3

// fronts are what somebody may look at: a CPU that must not be interrupted, an
// update that must be over, or work that must go on.
var fronts = [numFronts]front{
	{"interrupts, exposure and memory", "dominated_by", false, []func(*row) float64{interrupts, exposure, memory}},
	{"time of the update, exposure and memory", "dominated_update_by", true, []func(*row) float64{updateTime, exposure,
		memory}},
	{"stolen time, exposure and memory", "dominated_stolen_by", true, []func(*row) float64{stolen, exposure, memory}},
}

// dominates tells whether a is no worse than b in all costs, and better in one.
func (f *front) dominates(a, b *row) bool {
	better := false
	for _, cost := range f.costs {
		x, y := cost(a), cost(b)
		if x > y {
			return false
		}
		better = better || x < y
	}
	return better
}

// judge holds each size against the one of 2019, and says of each size of one machine which one dominates it, if any: the
// first of those that no other one dominates.
func judge(rows []*row) {
	base := with(rows, thread[0])
	for _, r := range rows {
		r.base = base
	}
	for i := range fronts {
		f := &fronts[i]
		for _, r := range rows {
			if by := f.best(rows, r); by != nil {
				r.dominated[i] = by.Buffer.String()
			}
		}
	}
}

// best is a size on the front that dominates another; nil if none does.
func (f *front) best(rows []*row, of *row) (by *row) {
	if of.Modelled == nil {
		return nil
	}
	for _, r := range rows {
		if r.Modelled != nil && f.dominates(r, of) && (by == nil || f.dominates(r, by)) {
			by = r
		}
	}
	return by
}
