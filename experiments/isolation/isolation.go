// SPDX-License-Identifier: Apache-2.0

// Package isolation asks what it saves and costs to leave isolated CPUs in user space
// alone, and to let them catch up when they next enter the kernel.
package isolation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
	"github.com/textpoke/textpoke/sim/timed"
)

// Config says which hours pass on which machines.
// Its fields are the flags of isolation.experiment.
type Config struct {
	Machines  []experiments.Machine
	Hours     float64
	Isolated  int
	Sites     int       // of an update, which is one batch
	Updates   []float64 // an hour
	Entries   []float64 // a second
	Published string
}

// Experiment is the question.
var Experiment = experiments.New("isolation/isolation.experiment", measure)

// publishedHours is how long the published interrupts were counted.
const publishedHours = 6

// figure is one that was published: of interrupts in publishedHours the total, of each isolated CPU and those left with
// deferral, and of a machine's system calls those before and after; "" of anything else.
type figure struct {
	published.Isolated
	Of, Machine string
}

// figures is what was published, as far as the experiment uses it.
type figures struct {
	all         []figure
	total, Each float64
}

// read finds the figures by what they measure.
func (f *figures) read(file string) error {
	all, err := published.Isolation.Read(file)
	for _, m := range all {
		fig := figure{Isolated: m}
		parts := strings.Split(strings.ToLower(strings.ReplaceAll(m.Measurement, "Gold ", "gold-")), ", ")
		switch last := parts[len(parts)-1]; {
		case len(parts) > 2 && (last == "before" || last == "after"):
			fig.Of, fig.Machine = last, parts[len(parts)-2]
		case parts[0] != "ipis in 6 h":
		case last == "with deferral":
			fig.Of = "left"
		case parts[1] == "per isolated cpu":
			fig.Of, f.Each = "each", m.Value
		default:
			fig.Of, f.total = "total", m.Value
		}
		f.all = append(f.all, fig)
	}
	if err == nil && (f.total <= 0 || f.Each <= 0) {
		err = errors.New(
			"published figures: rates and machines follow only from IPIs in 6 h, of all and per isolated CPU, above 0",
		)
	}
	return err
}

// Isolated is how many isolated CPUs the interrupts were spread over.
func (f *figures) Isolated() int { return int(f.total/f.Each + 0.5) }

// Rate is how many updates an hour, of one batch each, interrupt each CPU as often.
func (f *figures) Rate() float64 {
	return f.Each / float64(poke.RoundsPerBatch()) / publishedHours
}

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (any, error) {
	c := &s.Config
	a := &answer{Study: s}
	if err := a.figures.read(c.Published); err != nil {
		return nil, err
	}
	if c.Isolated == 0 {
		c.Isolated = a.Isolated()
	}
	if err := c.check(a.Rate()); err != nil {
		return nil, err
	}
	var everybody *row // the last row that interrupts everybody: what deferral is held against
	err := experiments.Each(ctx, s, c.points(&a.figures), func(r *row) (*row, error) {
		if err := r.pass(ctx, s.Lab, c.Sites); err != nil {
			return nil, err
		}
		if !r.Lazy {
			everybody = r
		}
		r.saved = everybody.stolen - r.stolen
		r.ranges(everybody)
		return r, nil
	})
	bursts, failed := a.bursts()
	return a, cmp.Or(err, failed, experiments.Beside(s, "kinds", a.kinds()), experiments.Beside(s, "bursts", bursts),
		experiments.Beside(s, "measured", a.all))
}

// maxUpdates is what a few seconds are enough for.
const maxUpdates = 100_000

// check says what cannot be asked.
func (c *Config) check(fitted float64) error {
	for _, u := range append(slices.Clone(c.Updates), fitted) {
		if n := u * c.Hours; n > maxUpdates || n < 0.5 {
			return fmt.Errorf("%g updates an hour for %g hours are %.0f: want 1 to %d", u, c.Hours, n, maxUpdates)
		}
	}
	for _, m := range c.Machines {
		if c.Isolated >= m.Online {
			return fmt.Errorf("%d isolated: %s has %d CPUs, and one must be left for the patcher", c.Isolated, m, m.Online)
		}
	}
	return nil
}

// distance is how far a rate of entries is from the calibration's, in orders of magnitude.
func distance(m experiments.Machine, entries float64) float64 {
	return math.Abs(math.Log((entries + 1e-9) / (m.Costs.Entries + 1e-9)))
}

// points are all combinations; each rate begins with rounds that interrupt everybody.
func (c *Config) points(f *figures) (out []*row) {
	fitted, same := f.Rate(), c.Hours == publishedHours && c.Isolated == f.Isolated()
	rates := append([]float64{fitted}, c.Updates...)
	slices.Sort(rates)
	for i, m := range c.Machines {
		roles := m.Busy()
		for cpu := len(roles) - c.Isolated; cpu < len(roles); cpu++ {
			roles[cpu] = cpus.Isolated
		}
		for _, u := range slices.Compact(rates) {
			p := row{Machine: m, roles: roles, Isolated: c.Isolated, hours: c.Hours, updates: u, fitted: u == fitted, first: i == 0, same: same}
			out = append(out, &p)
			usual := slices.MinFunc(c.Entries, func(a, b float64) int { return cmp.Compare(distance(m, a), distance(m, b)) })
			for _, e := range c.Entries {
				q := p
				q.Lazy, q.entries, q.Usual = true, e, e == usual
				out = append(out, &q)
			}
		}
	}
	return out
}

