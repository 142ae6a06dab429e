// SPDX-License-Identifier: Apache-2.0

package calibration

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/spelling"
)

// fact is one fact about the machine: how it is read, and written.
type fact struct {
	set func(*Calibration, string) error
	get func(*Calibration) string
}

var (
	factNames = []string{"name", "machine", "arch", "cpus"}
	facts     = map[string]fact{
		"name":    {setName, func(c *Calibration) string { return c.Name }},
		"machine": {setMachine, func(c *Calibration) string { return c.Machine }},
		"arch":    {setArch, func(c *Calibration) string { return c.Arch }},
		"cpus":    {setCPUs, func(c *Calibration) string { return strconv.Itoa(c.CPUs) }},
	}
)

// names are what a calibration can be called: results carry it in cells and in
// names of files.
var names = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckName tells whether a calibration can be called so.
func CheckName(s string) error {
	if !names.MatchString(s) {
		return fmt.Errorf("name %q: want up to 64 letters, digits, dots, hyphens, and a letter or digit first", s)
	}
	return nil
}

func setName(c *Calibration, s string) error {
	c.Name = s
	return CheckName(s)
}

func setMachine(c *Calibration, s string) error {
	c.Machine = s
	if s == "" {
		return fmt.Errorf("machine: empty")
	}
	return nil
}

func setArch(c *Calibration, s string) error {
	c.Arch = s
	if !slices.Contains(cpus.ArchNames(), s) {
		return fmt.Errorf("arch %q: %w", s, spelling.NotOneOf(s, cpus.ArchNames()))
	}
	return nil
}

func setCPUs(c *Calibration, s string) (err error) {
	if c.CPUs, err = strconv.Atoi(s); err != nil || c.CPUs < 1 || c.CPUs > cpus.MaxCPUs {
		return fmt.Errorf("cpus %q: want a whole number from 1 to %d", s, cpus.MaxCPUs)
	}
	return nil
}

// fact reads a line that states one.
func (p *parser) fact(f fact, cells []string) error {
	name := cells[0]
	if p.facts[name] {
		return p.errorf("%s: stands there twice", name)
	}
	if len(cells) != 2 {
		return p.errorf("%s: %d cells, want 2: %s and its value (in quotes if there is a comma in it)", name, len(cells),
			name)
	}
	p.facts[name] = true
	if err := f.set(&p.c, cells[1]); err != nil {
		return p.errorf("%w", err)
	}
	return nil
}
