// Package isolation asks what it saves and costs to leave isolated CPUs in user space
// alone, and to let them catch up when they next enter the kernel.
package isolation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
)

const (
	name     = "isolation"
	question = "What does it save to defer interrupts of isolated CPUs until they next enter the kernel, and what does it cost? " +
		"How many interrupts are left over hours, how many synchronisations does one entry make up for, and at how many system calls a second are dearer entries worth it?"
)

// Experiment is the question.
var Experiment = experiments.Legacy{
	Name: name, Question: question,
	Short: "what does deferral save and cost? interrupts of isolated CPUs over hours, against dearer entries",
	About: "isolation lets hours of virtual time pass on a machine with isolated CPUs, in which somebody switches\n" +
		"tracers and static keys now and then: once with rounds that interrupt everybody, once with rounds\n" +
		"that leave out who is in user space. How often somebody switches is fitted to the published number\n" +
		"of interrupts; --updates asks about other rates. All times are modelled.",
	Examples: []string{
		"isolation --out isolation",
		"isolation --calibration gold-6248 --isolated 60 --updates 600 --entries 10,1000 --hours 1",
	},
	Table: table,
	Flags: func(f *pflag.FlagSet) experiments.LegacyRun {
		r := &request{}
		experiments.Register(f, experiments.Machines(&r.machines, "e5-2699,e7-8890,gold-6248"))
		f.Float64Var(&r.hours, "hours", publishedHours, "`hours` of virtual time")
		f.IntVar(&r.isolated, "isolated", 0, "`number` of isolated CPUs of each machine (default: as many as the published interrupts are spread over)")
		f.IntVar(&r.sites, "sites", 4, "`number` of sites that each update changes")
		experiments.Register(f, experiments.Rates(&r.updates, "updates", "1,60", "`list` of updates an hour, beside the rate that is fitted"))
		experiments.Register(f, experiments.Rates(&r.entries, "entries", "0.01,0.1,1,10,100,1000,10000,100000", "`list` of entries into the kernel a second of each isolated CPU"))
		f.StringVar(&r.file, "published", "", "`file` in place of the published figures: CSV with measurement, value, unit, source")
		return r.run
	},
}.Experiment()

// publishedHours is how long the published interrupts were counted.
const publishedHours = 6

// request is what the flags ask for.
type request struct {
	machines         []experiments.Calibrated
	hours            float64
	isolated, sites  int
	updates, entries []float64
	file             string
}

func table() results.Table {
	return results.Table{Name: name, Columns: []results.Column{
		{Name: "calibration", Doc: "machine that times are modelled of"},
		{Name: "seed", Detail: true, Doc: "of every random choice"},
		{Name: "revision", Detail: true, Doc: "of the program"},
		{Name: "arch", Detail: true, Doc: "instruction set"},
		{Name: "cpus", Doc: "CPUs by role"},
		{Name: "protocol", Doc: "breakpoint interrupts everybody, breakpoint-lazy leaves out who is in user space"},
		{Name: "hours", Detail: true, Doc: "virtual time"},
		{Name: "updates_per_hour", Doc: "times that somebody switches something"},
		{Name: "fitted", Detail: true, Doc: "that rate is fitted to the published number of interrupts"},
		{Name: "entries_per_s", Doc: "entries into the kernel of each isolated CPU; makes no difference where everybody is interrupted"},
		{Name: "updates", Detail: true, Doc: "in all that time"},
		{Name: "rounds", Doc: "requests to all other CPUs to synchronise"},
		{Name: "ipis_isolated", Doc: "interrupts that all isolated CPUs took"},
		{Name: "ipis_isolated_max", Doc: "most that one took"},
		{Name: "deferred", Doc: "interrupts that were saved"},
		{Name: "catch_ups", Doc: "synchronisations at entry that made up for them"},
		{Name: "rounds_per_catch_up", Doc: "rounds that one of them made up for, mean"},
		{Name: "found_in_kernel", Doc: "share of rounds that found an isolated CPU in the kernel, and interrupted it"},
		{Name: "found_expected", Doc: "share of its time that it is there: stays/(1+stays), with stays = entries a second x their length"},
		{Name: "burst_max", Detail: true, Doc: "most interrupts that an isolated CPU took in one millisecond"},
		{Name: "quiet_ns", Doc: "longest time without an interrupt, of the isolated CPU where it is shortest"},
		{Name: "stolen_ns_per_hour", Doc: "time taken from an isolated CPU by interrupts, traps and catching up, mean, modelled"},
		{Name: "saved_ns_per_hour", Doc: "what deferral saves of it, modelled"},
		{Name: "entries_ns_per_hour", Doc: "what its dearer entries cost, modelled"},
		{Name: "break_even_entries_per_s", Doc: "entries at which both would be equal"},
	}}
}