// row is some hours of one machine.
type row struct {
	Machine  experiments.Machine
	first    bool // machine
	roles    []cpus.Role
	Isolated int // of them
	Lazy     bool
	Usual    bool // lazy, and its entries are those nearest to the calibration's
	hours    float64
	updates  float64 // an hour
	fitted   bool    // to the published interrupts
	same     bool    // as many hours and isolated CPUs as published
	entries  float64 // a second, of each isolated CPU; only where rounds are lazy
	seed     uint64
	revision string

	count, rounds            int // of updates; of rounds
	IPIs, ipisMax            uint64
	deferred, owed, catchUps uint64
	burst                    int64
	quiet                    timed.Nanos
	stolen                   float64 // from an isolated CPU in an hour, in nanoseconds
	saved                    float64 // of that
	spread                   spreads
}

// spreads are how far a row's times may be off.
type spreads struct{ stolen, saved, dearer calibration.Spread }

// taken is what is stolen on some costs, from an isolated CPU in an hour: what interrupts and
// catching up take, as often as they were counted. Traps are next to none.
func (r *row) taken(c *calibration.Costs) float64 {
	all := float64(r.IPIs)*c.Handler + float64(r.catchUps)*c.CatchUp
	return all / float64(r.Isolated) / r.hours
}

// ranges works out how far a row's times may be off; everybody is the row that it is compared with.
func (r *row) ranges(everybody *row) {
	s := r.Machine.Spreads(r.seed, calibration.Samples, 3, func(c *calibration.Costs, out []float64) {
		out[0] = r.taken(c)
		out[1] = everybody.taken(c) - out[0]
		out[2] = r.entries * 3600 * c.DeferralEntry
	})
	r.spread = spreads{s[0], s[1], s[2]}
}

// Before and After are what a system call's way in and out take, without deferral and with it.
func (r *row) Before() float64 { return r.Machine.Costs.UserEntry + r.Machine.Costs.UserExit }
func (r *row) After() float64  { return r.Before() + r.Machine.Costs.DeferralEntry }

// hour is an hour of the machine's clock.
const hour = 3600 * 1e9

// CPUs are the machine's, by role.
func (r *row) CPUs() string { return cpus.FormatRoles(r.roles) }

// Protocol is what it is patched with.
func (r *row) Protocol() string {
	if r.Lazy {
		return "breakpoint-lazy"
	}
	return "breakpoint"
}

// functions is how many there are besides those that are switched: an isolated CPU
// that was taken into the kernel calls some of them.
const functions = 10_000

// pass lets the hours pass: so many updates, to and fro, at times that are drawn.
func (r *row) pass(ctx context.Context, lab experiments.Lab, sites int) error {
	c, err := r.Machine.Job(ctx, lab, experiments.Ascending(functions))
	if err != nil {
		return err
	}
	var switched []string
	for i := range sites {
		switched = append(switched, fmt.Sprintf("fn%d", functions/2+i))
	}
	if c.Filter, err = records.ParseFilter(switched); err != nil {
		return err
	}
	c.Protocol, c.Buffer, c.Lookup, c.Roles = r.Protocol(), sched.Dynamic, int3.Vector, r.roles
	c.Calls, c.Entries = new(float64), &r.entries
	j, err := sim.NewJob(c)
	if err != nil {
		return err
	}
	m, err := sim.NewTimed(j)
	if err != nil {
		return err
	}
	defer m.Close()
	end := timed.Nanos(r.hours * hour)
	for i, at := range moments(int(r.updates*r.hours+0.5), end, lab.Seed) {
		if err := m.Pass(ctx, at); err != nil {
			return err
		}
		row, err := m.Update(ctx, i%2 == 0)
		if err != nil {
			return err
		}
		r.count++
		r.rounds += row.Rounds
	}
	if err := m.Pass(ctx, end); err != nil {
		return err
	}
	r.seed, r.revision = lab.Seed, lab.Revision
	r.read(m)
	return nil
}

// moments are n times in order, each equally likely anywhere: the moments of a Poisson
// process, given their number.
func moments(n int, end timed.Nanos, seed uint64) []timed.Nanos {
	rng := rand.New(rand.NewPCG(seed, 0))
	out := make([]timed.Nanos, n)
	for i := range out {
		out[i] = timed.Nanos(rng.Int64N(int64(end)))
	}
	slices.Sort(out)
	return out
}

// read sums up the isolated CPUs' lives.
func (r *row) read(m *sim.Timed) {
	first := true
	for cpu, role := range r.roles {
		if role != cpus.Isolated {
			continue
		}
		l := m.Life(cpu)
		r.IPIs += l.Taken
		r.ipisMax = max(r.ipisMax, l.Taken)
		r.deferred += l.LeftOut
		r.owed += l.Owed
		r.catchUps += l.CaughtUp
		r.burst = max(r.burst, l.Burst)
		r.stolen += float64(l.Stolen) / float64(r.Isolated) / r.hours
		if first || l.Quiet < r.quiet {
			r.quiet, first = l.Quiet, false
		}
	}
}

// found is the share of rounds that found an isolated CPU in the kernel.
func (r *row) Found() float64 { return float64(r.IPIs) / float64(r.rounds*r.Isolated) }

// BreakEven is how many entries a second cost what is saved; nil where nothing is,
// or where entries cost nothing more.
func (r *row) BreakEven() *float64 {
	each := 3600 * r.Machine.Costs.DeferralEntry
	if even := r.saved / each; r.saved > 0 && each > 0 {
		return &even
	}
	return nil
}
