// SPDX-License-Identifier: Apache-2.0

// Package microbench measures a calibration on this machine, without special rights: a round to n
// CPUs through membarrier(2), which sends the same interrupt to the same CPUs as a round of text
// patching does; a lookup's comparison, an atomic access, a cache line that another CPU has, and a
// system call. It takes the other quantities from another calibration, and says so.
package microbench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/perf/benchmath"

	"github.com/textpoke/textpoke/internal/threads"
	"github.com/textpoke/textpoke/kernels/calibration"
)

// Config says what to measure, and for how long.
type Config struct {
	Name string // the calibration's name
	Arch string // the instruction set of this machine
	// Base is where quantities come from that are not measured.
	Base *calibration.Calibration
	// Time is how long it may take, over the least number of passes, which takes
	// some tens of milliseconds.
	Time time.Duration
	// Also measures more, each once in every pass.
	Also []Bench
}

// Bench measures one quantity, in nanoseconds.
type Bench struct {
	Quantity string // as files call it
	Basis    calibration.Basis
	Text     string // how
	Run      func() float64
}

// Missing is a quantity that was not measured.
type Missing struct {
	Quantity string
	Why      string
}

// Result is a calibration of this machine, and what of it was not measured here.
type Result struct {
	Calibration *calibration.Calibration
	Missing     []Missing // in the order of calibration.Quantities
}

// minPasses is how many there are however short the time is: as many as an
// interval of 95% for a median takes (1 - 2*0.5^6 > 0.95).
const minPasses = 6

// Run measures. It measures everything once in every pass; a quantity is the median of its passes,
// and its interval the order statistics that hold the median with a probability of 95%. When ctx
// ends, it returns the result so far beside ctx's error.
func Run(ctx context.Context, c Config) (*Result, error) {
	if c.Time < 0 {
		return nil, fmt.Errorf("time %v: negative", c.Time)
	}
	if err := calibration.CheckName(c.Name); err != nil {
		return nil, err
	}
	cpus, err := threads.Allowed()
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, err
	}
	defer quiet(len(cpus))()

	m := &machine{cpus: cpus, base: c.Base, why: map[string]string{}}
	passes := map[string][]float64{}
	for n, start := 0, time.Now(); ctx.Err() == nil && (n < minPasses || time.Since(start) < c.Time); n++ {
		for name, v := range m.pass(ctx) {
			passes[name] = append(passes[name], v)
		}
		for _, b := range c.Also {
			passes[b.Quantity] = append(passes[b.Quantity], b.Run())
		}
	}
	return m.result(c, passes, ctx.Err() != nil), ctx.Err()
}

// quiet gives every measuring thread a processor of the Go runtime and keeps the garbage collector
// away, until restore is called.
func quiet(cpus int) (restore func()) {
	percent := debug.SetGCPercent(-1)
	procs := runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), cpus+2))
	return func() {
		runtime.GOMAXPROCS(procs)
		debug.SetGCPercent(percent)
	}
}

// machine is this one.
type machine struct {
	cpus []int // that we may run on; the sender's first
	base *calibration.Calibration
	why  map[string]string // why a quantity was not measured
}

// takenOver begins the source of a quantity that was not measured.
const takenOver = "not measured: taken over from"

// habits are the quantities of the machine's load, not of the machine.
var habits = []string{"masked_stretch", "away", "calls", "skew", "tracer", "entries", "kernel_stretch"}

// method is how a quantity is measured, if it can be.
func (c *Config) method(quantity string) (how method, can bool) {
	for _, b := range c.Also {
		if b.Quantity == quantity {
			return method{b.Basis, b.Text}, true
		}
	}
	how, can = methods[quantity]
	return how, can
}

// result puts the calibration together.
func (m *machine) result(c Config, passes map[string][]float64, cut bool) *Result {
	r := &Result{Calibration: &calibration.Calibration{
		Name: c.Name, Machine: describe(), Arch: c.Arch, CPUs: max(1, len(m.cpus)),
	}}
	for _, base := range c.Base.Entries {
		q := base.Quantity.Name
		how, can := c.method(q)
		if value, low, high, ok := summarize(passes[q]); ok {
			r.Calibration.Set(calibration.Entry{Quantity: base.Quantity, Value: value, Low: low, High: high,
				Basis: how.basis, Source: fmt.Sprintf("%s; %d passes of textpoke calibrate", how.text, len(passes[q]))})
			continue
		}
		why := m.why[q]
		switch {
		case why != "":
		case cut && can:
			why = "cut short"
		case can:
			why = "lost in the noise"
		case slices.Contains(habits, q):
			why = "depends on how the machine is used"
		default:
			why = "only the kernel could"
		}
		r.Missing = append(r.Missing, Missing{q, why})
		if !strings.HasPrefix(base.Source, takenOver) {
			base.Source = fmt.Sprintf("%s %s, which says: %s: %s", takenOver, c.Base.Name, base.Basis, base.Source)
		}
		r.Calibration.Set(base.Elsewhere())
	}
	return r
}

// summarize is the median of the passes with its interval, rounded to hundredths
// of a nanosecond, below which no clock sees; not ok if less than half of the
// passes, or of the least number of them, saw a positive one: of noise around 0
// half is positive, and no cost.
func summarize(passes []float64) (value, low, high float64, ok bool) {
	least := max(minPasses, len(passes)+1) / 2
	passes = slices.DeleteFunc(slices.Clone(passes), func(v float64) bool { return !(v > 0) })
	if len(passes) < least {
		return 0, 0, 0, false
	}
	thresholds := benchmath.DefaultThresholds
	sample := benchmath.NewSample(passes, &thresholds)
	s := benchmath.AssumeNothing.Summary(sample, 0.95)
	// Where there are too few passes for an interval, it is all they have seen.
	s.Lo, s.Hi = max(s.Lo, sample.Values[0]), min(s.Hi, sample.Values[len(passes)-1])
	value = cents(s.Center)
	return value, min(value, cents(s.Lo)), max(value, cents(s.Hi)), value > 0
}

func cents(ns float64) float64 { return math.Round(100*ns) / 100 }

// Model is what this machine calls its CPUs, "" where it does not say: not all kernels name it, nor let it be read.
func Model() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		if key = strings.TrimSpace(key); key == "model name" || key == "uarch" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
