package attach

import (
	"fmt"
	"io"
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/attachcost"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/plots"
)

// answer is the rows that were finished, and what they are held against.
type answer struct {
	*request
	rows      []*row
	measured  []comparison
	predicted []prediction
	unknown   []string // published cases of which it is not known how they were attached
}

func (a *answer) answer() *experiments.Answer {
	r := experiments.NewReport(name, question)
	if len(a.rows) < a.asked {
		r.CutShort = fmt.Sprintf("%d of %d combinations were counted.", len(a.rows), a.asked)
	}
	most := a.dearest()
	r.Headline = headline(most)
	r.Answer = a.paragraphs(most)
	r.Sheets = []experiments.Sheet{a.mostSheet(), partSheet(most), a.predictedSheet()}
	r.Measured = []string{
		"Rounds, stores, records walked, entries copied, allocations, changes of the list and waits: counted, exactly.",
		"Functions are the first ones of a table of 50,000 whose addresses ascend, attached one after the other and detached in the same order.",
	}
	r.Modelled = []string{
		"All times. A round, a store, a comparison and a wait for all tasks take what the calibration of the row says.",
		fmt.Sprintf("Assumed orders of magnitude, which nobody is known to have published: %g ns to look at a record, %g ns for an entry of a hash, %g ns for an allocation, %g us to generate a trampoline.",
			attachcost.Assumed.Walk, attachcost.Assumed.Entry, attachcost.Assumed.Allocate, attachcost.Assumed.Image/1e3),
		"Rows beyond the largest published number of functions of their way are extrapolations (column extrapolated).",
		"What happens in user space, loading of programs, lookups of symbols and work after the last call are left out.",
	}
	r.Beside, r.Notes = a.beside(), a.notes()
	return experiments.NewAnswer(name, r, partChart(most).Picture(),
		results.Document{Name: "growth.svg", Write: func(w io.Writer) error { return plots.WriteSVG(w, a.growth().Picture()) }},
		results.Document{Name: "growth.png", Write: func(w io.Writer) error { return plots.WritePNG(w, a.growth().Picture()) }},
		document("measured.csv", func() (results.Table, error) { return measuredTable(a.measured) }),
		document("predicted.csv", func() (results.Table, error) { return predictedTable(a.predicted) }))
}

func document(name string, table func() (results.Table, error)) results.Document {
	return results.Document{Name: name, Write: func(w io.Writer) error {
		t, err := table()
		if err != nil {
			return err
		}
		return results.WriteCSV(w, t)
	}}
}

// both is attaching and detaching of the same functions.
type both struct{ on, off *row }

func (b both) seconds() float64 { return b.on.seconds() + b.off.seconds() }

// pairs are those of the most functions that were counted, in the order of rows.
func (a *answer) pairs() (out []both) {
	n := int64(0)
	for _, r := range a.rows {
		n = max(n, r.counts.Functions)
	}
	for i := 0; i+1 < len(a.rows); i += 2 { // jobs come in pairs
		if a.rows[i].counts.Functions == n {
			out = append(out, both{a.rows[i], a.rows[i+1]})
		}
	}
	return out
}

// dearest is the pair that takes longest; nil rows if there is none.
func (a *answer) dearest() (most both) {
	for _, b := range a.pairs() {
		if most.on == nil || b.seconds() > most.seconds() {
			most = b
		}
	}
	return most
}

func headline(b both) string {
	if b.on == nil {
		return ""
	}
	return fmt.Sprintf("On %s, attaching %s functions by %s would take %s, and detaching them %s, of which %s is waiting for grace periods (modelled)",
		b.on.kernel.Name, plots.Thousands(float64(b.on.counts.Functions)), b.on.way.Name, duration(b.on.seconds()), duration(b.off.seconds()), duration(b.off.part("grace periods").NS/1e9))
}

// part is one of a row's parts.
func (r *row) part(name string) attachcost.Part {
	for _, p := range r.parts {
		if p.Name == name {
			return p
		}
	}
	return attachcost.Part{}
}

// duration prints seconds for people.
func duration(s float64) string {
	switch {
	case s >= 120:
		return fmt.Sprintf("%.3g minutes", s/60)
	case s >= 0.1:
		return fmt.Sprintf("%.3g s", s)
	}
	return fmt.Sprintf("%.3g ms", 1e3*s)
}

