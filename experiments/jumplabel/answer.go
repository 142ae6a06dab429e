package jumplabel

import (
	"bytes"
	"fmt"
	"io"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sim/timeline"
)

// answer is the rows that were finished.
type answer struct {
	*request
	facts *facts
	rows  []*row

	timeline *timeline.Recorder // of the published key, in events
	events   bytes.Buffer
}

// find is the row of a key; nil if there is none.
func (a *answer) find(m experiments.Calibrated, entries int, w way) *row {
	for _, r := range a.rows {
		if r.machine == m && r.entries == entries && r.name == w.name {
			return r
		}
	}
	return nil
}

// pair is the published key on a machine, one by one and batched.
func (a *answer) pair(m experiments.Calibrated) (slow, fast *row) {
	n := int(a.facts.slow.Entries)
	if slow, fast = a.find(m, n, ways[0]), a.find(m, n, ways[1]); slow == nil || fast == nil {
		return nil, nil
	}
	return slow, fast
}

func (a *answer) answer() *experiments.Answer {
	r := experiments.NewReport(name, question)
	if want := len(a.machines) * len(a.entries) * len(ways); len(a.rows) < want {
		r.CutShort = fmt.Sprintf("%d of %d combinations were finished.", len(a.rows), want)
	}
	r.Headline = a.headline()
	low, high := a.facts.ends()
	f, s := a.facts.fit, a.facts.search
	r.Answer = []string{
		"One by one, every entry takes three rounds; in a batch, all of them together do. Rounds are 3n and 3, whatever the machine.",
		fmt.Sprintf("Two published times, two unknowns: a round of %s us and %s us for what is stored for an entry. The system is determined and no more: it has no residual, and nothing is left to test it with. "+
			"If the times are rounded to their last digit, the round is %s to %s us, and the entry, a small part of a small time, %s to %s us. "+
			"All of the difference is put down to the number of rounds: a round inside a batch is taken to cost what one by itself costs.",
			ns(f.round/1e3), ns(f.entry/1e3), ns(low.round/1e3), ns(high.round/1e3), ns(low.entry/1e3), ns(high.entry/1e3)),
		fmt.Sprintf("A handler that searches n entries takes %s ns and %s ns more for each level of the search, log2 n of them; "+
			"by the comparisons that a binary search makes on average, counted exactly, it is %s ns a comparison. Two points again: they say how much, and not which shape; the shape is from counting.",
			ns(s.one), ns(s.level), ns(s.mean)),
	}
	r.Sheets = []experiments.Sheet{a.switches(), a.handlers()}
	r.Measured = []string{
		"Rounds are counted from the compiled plan, and comparisons from the shape of each index, exactly.",
		"Breakpoints run into are counted while the timed engine executes the plan.",
	}
	r.Modelled = a.modelled()
	r.Beside = a.beside()
	if len(r.Beside) > 0 {
		r.Notes = a.notes()
	}
	out := experiments.NewAnswer(name, r, a.times().Picture())
	out.Documents = append(out.Documents, experiments.Drawn(name+"-handler", a.search().Picture())...)
	if len(a.rows) > 0 {
		if slow, _ := a.pair(a.rows[0].machine); slow != nil {
			out.Documents = append(out.Documents, results.Document{Name: name + ".pftrace", Write: a.writeTimeline})
		}
	}
	out.No = a.differ()
	return out
}

func (a *answer) writeTimeline(w io.Writer) error {
	_, err := w.Write(a.events.Bytes())
	return err
}

func (a *answer) headline() string {
	for _, m := range a.machines {
		if slow, fast := a.pair(m); slow != nil {
			return fmt.Sprintf("A key of %d entries takes %d rounds batched and %d one by one; on %s, modelled, that is %s ms and %s ms",
				slow.entries, fast.counted.Rounds, slow.counted.Rounds, m, ns(fast.update.mean/1e6), ns(slow.update.mean/1e6))
		}
	}
	return fmt.Sprintf("One by one, n entries take %dn rounds; batched, %d", perBatch, perBatch)
}

// differ is a count that is not the formula's, or not the published one.
func (a *answer) differ() error {
	for _, r := range a.rows {
		if want := perBatch * r.batches(r.entries); r.counted.Rounds != want {
			return fmt.Errorf("%d entries %s: %d rounds, not %d", r.entries, r.name, r.counted.Rounds, want)
		}
	}
	return nil
}

func (a *answer) modelled() []string {
	var out []string
	for _, m := range a.machines {
		out = append(out, fmt.Sprintf("Calibration %s (%s), %d CPUs, all busy.", m.Name, m.Machine, m.Online))
	}
	return append(out,
		fmt.Sprintf("All times are modelled. Means of %d switches, each with other delays, with 95 %% intervals.", a.repeat),
		fmt.Sprintf("The calibration %s has its round and its store from the published pair, so that agreeing with it proves the arithmetic and the engine, and not the costs: those rows are marked as fitted. All other rows are predictions.", fitted),
		fmt.Sprintf("Every CPU calls the key's sites %g times a second, all together (--calls): an assumption, which hardly changes times and decides the number of traps.", a.calls),
		"Switching a key also takes locks and walks its entries: not modelled beyond what the calibration has for an entry.",
	)
}

