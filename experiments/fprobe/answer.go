// SPDX-License-Identifier: Apache-2.0

package fprobe

import (
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results/fit"
	"github.com/textpoke/textpoke/tracers/dispatch"
)

// answer is the rows that were finished, and the published hits.
type answer struct {
	*experiments.Study[Config, *row]
	untraced map[int]*fit.Estimate // time of a call that nobody traces, by threads
	Hits     []published.Hit
	Sum      *sum
}

func (a *answer) hit(mechanism string) *published.Hit {
	return experiments.Find(a.Hits, func(h *published.Hit) bool { return h.Mechanism == mechanism })
}

// The mechanisms of the published table that are compared.
const (
	direct      = "bpf-on-direct-calls"
	unoptimised = "bpf-on-fprobe-unoptimised"
	optimised   = "bpf-on-fprobe-optimised"
)

// inTime is what the published hits are in time.
type inTime struct{ direct, Unoptimised, Optimised *published.Hit }

// Before and After are what fprobe adds to a turn, Saved what it lost of that in per
// cent; OfDirect is what direct calls add, Left what fprobe adds more.
func (t *inTime) Before() float64   { return extra(*t.Unoptimised) }
func (t *inTime) After() float64    { return extra(*t.Optimised) }
func (t *inTime) Saved() float64    { return 100 * (1 - t.After()/t.Before()) }
func (t *inTime) OfDirect() float64 { return extra(*t.direct) }
func (t *inTime) Left() float64     { return t.After() - t.OfDirect() }

// Points is what it lost in points of throughput.
func (t *inTime) Points() float64 { return t.Unoptimised.Percent - t.Optimised.Percent }

// InTime is nil where a mechanism is missing.
func (a *answer) InTime() *inTime {
	t := &inTime{a.hit(direct), a.hit(unoptimised), a.hit(optimised)}
	if t.direct == nil || t.Unoptimised == nil || t.Optimised == nil || t.Unoptimised.Percent == 0 {
		return nil
	}
	return t
}

// ends are the counts with all four costs and with none.
type ends struct{ Top, Bottom dispatch.Counts }

// Ends are those of a program on entry; nil where they were not counted.
func (a *answer) Ends() *ends {
	all := groups(a.Rows)
	if len(all) == 0 {
		return nil
	}
	return &ends{all[0].by[combinations-1].counts, all[0].by[0].counts}
}

// Comparisons holds what is left of fprobe's time against what is left here.
func (a *answer) Comparisons() (out []experiments.Comparison) {
	u, o := a.hit(unoptimised), a.hit(optimised)
	if u == nil || o == nil || a.Config.NoTime || extra(*u) == 0 {
		return nil
	}
	source := published.Hits.Source
	if a.Config.Published != "" {
		source = a.Config.Published
	}
	for _, g := range groups(a.Rows) {
		bare := a.untraced[g.threads].Value
		out = append(out, experiments.Comparison{
			What: "time added without the four costs, of that with them: " + g.name(),
			Published: extra(
				*o,
			) / extra(
				*u,
			), Ours: (g.by[0].live.Value - bare) / (g.by[combinations-1].live.Value - bare), Source: source,
		})
	}
	return out
}
