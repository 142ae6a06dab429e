package pareto

import (
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/plots"
)

// answer is the machines that were finished.
type answer struct {
	*request
	done []ladder
}

func (a *answer) answer() *experiments.Answer {
	r := experiments.NewReport(name, question)
	if len(a.done) < len(a.Machines) {
		r.CutShort = fmt.Sprintf("%d of %d machines were finished.", len(a.done), len(a.Machines))
	}
	r.Headline = a.headline()
	r.Answer = []string{
		"Cheapest is, in this order: nothing to pay while nothing is patched, the fewest pages of memory, the shortest update. Deferral comes last for that: " +
			"it makes every entry of an isolated CPU into the kernel dearer, for ever, and is not in Linux. A protocol without rounds, where the instruction set allows one, " +
			"costs none of it.",
		"Vectors that fill less than a page save nothing: within one page the biggest is the fastest, and interrupts least. Beyond it every doubling costs as much memory as all before, " +
			"and lowers the rate at which interrupts come, since the stores between two rounds take longer. What keeps to a budget depends on what a round and a store take, so that no size is right for all machines.",
	}
	r.Sheets = []experiments.Sheet{a.choices(), a.ladders()}
	r.Measured = []string{
		"Rounds and memory are counted from the plan of one update that enables every record.",
		"Interrupts that isolated CPUs take are counted on the timed engine. A budget is about those that take one out of user space; with deferral that is none, and those that find it in the kernel are in the column ipis_isolated_max of the table.",
	}
	r.Modelled = append(a.notes(), "All times are modelled, and with them interrupts per millisecond. "+a.means())
	return experiments.NewAnswer(name, r, a.chart().Picture())
}

func (a *answer) means() string {
	if a.measure == burst {
		return "Budgets are about the most interrupts in one millisecond."
	}
	return "Budgets are about the mean over the update, of the isolated CPU that takes most; an update that is shorter than a millisecond counts as one. Bursts within it are denser (--measure burst)."
}

// each goes through the rows of all machines.
func (a *answer) each(f func(*row)) {
	for i := range a.done {
		for _, r := range a.done[i].rows(a.budgets) {
			f(r)
		}
	}
}

func (a *answer) headline() string {
	if len(a.done) == 0 || len(a.budgets) == 0 {
		return "Nothing was finished"
	}
	budget := a.budgets[len(a.budgets)/2]
	var parts []string
	a.each(func(r *row) {
		if r.budget != budget {
			return
		}
		what := "nothing"
		if c := r.choice; c != nil {
			what = c.String()
			if c.Buffered {
				what += " slots"
			}
			what = strings.ReplaceAll(what, " with deferral slots", " slots with deferral")
		}
		parts = append(parts, fmt.Sprintf("%s on %s", what, r.machine))
	})
	return fmt.Sprintf("For %g interrupts a millisecond the cheapest choice, modelled, is %s", budget, strings.Join(parts, ", "))
}

// choices is the answer for each budget.
func (a *answer) choices() experiments.Sheet {
	s := experiments.Sheet{Title: "The cheapest choice for each budget", Columns: []string{
		"machine", "budget (1/ms)", "choice", "takes (1/ms)", "rounds", "pages", "update (ms)", "an entry into the kernel (ns)", "nearest of the cheaper", "would take (1/ms)",
	}}
	a.each(func(r *row) {
		cells := []string{r.machine.String(), fmt.Sprintf("%g", r.budget), "none", "", "", "", "", ""}
		if c := r.choice; c != nil {
			copy(cells[2:], []string{
				c.String(), fmt.Sprintf("%.3g", c.taken), fmt.Sprint(c.Rounds), fmt.Sprint(c.BufferPages),
				fmt.Sprintf("%.4g", float64(c.Modelled.Update)/1e6), fmt.Sprintf("+%.3g", c.standing),
			})
		}
		if c := r.nearest; c != nil {
			cells = append(cells, c.String(), fmt.Sprintf("%.3g", c.taken))
		} else {
			cells = append(cells, "there is none", "")
		}
		s.Rows = append(s.Rows, cells)
	})
	return s
}

