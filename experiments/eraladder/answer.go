package eraladder

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot/vg"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/results/plots"
)

// answer is the rows that were finished.
type answer struct {
	sites []int
	eras  int // begun
	rows  []*row
}

func (a *answer) answer() *experiments.Answer {
	r := experiments.NewReport(name, question)
	if want := a.eras * len(a.sites); len(a.rows) < want {
		r.CutShort = fmt.Sprintf("%d of %d rows of the eras that were begun were counted.", len(a.rows), want)
	}
	r.Headline = a.headline()
	r.Answer = []string{
		"Two costs change places over the years. Standing still interrupts everybody once and stops them for as long as all sites take; " +
			"breakpoints and single words let everybody go on, and pay for it in rounds where an instruction set makes other CPUs fetch afresh by interrupts only.",
	}
	r.Sheets = []experiments.Sheet{a.ladder()}
	r.Measured = []string{"Steps of the compiled plan of one update: rounds, standstills, and with them the interrupts that each CPU but the sender takes. Nothing is executed."}
	r.Modelled = []string{
		"Rounds that enable sites. What else an update sends (tracepoints, static calls, the tracer's own trampoline, the synchronisation when the function to call changes) is not among them.",
		"Sites ascend, so that no address closes a batch.",
		"A standstill counts as one interrupt a CPU, which wakes its stopper.",
		"Sites are as long as today's, or a pair of instructions where the protocol is of that time; how many bytes lie before them makes no difference here.",
		"Eras whose basis is \"inferred\" were not read in that kernel's source.",
	}
	for _, row := range a.rows {
		r.Beside = append(r.Beside, experiments.Beside{
			What:      fmt.Sprintf("%s %s %s: %s rounds, n = %d", row.era.Arch.Traits().Name, row.Client, row.releases(), row.Formula, row.sites),
			Published: float64(formulas[row.Formula](row.sites)), Ours: float64(row.Rounds), Exact: true, Source: row.Source,
		})
	}
	out := experiments.NewAnswer(name, r, a.chart().Picture())
	out.No = a.differ()
	return out
}

// differ is the rows whose counts are not those that follow from the source.
func (a *answer) differ() error {
	for _, r := range a.rows {
		if want := formulas[r.Formula](r.sites); r.Rounds != want || r.PlanRow.Stops != r.era.Stops {
			return fmt.Errorf("%s %s %s: %d rounds and %d stops for %d sites, not %d and %d",
				r.era.Arch.Traits().Name, r.Client, r.releases(), r.Rounds, r.PlanRow.Stops, r.sites, want, r.era.Stops)
		}
	}
	return nil
}

// most are the rows with the most sites.
func (a *answer) most() (out []*row) {
	n := slices.Max(a.sites)
	for _, r := range a.rows {
		if r.sites == n {
			out = append(out, r)
		}
	}
	return out
}

func (a *answer) headline() string {
	rows := a.most()
	if len(rows) == 0 {
		return "Nothing was counted"
	}
	least, most := rows[0], rows[0]
	for _, r := range rows {
		if r.IPIsPerCPU < least.IPIsPerCPU {
			least = r
		}
		if r.IPIsPerCPU > most.IPIsPerCPU {
			most = r
		}
	}
	say := func(r *row) string {
		return fmt.Sprintf("%s (%s, %s, %s)", plots.Thousands(float64(r.IPIsPerCPU)), r.era.Arch.Traits().Name, r.Client, r.releases())
	}
	return fmt.Sprintf("Changing %s sites has cost each CPU from %s to %s interrupts", plots.Thousands(float64(least.sites)), say(least), say(most))
}

// ladder is an era a line.
func (a *answer) ladder() experiments.Sheet {
	s := experiments.Sheet{Title: "The ladder", Columns: []string{"arch", "client", "releases", "protocol", "rounds", "stops"}}
	for _, n := range a.sites {
		s.Columns = append(s.Columns, fmt.Sprintf("interrupts per CPU, n = %d", n))
	}
	var last *era
	for _, r := range a.rows {
		if r.era != last {
			s.Rows = append(s.Rows, []string{r.era.Arch.Traits().Name, r.Client, r.releases(), r.era.Protocol.Summary, r.Formula, fmt.Sprint(r.era.Stops)})
			last = r.era
		}
		s.Rows[len(s.Rows)-1] = append(s.Rows[len(s.Rows)-1], fmt.Sprint(r.IPIsPerCPU))
	}
	for i := range s.Rows {
		for len(s.Rows[i]) < len(s.Columns) {
			s.Rows[i] = append(s.Rows[i], "")
		}
	}
	return s
}

// chart is the interrupts of the most sites, an era a bar.
func (a *answer) chart() *plots.Chart {
	rows := a.most()
	c := &plots.Chart{
		Title: "From stop_machine to today: what each era cost every CPU",
		X:     plots.Axis{Label: "interrupts per CPU", Log: true}, Y: plots.Axis{Names: []string{}},
		Height: vg.Length(30+6*max(len(rows), 4)) * vg.Millimeter,
	}
	live := plots.Series{Name: "CPUs go on meanwhile", Kind: plots.Lying}
	stopped := plots.Series{Name: "every CPU stands still meanwhile", Kind: plots.Lying}
	for i, r := range rows {
		c.X.Label = fmt.Sprintf("interrupts per CPU for %s sites", plots.Thousands(float64(r.sites)))
		c.Y.Names = append(c.Y.Names, fmt.Sprintf("%s %s, %s", r.era.Arch.Traits().Name, r.Client, r.releases()))
		to := &live
		if r.PlanRow.Stops > 0 {
			to = &stopped
		}
		to.X, to.Y = append(to.X, float64(r.IPIsPerCPU)), append(to.Y, float64(i))
		to.Labels = append(to.Labels, plots.Thousands(float64(r.IPIsPerCPU)))
	}
	for _, s := range []plots.Series{live, stopped} {
		if len(s.X) > 0 {
			c.Series = append(c.Series, s)
		}
	}
	c.Alone = true
	return c
}
