package ipiburst

import (
	"fmt"
	"io"
	"strings"

	"gonum.org/v1/plot/vg"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/interrupts"
	"github.com/textpoke/textpoke/results/plots"
)

// answer is the rows that were finished, and the measurements taken apart.
type answer struct {
	*request
	asked    int
	rows     []*row
	measured []*measurement
}

func (a *answer) answer() *experiments.Answer {
	r := experiments.NewReport(name, question)
	if len(a.rows) < a.asked {
		r.CutShort = fmt.Sprintf("%d of %d combinations were counted.", len(a.rows), a.asked)
	}
	r.Headline = a.headline()
	r.Answer = []string{
		"Disabling takes as many rounds for records as enabling: the same sites, in the same batches.",
		a.explanation(),
	}
	r.Sheets = []experiments.Sheet{a.cost(), a.splitSheet()}
	r.Measured = []string{
		"Rounds of the compiled plan of one update of every record, counted; nothing is executed.",
		"Of the published counters: rounds and senders, which follow from the conservation law (interrupts summed over all CPUs are rounds times the other CPUs).",
	}
	r.Modelled = []string{
		"On arm64 and riscv64 breakpoints are a model: their kernels replace one word a site, as native does.",
		"The rest of the batched kernel's rounds is taken to be at most the unbatched kernel's: it did the same beside its records, and wrote through text_poke(), for which no text is made writable and read-only again. " +
			"Without that assumption the most functions stay as they are, and nothing bounds the fewest.",
		"Enabling and disabling change the same functions, in as many batches.",
		"No address out of order closed a batch there, so that all batches but the last were full.",
	}
	r.Beside = a.beside()
	r.Notes = a.notes()
	return experiments.NewAnswer(name, r, a.chart().Picture(),
		results.Document{Name: "interrupts.txt", Write: func(w io.Writer) error { return writeInterrupts(w, a.measured) }},
		results.Document{Name: "split.csv", Write: func(w io.Writer) error {
			t, err := splitTable(a.measured)
			if err != nil {
				return err
			}
			return results.WriteCSV(w, t)
		}})
}

// headline compares the dearest vector with the cheapest protocol of the same
// instruction set.
func (a *answer) headline() string {
	var most, least *row
	for _, r := range a.rows {
		if r.Protocol == poke.Native && r.Buffered && (most == nil || r.Rounds > most.Rounds) {
			most = r
		}
	}
	for _, r := range a.rows {
		if most != nil && r.Arch.Traits().Name == most.Arch.Traits().Name && r.source == most.source && (least == nil || r.Rounds < least.Rounds) {
			least = r
		}
	}
	if most == nil {
		return fmt.Sprintf("%d combinations were counted", len(a.rows))
	}
	return fmt.Sprintf("Each time, %s records cost every CPU %s interrupts with a vector of %s, and %d with one batch",
		plots.Thousands(float64(most.Patches)), plots.Thousands(float64(most.IPIsPerCPU)), most.Buffer, least.IPIsPerCPU)
}

// find is the measurement of a kernel and an action; nil if there is none.
func (a *answer) find(patching, action string) *measurement {
	for _, m := range a.measured {
		if m.Patching == patching && m.Action == action {
			return m
		}
	}
	return nil
}

// explanation says why enabling and disabling differ, as far as that is known.
func (a *answer) explanation() string {
	on, off := a.find(published.OwnBreakpoints, "enable"), a.find(published.OwnBreakpoints, "disable")
	newOn, newOff := a.find(published.Batched, "enable"), a.find(published.Batched, "disable")
	if on == nil || off == nil || newOn == nil || newOff == nil {
		return "The measurements at hand do not have both kernels and both directions, so that nothing is compared."
	}
	return fmt.Sprintf("Why do the two directions of 2019 differ? Three rounds are for records both times with the old scheme; the rest is %d for enabling and %d for disabling, %+d. "+
		"What only enabling does, as far as the kernel's source tells: it makes the tracer's own trampoline, two changes of page attributes (ro, then x) in kernels of that time, and re-aims its call, three rounds: 2, 3 or both, 5. "+
		"Which of them happened is not in the counts. The batched kernel takes %d and %d, the other way round. Taking the old rest off would leave %d and %d rounds for records, which are not as many batches. "+
		"So the rest has changed between the two kernels; no source at hand explains by what.",
		on.rest.Lo, off.rest.Lo, on.rest.Lo-off.rest.Lo, newOn.rounds, newOff.rounds, newOn.rounds-on.rest.Lo, newOff.rounds-off.rest.Lo)
}

