package isolation

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results/plots"
)

// answer is the hours that have passed.
type answer struct {
	figures
	hours float64
	asked int
	rows  []*row
}

func (a *answer) answer() *experiments.Answer {
	r := experiments.NewReport(name, question)
	if len(a.rows) < a.asked {
		r.CutShort = fmt.Sprintf("%d of %d combinations have passed.", len(a.rows), a.asked)
	}
	r.Headline = a.headline()
	r.Answer = []string{
		"A round that leaves a CPU in user space alone costs it nothing, however many follow it: the next entry into the kernel makes up for all of them at once. " +
			"What is left is the rounds that find the CPU in the kernel, as many as the share of its time that it is there.",
		"Every entry pays for that, whether anything was deferred or not. In time alone it is a loss at all but the lowest rates of system calls. " +
			"What deferral gains is quiet: the stretches in which nothing interrupts a CPU at all.",
	}
	if len(a.rows) > 0 {
		r.Sheets = append(r.Sheets, a.interrupts(), a.rates(), a.time())
	}
	r.Modelled = []string{
		"All times, from the calibration that each row names. An interrupt is charged what the calibration calls its handler; what it takes from caches afterwards is not in it.",
		fmt.Sprintf("How often somebody switches something is not published. The rate of %s updates an hour is fitted to %s interrupts of each isolated CPU in %d h, as if all of them were rounds of updates of one batch, three each; "+
			"%d isolated CPUs are the published total over that. Other rates are shown beside it.", short(a.rate()), short(a.each.Value), publishedHours, a.isolated()),
		"Updates happen at times that are drawn, any being as likely as any other. Entries into the kernel are a Poisson process of each isolated CPU, and stays there are exponential.",
		"Nobody but a CPU that an interrupt or a system call has taken into the kernel calls what is switched: hardly any time goes into traps.",
		"Deferral is that of the series up to its seventh version: bits in the word of context tracking, and a synchronisation at entry. Other interrupts (page tables, timers, schedulers) are left out.",
	}
	if all, text := a.measured("calls to isolated CPUs in 3 h"), a.measured("calls to isolated CPUs in 3 h, do_sync_core"); all.Value > 0 && text.Value > 0 {
		r.Modelled = append(r.Modelled, fmt.Sprintf("Text patching is a small part of what hits isolated CPUs: %s of %s calls in three hours, %.0f %%, were do_sync_core (%s).",
			short(text.Value), short(all.Value), 100*text.Value/all.Value, text.Source))
	}
	r.Beside = a.beside()
	if len(r.Beside) > 0 {
		r.Notes = []string{
			"The first two figures were fitted, but for the rounding to whole updates, and so were the entries (the calibrations were made from them). The interrupts that are left with deferral are predicted; the published kernel defers what else would interrupt, too.",
		}
	}
	return experiments.NewAnswer(name, r, a.chart().Picture())
}

// measured is the figure of that name, 0 where nobody has published it.
func (f *figures) measured(name string) published.Isolated {
	for _, m := range f.all {
		if m.Measurement == name {
			return m
		}
	}
	return published.Isolated{}
}