// switches is rounds and times.
func (a *answer) switches() experiments.Sheet {
	s := experiments.Sheet{Title: "Rounds and times", Columns: []string{
		"machine", "entries", "way", "rounds", "by the fit (ms)", "modelled (ms)", "95 % interval", "published (ms)", "error", "basis", "traps",
	}}
	for _, r := range a.rows {
		known := a.facts.of(r.entries, r.counted.Rounds)
		was, off := "-", "-"
		if known.UpdateMS.Known {
			was, off = ns(known.UpdateMS.Value), fmt.Sprintf("%+.1f %%", 100*(r.update.mean/1e6/known.UpdateMS.Value-1))
		}
		s.Rows = append(s.Rows, []string{
			r.machine.String(), fmt.Sprint(r.entries), r.name, fmt.Sprint(r.counted.Rounds), ns(a.facts.fit.update(r.entries, r.counted.Rounds) / 1e6),
			ns(r.update.mean / 1e6), ns(r.update.low/1e6) + " to " + ns(r.update.high/1e6), was, off, r.basis(), ns(r.traps.mean),
		})
	}
	return s
}

// handlers is what a search costs, by each reading of the two published points.
func (a *answer) handlers() experiments.Sheet {
	s := experiments.Sheet{Title: "The handler, by the number of entries that it searches (ns)", Columns: []string{
		"entries", "comparisons, mean", "most", "btree, mean", "by levels", "by the mean", "by the most", "by a btree's mean", "published",
	}}
	for _, n := range a.entries {
		x, at := a.facts.search.handlers(n), stepsOf(n)
		was := "-"
		for _, k := range a.facts.rows {
			if k.HandlerNS.Known && searched(k) == n {
				was = ns(k.HandlerNS.Value)
			}
		}
		s.Rows = append(s.Rows, []string{
			fmt.Sprint(n), fmt.Sprintf("%.3f", at.mean), fmt.Sprint(at.deepest), fmt.Sprintf("%.3f", at.tree),
			ns(x.level), ns(x.mean), ns(x.deepest), ns(x.tree), was,
		})
	}
	return s
}

// beside is the published figures.
func (a *answer) beside() (out []experiments.Beside) {
	for i, m := range a.machines {
		for _, k := range a.facts.rows {
			for _, w := range ways {
				r := a.find(m, int(k.Entries), w)
				if r == nil || k.Rounds != int64(r.counted.Rounds) {
					continue
				}
				if i == 0 { // counts are the same everywhere
					out = append(out, experiments.Beside{What: k.Measurement + ", rounds", Published: float64(k.Rounds), Ours: float64(r.counted.Rounds), Exact: true, Source: k.Source})
				}
				on := fmt.Sprintf("%s (%s)", m, r.basis())
				if k.UpdateMS.Known {
					out = append(out, experiments.Beside{What: k.Measurement + ", time (ms), " + on, Published: k.UpdateMS.Value, Ours: r.update.mean / 1e6, Source: k.Source})
				}
				if k.HandlerNS.Known {
					out = append(out, experiments.Beside{What: k.Measurement + ", handler (ns), " + on, Published: k.HandlerNS.Value, Ours: r.handler(), Source: k.Source})
				}
			}
		}
		if slow, fast := a.pair(m); slow != nil && slow.traps.mean > 0 {
			out = append(out, experiments.Beside{
				What: fmt.Sprintf("breakpoints run into, batched over one by one, %s (prediction)", m), Published: trapsBatched, Ours: fast.traps.mean / slow.traps.mean, Source: a.facts.fast.Source,
			})
		}
	}
	return out
}

// trapsBatched is how many breakpoints were run into when the updates were batched,
// for each before: 10 % fewer, says the cover letter of the series ("x86/jump_label:
// Bound IPIs sent when updating a static key", v6, 2019-06-12).
const trapsBatched = 0.9

// notes say why the handler and the traps come out as they do.
func (a *answer) notes() []string {
	out := []string{a.trapNote()}
	for _, m := range a.machines {
		if _, fast := a.pair(m); fast != nil {
			out = append(out, fmt.Sprintf("The handler here is the comparisons of a binary search among %d entries, %.3f on average, times what %s has for one, %s ns, with both references; "+
				"%s ns a comparison would give the published time.", fast.entries, fast.vector.Mean(), m, ns(m.Costs.Comparison), ns(a.facts.search.mean)))
		}
	}
	return out
}

func (a *answer) trapNote() string {
	note := "The number of traps goes with the time that sites hold breakpoints. In the model a site holds its breakpoint for two rounds either way, and in a batch for the stores of the other entries on top: "
	for _, m := range a.machines {
		if slow, fast := a.pair(m); slow != nil {
			note += fmt.Sprintf("%s us one by one, %s us batched on %s. ", ns(slow.exposure.mean/1e3), ns(fast.exposure.mean/1e3), m)
		}
	}
	return note + "So the model has more traps in a batch, where the series has fewer: it says nothing of what else differed between its runs, and this figure is not explained here."
}
