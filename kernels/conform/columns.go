// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"strings"

	"github.com/textpoke/textpoke/kernels/record"
	"github.com/textpoke/textpoke/results"
)

// Row is a recording and what it shows.
type Row struct {
	*record.Recording
	*Result
}

// Columns are those of rows.
var Columns = results.Columns[Row]{
	{Name: "recording", Doc: "file of the recording; empty where the kernel was booted for it", Kind: results.Text,
		Cell: func(r Row) any { return results.If(r.File != "", r.File) }},
	{Name: "release", Doc: "kernel that was recorded", Kind: results.Text, Lead: true,
		Cell: func(r Row) any { return r.Release }},
	{Name: "arch", Doc: "its instruction set", Kind: results.Text, Lead: true, Cell: func(r Row) any { return r.Arch }},
	{Name: "actions", Doc: "what it was made to do", Kind: results.Text, Lead: true,
		Cell: func(r Row) any { return strings.Join(r.Actions, " ") }},
	{Name: "protocol", Doc: "protocol that the steps are held against", Kind: results.Text,
		Cell: func(r Row) any { return r.Result.Protocol }},
	{Name: "conforms", Doc: "whether every step is one of the protocol's, in an order that it allows",
		Kind: results.Boolean, Lead: true, Cell: func(r Row) any { return r.Misfit == nil }},
	{Name: "steps", Doc: "steps of the recording", Kind: results.Integer, Cell: func(r Row) any { return len(r.Steps) }},
	{Name: "batches", Doc: "batches among them", Kind: results.Integer, Cell: func(r Row) any { return r.Result.Batches }},
	{Name: "sites", Doc: "places that these changed", Kind: results.Integer, Cell: func(r Row) any { return r.Sites }},
	{Name: "stores", Doc: "stores to text and literals", Kind: results.Integer, Cell: func(r Row) any { return r.Stores }},
	{Name: "rounds", Doc: "rounds", Kind: results.Integer, Cell: func(r Row) any { return r.Rounds }},
	{Name: "answers", Doc: "answers of CPUs; those of firmware are not seen", Kind: results.Integer,
		Cell: func(r Row) any { return r.Answers }},
	{Name: "traps", Doc: "breakpoints that CPUs ran into", Kind: results.Integer,
		Cell: func(r Row) any { return r.Traps }},
	{Name: "skipped_rounds", Doc: "rounds of the plan that were left out, as nothing had been stored before", Detail: true,
		Kind: results.Integer, Cell: func(r Row) any { return r.SkippedRounds }},
	{Name: "extra_rounds", Doc: "rounds that the plan does not ask for", Detail: true, Kind: results.Integer,
		Cell: func(r Row) any { return r.ExtraRounds }},
	{Name: "extra_stops", Doc: "times that the machine stopped and the plan does not ask for it", Detail: true,
		Kind: results.Integer, Cell: func(r Row) any { return r.ExtraHalts }},
	{Name: "others_breakpoints", Doc: "batches whose breakpoints another handler knows, such as that of kprobes",
		Detail: true, Kind: results.Integer, Cell: func(r Row) any { return r.OthersBreakpoints }},
	{Name: "fresh_stores", Doc: "stores of functions that nobody calls yet", Detail: true, Kind: results.Integer,
		Cell: func(r Row) any { return r.Fresh }},
	{Name: "misfit", Doc: "the first step that does not fit", Kind: results.Text, Cell: func(r Row) any {
		if r.Misfit == nil {
			return results.Empty
		}
		return r.Misfit.Error()
	}},
}
