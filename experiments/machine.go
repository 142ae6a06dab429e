// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/kernels/calibration"
)

// Machine is a calibration, and how many CPUs it is asked about.
type Machine struct {
	*calibration.Calibration
	Online int
}

// String is how the field calibration spells it.
func (m Machine) String() string {
	if m.Online == m.CPUs {
		return m.Name
	}
	return fmt.Sprintf("%s@%d", m.Name, m.Online)
}

// ISA is its instruction set.
func (m Machine) ISA() (isa.Arch, error) { return cpus.ParseArch(m.Arch) }

// Busy are its CPUs, all of them busy.
func (m Machine) Busy() []cpus.Role { return make([]cpus.Role, m.Online) }

// Shielded are its CPUs, a quarter of which are isolated, as where some are kept for
// latency-critical work: one at least, if there is another.
func (m Machine) Shielded() []cpus.Role {
	roles := m.Busy()
	isolated := min(max(m.Online/4, 1), m.Online-1)
	for i := m.Online - isolated; i < m.Online; i++ {
		roles[i] = cpus.Isolated
	}
	return roles
}

// ParseMachine reads a machine: a built-in calibration or a file, with @CPUS behind it
// where it is to have another number of CPUs than its own.
func ParseMachine(s string) (m Machine, err error) {
	name, number, sized := machineName(s)
	if m.Calibration, err = calibration.Open(name); err != nil {
		return m, err
	}
	m.Online = m.CPUs
	if sized {
		if m.Online, err = strconv.Atoi(number); err != nil {
			m.Online = 0
		}
	}
	if err := m.check(); err != nil {
		return m, fmt.Errorf("%s: %w", s, err)
	}
	return m, nil
}

func machineName(s string) (name, number string, sized bool) {
	if i := strings.LastIndexByte(s, '@'); i >= 0 && !slices.Contains(calibration.Names(), s) {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

func (m Machine) check() error {
	switch {
	case m.Calibration == nil:
		return fmt.Errorf("a machine without a calibration")
	case m.Online < 1 || m.Online > cpus.MaxCPUs:
		return fmt.Errorf("want 1 to %d CPUs behind the @", cpus.MaxCPUs)
	}
	return nil
}

// Machines is the field calibration.
func Machines(to *[]Machine, preset string) *Field {
	const doc = "`list` of machines that times are modelled of: files, or names, each with @CPUS where it is to have " +
		"another number of CPUs"
	return List(to, "calibration", preset, doc, FieldKind[Machine]{
		Names: calibration.Names(), Parse: ParseMachine, Format: Machine.String, Check: Machine.check,
		NamesFile: func(s string) bool {
			name, _, _ := machineName(s)
			return !slices.Contains(calibration.Names(), name)
		},
	})
}
