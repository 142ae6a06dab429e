package migration

import (
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/results/plots"
)

// answer is the measurements that were repeated.
type answer struct {
	asked int
	done  []*measurement
}

func (a *answer) answer() *experiments.Answer {
	r := experiments.NewReport(name, question)
	if len(a.done) < a.asked {
		r.CutShort = fmt.Sprintf("%d of %d measurements were repeated.", len(a.done), a.asked)
	}
	r.Headline = a.headline()
	r.Answer = []string{
		"A round interrupts every online CPU but its sender. With R rounds, of which CPU c sent s, that CPU takes R - s interrupts; summed over N CPUs that is (N - 1) R. " +
			"So the counts alone tell the rounds and who sent them, and a patcher that moves shows as two CPUs that each take fewer than the others.",
	}
	r.Sheets = append(r.Sheets, a.senders())
	r.Measured = []string{
		"Interrupts that each CPU takes on the live machine, where CPUs are goroutines that run traced code meanwhile. Rounds sent and interrupts taken are counted by different sides, and the sum over all CPUs is held against the targets of all rounds.",
	}
	r.Modelled = []string{
		"All rounds are those of one update: three a batch, and one or two at the end where the number is no multiple of three. What else the measured kernel sent them for makes no difference to who takes them.",
		"In which order several CPUs sent is not in the counts; here the one that sent most begins.",
	}
	uneven := a.uneven()
	for _, m := range a.done {
		if m != uneven && uneven != nil {
			r.Beside = append(r.Beside, m.total())
			continue
		}
		for cpu, c := range m.Counts {
			r.Beside = append(r.Beside, experiments.Beside{What: fmt.Sprintf("%s: interrupts of CPU %d", m.Name(), c.CPU),
				Published: float64(c.Delta), Ours: float64(m.taken[cpu]), Exact: true, Source: c.Source})
		}
	}
	out := experiments.NewAnswer(name, r, a.chart().Picture())
	out.No = a.differ()
	return out
}

// total is the sum over all CPUs beside ours.
func (m *measurement) total() experiments.Beside {
	b := experiments.Beside{What: m.Name() + ": interrupts of all CPUs", Exact: true, Source: m.Counts[0].Source}
	for cpu, c := range m.Counts {
		b.Published += float64(c.Delta)
		b.Ours += float64(m.taken[cpu])
	}
	return b
}

// uneven is the measurement with the most senders, of more than one.
func (a *answer) uneven() (out *measurement) {
	for _, m := range a.done {
		if m.why.Migrated && (out == nil || m.why.Senders > out.why.Senders) {
			out = m
		}
	}
	return out
}

// differ is what does not agree.
func (a *answer) differ() error {
	for _, m := range a.done {
		if m.violations > 0 {
			return fmt.Errorf("%s: %d violations while it was repeated", m.Name(), m.violations)
		}
		for cpu, c := range m.Counts {
			if m.taken[cpu] != c.Delta {
				return fmt.Errorf("%s: CPU %d takes %d interrupts, published are %d", m.Name(), cpu, m.taken[cpu], c.Delta)
			}
		}
	}
	return nil
}

// sentBy says who sent how many rounds.
func (m *measurement) sentBy() string {
	home, moves := m.course()
	parts := []string{fmt.Sprintf("%d from CPU %d", m.why.Sent[home], home)}
	for _, move := range moves {
		parts = append(parts, fmt.Sprintf("%d from CPU %d", m.why.Sent[move.To], move.To))
	}
	return strings.Join(parts, ", ")
}

func (a *answer) headline() string {
	m := a.uneven()
	switch {
	case m != nil:
		return fmt.Sprintf("The uneven row is one patcher that moved: %d rounds, %s", m.why.Rounds, m.sentBy())
	case len(a.done) > 0:
		return "No patcher moved: every measurement has one sender"
	}
	return "Nothing was repeated"
}

func (a *answer) senders() experiments.Sheet {
	s := experiments.Sheet{Title: "Who sent the rounds", Columns: []string{"measurement", "rounds", "sent", "interrupts, all CPUs", "rounds x (CPUs - 1)"}}
	for _, m := range a.done {
		s.Rows = append(s.Rows, []string{m.Name(), fmt.Sprint(m.why.Rounds), m.sentBy(), fmt.Sprint(int64(m.total().Ours)), fmt.Sprint(m.why.Rounds * int64(len(m.Counts)-1))})
	}
	return s
}

// chart is the uneven measurement, or the last, CPU by CPU.
func (a *answer) chart() *plots.Chart {
	c := &plots.Chart{
		Title: "Every CPU takes all rounds but those it sent itself",
		X:     plots.Axis{Names: []string{}}, Y: plots.Axis{Label: "interrupts"},
	}
	m := a.uneven()
	if m == nil {
		if len(a.done) == 0 {
			return c
		}
		m = a.done[len(a.done)-1]
	}
	c.Subtitle = fmt.Sprintf("%s: %d rounds, %s", m.Name(), m.why.Rounds, m.sentBy())
	theirs := plots.Series{Name: "published", Kind: plots.Bars}
	ours := plots.Series{Name: "live machine, the patcher moved in the same place", Kind: plots.Bars}
	for cpu, count := range m.Counts {
		c.X.Names = append(c.X.Names, fmt.Sprintf("CPU %d", cpu))
		theirs.X, theirs.Y = append(theirs.X, float64(cpu)), append(theirs.Y, float64(count.Delta))
		ours.X, ours.Y = append(ours.X, float64(cpu)), append(ours.Y, float64(m.taken[cpu]))
		ours.Labels = append(ours.Labels, fmt.Sprint(m.taken[cpu]))
	}
	c.Series = []plots.Series{theirs, ours}
	return c
}
