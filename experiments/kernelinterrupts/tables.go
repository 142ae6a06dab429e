// SPDX-License-Identifier: Apache-2.0

package kernelinterrupts

import "github.com/textpoke/textpoke/results"

// cells are those that no field and no method is.
var cells = map[string]func(*Row) any{
	"role":    func(r *Row) any { return r.role() },
	"batches": func(r *Row) any { return results.If(r.Batches != noBatches, r.Batches) },
}

func (r *Row) role() string {
	if r.Patcher {
		return "patcher"
	}
	return "receiver"
}

// summaryColumns are those of summary.csv.
var summaryColumns = results.Columns[Summary]{
	{Name: "arch", Doc: "instruction set", Cell: func(s Summary) any { return s.Kernel.Arch }},
	{Name: "kernel", Doc: "Linux release", Cell: func(s Summary) any { return s.Kernel.Release }},
	{Name: "cpus", Kind: results.Integer, Doc: "CPUs of the machine", Cell: func(s Summary) any { return s.CPUs }},
	{Name: "scenario", Doc: "what was switched, and which way", Cell: func(s Summary) any { return s.Scenario }},
	{Name: "functions", Kind: results.Integer,
		Doc: "that were patched", Cell: func(s Summary) any { return s.Functions }},
	{Name: "row", Doc: "of /proc/interrupts, or counter of the firmware", Cell: func(s Summary) any { return s.Row }},
	{Name: "receivers", Kind: results.Integer,
		Doc: "CPUs other than the patcher's", Cell: func(s Summary) any { return s.Receivers }},
	{Name: "repetitions", Kind: results.Integer,
		Doc: "of the toggle", Cell: func(s Summary) any { return s.Repetitions }},
	{Name: "batches", Kind: results.Integer, Doc: "in which the records were patched; empty where there are none",
		Cell: func(s Summary) any { return results.If(s.Batches != noBatches, s.Batches) }},
	{Name: "record_rounds", Kind: results.Integer, Doc: "rounds of the records themselves that the row shows",
		Cell: func(s Summary) any { return s.Records }},
	{Name: "model", Kind: results.Integer, Doc: "interrupts of a receiver by the ledger, those rounds included",
		Cell: func(s Summary) any { return s.Model }},
	{Name: "quietest_median", Kind: results.Number,
		Doc:  "smallest of the receivers' medians over repetitions: the clean value",
		Cell: func(s Summary) any { return s.Quietest }},
	{Name: "median", Kind: results.Number,
		Doc: "of all receivers' readings", Cell: func(s Summary) any { return s.Median }},
	{Name: "mode", Kind: results.Integer,
		Doc: "of all receivers' readings: the most frequent", Cell: func(s Summary) any { return s.Mode }},
	{Name: "difference", Kind: results.Number, Doc: "the clean value beyond the model",
		Cell: func(s Summary) any { return s.Difference() }},
	{Name: "exact_share", Kind: results.Number, Doc: "share of the receivers' readings that are the model's exactly",
		Cell: func(s Summary) any { return s.ExactShare }},
	{Name: "background_median", Kind: results.Number,
		Doc:  "median of what the readings of all receivers exceed the model by",
		Cell: func(s Summary) any { return s.Background }},
	{Name: "why", Doc: "the clean value differs", Cell: func(s Summary) any { return results.OrEmpty(s.Why) }},
}