func (r *row) cells() []any {
	c := make([]any, 0, 25)
	c = append(c, r.machine.Name, r.seed, r.revision, r.machine.Arch, cpus.FormatRoles(r.roles), r.protocol(), r.hours, r.updates, r.fitted, results.Empty,
		r.count, r.rounds, r.ipis, r.ipisMax)
	if !r.lazy {
		c = append(c, slices.Repeat([]any{results.Empty}, 5)...)
	} else {
		c[9] = r.entries
		c = append(c, r.deferred, r.catchUps, results.Empty, r.found(), r.expected())
		if r.catchUps > 0 {
			c[16] = r.coalesced()
		}
	}
	c = append(c, r.burst, int64(r.quiet), r.stolen)
	if !r.lazy {
		return append(c, results.Empty, results.Empty, results.Empty)
	}
	c = append(c, r.saved, r.dearer(), results.Empty)
	if e, ok := r.breakEven(); ok {
		c[24] = e
	}
	return c
}

// figures is what was published, as far as the experiment uses it.
type figures struct {
	all                 []published.Isolated
	total, each, left   published.Isolated // interrupts in publishedHours: of all, of each isolated CPU, of all with deferral
	haveTotal, haveEach bool
}

// read finds the figures by what they measure.
func (f *figures) read(file string) (err error) {
	if f.all, err = published.Isolation.Read(file); err != nil {
		return err
	}
	for _, m := range f.all {
		switch {
		case !strings.HasPrefix(m.Measurement, "IPIs in 6 h"):
		case strings.Contains(m.Measurement, "with deferral"):
			f.left = m
		case strings.Contains(m.Measurement, "per isolated CPU"):
			f.each, f.haveEach = m, m.Value > 0
		default:
			f.total, f.haveTotal = m, m.Value > 0
		}
	}
	if !f.haveTotal || !f.haveEach {
		return fmt.Errorf("published figures: neither rates nor machines follow without IPIs in 6 h, of all and per isolated CPU, above 0")
	}
	return nil
}

// isolated is how many isolated CPUs the interrupts were spread over.
func (f *figures) isolated() int { return int(f.total.Value/f.each.Value + 0.5) }

// rate is how many updates an hour, of three rounds each, interrupt each CPU as often.
func (f *figures) rate() float64 { return f.each.Value / roundsPerUpdate / publishedHours }

func (r *request) run(ctx context.Context, lab *experiments.Lab) (*experiments.Answer, error) {
	a := &answer{hours: r.hours}
	if err := a.figures.read(r.file); err != nil {
		return nil, err
	}
	if r.isolated == 0 {
		r.isolated = a.isolated()
	}
	if err := r.check(a.rate()); err != nil {
		return nil, err
	}
	points := r.points(a.rate())
	a.asked = len(points)
	var everybody *row // the last row that interrupts everybody: what deferral is held against
	for _, row := range points {
		if err := row.pass(ctx, lab, r.sites); err != nil {
			return a.answer(), err
		}
		if !row.lazy {
			everybody = row
		}
		row.saved = everybody.stolen - row.stolen
		a.rows = append(a.rows, row)
		if err := lab.Add(row.cells()...); err != nil {
			return a.answer(), err
		}
	}
	return a.answer(), nil
}

// maxUpdates is what a few seconds are enough for.
const maxUpdates = 100_000

// check says what cannot be asked.
func (r *request) check(fitted float64) error {
	switch {
	case !(r.hours > 0 && r.hours <= 24*365):
		return fmt.Errorf("--hours %g: want hours above 0, a year at most", r.hours)
	case r.isolated < 1:
		return fmt.Errorf("--isolated %d: want 1 or more", r.isolated)
	case r.sites < 1 || r.sites > 256:
		return fmt.Errorf("--sites %d: want 1 to 256, which is one batch", r.sites)
	}
	for _, u := range append(slices.Clone(r.updates), fitted) {
		if n := u * r.hours; n > maxUpdates || n < 0.5 {
			return fmt.Errorf("%g updates an hour for %g hours are %.0f: want 1 to %d", u, r.hours, n, maxUpdates)
		}
	}
	for _, m := range r.machines {
		if r.isolated >= m.Online {
			return fmt.Errorf("--isolated %d: %s has %d CPUs, and one must be left for the patcher", r.isolated, m, m.Online)
		}
	}
	return nil
}

// points are all combinations; each rate begins with rounds that interrupt everybody.
func (r *request) points(fitted float64) (out []*row) {
	rates := append([]float64{fitted}, r.updates...)
	slices.Sort(rates)
	for _, m := range r.machines {
		roles := m.Busy()
		for i := len(roles) - r.isolated; i < len(roles); i++ {
			roles[i] = cpus.Isolated
		}
		for _, u := range slices.Compact(rates) {
			p := row{machine: m, roles: roles, hours: r.hours, updates: u, fitted: u == fitted}
			out = append(out, &p)
			for _, e := range r.entries {
				q := p
				q.lazy, q.entries = true, e
				out = append(out, &q)
			}
		}
	}
	return out
}
