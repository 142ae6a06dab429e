package kernelinterrupts

import "github.com/textpoke/textpoke/results"

// RowsTable is a table for every measurement.
func RowsTable() results.Table {
	return results.Table{Name: Name, Columns: []results.Column{
		{Name: "arch", Doc: "instruction set"},
		{Name: "kernel", Doc: "Linux release"},
		{Name: "cpus", Doc: "CPUs of the machine"},
		{Name: "scenario", Doc: "what was switched, and which way"},
		{Name: "functions", Doc: "that were patched"},
		{Name: "repetition", Doc: "from 0"},
		{Name: "cpu", Doc: "that took the interrupts"},
		{Name: "role", Doc: "patcher or receiver"},
		{Name: "row", Doc: "of /proc/interrupts, or counter of the firmware"},
		{Name: "batches", Doc: "in which the records were patched; empty where there are none"},
		{Name: "model", Doc: "interrupts by the ledger; empty where nothing models the row"},
		{Name: "measured", Doc: "interrupts on the real kernel"},
		{Name: "difference", Doc: "measured beyond the model"},
		{Name: "why", Doc: "it differs, or is not modelled"},
	}}
}

// Cells are the row's cells in RowsTable.
func (r *Row) Cells() []any {
	var model, difference any = results.Empty, results.Empty
	if r.Modelled {
		model, difference = r.Model, r.Difference()
	}
	return []any{
		r.Kernel.Arch, r.Kernel.Release, r.CPUs, r.Scenario, r.Functions, r.Repetition, r.CPU, r.role(), r.Measured.Row,
		batchesCell(r.Batches), model, r.Delta, difference, text(r.Why),
	}
}

func (r *Row) role() string {
	if r.Patcher {
		return "patcher"
	}
	return "receiver"
}

// SummaryTable is a table for summaries.
func SummaryTable() results.Table {
	return results.Table{Name: "summary", Columns: []results.Column{
		{Name: "arch", Doc: "instruction set"},
		{Name: "kernel", Doc: "Linux release"},
		{Name: "cpus", Doc: "CPUs of the machine"},
		{Name: "scenario", Doc: "what was switched, and which way"},
		{Name: "functions", Doc: "that were patched"},
		{Name: "row", Doc: "of /proc/interrupts, or counter of the firmware"},
		{Name: "receivers", Doc: "CPUs other than the patcher's"},
		{Name: "repetitions", Doc: "of the toggle"},
		{Name: "batches", Doc: "in which the records were patched; empty where there are none"},
		{Name: "record_rounds", Doc: "rounds of the records themselves that the row shows"},
		{Name: "model", Doc: "interrupts of a receiver by the ledger, those rounds included"},
		{Name: "quietest_median", Doc: "smallest of the receivers' medians over repetitions: the clean value"},
		{Name: "difference", Doc: "the clean value beyond the model"},
		{Name: "exact_share", Doc: "share of the receivers' readings that are the model's exactly"},
		{Name: "background_median", Doc: "median of what the readings of all receivers exceed the model by"},
		{Name: "why", Doc: "the clean value differs"},
	}}
}

// Cells are the summary's cells in SummaryTable.
func (s *Summary) Cells() []any {
	return []any{
		s.Kernel.Arch, s.Kernel.Release, s.CPUs, s.Scenario, s.Functions, s.Row, s.Receivers, s.Repetitions,
		batchesCell(s.Batches), s.Records, s.Model, s.Quietest, s.Difference(), s.ExactShare, s.Background, text(s.Why),
	}
}

func batchesCell(n int) any {
	if n == noBatches {
		return results.Empty
	}
	return n
}

func text(s string) any {
	if s == "" {
		return results.Empty
	}
	return s
}

// Filled are both tables with their rows.
func (a *Answer) Filled() (rows, summary results.Table, err error) {
	rows, summary = RowsTable(), SummaryTable()
	for i := range a.Rows {
		if err := rows.Add(a.Rows[i].Cells()...); err != nil {
			return rows, summary, err
		}
	}
	for i := range a.Summaries {
		if err := summary.Add(a.Summaries[i].Cells()...); err != nil {
			return rows, summary, err
		}
	}
	return rows, summary, nil
}