// short prints a number with the digits that are worth reading.
func short(v float64) string {
	if v >= 1000 {
		return plots.Thousands(math.Round(v))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// span prints a length of time.
func span(ns float64) string {
	for _, u := range []struct {
		name string
		ns   float64
	}{{"h", hour}, {"min", hour / 60}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}} {
		if math.Abs(ns) >= u.ns {
			return short(ns/u.ns) + " " + u.name
		}
	}
	return short(ns) + " ns"
}

func percent(share float64) string { return short(100*share) + " %" }

// usual are the rows of one machine at one rate of updates: the one that interrupts
// everybody, and the lazy one whose entries are nearest to the calibration's; nil
// where there is none yet.
func (a *answer) usual(machine string, updates float64) (everybody, lazy *row) {
	away := func(r *row) float64 { return math.Abs(math.Log((r.entries + 1e-9) / (r.machine.Costs.Entries + 1e-9))) }
	for _, r := range a.rows {
		switch {
		case r.machine.String() != machine || r.updates != updates:
		case !r.lazy:
			everybody = r
		case lazy == nil || away(r) < away(lazy):
			lazy = r
		}
	}
	return everybody, lazy
}

// machines are the machines that there are rows of.
func (a *answer) machines() (out []string) {
	for _, r := range a.rows {
		if n := r.machine.String(); len(out) == 0 || out[len(out)-1] != n {
			out = append(out, n)
		}
	}
	return out
}

func (a *answer) headline() string {
	if len(a.rows) == 0 {
		return "No hours have passed"
	}
	first, lazy := a.usual(a.machines()[0], a.rate())
	if first == nil || lazy == nil {
		return "Nothing was deferred"
	}
	s := fmt.Sprintf("Modelled with calibration %s, deferral leaves %d of %s interrupts of isolated CPUs in %s h", lazy.machine.Name, lazy.ipis, plots.Thousands(float64(first.ipis)), short(a.hours))
	var limits []string
	for _, m := range a.machines() {
		if _, r := a.usual(m, a.rate()); r != nil {
			if e, ok := r.breakEven(); ok {
				limits = append(limits, fmt.Sprintf("%s (%s)", short(e), r.machine.Name))
			}
		}
	}
	if len(limits) == 0 {
		return s
	}
	return s + ", and saves time only below so many system calls a second: " + strings.Join(limits, ", ") + ". It buys quiet, not time"
}

// interrupts is what isolated CPUs take, of the first machine at the fitted rate.
func (a *answer) interrupts() experiments.Sheet {
	s := experiments.Sheet{
		Title:   fmt.Sprintf("Interrupts in %s h, %s updates an hour, calibration %s", short(a.hours), short(a.rate()), a.machines()[0]),
		Columns: []string{"rounds", "entries a second", "interrupts, all isolated", "most of one", "most in 1 ms", "longest quiet", "found in the kernel", "expected", "catch-ups", "rounds a catch-up"},
	}
	for _, r := range a.rows {
		if r.machine.String() != a.machines()[0] || !r.fitted {
			continue
		}
		line := []string{"interrupt everybody", "any", fmt.Sprint(r.ipis), fmt.Sprint(r.ipisMax), fmt.Sprint(r.burst), span(float64(r.quiet)), "", "", "", ""}
		if r.lazy {
			line[0], line[1], line[6], line[7], line[8] = "lazy", short(r.entries), percent(r.found()), percent(r.expected()), fmt.Sprint(r.catchUps)
			if r.catchUps > 0 {
				line[9] = short(r.coalesced())
			}
		}
		s.Rows = append(s.Rows, line)
	}
	return s
}

// rates is what other rates of updates give.
func (a *answer) rates() experiments.Sheet {
	s := experiments.Sheet{
		Title:   fmt.Sprintf("Other rates of updates, calibration %s", a.machines()[0]),
		Columns: []string{"updates an hour", "interrupts of one CPU", "longest quiet", "with deferral", "longest quiet", "entries a second", "rounds a catch-up"},
	}
	for _, r := range a.rows {
		if r.machine.String() != a.machines()[0] || r.lazy {
			continue
		}
		line := []string{short(r.updates), fmt.Sprint(r.ipisMax), span(float64(r.quiet)), "", "", "", ""}
		if r.fitted {
			line[0] += " (fitted)"
		}
		if _, lazy := a.usual(r.machine.String(), r.updates); lazy != nil {
			line[3], line[4], line[5] = fmt.Sprint(lazy.ipisMax), span(float64(lazy.quiet)), short(lazy.entries)
			if lazy.catchUps > 0 {
				line[6] = short(lazy.coalesced())
			}
		}
		s.Rows = append(s.Rows, line)
	}
	return s
}

// time is what deferral saves and costs an isolated CPU in an hour, machine by machine.
func (a *answer) time() experiments.Sheet {
	s := experiments.Sheet{
		Title:   fmt.Sprintf("Time of an isolated CPU in an hour, modelled, %s updates an hour", short(a.rate())),
		Columns: []string{"calibration", "system call before", "after", "saved in interrupts", "entries a second", "dearer entries cost", "break-even, entries a second"},
	}
	for _, m := range a.machines() {
		_, r := a.usual(m, a.rate())
		if r == nil {
			continue
		}
		c := r.machine.Costs
		line := []string{m, span(c.UserEntry + c.UserExit), span(c.UserEntry + c.UserExit + c.DeferralEntry), span(r.saved), short(r.entries), span(r.dearer()), ""}
		if e, ok := r.breakEven(); ok {
			line[6] = short(e)
		}
		s.Rows = append(s.Rows, line)
	}
	return s
}

// beside holds what was published against the machines that it is of.
func (a *answer) beside() (out []experiments.Beside) {
	if len(a.rows) > 0 && a.hours == publishedHours {
		everybody, lazy := a.usual(a.machines()[0], a.rate())
		if everybody != nil && everybody.isolated() == a.isolated() {
			out = append(out,
				experiments.Beside{What: a.total.Measurement, Published: a.total.Value, Ours: float64(everybody.ipis), Source: a.total.Source},
				experiments.Beside{What: a.each.Measurement, Published: a.each.Value, Ours: float64(everybody.ipis) / float64(everybody.isolated()), Source: a.each.Source})
			if lazy != nil && a.left.Measurement != "" {
				out = append(out, experiments.Beside{What: fmt.Sprintf("%s (here: %s entries a second)", a.left.Measurement, short(lazy.entries)), Published: a.left.Value, Ours: float64(lazy.ipis), Exact: true, Source: a.left.Source})
			}
		}
	}
	for _, name := range a.machines() {
		_, r := a.usual(name, a.rate())
		for _, m := range a.all {
			if r == nil || !strings.Contains(strings.ToLower(m.Measurement), " "+strings.ReplaceAll(r.machine.Name, "gold-", "gold ")+",") {
				continue
			}
			c := r.machine.Costs
			ours := c.UserEntry + c.UserExit
			if strings.HasSuffix(m.Measurement, "after") {
				ours += c.DeferralEntry
			}
			out = append(out, experiments.Beside{What: m.Measurement + ", ns", Published: m.Value, Ours: ours, Source: m.Source})
		}
	}
	return out
}

// chart is what an hour of dearer entries costs, against what is saved.
func (a *answer) chart() *plots.Chart {
	c := &plots.Chart{
		Title: "Deferral buys quiet, not time: dearer entries soon cost more than it saves",
		X:     plots.Axis{Label: "entries into the kernel of an isolated CPU (1/s)", Log: true}, Y: plots.Axis{Label: "time of one CPU in an hour (us)", Log: true},
	}
	if len(a.rows) == 0 {
		return c
	}
	c.Subtitle = fmt.Sprintf("modelled, calibrations %s; %s updates an hour, fitted", strings.Join(a.machines(), ", "), short(a.rate()))
	for i, m := range a.machines() {
		saved := plots.Series{Name: "saved in interrupts"}
		cost := plots.Series{Name: "dearer entries, " + m}
		for _, r := range a.rows {
			if r.machine.String() != m || !r.fitted || !r.lazy || r.entries == 0 {
				continue
			}
			if r.saved > 0 {
				saved.X, saved.Y = append(saved.X, r.entries), append(saved.Y, r.saved/1000)
			}
			cost.X, cost.Y = append(cost.X, r.entries), append(cost.Y, r.dearer()/1000)
		}
		if i == 0 {
			c.Series = append(c.Series, saved)
		}
		c.Series = append(c.Series, cost)
	}
	return c
}