func (a *answer) paragraphs(most both) (out []string) {
	if most.on == nil {
		return nil
	}
	if n := most.off.counts.Waits; n > 1 {
		out = append(out, fmt.Sprintf("Minutes are waits: %s detaches, each of an ops that may be freed, wait one after the other until every task has scheduled. An ops that is static is never freed, and one that traces all functions waits once.", plots.Thousands(float64(n))))
	}
	out = append(out, "What grows with the square when functions are attached one by one: each call walks over all records, several times, and makes every entry of the table of direct calls anew. Rounds grow in proportion: three a call instead of three a batch of 256, and one or more for each trampoline.")
	var rest []string
	for _, b := range a.pairs() {
		if b.on.kernel == most.on.kernel && b.on != most.on {
			rest = append(rest, fmt.Sprintf("%s %s and %s", b.on.way.Name, duration(b.on.seconds()), duration(b.off.seconds())))
		}
	}
	if len(rest) > 0 {
		out = append(out, fmt.Sprintf("The other ways of %s, attaching and detaching as many: %s.", most.on.kernel.Name, strings.Join(rest, "; ")))
	}
	return out
}

// mostSheet is what every way takes for the most functions.
func (a *answer) mostSheet() experiments.Sheet {
	s := experiments.Sheet{Title: "What each way takes for the most functions: attaching, detaching", Columns: []string{"kernel", "way", "ops", "calls", "rounds", "records walked", "entries copied", "grace periods", "modelled time", "calibration"}}
	for _, b := range a.pairs() {
		on, off := &b.on.counts, &b.off.counts
		s.Rows = append(s.Rows, []string{b.on.kernel.Name, b.on.way.Name, fmt.Sprint(on.Ops), fmt.Sprint(on.Calls), two(on.AllRounds(), off.AllRounds()),
			two(on.Walked, off.Walked), two(on.Copied, off.Copied), two(on.Waits, off.Waits), duration(b.on.seconds()) + ", " + duration(b.off.seconds()), b.on.machine.Name})
	}
	return s
}

func two(a, b int64) string { return fmt.Sprintf("%d, %d", a, b) }

// partSheet is where the time of the dearest goes.
func partSheet(b both) experiments.Sheet {
	if b.on == nil {
		return experiments.Sheet{Title: "Where the time goes", Columns: []string{"part"}}
	}
	s := experiments.Sheet{Title: fmt.Sprintf("Where the time of %s on %s goes, %d functions", b.on.way.Name, b.on.kernel.Name, b.on.counts.Functions),
		Columns: []string{"part", "number, attaching", "modelled", "number, detaching", "modelled"}}
	for i, p := range b.on.parts {
		q := b.off.parts[i]
		s.Rows = append(s.Rows, []string{p.Name, fmt.Sprint(p.Count), duration(p.NS / 1e9), fmt.Sprint(q.Count), duration(q.NS / 1e9)})
	}
	return s
}

func (a *answer) predictedSheet() experiments.Sheet {
	s := experiments.Sheet{Title: "Published times, and what models predict", Columns: []string{"case", "direction", "functions", "model", "fitted to", "published (s)", "predicted (s)", "error"}}
	for i := range a.predicted {
		p := &a.predicted[i]
		s.Rows = append(s.Rows, []string{p.what, p.direction, fmt.Sprint(p.functions), p.how, p.fitted, fmt.Sprintf("%.4g", p.published), fmt.Sprintf("%.4g", p.predicted), fmt.Sprintf("%+.1f %%", p.errorPercent())})
	}
	return s
}

// beside is the rounds of real kernels: single readings, and formulas for 1000
// functions.
func (a *answer) beside() (out []experiments.Beside) {
	for i := range a.measured {
		c := &a.measured[i]
		kind := "formula"
		if c.reading {
			kind = "reading"
		}
		if !c.reading && c.functions != 1000 {
			continue
		}
		out = append(out, experiments.Beside{
			What: fmt.Sprintf("%s, %s, %s of %d: rounds by %s", c.kernel, c.way, c.direction, c.functions, kind), Published: float64(c.measured), Ours: float64(c.model), Exact: true, Source: c.source,
		})
	}
	return out
}