func (a *answer) cost() experiments.Sheet {
	s := experiments.Sheet{Title: "What each CPU takes, each time", Columns: []string{"table", "arch", "protocol", "vector", "patches", "batches", "interrupts per CPU"}}
	for _, r := range a.rows {
		buffer, flushes := "", ""
		if r.Buffered {
			buffer, flushes = r.Buffer.String(), fmt.Sprint(r.Flushes)
		}
		s.Rows = append(s.Rows, []string{r.source, r.Arch.Traits().Name, r.Protocol, buffer, fmt.Sprint(r.Patches), flushes, fmt.Sprint(r.IPIsPerCPU)})
	}
	return s
}

func (a *answer) splitSheet() experiments.Sheet {
	s := experiments.Sheet{Title: "The measurements of 2019, taken apart", Columns: []string{"measurement", "rounds", "for records", "the rest", "batches", "functions"}}
	for _, m := range a.measured {
		functions := ""
		if m.functions.Hi > 0 {
			functions = interval(m.functions)
		}
		s.Rows = append(s.Rows, []string{m.Name(), fmt.Sprint(m.rounds), interval(m.records), interval(m.rest), interval(m.batches), functions})
	}
	return s
}

// interval prints a range, or the one number that it is.
func interval(r interrupts.Range) string {
	if r.Lo == r.Hi {
		return fmt.Sprint(r.Lo)
	}
	return fmt.Sprintf("%d to %d", r.Lo, r.Hi)
}

// prose is what the mail says of its own counters.
var prose = map[string]float64{
	published.OwnBreakpoints + ", enable": 120, published.OwnBreakpoints + ", disable": 151,
	published.Batched + ", enable": 657, published.Batched + ", disable": 661,
}

func (a *answer) beside() (out []experiments.Beside) {
	if a.file != "" {
		return nil // the mail says nothing of somebody else's counters
	}
	for _, m := range a.measured {
		out = append(out, experiments.Beside{
			What: m.Name() + ": interrupts per CPU, in the mail's words, and rounds by its counters", Published: prose[m.Name()], Ours: float64(m.rounds),
			Exact: true, Source: m.Counts[0].Source,
		})
	}
	for _, r := range a.rows {
		if r.source == generated && r.Protocol == poke.Native && r.Buffer.Slots == 256 && r.Buffered {
			out = append(out, experiments.Beside{
				What: "45,000 functions in vectors of 256: rounds", Published: 528, Ours: float64(r.Rounds), Exact: true,
				Source: "(records / TP_VEC_MAX) x 3, Bristot de Oliveira, linux-kernel, 2019-10-04: 176 batches",
			})
		}
	}
	return out
}

func (a *answer) notes() []string {
	if a.file != "" {
		return nil
	}
	return []string{
		"The mail's 151 is a slip: its own counters, on all eight CPUs, give 115.",
		"Of another kernel of that time, 5.4, the boot log is known: 34,274 records. In vectors of 170 they make 202 batches and 606 rounds, which lies within the interval and would leave 51 and 55 rounds for the rest.",
	}
}

// chart is what every scheme costs the table that all instruction sets share.
func (a *answer) chart() *plots.Chart {
	c := &plots.Chart{
		Title: "A vector of fixed size costs hundreds of interrupts where three would do", Alone: true,
		X: plots.Axis{Label: "interrupts per CPU, enabling or disabling", Log: true}, Y: plots.Axis{Names: []string{}},
	}
	native := plots.Series{Name: "what the current kernel does", Kind: plots.Lying}
	other := plots.Series{Name: "what it did, or could do", Kind: plots.Lying}
	for _, r := range a.rows {
		if r.source != a.records {
			continue
		}
		c.Subtitle = fmt.Sprintf("%s records", plots.Thousands(float64(r.Patches)))
		to := &other
		if r.Protocol == poke.Native && (!r.Buffered || r.Buffer.Slots == 256) {
			to = &native
		}
		to.X, to.Y = append(to.X, float64(r.IPIsPerCPU)), append(to.Y, float64(len(c.Y.Names)))
		to.Labels = append(to.Labels, plots.Thousands(float64(r.IPIsPerCPU)))
		c.Y.Names = append(c.Y.Names, label(r))
	}
	for _, s := range []plots.Series{native, other} {
		if len(s.X) > 0 {
			c.Series = append(c.Series, s)
		}
	}
	c.Height = vg.Length(32+6*max(len(c.Y.Names), 4)) * vg.Millimeter
	return c
}

// label names a row in the chart.
func label(r *row) string {
	parts := []string{r.Arch.Traits().Name}
	switch {
	case r.Protocol == global:
		parts = append(parts, "breakpoints, one batch")
	case r.Buffered:
		parts = append(parts, "breakpoints, vector "+r.Buffer.String())
	default:
		parts = append(parts, "word by word")
	}
	return strings.Join(parts, ": ")
}
