// SPDX-License-Identifier: Apache-2.0

package published

import "fmt"

// The phases of a uprobe's life in which interrupts were counted.
const (
	FirstHit = "first-hit"
	Disable  = "disable"
)

// UprobeReading is what one idle CPU took while probes in programs were hit for the
// first time, or removed.
type UprobeReading struct {
	Release, Insn, Phase         string
	Sites, Processes, Interrupts int64
	Source                       string
}

// UprobeReadings is the table of those.
var UprobeReadings = &Set[UprobeReading]{
	Name:    "uprobe-interrupts",
	columns: []string{"release", "insn", "sites", "processes", "phase", "interrupts", sourceColumn},
	parse: func(c *cells) UprobeReading {
		return UprobeReading{
			Release: c.words("release"), Insn: c.words("insn"), Phase: c.oneOf("phase", FirstHit, Disable),
			Sites: c.positive("sites"), Processes: c.positive("processes"), Interrupts: c.count("interrupts"),
			Source: c.source(),
		}
	},
	key: func(r UprobeReading) string {
		return fmt.Sprintf("%s %s %d %d %s", r.Release, r.Insn, r.Sites, r.Processes, r.Phase)
	},
}
