// SPDX-License-Identifier: Apache-2.0

package conform

import (
	_ "embed"
	"strings"

	"github.com/textpoke/textpoke/kernels/record"
	"github.com/textpoke/textpoke/results"
)

// declared are the columns of the package's tables.
//
//go:embed columns.txt
var declared string

// Row is a recording and its result.
type Row struct {
	*record.Recording
	*Result
}

// Columns are those of rows.
var Columns = results.Declare(declared, "rows", map[string]func(Row) any{
	"actions": func(r Row) any { return strings.Join(r.Actions, " ") },
	"steps":   func(r Row) any { return len(r.Steps) },
	"verdict": func(r Row) any {
		if r.Misfit == nil {
			return "conforms"
		}
		return "differs"
	},
})
