// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/kernels/published"
)

// comparison is one measured number of interrupts beside the model's.
type comparison struct {
	kernel, Way, Direction string
	Functions              int
	Model, Measured        int
	reading                bool // a single one; otherwise what the kernel's formula says
	background             bool // the formula leaves wakeups of RCU and worker threads out
	source                 string
}

// at are the numbers of functions at which formulas are looked at: around the
// borders of batches, and many.
var at = []int{1, 2, 32, 255, 256, 257, 1000, 20000}

// compare holds the rounds against all measurements.
func (counts tallies) compare() (out []comparison, err error) {
	formulas, err := published.AttachFormulas.Read("")
	if err != nil {
		return nil, err
	}
	readings, err := published.AttachReadings.Read("")
	if err != nil {
		return nil, err
	}
	for _, f := range formulas {
		for _, n := range at {
			out = append(out, comparison{kernel: f.Kernel, Way: f.Way, Direction: f.Direction, Functions: n,
				background: f.Background, Measured: f.At(n), source: f.Source})
		}
	}
	for _, r := range readings {
		out = append(out, comparison{kernel: r.Kernel, Way: r.Way, Direction: r.Direction, Functions: int(r.Functions),
			reading: true, Measured: int(r.Interrupts), source: r.Source})
	}
	for i := range out {
		c := &out[i]
		k, err := ledger.Named(c.kernel)
		if err != nil {
			return nil, err
		}
		w, err := ledger.ParseWay(c.Way)
		if err != nil {
			return nil, err
		}
		count, err := counts.of(k, w, c.Direction, c.Functions, c.Functions)
		if err != nil {
			return nil, err
		}
		if c.Model = count.AllRounds(); c.background {
			c.Model -= count.Rounds[ledger.ForWakeups]
		}
	}
	return out, nil
}

// prediction is a published time beside one that was worked out.
type prediction struct {
	What      string // the published case
	Direction string
	Functions int
	How       string  // by what model
	Fitted    string  // the rows that it was fitted to; "" for none
	Published float64 // seconds; 0 where none is published: an extrapolation
	Predicted float64
	Low, High float64 // its range; a fit to another case has none of its own
	HangsOn   string  // the quantity that moves it most
}

// Pair is the prediction as a published figure with ours beside it.
func (p prediction) Pair() experiments.Comparison {
	return experiments.Comparison{What: fmt.Sprintf("%s, %s of %d: %s", p.What, p.Direction, p.Functions, p.How),
		Published: p.Published, Ours: p.Predicted, Low: p.Low, High: p.High}
}

// Range is the prediction as people read it, in seconds.
func (p prediction) Range() string {
	return fmt.Sprintf("%.4g (%.4g to %.4g)", p.Predicted, p.Low, p.High)
}

// ranged gives predictions the range of a quantity that they are a multiple of.
func ranged(p prediction, e calibration.Entry, fixed, times float64) prediction {
	low, high := e.Interval()
	p.Low, p.High, p.HangsOn = fixed+times*low/1e9, fixed+times*high/1e9, e.Quantity.Name
	return p
}

// wayOf tells by its name how a case was attached, "" if that is not known.
func wayOf(t *published.AttachTime) string {
	switch {
	case strings.HasPrefix(t.Case, "kprobe_multi"):
		return "kprobe-multi"
	case strings.HasPrefix(t.Case, "single direct ops"):
		return "tracing-multi"
	case strings.HasPrefix(t.Case, "bpftrace fentry"):
		return "fentry"
	}
	return ""
}

// largest is the most functions of any case of that way.
func largest(times []published.AttachTime, way string) (n int) {
	for i := range times {
		if wayOf(&times[i]) == way {
			n = max(n, int(times[i].Functions))
		}
	}
	return n
}

// whole tells whether a case is a whole command, of which attaching is a part.
func whole(t *published.AttachTime) bool { return strings.Contains(t.Note, "whole command") }

