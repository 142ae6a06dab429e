// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/experiments"
)

// answer is the measurements that were repeated.
type answer struct{ Done []*measurement }

func (a *answer) findings() *experiments.Findings {
	return &experiments.Findings{Report: a, No: a.differ()}
}

// Targets is how many interrupts all rounds are.
func (m *measurement) Targets() int64 { return m.Why.Rounds * int64(len(m.Counts)-1) }

// Comparisons are the uneven measurement CPU by CPU, and the sums of the others.
func (a *answer) Comparisons() (out []experiments.Comparison) {
	uneven := a.Uneven()
	for _, m := range a.Done {
		if m != uneven && uneven != nil {
			out = append(out, m.Total())
			continue
		}
		for cpu, c := range m.Counts {
			out = append(out, experiments.Comparison{What: fmt.Sprintf("%s: interrupts of CPU %d", m.Name(), c.CPU),
				Published: float64(c.Delta), Ours: float64(m.taken[cpu]), Exact: true, Source: c.Source})
		}
	}
	return out
}

// Total is the sum over all CPUs beside ours.
func (m *measurement) Total() experiments.Comparison {
	b := experiments.Comparison{What: m.Name() + ": interrupts of all CPUs", Exact: true, Source: m.Counts[0].Source}
	for cpu, c := range m.Counts {
		b.Published += float64(c.Delta)
		b.Ours += float64(m.taken[cpu])
	}
	return b
}

// Uneven is the measurement with the most senders, of more than one.
func (a *answer) Uneven() (out *measurement) {
	for _, m := range a.Done {
		if m.Why.Senders > 1 && (out == nil || m.Why.Senders > out.Why.Senders) {
			out = m
		}
	}
	return out
}

// differ is what does not agree.
func (a *answer) differ() error {
	for _, m := range a.Done {
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

// SentBy says who sent how many rounds.
func (m *measurement) SentBy() string {
	home, moves := m.senders()
	parts := []string{fmt.Sprintf("%d from CPU %d", m.Why.Sent[home], home)}
	for _, move := range moves {
		parts = append(parts, fmt.Sprintf("%d from CPU %d", m.Why.Sent[move.To], move.To))
	}
	return strings.Join(parts, ", ")
}

// Shown is the uneven measurement, or the last; nil if there is none.
func (a *answer) Shown() *measurement {
	m := a.Uneven()
	if m == nil && len(a.Done) > 0 {
		m = a.Done[len(a.Done)-1]
	}
	return m
}