// ladders are all choices of all machines, cheapest first.
func (a *answer) ladders() experiments.Sheet {
	s := experiments.Sheet{Title: "All choices, cheapest first", Columns: []string{
		"machine", "choice", "takes (1/ms)", "most in a millisecond", "pages", "update (ms)", "exposure (ms)", "right for budgets",
	}}
	for _, l := range a.done {
		right := l.thresholds()
		for _, c := range l.timed() {
			exposure := "-"
			if c.Buffered {
				exposure = fmt.Sprintf("%.3g", float64(c.Modelled.Exposure)/1e6)
			}
			s.Rows = append(s.Rows, []string{
				l.machine.String(), c.String(), fmt.Sprintf("%.3g", c.taken), fmt.Sprint(c.IsolatedBurst), fmt.Sprint(c.BufferPages),
				fmt.Sprintf("%.4g", float64(c.Modelled.Update)/1e6), exposure, between(right, c),
			})
		}
	}
	return s
}

// between says for which budgets a choice is right.
func between(right []*choice, c *choice) string {
	switch i := slices.Index(right, c); {
	case i < 0:
		return "none"
	case i == 0:
		return fmt.Sprintf("%.3g and more", c.taken)
	default:
		return fmt.Sprintf("%.3g to %.3g", c.taken, right[i-1].taken)
	}
}

// notes say what was modelled of what.
func (a *answer) notes() (out []string) {
	for _, l := range a.done {
		c := l.all[0]
		out = append(out, fmt.Sprintf("Calibration %s (%s), with CPUs %s, %s of %s records.",
			l.machine.Name, l.machine.Machine, cpus.FormatRoles(c.Roles), c.Table.Name(), plots.Thousands(float64(c.Patches))))
		var counted []string
		for _, c := range l.all[len(l.timed()):] {
			counted = append(counted, c.String())
		}
		if len(counted) > 0 {
			out = append(out, fmt.Sprintf("On %s nobody can choose %s: more than %s interrupts, which were not timed (--limit-ipis).",
				l.machine, strings.Join(counted, ", "), plots.Thousands(float64(a.Limit))))
		}
	}
	return out
}

// chart is the memory of the cheapest choice against the budget.
func (a *answer) chart() *plots.Chart {
	per := "interrupts a millisecond that an isolated CPU may take"
	c := &plots.Chart{
		Title:    "Every budget has a cheapest vector, and every machine another one",
		Subtitle: a.Says() + ". Numbers: slots",
		X:        plots.Axis{Label: "budget: " + per, Log: true}, Y: plots.Axis{Label: "memory of the cheapest choice (pages)", Log: true},
	}
	most := 1.0
	for _, l := range a.done {
		for _, at := range l.thresholds() {
			most = max(most, at.taken)
		}
	}
	deferral := plots.Series{Name: "with deferral, which makes entries into the kernel dearer", Kind: plots.Points}
	for _, l := range a.done {
		s := plots.Series{Name: l.machine.String(), Kind: plots.Steps}
		add := func(to *plots.Series, x float64, at *choice, label string) {
			to.X, to.Y, to.Labels = append(to.X, x), append(to.Y, float64(at.BufferPages)), append(to.Labels, label)
		}
		for _, at := range slices.Backward(l.thresholds()) {
			switch slots := at.slots(); {
			case at.Protocol == withDeferral:
				add(&deferral, at.taken, at, at.Buffer.String())
			case slots == results.Empty:
				add(&s, at.taken, at, "no vector")
			default:
				add(&s, at.taken, at, at.Buffer.String())
			}
		}
		if n := len(s.X); n > 0 {
			s.X, s.Y, s.Labels = append(s.X, 1.5*most), append(s.Y, s.Y[n-1]), append(s.Labels, "")
			c.Series = append(c.Series, s)
		}
	}
	if len(deferral.X) > 0 {
		c.Series = append(c.Series, deferral)
	}
	labelOnce(c.Series)
	return c
}

// labelOnce leaves each label only where it stands first from the left.
func labelOnce(series []plots.Series) {
	first := map[string]float64{}
	each := func(f func(s *plots.Series, i int)) {
		for n := range series {
			for i := range series[n].Labels {
				f(&series[n], i)
			}
		}
	}
	each(func(s *plots.Series, i int) {
		key := fmt.Sprint(s.Kind, s.Labels[i])
		if x, ok := first[key]; !ok || s.X[i] < x {
			first[key] = s.X[i]
		}
	})
	each(func(s *plots.Series, i int) {
		key := fmt.Sprint(s.Kind, s.Labels[i])
		if x, ok := first[key]; ok && s.X[i] == x {
			delete(first, key)
			return
		}
		s.Labels[i] = ""
	})
}
