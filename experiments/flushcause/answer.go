package flushcause

import (
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/results/plots"
	"github.com/textpoke/textpoke/sched"
)

// answer is the rows that were finished.
type answer struct {
	sources int // asked about
	buffers []sched.Buffer
	rows    []row
}

// of are the rows of one source in one order.
func (a *answer) of(source string, order sched.Ordering) (out []*row) {
	for i := range a.rows {
		if a.rows[i].source == source && a.rows[i].Order == order {
			out = append(out, &a.rows[i])
		}
	}
	return out
}

// names are the sources, in order.
func (a *answer) names() (out []string) {
	for i := range a.rows {
		if !slices.Contains(out, a.rows[i].source) {
			out = append(out, a.rows[i].source)
		}
	}
	return out
}

func (a *answer) answer() *experiments.Answer {
	r := experiments.NewReport(name, question)
	if want := a.sources * len(orders) * len(a.buffers); len(a.rows) < want {
		r.CutShort = fmt.Sprintf("%d of %d combinations were counted.", len(a.rows), want)
	}
	r.Headline = a.headline()
	r.Answer = []string{
		"Each batch costs three rounds, whatever closed it. The vector is flushed before a patch is queued, so that an address that is " +
			"lower than the last closes the batch however many slots are left: with a dynamic vector nothing else does.",
	}
	r.Sheets = append(r.Sheets, a.saving(), a.causes())
	r.Measured = []string{
		"Batches and rounds, counted exactly from the plan of one update that enables every record. Nothing is executed.",
		"A random order is one of many: another --seed gives another number, near half as many breaks as there are records.",
	}
	r.Modelled = []string{
		"Protocol breakpoint everywhere. Linux queues patches in a vector on x86_64 only: for the tables of other instruction sets the rows say what their order would cost with that protocol.",
	}
	r.Beside = a.beside()
	if len(r.Beside) > 0 {
		r.Notes = []string{"The flushes of 2019 were counted on another kernel, Linux 5.4-rc1 in a virtual machine, and published as \"250+\": what can agree is how many functions a kernel has."}
	}
	return experiments.NewAnswer(name, r, a.chart().Picture())
}

// dearest is the row, of those in table order, whose sort would save most.
func (a *answer) dearest() (out *row) {
	for i := range a.rows {
		if r := &a.rows[i]; r.Order == sched.Table && (out == nil || r.saved() > out.saved()) {
			out = r
		}
	}
	return out
}

func (a *answer) headline() string {
	d := a.dearest()
	if d == nil {
		return "Nothing was counted"
	}
	if d.saved() == 0 {
		return "As they stand, these tables cost no round more than sorted ones"
	}
	say := func(r *row) string {
		return fmt.Sprintf("%d of the %d rounds of %s (vector %s)", r.saved(), r.Rounds, r.source, r.Buffer)
	}
	if drawn := a.drawnTable(); drawn != d && drawn.saved() > 0 {
		return "One sort before queueing saves " + say(drawn) + ", and " + say(d)
	}
	return "One sort before queueing saves " + say(d)
}

// saving is what one sort would save each table as it stands.
func (a *answer) saving() experiments.Sheet {
	s := experiments.Sheet{Title: "What one sort would save", Columns: []string{"table", "records", "breaks"}}
	for _, b := range a.buffers {
		s.Columns = append(s.Columns, "rounds with "+b.String(), "saved")
	}
	for _, name := range a.names() {
		line := []string{name}
		for i, r := range a.of(name, sched.Table) {
			if i == 0 {
				line = append(line, fmt.Sprint(r.Patches), fmt.Sprint(r.breaks()))
			}
			line = append(line, fmt.Sprint(r.Rounds), fmt.Sprint(r.saved()))
		}
		for len(line) < len(s.Columns) {
			line = append(line, "")
		}
		s.Rows = append(s.Rows, line)
	}
	return s
}

// breaks is how often an address of the table is lower than the one before it.
func (r *row) breaks() (n int) {
	for i := 1; i < r.Table.Len(); i++ {
		if r.Table.Addr(i) < r.Table.Addr(i-1) {
			n++
		}
	}
	return n
}

// causes is what closed the batches, by order.
func (a *answer) causes() experiments.Sheet {
	s := experiments.Sheet{Title: "What closes batches", Columns: []string{"table", "order", "buffer", "full", "order", "final", "rounds"}}
	for i := range a.rows {
		r := &a.rows[i]
		s.Rows = append(s.Rows, []string{
			r.source, r.Order.String(), r.Buffer.String(), fmt.Sprint(r.FlushFull), fmt.Sprint(r.FlushOrder), fmt.Sprint(r.FlushFinal), fmt.Sprint(r.Rounds),
		})
	}
	return s
}

// beside holds the number of full vectors against what was seen in 2019.
func (a *answer) beside() (out []experiments.Beside) {
	for i := range a.rows {
		r := &a.rows[i]
		if r.Arch.Traits().BreakpointLen < r.Arch.Traits().FetchLen && r.Order == sched.Table && r.Buffer.Slots == 170 && r.Table.Arch() != "" {
			out = append(out, experiments.Beside{
				What: "batches closed because 170 slots were full, " + r.source, Published: 250, Ours: float64(r.FlushFull),
				Source: "Bristot de Oliveira, linux-kernel, 2019-10-02: \"250+ intermediate text_poke_finish() because of a full buffer\"",
			})
		}
	}
	return out
}

// drawnTable is the row whose table is drawn: the dearest of a real kernel, or else
// the dearest.
func (a *answer) drawnTable() (out *row) {
	for i := range a.rows {
		r := &a.rows[i]
		if r.Order == sched.Table && r.Table.Arch() != "" && (out == nil || r.saved() > out.saved()) {
			out = r
		}
	}
	if out == nil {
		return a.dearest()
	}
	return out
}

// chart is the rounds of one table: an order a series.
func (a *answer) chart() *plots.Chart {
	c := &plots.Chart{
		Title: "Address order decides the rounds, and one sort makes it free",
		X:     plots.Axis{Label: "rounds (interrupts per CPU)", Log: true}, Y: plots.Axis{Label: "slots of the vector", Names: []string{}},
	}
	d := a.drawnTable()
	if d == nil {
		return c
	}
	c.Subtitle = fmt.Sprintf("%s: %s records, queued in four orders", d.source, plots.Thousands(float64(d.Patches)))
	for _, b := range a.buffers {
		c.Y.Names = append(c.Y.Names, b.String())
	}
	for _, order := range orders {
		s := plots.Series{Name: order.String(), Kind: plots.Lying}
		for i, r := range a.of(d.source, order) {
			s.X, s.Y = append(s.X, float64(r.Rounds)), append(s.Y, float64(i))
			s.Labels = append(s.Labels, plots.Thousands(float64(r.Rounds)))
		}
		c.Series = append(c.Series, s)
	}
	return c
}
