package refcount

import (
	"fmt"
	"strconv"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/results/plots"
)

// answer is the updates that were carried out.
type answer struct {
	asked int
	rows  []*row
}

func (a *answer) answer() *experiments.Answer {
	r := experiments.NewReport(name, question)
	if len(a.rows) < a.asked {
		r.CutShort = fmt.Sprintf("%d of %d updates were carried out.", len(a.rows), a.asked)
	}
	r.Headline = a.headline()
	r.Answer = []string{
		"Everybody who runs into a breakpoint wants the counter's cache line twice, and one CPU has it at a time. Taking a reference is worse than one visit: " +
			"atomic_inc_not_zero compares and exchanges, and whoever comes in or leaves between two visits of another one spoils that one's attempt. " +
			"With n handlers waiting in turn, each lap of n visits lets at most one of them in, so that all n need some n x n visits. " +
			"Interrupts are off meanwhile: the round that would end the phase waits for the last of them, the breakpoints stay, and those who have got through run into the next one.",
		a.onset(),
	}
	r.Sheets = append(r.Sheets, a.growth())
	if s := a.pairs(); len(s.Rows) > 0 {
		r.Sheets = append(r.Sheets, s)
	}
	if s := a.orders(); len(s.Rows) > 1 {
		r.Sheets = append(r.Sheets, s)
	}
	r.Modelled = a.modelled()
	for _, row := range a.told() {
		if row.ratio() > 0 {
			r.Beside = append(r.Beside, experiments.Beside{
				What: row.what() + ", us", Published: row.published.UpdateUS.Value, Ours: float64(row.Modelled.Update) / 1000, Source: row.published.Source,
			})
		}
	}
	if len(r.Beside) > 0 {
		r.Notes = a.notes()
	}
	return experiments.NewAnswer(name, r, a.chart().Picture())
}

// what says which update it is.
func (r *row) what() string {
	s := fmt.Sprintf("%s, %d entries, %d CPUs", r.counter(), r.entries, len(r.Roles))
	if r.shared() {
		s += ", " + percent(r.outOfTurn) + " out of turn"
	}
	return s
}

func (r *row) counter() string {
	switch r.refs {
	case int3.SharedRef:
		return "shared counter"
	case int3.PerCPU:
		return "counter for each CPU"
	}
	return "no counter"
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'g', 4, 64) + " %" }

// micros prints a time in microseconds.
func micros(ns float64) string {
	us := ns / 1000
	switch {
	case us >= 1e6:
		return strconv.FormatFloat(us/1e6, 'f', 2, 64) + " s"
	case us >= 1e4:
		return strconv.FormatFloat(us/1e3, 'f', 0, 64) + " ms"
	}
	return strconv.FormatFloat(us, 'f', 0, 64) + " us"
}

// worst is the row with a shared counter that takes longest, and the one that differs
// from it by its counter alone.
func (a *answer) worst() (worst, other *row) {
	for _, r := range a.rows {
		if r.shared() && (worst == nil || r.Modelled.Update > worst.Modelled.Update) {
			worst = r
		}
	}
	for _, r := range a.rows {
		if worst != nil && r.refs == int3.PerCPU && r.machine.String() == worst.machine.String() && r.entries == worst.entries {
			other = r
		}
	}
	return worst, other
}

func (a *answer) headline() string {
	worst, other := a.worst()
	switch {
	case len(a.rows) == 0:
		return "Nothing was carried out"
	case worst == nil:
		return "No update had a shared counter"
	case other == nil:
		return fmt.Sprintf("Modelled with calibration %s, %d CPUs that share a counter need %s for a batch of %d", worst.machine.Name, len(worst.Roles),
			micros(float64(worst.Modelled.Update)), worst.entries)
	}
	return fmt.Sprintf("Modelled with calibration %s, %d CPUs that share a counter need %s for a batch of %d, and %s with a counter for each", worst.machine.Name, len(worst.Roles),
		micros(float64(worst.Modelled.Update)), worst.entries, micros(float64(other.Modelled.Update)))
}

