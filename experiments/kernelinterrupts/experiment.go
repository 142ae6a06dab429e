package kernelinterrupts

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/plots"
)

// Experiment is the question.
var Experiment = experiments.Legacy{
	Name: Name, Question: Question,
	Short: "does the ledger of a tracer's interrupts predict what real kernels take? model against measured, row by row",
	About: "kernel-interrupts holds what a kernel sends when a tracer is switched, cause by cause, against what the\n" +
		"CPUs of real kernels took: a row for every reading of every interrupt row, also of those that nothing\n" +
		"models. With --out it also writes summary.csv, a row for each toggle over receivers and repetitions.",
	Examples: []string{"kernel-interrupts --out kernel-interrupts", "kernel-interrupts --format csv"},
	Table:    RowsTable,
	Flags:    func(*pflag.FlagSet) experiments.LegacyRun { return run },
}.Experiment()

func run(ctx context.Context, lab *experiments.Lab) (*experiments.Answer, error) {
	measured, err := ledger.Measurements()
	if err != nil {
		return nil, err
	}
	a, err := Compare(ctx, measured)
	if err != nil {
		return nil, err
	}
	rows, summary, err := a.Filled()
	if err != nil {
		return nil, err
	}
	for _, row := range rows.Rows {
		cells := make([]any, len(row))
		for i, v := range row {
			cells[i] = v
		}
		if err := lab.Add(cells...); err != nil {
			return nil, err
		}
	}
	chart := a.chart().Picture()
	return &experiments.Answer{
		Headline: chartTitle(a),
		Documents: []results.Document{
			{Name: Name + ".svg", Write: func(w io.Writer) error { return plots.WriteSVG(w, chart) }},
			{Name: Name + ".png", Write: func(w io.Writer) error { return plots.WritePNG(w, chart) }},
			{Name: "report.md", Write: a.Report},
			{Name: "summary.csv", Write: func(w io.Writer) error { return results.WriteCSV(w, summary) }},
		},
	}, nil
}

// chart places every toggle by what the ledger says and what the quietest receiver
// took.
func (a *Answer) chart() *plots.Chart {
	c := &plots.Chart{
		Title:    chartTitle(a),
		Subtitle: "Median over repetitions, of the receiver that took fewest; one mark a toggle and row of interrupts.",
		X:        plots.Axis{Label: "interrupts by the ledger", Log: true},
		Y:        plots.Axis{Label: "interrupts measured", Log: true},
	}
	place := map[string]int{}
	high := 1.0
	for i := range a.Summaries {
		s := &a.Summaries[i]
		if !s.Load.Switches() {
			continue
		}
		name := fmt.Sprintf("%s, %d CPUs", s.Kernel.Name(), s.CPUs)
		if _, ok := place[name]; !ok {
			place[name] = len(c.Series)
			c.Series = append(c.Series, plots.Series{Name: name, Kind: plots.Points})
		}
		to := &c.Series[place[name]]
		to.X, to.Y = append(to.X, float64(s.Model)), append(to.Y, s.Quietest)
		high = max(high, float64(s.Model), s.Quietest)
	}
	c.Series = append(c.Series, plots.Series{Name: "the same", X: []float64{1, high}, Y: []float64{1, high}})
	return c
}

// chartTitle is the answer in one line.
func chartTitle(a *Answer) string {
	var r report
	a.toggles(&r)
	return fmt.Sprintf("The ledger is what quiet kernels take, exactly, in %d of %d cases", r.Exact, r.Comparable)
}
