// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/internal/threads"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results/fit"
	"golang.org/x/sync/errgroup"
)

// method is how a quantity is measured.
type method struct {
	basis calibration.Basis
	text  string
}

// methods are those of the quantities that can be.
var methods = map[string]method{
	"round_setup": {calibration.Measured, "membarrier with no CPU to interrupt, less a getpid"},
	"send":        {calibration.Measured, "slope of membarrier over the number of CPUs interrupted"},
	"delivery":    {calibration.Derived, "membarrier to one CPU, less the other parts of a round"},
	"jitter": {calibration.Derived,
		"membarrier to one CPU: (9th decile - median) / ln 5, as of an exponential delay"},
	"handler":    {calibration.Measured, "how long a spinning thread stands still for a membarrier"},
	"answer":     {calibration.Derived, "taken to be one line transfer"},
	"comparison": {calibration.Measured, "slope of a lookup in a sorted vector over its comparisons (package int3)"},
	"reference":  {calibration.Measured, "an atomic addition to a line that is here"},
	"line_transfer": {calibration.Measured,
		"half of a line's way to another CPU and back, between the first and the last CPU"},
	"user_entry": {calibration.Derived, "half of a getpid"},
	"user_exit":  {calibration.Derived, "half of a getpid"},
}

// The numbers of repetitions in a pass. Each measurement takes about a
// millisecond.
const (
	roundsAPass  = 100
	getpidsAPass = 2000
	addsAPass    = 20000
	bouncesAPass = 2000
	lookupsAPass = 4000
	mostCounts   = 8 // numbers of targets that are tried, beside none
)

// pass measures everything once. A quantity that it could not measure is missing, and m.why says
// why.
func (m *machine) pass(ctx context.Context) map[string]float64 {
	found := map[string]float64{
		"reference":  reference(),
		"comparison": comparison(),
	}
	if len(m.cpus) == 0 {
		for _, q := range []string{"round_setup", "send", "delivery", "jitter", "handler", "answer", "line_transfer",
			"user_entry", "user_exit"} {
			m.why[q] = "needs Linux"
		}
		return found
	}
	call := getpid()
	found["user_entry"], found["user_exit"] = call/2, call/2
	if len(m.cpus) == 1 {
		for _, q := range []string{"send", "delivery", "jitter", "handler", "answer", "line_transfer"} {
			m.why[q] = "needs a second CPU"
		}
		return found
	}
	line, err := m.transfer(ctx)
	if err == nil {
		found["line_transfer"], found["answer"] = line, line
	}
	m.note(ctx, err, "line_transfer", "answer")
	err = m.rounds(ctx, call, found)
	m.note(ctx, err, "round_setup", "send", "delivery", "jitter", "handler")
	return found
}

// note says why quantities could not be measured; the end of ctx is no reason
// that a pass knows better than Run.
func (m *machine) note(ctx context.Context, err error, quantities ...string) {
	if err == nil || ctx.Err() != nil {
		return
	}
	for _, q := range quantities {
		m.why[q] = err.Error()
	}
}

// rounds measures rounds to ever more CPUs, and takes them apart.
func (m *machine) rounds(ctx context.Context, call float64, found map[string]float64) error {
	if err := threads.Register(); err != nil {
		return fmt.Errorf("the kernel refuses membarrier(2): %w", err)
	}
	var all []seen
	for _, n := range counts(len(m.cpus) - 1) {
		times, gaps, err := m.to(ctx, n)
		if err != nil {
			return err
		}
		all = append(all, seen{float64(n), times, gaps})
	}
	m.apart(call, all, found)
	return nil
}

// seen is what rounds to so many targets took, and how long the first of these stood still for each.
type seen struct {
	targets     float64
	times, gaps []float64
}

// apart takes rounds apart: those to no target, to one, and to more.
func (m *machine) apart(call float64, all []seen, found map[string]float64) {
	setup, one := quantile(0.5, all[0].times), all[1]
	if v := setup - call; v > 0 {
		found["round_setup"] = v
	}
	if len(one.gaps) > 0 {
		found["handler"] = quantile(0.5, one.gaps)
	}
	median := quantile(0.5, one.times)
	found["jitter"] = max(0, quantile(0.9, one.times)-median) / math.Log(5)
	rest := median - setup - found["jitter"]*math.Ln2 - m.value(found, "handler") - m.value(found, "answer")
	if len(all) == 2 {
		// With one target, what sending takes cannot be told from what delivery takes.
		m.why["send"] = "needs a third CPU; delivery holds it, less what is taken over"
		found["delivery"] = rest - m.base.Costs.Send
		return
	}
	var targets, medians []float64
	for _, s := range all[1:] {
		targets, medians = append(targets, s.targets), append(medians, quantile(0.5, s.times))
	}
	_, found["send"] = fit.LeastSquares(targets, medians, nil)
	found["delivery"] = rest - found["send"]
}

// value is a quantity as this pass found it, or as it will be taken over.
func (m *machine) value(found map[string]float64, q string) float64 {
	if v, ok := found[q]; ok {
		return v
	}
	return *calibration.ByName(q).Of(&m.base.Costs)
}

// counts are the numbers of targets that are tried: none, one, all, and some
// between.
func counts(most int) []int {
	all := []int{0}
	for i := range mostCounts {
		all = append(all, 1+i*(most-1)/(mostCounts-1))
	}
	return slices.Compact(all)
}

// quantile sorts the times.
func quantile(p float64, times []float64) float64 {
	slices.Sort(times)
	return times[max(0, int(math.Ceil(p*float64(len(times))))-1)]
}