// onset is from how many CPUs on handlers come faster than the line serves them.
func (a *answer) onset() string {
	worst, _ := a.worst()
	if worst == nil || worst.calls == 0 {
		return "Where nobody calls what is patched, nobody waits."
	}
	c := worst.machine.Costs
	visits := 2 * (c.LineTransfer + c.Reference)
	return fmt.Sprintf("It begins where handlers come faster than the line serves them: two visits of %s ns, at %s calls a second and CPU, are more than all of its time from %.0f CPUs on. "+
		"Below that, and with batches that are called less, a shared counter costs next to nothing.", number(visits/2), number(worst.calls), 1e9/(visits*worst.calls))
}

func number(v float64) string { return plots.Thousands(float64(int64(v + 0.5))) }

// told are the rows that are shown one by one: with a shared counter those in the
// order of waiting that makes most of it, which orders compares with the others.
func (a *answer) told() (out []*row) {
	worst, _ := a.worst()
	for _, r := range a.rows {
		if !r.shared() || r.outOfTurn == worst.outOfTurn {
			out = append(out, r)
		}
	}
	return out
}

// growth is an update's time against CPUs, a machine a line.
func (a *answer) growth() experiments.Sheet {
	s := experiments.Sheet{Title: "Update time against CPUs, modelled", Columns: []string{"calibration", "CPUs"}}
	line, column := map[string]int{}, map[string]int{}
	for _, r := range a.told() {
		if _, ok := column[r.series()]; !ok {
			column[r.series()] = len(s.Columns)
			s.Columns = append(s.Columns, r.series())
		}
	}
	for _, r := range a.told() {
		i, ok := line[r.machine.String()]
		if !ok {
			i, line[r.machine.String()] = len(s.Rows), len(s.Rows)
			s.Rows = append(s.Rows, make([]string, len(s.Columns)))
			s.Rows[i][0], s.Rows[i][1] = r.machine.Name, fmt.Sprint(len(r.Roles))
		}
		s.Rows[i][column[r.series()]] = micros(float64(r.Modelled.Update))
	}
	return s
}

// pairs are the published figures, and which of them the model was told.
func (a *answer) pairs() experiments.Sheet {
	s := experiments.Sheet{Title: "What was fitted, and what predicted", Columns: []string{"update", "published", "modelled", "ratio", "what the model knew of it"}}
	for _, r := range a.told() {
		if r.ratio() == 0 {
			continue
		}
		knew := "fitted: the calibration's jitter and store come from it"
		if r.shared() {
			knew = "predicted: nothing"
		}
		s.Rows = append(s.Rows, []string{r.what(), micros(r.published.UpdateUS.Value * 1000), micros(float64(r.Modelled.Update)), strconv.FormatFloat(r.ratio(), 'f', 3, 64), knew})
	}
	return s
}

// orders is what the order of waiting makes of the worst update.
func (a *answer) orders() experiments.Sheet {
	worst, _ := a.worst()
	s := experiments.Sheet{Columns: []string{"out of turn", "update", "traps", "update per round"}}
	for _, r := range a.rows {
		if worst == nil || !r.shared() || r.machine.String() != worst.machine.String() || r.entries != worst.entries {
			continue
		}
		s.Title = fmt.Sprintf("What the order of waiting makes of it (%d entries, %d CPUs)", r.entries, len(r.Roles))
		s.Rows = append(s.Rows, []string{percent(r.outOfTurn), micros(float64(r.Modelled.Update)), fmt.Sprint(r.Traps), micros(float64(r.Modelled.Update) / float64(max(r.Rounds, 1)))})
	}
	return s
}

