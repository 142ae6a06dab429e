// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/kernels/microbench"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sim/hardware"
)

func calibrateCommand(c *common) *cobra.Command {
	var f struct {
		name, base string
		budget     time.Duration
	}
	cmd := newCommand("calibrate", func(cmd *cobra.Command, _ []string) error {
		if f.budget > longestCalibration {
			return fmt.Errorf("--time %v: want a time such as 2s, %v at most", f.budget, longestCalibration)
		}
		if err := calibration.CheckName(f.name); err != nil {
			return fmt.Errorf("--name: %w", err)
		}
		if slices.Contains(calibration.Names(), f.name) {
			return fmt.Errorf("--name %s: is that of a built-in calibration", f.name)
		}
		from, err := c.baseCalibration(f.base)
		if err != nil {
			return err
		}
		return c.calibrate(cmd, microbench.Config{Name: f.name, Arch: hostArch(), Base: from, Time: f.budget})
	})
	c.prints(cmd, "with --format json", quantityColumns(new(calibration.Calibration)).Table("quantities"))
	declare(cmd, "calibrate", &f)
	offer(cmd, "base", calibration.Names)
	cmd.AddCommand(calibrateList(c), offerArgs(calibrateShow(c), calibration.Names))
	return cmd
}

// longestCalibration bounds --time: medians need no more.
const longestCalibration = time.Hour

// hostArch is this machine's instruction set as --arch spells it; Go calls one of
// them differently.
func hostArch() string {
	if runtime.GOARCH == "amd64" {
		return "x86_64"
	}
	return runtime.GOARCH
}

// baseCalibration opens --base, or finds one.
func (c *common) baseCalibration(base string) (*calibration.Calibration, error) {
	if !slices.Contains(cpus.ArchNames(), hostArch()) {
		return nil, fmt.Errorf("this machine's instruction set, %s: %w", hostArch(), notOneOf(hostArch(), cpus.ArchNames()))
	}
	if base == "" {
		return calibration.Nearest(hostArch(), runtime.NumCPU()), nil
	}
	from, err := c.openCalibration(base)
	if err != nil {
		return nil, fmt.Errorf("--base: %w", err)
	}
	if from.Arch != hostArch() {
		return nil, fmt.Errorf("--base %s: it is of %s, and this machine of %s", base, from.Arch, hostArch())
	}
	return from, nil
}

// openCalibration opens a built-in calibration, or a file, which it notes for the
// manifest.
func (c *common) openCalibration(nameOrPath string) (*calibration.Calibration, error) {
	cal, err := calibration.Open(nameOrPath)
	if err == nil && !slices.Contains(calibration.Names(), nameOrPath) {
		c.note(nameOrPath)
	}
	return cal, err
}

// calibrate measures and writes. A calibration that was cut short is whole: less
// of it was measured.
func (c *common) calibrate(cmd *cobra.Command, config microbench.Config) error {
	f, err := c.openFiles()
	if err != nil {
		return err
	}
	also, done, none := hardware.Benches()
	if none != nil {
		fmt.Fprintf(c.err, "textpoke: %v\n", none)
	} else {
		config.Also = also
		defer done()
	}
	r, err := microbench.Run(cmd.Context(), config)
	if r == nil {
		return err
	}
	for _, why := range spelling.Distinct(r.Missing, func(m microbench.Missing) string { return m.Why }) {
		of := spelling.Where(r.Missing, func(m microbench.Missing) bool { return m.Why == why })
		names := spelling.Each(of, func(m microbench.Missing) string { return m.Quantity })
		fmt.Fprintf(c.err, "textpoke: not measured: %s (%s); taken over from %s\n", strings.Join(names, ", "), why,
			config.Base.Name)
	}
	return errors.Join(c.printCalibration(cmd, r.Calibration, f, err == nil), err)
}

// printCalibration writes the file to stdout, or a table of it where a format was
// asked for, and the file under --out.
func (c *common) printCalibration(cmd *cobra.Command, cal *calibration.Calibration, f *folder, complete bool) error {
	write := cal.Write
	t, err := quantityColumns(cal).Fill(cal.Name, cal.Entries)
	if err != nil {
		return err
	}
	switch chosen := cmd.Flags().Changed("format"); {
	case c.format == results.FormatTable && (chosen || c.screen != nil) && c.width() > 0:
		c.listQuantities(cal)
	case chosen && c.format != results.FormatCSV:
		err = c.printTable(t)
	default:
		err = write(c.streams.out)
	}
	if err != nil || f == nil {
		return err
	}
	if err := f.dir.Write(cal.Name+".csv", write); err != nil {
		return err
	}
	f.manifest.Calibration = cal.Name
	f.manifest.Documents = append(f.manifest.Documents, cal.Name+".csv")
	return f.close(complete)
}

// listQuantities lists a calibration's quantities on a screen, in lines as wide as that is.
func (c *common) listQuantities(cal *calibration.Calibration) {
	var all []described
	for _, e := range cal.Entries {
		value := fmt.Sprintf("%g %s", e.Value, e.Quantity.Unit)
		if e.Bounded() {
			value += fmt.Sprintf(" (%g to %g)", e.Low, e.High)
		}
		all = append(all, described{e.Quantity.Name, fmt.Sprintf("%s, %s: %s", value, e.Basis, e.Quantity.Doc)})
	}
	list(c.streams.out, cal.Name, c.width(), all)
}

// quantityColumns are the columns of a calibration's quantities, each in the unit that
// it is kept in.
func quantityColumns(cal *calibration.Calibration) results.Columns[calibration.Entry] {
	return results.Declare(declared, "quantity", map[string]func(calibration.Entry) any{
		"calibration": func(calibration.Entry) any { return cal.Name },
	})
}

func calibrateShow(c *common) *cobra.Command {
	return c.prints(newCommand("show NAME", func(cmd *cobra.Command, args []string) error {
		cal, err := c.openCalibration(args[0])
		if err != nil {
			return err
		}
		f, err := c.openFiles()
		if err != nil {
			return err
		}
		return c.printCalibration(cmd, cal, f, true)
	}), "with --format json", quantityColumns(new(calibration.Calibration)).Table("quantities"))
}

func calibrateList(c *common) *cobra.Command {
	return c.prints(newCommand("list", func(cmd *cobra.Command, _ []string) error {
		rows := spelling.Each(calibration.Builtins(), func(cal *calibration.Calibration) ranged {
			return ranged{cal, cal.RoundSpread(listSeed, cal.CPUs-1)}
		})
		return printRows(cmd.Context(), c, calibrationColumns, "calibrations", rows)
	}), "", calibrationColumns.Table("calibrations"))
}

// ranged is a calibration in the list, with the range of a round to all CPUs but one.
type ranged struct {
	*calibration.Calibration
	Round calibration.Spread
}

// listSeed draws the ranges of the list: always the same.
const listSeed = 1

// calibrationColumns are the columns of the list of built-in calibrations.
var calibrationColumns = results.Declare(declared, "calibration", map[string]func(ranged) any{
	"published": known(calibration.Published),
	"derived":   known(calibration.Derived),
	"measured":  known(calibration.Measured),
	"assumed":   known(calibration.Assumed),
})

// known counts the quantities that are known in one way.
func known(how calibration.Basis) func(ranged) any {
	return func(l ranged) any {
		return spelling.Count(l.Entries, func(e calibration.Entry) bool { return e.Basis == how })
	}
}