// predict works all published times out, in every way there is.
func (counts tallies) predict(times []published.AttachTime) (out []prediction, err error) {
	all, err := spelling.ReadEach(usual, ledger.Open)
	if err != nil {
		return nil, err
	}
	detaches, err := published.AttachWaits.Read("")
	if err != nil {
		return nil, err
	}
	machines := spelling.Each(calibration.Builtins(), func(c *calibration.Calibration) *ledger.Machine {
		return ledger.NewMachine(c, ledger.AssumedExtra)
	})
	for i := range times {
		t := &times[i]
		if wayOf(t) == "" || whole(t) {
			continue
		}
		rows, err := counts.modelled(all, machines, t)
		if err != nil {
			return nil, err
		}
		out = append(out, rows...)
	}
	out = append(out, inProportion(times)...)
	return append(out, waits(all[0].Arch, detaches, times)...), nil
}

// modelled predicts a case from counts and calibrations, nothing fitted: for each
// machine of the kernel's instruction set, since the one that was measured is not
// named.
func (counts tallies) modelled(all []*ledger.Kernel, machines []*ledger.Machine, t *published.AttachTime) (out []prediction,
	err error) {
	w, err := ledger.ParseWay(wayOf(t))
	if err != nil {
		return nil, err
	}
	for _, k := range all {
		if w.In(k) != nil {
			continue
		}
		for _, m := range machines {
			if m.Arch != k.Arch {
				continue
			}
			for _, d := range directions(t) {
				n := int(t.Functions)
				c, err := counts.of(k, w, d.direction, n, max(n, records))
				if err != nil {
					return nil, err
				}
				s := m.Spread(&c, d.direction == published.Attach, predictSeed).Scaled(1e-9)
				out = append(out, prediction{t.Case, d.direction, n, "counts of " + k.Name() + ", machine " + m.Name, "",
					d.seconds, s.Likely, s.Low, s.High, s.On()})
			}
		}
		break // the oldest kernel that has the way: the cases are older than any newer one
	}
	return out, nil
}

// timed is one of a case's times.
type timed struct {
	direction string
	seconds   float64
}

func directions(t *published.AttachTime) []timed {
	out := []timed{{published.Attach, t.AttachS}}
	if t.DetachS.Known {
		out = append(out, timed{published.Detach, t.DetachS.Value})
	}
	return out
}

// inProportion predicts each kprobe_multi case from each other one: time by
// functions, fitted to one row.
func inProportion(times []published.AttachTime) (out []prediction) {
	for i := range times {
		for j := range times {
			from, to := &times[i], &times[j]
			if i == j || wayOf(from) == "" || wayOf(from) != wayOf(to) || whole(from) || whole(to) {
				continue
			}
			for _, f := range directions(from) {
				for _, d := range directions(to) {
					if f.direction == d.direction {
						s := f.seconds / float64(from.Functions) * float64(to.Functions)
						out = append(out, prediction{to.Case, d.direction, int(to.Functions), "time in proportion to functions", from.Case,
							d.seconds, s, s, s, ""})
					}
				}
			}
		}
	}
	return out
}

// waits predicts a command that detaches with waits from the same without, and
// back to back detaching in an emulator from what the two cases say of one wait.
func waits(arch string, detaches []published.AttachWait, times []published.AttachTime) (out []prediction) {
	for _, t := range published.TimesByOps(times) {
		n := float64(t.Each.Functions)
		grace := spelling.First(calibration.Nearest(arch, nearTo).Entries, // it is the same on all of them
			func(e calibration.Entry) bool { return e.Quantity.Name == "grace_period" })
		out = append(out, ranged(prediction{What: t.Each.Case, Direction: "both", Functions: int(t.Each.Functions),
			How: fmt.Sprintf("one wait of %g ms a function", t.WaitMS()), Fitted: t.One.Case,
			Published: t.Each.AttachS, Predicted: t.One.AttachS + n*published.StatedWait}, grace, t.One.AttachS, n))
		wait := (t.Each.AttachS - t.One.AttachS) / n
		for _, d := range detaches {
			if d.Tasks {
				out = append(out, ranged(prediction{What: "a detach of " + d.Kernel + " in an emulator",
					Direction: published.Detach, Functions: 1, How: fmt.Sprintf("one wait of %.1f ms", 1e3*wait),
					Fitted: t.Each.Case + "; " + t.One.Case, Published: float64(d.WaitMS) / 1e3, Predicted: wait}, grace, 0, 1))
			}
		}
	}
	return out
}

// predictSeed draws the ranges of predictions: published cases are the same always.
const predictSeed = 1