func (a *answer) modelled() []string {
	return []string{
		"All times. Updates are those of the timed engine, and rest on the calibration that each row names.",
		"The counter's cache line: one CPU has it, the others wait; a visit takes one transfer, whoever had it before. Sockets, siblings that share a core, and reads that keep copies are left out. " +
			"So is what else stood in the same line and was read by each handler (bp_desc's vec and nr_entries).",
		"The order of waiting, of which nobody is known to have measured anything: in turn, but for a share of visits. It is an assumption that nothing was fitted to, and the report shows what others would give.",
		"The load: patched functions are called at random by each CPU but the patcher's; how they share the calls (by Zipf's law) makes little difference, since all are in the batch. " +
			"50 million programs a second were published for the whole machine, and 164 patches in the batch; how often the two entries of the small batch were called was not, so that each counts as one of the 164.",
		"Functions behind the breakpoints take no time of their own, and nothing but this update interrupts anybody.",
	}
}

// notes are what to make of the errors.
func (a *answer) notes() []string {
	out := []string{"The rows with a counter for each CPU are those that the calibration was made from (two equations, for a round and a store): their error says only that the engine adds up. " +
		"The rows with a shared counter are predictions."}
	worst, _ := a.worst()
	if worst == nil || worst.ratio() == 0 {
		return out
	}
	c := worst.machine.Costs
	return append(out,
		fmt.Sprintf("Of %s the model gives %.2f times the published figure. At that load nearly all of it is visits of the line: a transfer of about %.0f ns would give the figure, where the calibration assumes %.0f. "+
			"Lines between two CPUs of such machines take 108 to 197 ns when nobody else wants them (see the calibration); what they take with hundreds in the queue is not known, nor in which order these are served. "+
			"The model has the shape and the order of magnitude: it explains where seconds come from, not how many there are.",
			worst.what(), worst.ratio(), (c.LineTransfer+c.Reference)/worst.ratio()-c.Reference, c.LineTransfer),
		"In the small batch no difference between the counters can be seen here; the published 324 us with a shared and 519 us with per-CPU counters differ the other way round, as two single measurements of rounds that took 108 to 173 us.",
	)
}

// chart is update time against CPUs.
func (a *answer) chart() *plots.Chart {
	c := &plots.Chart{
		Title: "One counter for all CPUs turns microseconds into a second",
		X:     plots.Axis{Label: "CPUs", Log: true}, Y: plots.Axis{Label: "time of one update (us)", Log: true},
	}
	worst, _ := a.worst()
	if worst == nil {
		return c
	}
	c.Subtitle = fmt.Sprintf("modelled, calibration %s; %s calls of each patched function a second and CPU", worst.machine.Name, number(worst.calls/float64(worst.entries)))
	c.Series = []plots.Series{{Name: "published", Kind: plots.Points}}
	at := map[string]int{}
	for _, r := range a.rows { // other orders of waiting of the worst batch alone
		if r.machine.Name != worst.machine.Name || r.shared() && r.entries != worst.entries && r.outOfTurn != worst.outOfTurn {
			continue
		}
		key := r.series()
		i, ok := at[key]
		if !ok {
			i, at[key] = len(c.Series), len(c.Series)
			c.Series = append(c.Series, plots.Series{Name: key})
		}
		s := &c.Series[i]
		s.X, s.Y = append(s.X, float64(len(r.Roles))), append(s.Y, float64(r.Modelled.Update)/1000)
		if r.ratio() > 0 && (!r.shared() || r.outOfTurn == worst.outOfTurn) {
			known := &c.Series[0]
			known.X, known.Y = append(known.X, float64(len(r.Roles))), append(known.Y, r.published.UpdateUS.Value)
		}
	}
	if worst.ratio() > 0 {
		c.Notes = append(c.Notes, plots.Note{X: 0.93 * float64(len(worst.Roles)), Y: worst.published.UpdateUS.Value, Right: true,
			Text: "published: " + micros(worst.published.UpdateUS.Value*1000) + " shared, on " + fmt.Sprint(len(worst.Roles)) + " CPUs"})
	}
	return c
}

// series is what the row's line is called.
func (r *row) series() string {
	s := fmt.Sprintf("per CPU, %d entries", r.entries)
	if r.shared() {
		s = fmt.Sprintf("shared, %d, %s out of turn", r.entries, percent(r.outOfTurn))
	}
	return s
}
