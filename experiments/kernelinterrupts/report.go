// SPDX-License-Identifier: Apache-2.0

package kernelinterrupts

import (
	"fmt"

	"github.com/textpoke/textpoke/kernels/ledger"
)

// report is what the template is filled with.
type report struct {
	Exact, Comparable    int
	Unexplained          []string
	Rows                 []*reportRow
	Readings             []*reportReadings
	Fewer                []string
	Statistics           []reportStatistic
	Ledgers              []reportEntry
	Measured, Unmodelled int
	ModuleRecords        int
}

type (
	// reportRow is all toggles of one interrupt row of one machine.
	reportRow struct {
		Kernel         string
		CPUs           int
		Row            string
		Quiet          bool // some receiver takes none while nothing is switched
		Toggles, Exact int
		Rest           []reportRest
	}
	reportRest struct {
		N   int
		Why string
	}
	// reportReadings is all single readings of one machine and role.
	reportReadings struct {
		Kernel                  string
		CPUs                    int
		Role                    string
		All, Exact, More, Fewer int
	}
	// reportStatistic is how often one statistic is the model's.
	reportStatistic struct {
		Name              string
		Exact, Comparable int
	}
	reportEntry struct {
		Kernel, Scenario, Direction, Part, Cause, Row string
		Pokes, Rounds                                 int
	}
)

// report is made of the answer.
func (a *Answer) report() *report {
	r := &report{Measured: len(a.Rows)}
	a.toggles(r)
	a.readings(r)
	a.byStatistic(r)
	return r
}

// byStatistic says of each statistic how often it is the model's, in the rows that can be
// asked exactly.
func (a *Answer) byStatistic(r *report) {
	quiet := a.quiet()
	for _, st := range statistics {
		n := reportStatistic{Name: st.name}
		for i := range a.Summaries {
			s := &a.Summaries[i]
			if !s.Load.Switches() || !quiet[rowKey{s.Kernel, s.CPUs, s.Row}] {
				continue
			}
			n.Comparable++
			if st.of(s) == float64(s.Model) {
				n.Exact++
			}
		}
		r.Statistics = append(r.Statistics, n)
	}
}

// toggles says how many clean values agree. Those can be held against the model
// exactly where a row counts nothing else: where some receiver takes none in a
// second in which nothing is switched.
func (a *Answer) toggles(r *report) {
	rows, quiet := map[rowKey]*reportRow{}, a.quiet()
	for i := range a.Summaries {
		s := &a.Summaries[i]
		if !s.Load.Switches() {
			continue
		}
		key := rowKey{s.Kernel, s.CPUs, s.Row}
		row := rows[key]
		if row == nil {
			row = &reportRow{Kernel: s.Kernel.Name(), CPUs: s.CPUs, Row: s.Row, Quiet: quiet[key]}
			rows[key], r.Rows = row, append(r.Rows, row)
		}
		row.Toggles++
		if s.Load == ledger.ModulesAll {
			r.ModuleRecords = s.Functions
		}
		if s.Why == "" {
			row.Exact++
		} else {
			row.differs(s.Why)
		}
		if s.Why == everyReceiver || s.Why == unexplained {
			r.Unexplained = append(
				r.Unexplained,
				fmt.Sprintf(
					"%s, %d CPUs, %s of %d functions, row %s: %g, model %d, on each of %d receivers in the median of %d repetitions",
					s.Kernel.Name(),
					s.CPUs,
					s.Scenario,
					s.Functions,
					s.Row,
					s.Quietest,
					s.Model,
					s.Receivers,
					s.Repetitions,
				),
			)
		}
	}
	for _, row := range r.Rows {
		if row.Quiet {
			r.Comparable += row.Toggles
			r.Exact += row.Exact
		}
	}
}

// quiet tells of which rows some receiver takes none while nothing is switched.
func (a *Answer) quiet() map[rowKey]bool {
	out := map[rowKey]bool{}
	for i := range a.Summaries {
		s := &a.Summaries[i]
		if key := (rowKey{s.Kernel, s.CPUs, s.Row}); !s.Load.Switches() {
			before, ok := out[key]
			out[key] = (before || !ok) && s.Quietest == 0
		}
	}
	return out
}

// differs counts one reason why clean values differ.
func (r *reportRow) differs(why string) {
	for i := range r.Rest {
		if r.Rest[i].Why == why {
			r.Rest[i].N++
			return
		}
	}
	r.Rest = append(r.Rest, reportRest{1, why})
}

// readings says how many single readings do.
func (a *Answer) readings(r *report) {
	type key struct {
		kernel  *ledger.Kernel
		cpus    int
		patcher bool
	}
	of := map[key]*reportReadings{}
	for i := range a.Rows {
		row := &a.Rows[i]
		if !row.Modelled {
			r.Unmodelled++
			continue
		}
		k := key{row.Kernel, row.CPUs, row.Patcher}
		if of[k] == nil {
			of[k] = &reportReadings{Kernel: row.Kernel.Name(), CPUs: row.CPUs, Role: row.role()}
			r.Readings = append(r.Readings, of[k])
		}
		of[k].All++
		switch d := row.Difference(); {
		case d == 0:
			of[k].Exact++
		case d > 0:
			of[k].More++
		default:
			of[k].Fewer++
			r.Fewer = append(r.Fewer, fmt.Sprintf(
				"%s, %d CPUs, %s of %d functions, repetition %d, CPU %d, row %s: %d, model %d",
				row.Kernel.Name(),
				row.CPUs,
				row.Scenario,
				row.Functions,
				row.Repetition,
				row.CPU,
				row.Measured.Row,
				row.Delta,
				row.Model,
			))
		}
	}
}

// ledgers lists those of the kernels that were measured.
func (a *Answer) ledgers(r *report) error {
	measured := map[*ledger.Kernel]bool{}
	for i := range a.Rows {
		measured[a.Rows[i].Kernel] = true
	}
	for _, k := range ledger.Kernels() {
		if !measured[k] {
			continue
		}
		for _, s := range ledger.Scenarios() {
			for _, direction := range []string{"enable", "disable"} {
				entries, err := k.Ledger(s, direction == "enable", nil)
				if err != nil {
					return err
				}
				for _, e := range entries {
					r.Ledgers = append(r.Ledgers, reportEntry{k.Name(), string(s), direction, e.Part, e.Cause.String(), e.Row, e.Pokes,
						e.Rounds()})
				}
			}
		}
	}
	return nil
}
