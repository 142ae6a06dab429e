// SPDX-License-Identifier: Apache-2.0

package published

// MultiCalls is what many calls of one function took while so many functions were
// hooked in one way.
type MultiCalls struct {
	Line      int     `col:"#"` // in the file
	Mechanism string  `col:"mechanism,key"`
	Functions int64   `col:"functions,key,positive"`
	Table     string  `col:"table,key,maybe,hash|padding"` // that each call is looked up in; "" where the source does not say
	Calls     int64   `col:"calls,positive"`
	TotalMS   float64 `col:"total_ms"`
	Source    string  `col:"source,optional"`
}

// NS is what one call takes, in nanoseconds.
func (m *MultiCalls) NS() float64 { return m.TotalMS * 1e6 / float64(m.Calls) }

// MultiCallTimes is the table of those.
var MultiCallTimes = &Set[MultiCalls]{Name: "tracing-multi-calls-2025"}
