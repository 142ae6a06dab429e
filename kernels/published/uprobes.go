// SPDX-License-Identifier: Apache-2.0

package published

// The phases of a uprobe's life in which interrupts were counted.
const (
	FirstHit = "first-hit"
	Disable  = "disable"
)

// UprobeReading is what one idle CPU took while probes in programs were hit for the
// first time, or removed.
type UprobeReading struct {
	Release    string `col:"release,key"`
	Insn       string `col:"insn,key"`
	Phase      string `col:"phase,key,first-hit|disable"`
	Sites      int64  `col:"sites,key,positive"`
	Processes  int64  `col:"processes,key,positive"`
	Interrupts int64  `col:"interrupts"`
	Source     string `col:"source,optional"`
}

// UprobeReadings is the table of those.
var UprobeReadings = &Set[UprobeReading]{Name: "uprobe-interrupts"}
