// SPDX-License-Identifier: Apache-2.0

package batches

import (
	"context"
	"fmt"
	"io"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/grid"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/interrupts"
)

// IPIBurst asks how many interrupts switching the function tracer costs each CPU, with vectors of fixed size, with one
// that grows, and with one batch for everything, and takes the measurements of 2019 apart.
var IPIBurst = grid.Must("ipi-burst.experiment", text("ipi-burst.experiment"), grid.More{
	Fields: func(c *grid.Config) []*choice.Field {
		return []*choice.Field{choice.File(&c.Own, "published",
			"`file` in place of the published counts: CSV with patching, action, cpu, before, after, delta, source")}
	},
	Prepare: measured2019, Compute: takenApart,
})

// measured2019 takes the published measurements apart before anything is counted: counters that cannot be cost nothing.
func measured2019(_ context.Context, c *grid.Config) (any, error) {
	counts, err := published.Interrupts.Read(c.Own)
	if err != nil {
		return nil, err
	}
	readings, err := published.Readings(counts)
	if err != nil {
		return nil, err
	}
	return apart(readings)
}

// takenApart puts them beside what was counted.
func takenApart(r *grid.Report) error {
	all := r.More.([]*measurement)
	r.Document(results.Document{Name: "interrupts.txt", Write: func(w io.Writer) error { return writeInterrupts(w, all) }})
	return experiments.Beside(r.Study, "split", all)
}

// slots2019 is what a page held of the entries that the measured kernel had, of 24 bytes each:
// "Shrink text_poke_loc" came a month later.
const slots2019 = 170

// perBatch is what the three phases take; with the old scheme, which has one batch for
// everything, what all records take (ftrace_replace_code and run_sync, arch/x86/kernel/ftrace.c,
// Linux 5.0).
func perBatch() int64 { return int64(poke.RoundsPerBatch()) }

// measurement is one reading before and one after, and the causes of its rounds.
type measurement struct {
	*published.Reading
	Rounds        int64 // of all kinds
	Records, Rest interrupts.Range
	Batches       interrupts.Range // 1 in the old scheme
	Functions     interrupts.Range // 0 to 0 where the rounds say nothing about them
}

// Source is where it was published.
func (m *measurement) Source() string { return m.Counts[0].Source }

// apart works out of the counts what they can be made of. The old scheme takes
// three rounds for all records, so that the rest is known exactly. The batched
// kernel does the same things beside the records but for what it needs no more:
// its rest is taken for at most the old one. Enabling and disabling change the
// same functions, so that they have the same batches.
func apart(readings []*published.Reading) (out []*measurement, err error) {
	old := map[string]int64{}
	for _, r := range readings {
		m := &measurement{Reading: r}
		if err := m.explain(); err != nil {
			return nil, err
		}
		if m.Patching == published.OwnBreakpoints {
			old[m.Action] = m.Rest.Hi
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
			most = m.Rounds // nothing is known of the rest
		}
		i, err := interrupts.Patches(m.Rounds, perBatch(), slots2019, interrupts.Range{Lo: 0, Hi: most})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name(), err)
		}
		same.Lo, same.Hi = max(same.Lo, i.Batches.Lo), min(same.Hi, i.Batches.Hi)
	}
	if same.Lo > same.Hi {
		return nil, fmt.Errorf("the batched measurements have no number of batches in common: %d at least, %d at most",
			same.Lo, same.Hi)
	}
	for _, m := range out {
		if m.Patching == published.Batched {
			m.Batches = same
			m.Records = interrupts.Range{Lo: perBatch() * same.Lo, Hi: perBatch() * same.Hi}
			m.Rest = interrupts.Range{Lo: m.Rounds - m.Records.Hi, Hi: m.Rounds - m.Records.Lo}
			m.Functions = interrupts.Range{Lo: max(same.Lo-1, 0)*slots2019 + 1, Hi: same.Hi * slots2019}
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
	m.Rounds = why.Rounds
	if m.Patching == published.OwnBreakpoints {
		if m.Rounds < perBatch() {
			return fmt.Errorf("%s: %d rounds are fewer than the %d that records take", m.Name(), m.Rounds, perBatch())
		}
		m.Records = interrupts.Range{Lo: perBatch(), Hi: perBatch()}
		m.Rest = interrupts.Range{Lo: m.Rounds - perBatch(), Hi: m.Rounds - perBatch()}
		m.Batches = interrupts.Range{Lo: 1, Hi: 1}
	}
	return nil
}

// writeInterrupts prints the measurements as /proc/interrupts shows them.
func writeInterrupts(w io.Writer, all []*measurement) error {
	gap := ""
	for _, m := range all {
		for side, name := range []string{"before", "after"} {
			s := interrupts.Snapshot{Rows: []interrupts.Row{{Name: "CAL", Description: "Function call interrupts"}}}
			for _, c := range m.Counts {
				s.CPUs = append(s.CPUs, c.CPU)
				s.Rows[0].Counts = append(s.Rows[0].Counts, []int64{c.Before, c.After}[side])
			}
			if _, err := fmt.Fprintf(w, "%s%s: %s\n", gap, m.Name(), name); err != nil {
				return err
			}
			if err := interrupts.Write(w, s); err != nil {
				return err
			}
			gap = "\n"
		}
	}
	return nil
}
