package experiments

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/kernels/calibration"
)

// Calibrated is a calibration, and how many CPUs it is asked about.
type Calibrated struct {
	*calibration.Calibration
	Online int
}

// String is how --calibration spells it.
func (m Calibrated) String() string {
	if m.Online == m.CPUs {
		return m.Name
	}
	return fmt.Sprintf("%s@%d", m.Name, m.Online)
}

// ISA is its instruction set.
func (m Calibrated) ISA() (isa.Arch, error) { return cpus.ParseArch(m.Arch) }

// Busy are its CPUs, all of them busy.
func (m Calibrated) Busy() []cpus.Role { return make([]cpus.Role, m.Online) }

// Shielded are its CPUs, a quarter of which are isolated, as where some are kept for
// latency-critical work: one at least, if there is another.
func (m Calibrated) Shielded() []cpus.Role {
	roles := m.Busy()
	isolated := min(max(m.Online/4, 1), m.Online-1)
	for i := m.Online - isolated; i < m.Online; i++ {
		roles[i] = cpus.Isolated
	}
	return roles
}

// Calibrations registers --calibration.
func Calibrations(f *pflag.FlagSet, to *[]Calibrated, preset string) {
	list(f, to, "calibration", preset, "`list` of machines that times are modelled of: files, or names, each with @CPUS where it is to have another number of CPUs",
		calibration.Names(), parseCalibrated)
}

func parseCalibrated(s string) (m Calibrated, err error) {
	name, number, sized := s, "", false
	if i := strings.LastIndexByte(s, '@'); i >= 0 && !slices.Contains(calibration.Names(), s) {
		name, number, sized = s[:i], s[i+1:], true
	}
	if m.Calibration, err = calibration.Open(name); err != nil {
		return m, err
	}
	m.Online = m.CPUs
	if sized {
		if m.Online, err = strconv.Atoi(number); err != nil || m.Online < 1 || m.Online > cpus.MaxCPUs {
			return m, fmt.Errorf("%s: want 1 to %d CPUs behind the @", s, cpus.MaxCPUs)
		}
	}
	return m, nil
}

// rate is a number of events in some time, 0 or more; below 0 it is not given.
type rate struct{ to *float64 }

func (r *rate) String() string {
	if r.to == nil || *r.to < 0 {
		return ""
	}
	return strconv.FormatFloat(*r.to, 'g', -1, 64)
}

// Type is what help calls the value.
func (r *rate) Type() string { return "rate" }

// Set reads it.
func (r *rate) Set(s string) error {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0 && v <= 1e9) {
		return fmt.Errorf("want a number from 0 to 1e9")
	}
	*r.to = v
	return nil
}

// Rate registers a number of events a second; usage says what is done without it,
// which is what stands in to by then.
func Rate(f *pflag.FlagSet, to *float64, name, usage string) { f.Var(&rate{to}, name, usage) }

// Rates registers a list of numbers, 0 or more.
func Rates(f *pflag.FlagSet, to *[]float64, name, preset, usage string) {
	list(f, to, name, preset, usage, nil, func(s string) (v float64, err error) {
		err = (&rate{&v}).Set(s)
		return v, err
	})
}