func (a *answer) notes() (out []string) {
	same, readings := 0, []string{}
	for i := range a.measured {
		c := &a.measured[i]
		if c.difference() == 0 {
			same++
		} else {
			readings = append(readings, fmt.Sprintf("%s %s of %d: %d, model %d", c.way, c.direction, c.functions, c.measured, c.model))
		}
	}
	out = append(out, fmt.Sprintf("Of %d numbers of rounds, %d are the model's exactly.", len(a.measured), same))
	if len(readings) > 0 {
		out = append(out, "The others: "+strings.Join(readings, "; ")+". They are single readings that lie above the formula found for the same kernel; a wakeup in the background, or one flush more, would explain either.")
	}
	var quick []string
	for i := range a.predicted {
		if p := &a.predicted[i]; p.direction == published.Detach && p.fitted != "" && p.functions > 1 && p.published < statedWait {
			quick = append(quick, fmt.Sprintf("%s (%g s)", p.what, p.published))
		}
	}
	if len(quick) > 0 {
		out = append(out, "Detached in less than one wait of the calibrations: "+strings.Join(quick, "; ")+". A grace period was shorter there.")
	}
	if len(a.unknown) > 0 {
		out = append(out, "Published cases of which it is not known how they were attached, so that nothing predicts them: "+strings.Join(a.unknown, "; ")+".")
	}
	return append(out, "The machines and kernels of the published times are not named, or are older than the kernels counted here. kprobe_multi's two cases differ by a factor of three in time per function: what lies between (another machine, another kernel, sorted lookups of symbols) is not in the figures, so that neither predicts the other.")
}

// partChart is the parts of the dearest.
func partChart(b both) *plots.Chart {
	c := &plots.Chart{Title: "Nothing was counted", X: plots.Axis{Label: "modelled time (s)", Log: true}, Y: plots.Axis{Names: []string{}}}
	if b.on == nil {
		return c
	}
	c.Title = fmt.Sprintf("%s functions one ops at a time: %s of %s are waits", plots.Thousands(float64(b.on.counts.Functions)), duration(b.off.part("grace periods").NS/1e9), duration(b.seconds()))
	if b.on.counts.Ops == 1 {
		c.Title = fmt.Sprintf("%s functions take %s", plots.Thousands(float64(b.on.counts.Functions)), duration(b.seconds()))
	}
	c.Subtitle = fmt.Sprintf("%s on %s, machine %s; counts are exact, times modelled.", b.on.way.Name, b.on.kernel.Name, b.on.machine.Name)
	on, off := plots.Series{Name: published.Attach, Kind: plots.Lying}, plots.Series{Name: published.Detach, Kind: plots.Lying}
	for i, p := range b.on.parts {
		q := b.off.parts[i]
		c.Y.Names = append(c.Y.Names, p.Name)
		for _, side := range []struct {
			to *plots.Series
			ns float64
		}{{&on, p.NS}, {&off, q.NS}} {
			if side.ns > 0 {
				side.to.X, side.to.Y = append(side.to.X, side.ns/1e9), append(side.to.Y, float64(i))
				side.to.Labels = append(side.to.Labels, duration(side.ns/1e9))
			}
		}
	}
	c.Series = []plots.Series{on, off}
	return c
}

// growth is time against functions, attaching and detaching, of each way of the
// dearest's kernel.
func (a *answer) growth() *plots.Chart {
	c := &plots.Chart{Title: "Only ways with few ops grow slowly", X: plots.Axis{Label: "functions", Log: true}, Y: plots.Axis{Label: "modelled time to attach and detach (s)", Log: true}}
	most := a.dearest()
	if most.on == nil {
		return c
	}
	c.Subtitle = fmt.Sprintf("%s, machine %s; times modelled.", most.on.kernel.Name, most.on.machine.Name)
	place := map[string]int{}
	for i := 0; i+1 < len(a.rows); i += 2 {
		b := both{a.rows[i], a.rows[i+1]}
		if b.on.kernel != most.on.kernel {
			continue
		}
		n, ok := place[b.on.way.Name]
		if !ok {
			n = len(c.Series)
			place[b.on.way.Name] = n
			c.Series = append(c.Series, plots.Series{Name: b.on.way.Name})
		}
		c.Series[n].X, c.Series[n].Y = append(c.Series[n].X, float64(b.on.counts.Functions)), append(c.Series[n].Y, b.seconds())
	}
	return c
}
