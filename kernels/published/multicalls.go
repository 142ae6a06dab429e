// SPDX-License-Identifier: Apache-2.0

package published

import "fmt"

// MultiCalls is what many calls of one function took while so many functions were
// hooked in one way.
type MultiCalls struct {
	Line             int // in the file
	Mechanism        string
	Functions, Calls int64
	Table            string // that each call is looked up in: hash or padding; "" where the source does not say
	TotalMS          float64
	Source           string
}

// NS is what one call takes, in nanoseconds.
func (m *MultiCalls) NS() float64 { return m.TotalMS * 1e6 / float64(m.Calls) }

// MultiCallTimes is the table of those.
var MultiCallTimes = &Set[MultiCalls]{
	Name:    "tracing-multi-calls-2025",
	columns: []string{"mechanism", "functions", "table", "calls", "total_ms", sourceColumn},
	parse: func(c *cells) MultiCalls {
		return MultiCalls{
			Line: c.line, Mechanism: c.words("mechanism"), Functions: c.positive("functions"), Calls: c.positive("calls"),
			Table: c.oneOf("table", "", "hash", "padding"), TotalMS: c.above0("total_ms"), Source: c.source(),
		}
	},
	key: func(m MultiCalls) string {
		return fmt.Sprintf("%s, %d functions, %s", m.Mechanism, m.Functions, m.Table)
	},
}
