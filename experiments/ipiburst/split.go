package ipiburst

import (
	"fmt"
	"io"

	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/interrupts"
)

const (
	// roundsPerBatch is what the three phases take; with the old scheme, which has
	// one batch for everything, what all records take (ftrace_replace_code and
	// run_sync, arch/x86/kernel/ftrace.c, Linux 5.0).
	roundsPerBatch = 3
	// slots2019 is what a page held of the entries that the measured kernel had,
	// of 24 bytes each: "Shrink text_poke_loc" came a month later.
	slots2019 = 170
)

// measurement is one reading before and one after, and what its rounds were for.
type measurement struct {
	*published.Reading
	rounds        int64 // of all kinds
	records, rest interrupts.Range
	batches       interrupts.Range // 1 in the old scheme
	functions     interrupts.Range // 0 to 0 where the rounds say nothing about them
}

// split works out of the counts what they can be made of. The old scheme takes
// three rounds for all records, so that the rest is known exactly. The batched
// kernel does the same things beside the records but for what it needs no more:
// its rest is taken for at most the old one. Enabling and disabling change the
// same functions, so that they have the same batches.
func split(readings []*published.Reading) (out []*measurement, err error) {
	old := map[string]int64{}
	for _, r := range readings {
		m := &measurement{Reading: r}
		if err := m.explain(); err != nil {
			return nil, err
		}
		if m.Patching == published.OwnBreakpoints {
			old[m.Action] = m.rest.Hi
		}
		out = append(out, m)
	}
	same := interrupts.Range{Lo: 0, Hi: 1 << 62}
	for _, m := range out {
		if m.Patching != published.Batched {
			continue
		}
		most, known := old[m.Action]
		if !known {
			most = m.rounds // nothing is known of the rest
		}
		i, err := interrupts.Patches(m.rounds, slots2019, interrupts.Range{Lo: 0, Hi: most})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name(), err)
		}
		same.Lo, same.Hi = max(same.Lo, i.Batches.Lo), min(same.Hi, i.Batches.Hi)
	}
	if same.Lo > same.Hi {
		return nil, fmt.Errorf("the batched measurements have no number of batches in common: %d at least, %d at most", same.Lo, same.Hi)
	}
	for _, m := range out {
		if m.Patching == published.Batched {
			m.settle(same)
		}
	}
	return out, nil
}

// explain finds the rounds, and in the old scheme what they were for.
func (m *measurement) explain() error {
	why := interrupts.Explain(m.Deltas())
	if !why.Consistent || !why.Known {
		return fmt.Errorf("%s: no rounds explain these interrupts: %s", m.Name(), why.Reason)
	}
	m.rounds = why.Rounds
	if m.Patching == published.OwnBreakpoints {
		if m.rounds < roundsPerBatch {
			return fmt.Errorf("%s: %d rounds are fewer than the %d that records take", m.Name(), m.rounds, roundsPerBatch)
		}
		m.records = interrupts.Range{Lo: roundsPerBatch, Hi: roundsPerBatch}
		m.rest = interrupts.Range{Lo: m.rounds - roundsPerBatch, Hi: m.rounds - roundsPerBatch}
		m.batches = interrupts.Range{Lo: 1, Hi: 1}
	}
	return nil
}

// settle fills in what so many batches mean.
func (m *measurement) settle(b interrupts.Range) {
	m.batches = b
	m.records = interrupts.Range{Lo: roundsPerBatch * b.Lo, Hi: roundsPerBatch * b.Hi}
	m.rest = interrupts.Range{Lo: m.rounds - m.records.Hi, Hi: m.rounds - m.records.Lo}
	m.functions = interrupts.Range{Lo: max(b.Lo-1, 0)*slots2019 + 1, Hi: b.Hi * slots2019}
}

// splitTable is the measurements as a table.
func splitTable(all []*measurement) (results.Table, error) {
	t := results.Table{Name: "split", Columns: []results.Column{
		{Name: "patching", Doc: "which kernel was measured"},
		{Name: "action", Doc: "the tracer is switched on (enable) or off"},
		{Name: "rounds", Doc: "rounds that explain the interrupts"},
		{Name: "records_min", Doc: "rounds for records, at least"},
		{Name: "records_max", Doc: "and at most"},
		{Name: "rest_min", Doc: "rounds for anything else, at least"},
		{Name: "rest_max", Doc: "and at most"},
		{Name: "batches_min", Doc: "batches, at least"},
		{Name: "batches_max", Doc: "and at most"},
		{Name: "functions_min", Doc: "functions that need so many batches, at least; empty where the rounds say nothing about them"},
		{Name: "functions_max", Doc: "and at most"},
	}}
	for _, m := range all {
		low, high := any(results.Empty), any(results.Empty)
		if m.functions.Hi > 0 {
			low, high = m.functions.Lo, m.functions.Hi
		}
		err := t.Add(m.Patching, m.Action, m.rounds, m.records.Lo, m.records.Hi, m.rest.Lo, m.rest.Hi, m.batches.Lo, m.batches.Hi, low, high)
		if err != nil {
			return t, err
		}
	}
	return t, nil
}

// writeInterrupts prints the measurements as /proc/interrupts shows them.
func writeInterrupts(w io.Writer, all []*measurement) error {
	for i, m := range all {
		for _, side := range []struct {
			name string
			of   func(published.InterruptCount) int64
		}{
			{"before", func(c published.InterruptCount) int64 { return c.Before }},
			{"after", func(c published.InterruptCount) int64 { return c.After }},
		} {
			s := interrupts.Snapshot{Rows: []interrupts.Row{{Name: "CAL", Description: "Function call interrupts"}}}
			for _, c := range m.Counts {
				s.CPUs = append(s.CPUs, c.CPU)
				s.Rows[0].Counts = append(s.Rows[0].Counts, side.of(c))
			}
			gap := "\n"
			if i == 0 && side.name == "before" {
				gap = ""
			}
			if _, err := fmt.Fprintf(w, "%s%s: %s\n", gap, m.Name(), side.name); err != nil {
				return err
			}
			if err := interrupts.Write(w, s); err != nil {
				return err
			}
		}
	}
	return nil
}
