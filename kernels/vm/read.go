// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/textpoke/textpoke/cpus"
)

// ReadCounts reads what [Columns] write: the measurement of one kernel. Other columns are
// skipped.
func ReadCounts(file string, r io.Reader) (*Measurement, error) {
	sheet := csv.NewReader(r)
	header, err := sheet.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	at := make([]int, len(Columns))
	for i, c := range Columns {
		if at[i] = slices.Index(header, c.Name); at[i] < 0 {
			return nil, fmt.Errorf("%s:1: no column %q", file, c.Name)
		}
	}
	m := &Measurement{}
	for {
		cells, err := sheet.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = m.readCount(cells, at)
		}
		if err != nil {
			line, _ := sheet.FieldPos(0)
			return nil, fmt.Errorf("%s:%d: %w", file, line, err)
		}
	}
	if len(m.Readings) == 0 {
		return nil, fmt.Errorf("%s: no counts", file)
	}
	return m, nil
}

// readCount takes one line; at are the places of [Columns] in it.
func (m *Measurement) readCount(cells []string, at []int) error {
	text := func(i int) string { return cells[at[i]] }
	var bad error
	number := func(i int, most int) int {
		n, err := strconv.Atoi(text(i))
		if err != nil || n < 0 || n > most {
			bad = fmt.Errorf("%s %q: want a whole number from 0 to %d", Columns[i].Name, text(i), most)
		}
		return n
	}
	const most = 1<<31 - 1
	arch, release, action, direction, row := text(0), text(1), text(2), text(3), text(4)
	cpu, repetition, interrupts := number(5, mostCPUs-1), number(7, most), number(8, most)
	role, err := readRole(text(6), cpu)
	switch {
	case bad != nil:
		return bad
	case err != nil:
		return err
	case !slices.Contains(directions, direction):
		return fmt.Errorf("direction %q: want one of %q", direction, directions)
	case m.Arch == "":
		m.Arch, m.Release = arch, release
	case m.Arch != arch || m.Release != release:
		return fmt.Errorf("release %q: the lines before are of %s %s", release, m.Arch, m.Release)
	}
	for len(m.CPUs) <= cpu {
		m.CPUs = append(m.CPUs, cpus.Idle)
	}
	m.CPUs[cpu] = role
	last := len(m.Readings) - 1
	if last < 0 || m.Readings[last].Action != action || m.Readings[last].Direction != direction ||
		m.Readings[last].Repetition != repetition {
		m.Readings = append(m.Readings, Reading{Action: action, Direction: direction, Repetition: repetition})
		last++
	}
	rows := &m.Readings[last].Rows
	i := slices.IndexFunc(*rows, func(r Row) bool { return r.Name == row })
	if i < 0 {
		i, *rows = len(*rows), append(*rows, Row{Name: row})
	}
	counts := &(*rows)[i].Interrupts
	for len(*counts) <= cpu {
		*counts = append(*counts, 0)
	}
	(*counts)[cpu] = interrupts
	return nil
}

// readRole is what a CPU did; the patcher is the first.
func readRole(name string, cpu int) (cpus.Role, error) {
	if name == patcher && cpu == 0 {
		return cpus.Idle, nil
	}
	for _, r := range []cpus.Role{cpus.Idle, cpus.Busy, cpus.Isolated} {
		if cpu > 0 && r.String() == name {
			return r, nil
		}
	}
	return 0, fmt.Errorf("role %q of CPU %d: CPU 0 is the patcher, the others idle, busy or isolated", name, cpu)
}