// sink keeps the compiler from dropping the measured code.
var sink atomic.Int64

// reference is an atomic addition in nanoseconds.
func reference() float64 {
	var line struct {
		_ [64]byte
		n atomic.Int64
		_ [64]byte
	}
	start := time.Now()
	for range addsAPass {
		line.n.Add(1)
	}
	took := since(start)
	sink.Add(line.n.Load())
	return took / addsAPass
}

// comparison is what one more comparison of a lookup takes: the slope over vectors
// of 1 to 4096 addresses, in which a lookup takes 1 to 11 on average.
func comparison() float64 {
	var comparisons, times []float64
	for n := 1; n <= 4096; n *= 4 {
		var b int3.Batch
		for i := range n {
			b.Addrs = append(b.Addrs, records.Addr(1000+64*i))
		}
		index, at := int3.Build(int3.Vector, b), 0
		var p cpus.Probe
		start := time.Now()
		for range lookupsAPass {
			// A step that has no divisor in common with n visits all addresses, and
			// no branch predictor learns the way.
			at = (at + 1597) % n
			index.Find(b.Addrs[at], &p)
		}
		times = append(times, since(start)/lookupsAPass)
		comparisons = append(comparisons, float64(p.Comparisons)/lookupsAPass)
		sink.Add(int64(p.Comparisons))
	}
	_, slope := fit.LeastSquares(comparisons, times, nil)
	return slope
}

func since(start time.Time) float64 { return float64(time.Since(start).Nanoseconds()) }

// On runs f in a thread of its own on one CPU, which ends with it: a thread whose
// CPU was chosen is not given back to others.
func On(cpu int, f func() error) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := threads.Pin(cpu)
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return done
}

// await waits in a group for a thread. One that could not be put on its CPU lets the others stop waiting for it.
func await(group *errgroup.Group, stop *atomic.Bool, thread <-chan error) {
	group.Go(func() error {
		err := <-thread
		if err != nil {
			stop.Store(true)
		}
		return err
	})
}

// to times rounds to n targets that spin on CPUs of their own, and how long the
// first of these stood still for each.
func (m *machine) to(ctx context.Context, n int) (times, gaps []float64, err error) {
	var ready atomic.Int32
	var stop atomic.Bool
	var wait errgroup.Group
	for i := range n {
		await(&wait, &stop, On(m.cpus[i+1], func() error {
			ready.Add(1)
			if i == 0 {
				gaps = standstills(&stop)
			}
			for !stop.Load() {
			}
			return nil
		}))
	}
	sender := On(m.cpus[0], func() error {
		for ready.Load() < int32(n) && !stop.Load() && ctx.Err() == nil {
			runtime.Gosched()
		}
		for range roundsAPass {
			if err := ctx.Err(); err != nil {
				return err
			}
			start := time.Now()
			if err := threads.Sync(); err != nil {
				return err
			}
			times = append(times, since(start))
		}
		return nil
	})
	err = <-sender
	stop.Store(true)
	return times, gaps, cmp.Or(wait.Wait(), err)
}

// standstills looks at the clock until it is stopped, and returns the longest
// times between two looks, one for each round of a pass: when an interrupt takes
// less than a few looks, nothing is said.
func standstills(stop *atomic.Bool) []float64 {
	const looks = 500
	usual := make([]float64, 0, looks)
	last := time.Now()
	for range looks {
		now := time.Now()
		usual = append(usual, float64(now.Sub(last)))
		last = now
	}
	p := pauses{step: quantile(0.5, usual)}
	for last = time.Now(); !stop.Load(); {
		now := time.Now()
		p.look(float64(now.Sub(last)))
		last = now
	}
	return p.ofRounds()
}

// pauses are times between two looks at the clock that are much longer than a step, without it.
type pauses struct {
	step    float64
	longest []float64
}

func (p *pauses) look(gap float64) {
	if gap > 4*p.step && len(p.longest) < 100*roundsAPass {
		p.longest = append(p.longest, gap-p.step)
	}
}

// ofRounds are the longest of them, one for each round of a pass; none where so few were seen.
func (p *pauses) ofRounds() []float64 {
	if len(p.longest) < roundsAPass/2 {
		return nil
	}
	slices.Sort(p.longest)
	return p.longest[max(0, len(p.longest)-roundsAPass):]
}

// transfer is what a cache line's way from one CPU to another takes, in
// nanoseconds: two threads write in turn.
func (m *machine) transfer(ctx context.Context) (float64, error) {
	var line struct {
		_    [64]byte
		turn atomic.Int64
		_    [64]byte
	}
	var stop atomic.Bool
	var both errgroup.Group
	await(&both, &stop, On(m.cpus[len(m.cpus)-1], func() error {
		for want := int64(1); want < 2*bouncesAPass; want += 2 {
			for line.turn.Load() != want {
				if stop.Load() {
					return nil
				}
			}
			line.turn.Store(want + 1)
		}
		return nil
	}))
	var took float64
	await(&both, &stop, On(m.cpus[0], func() error {
		start := time.Now()
		for i := int64(0); i < 2*bouncesAPass; i += 2 {
			line.turn.Store(i + 1)
			for n := 0; line.turn.Load() != i+2; n++ {
				if stop.Load() {
					return nil
				}
				if n%(1<<16) == 1<<16-1 && ctx.Err() != nil {
					return ctx.Err()
				}
			}
		}
		took = since(start)
		return nil
	}))
	err := both.Wait()
	return took / (2 * bouncesAPass), err
}
