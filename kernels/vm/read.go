// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"fmt"
	"io"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/sheet"
)

// ReadCounts reads what [Columns] write, with [ComparedColumns] or without: the measurement of one kernel.
func ReadCounts(file string, r io.Reader) (*Measurement, error) {
	counts, err := sheet.Read[Count](file, r)
	if err != nil {
		return nil, err
	}
	m := &Measurement{Arch: counts[0].Arch, Told: Told{Release: counts[0].Release}}
	for _, c := range counts {
		if c.Arch != m.Arch || c.Release != m.Release {
			return nil, sheet.Wrong(file, c.Line, "release", c.Release,
				fmt.Sprintf("the lines before are of %s %s", m.Arch, m.Release))
		}
		m.add(c)
	}
	return m, nil
}

// Check refuses a count that cannot have been read: the patcher is the first CPU.
func (c *Count) Check() (column, reason string) {
	switch {
	case c.CPU >= mostCPUs:
		return "cpu", fmt.Sprintf("want 0 to %d", mostCPUs-1)
	case (c.Role == patcher) != (c.CPU == 0):
		return "role", fmt.Sprintf("of CPU %d: CPU 0 is the patcher, the others idle, busy or isolated", c.CPU)
	}
	return "", ""
}

// add adds a count to those that were read before.
func (m *Measurement) add(c Count) {
	for len(m.CPUs) <= c.CPU {
		m.CPUs = append(m.CPUs, cpus.Idle)
	}
	for _, role := range []cpus.Role{cpus.Busy, cpus.Isolated} {
		if role.String() == c.Role {
			m.CPUs[c.CPU] = role
		}
	}
	last := len(m.Readings) - 1
	if last < 0 || m.Readings[last].Action != c.Action || m.Readings[last].Direction != c.Direction ||
		m.Readings[last].Repetition != c.Repetition {
		m.Readings = append(m.Readings, Reading{Action: c.Action, Direction: c.Direction, Repetition: c.Repetition})
		last++
	}
	rows := &m.Readings[last].Rows
	i := slices.IndexFunc(*rows, func(r Row) bool { return r.Name == c.Row })
	if i < 0 {
		i, *rows = len(*rows), append(*rows, Row{Name: c.Row})
	}
	counts := &(*rows)[i].Interrupts
	for len(*counts) <= c.CPU {
		*counts = append(*counts, 0)
	}
	(*counts)[c.CPU] = c.Interrupts
}
