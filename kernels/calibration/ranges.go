// SPDX-License-Identifier: Apache-2.0

package calibration

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/textpoke/textpoke/internal/sheet"
)

// Range is what has been published about a cost, on whatever machines: what is
// said when somebody asks for it and names no calibration.
type Range struct {
	Name    string   `col:"cost"`
	Low     float64  `col:"low_ns"`
	High    float64  `col:"high_ns"`
	Source  string   `col:"source"`
	Sources []string // low first
}

//go:embed ranges.csv
var rangesText string

// Ranges lists what has been published, a round's range first. Where ends were computed from what
// stands in the source, it is said how. Shared: do not write.
var Ranges = sync.OnceValue(func() (out []Range) {
	lines, err := sheet.Read[Range]("ranges.csv", strings.NewReader(rangesText))
	if err != nil {
		panic(err) // a mistake of ours
	}
	for _, l := range lines {
		if last := len(out) - 1; last < 0 || out[last].Name != l.Name {
			out = append(out, l)
		}
		r := &out[len(out)-1]
		r.Sources = append(r.Sources, l.Source)
	}
	return out
})
