// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/kernels/microbench"
	"github.com/textpoke/textpoke/kernels/tracefs"
	"github.com/textpoke/textpoke/results/interrupts"
)

// Here is what is counted on the machine that runs, in place of a booted one.
type Here struct {
	Arch string
	// Action is instance or instance:FILTER, which is done in an instance of tracefs of our own; or
	// the name of what Do does.
	Action string
	// Do, unless nil, is done once in every repetition, and counted as enabling.
	Do          func(context.Context) error
	Files       tracefs.Files // the tracefs in which the instance is made
	Isolated    []int         // CPUs that are left alone
	Repetitions int
	Interrupts  string // the file that counts; "" for /proc/interrupts
}

// hereInstance is the instance of tracefs.
const hereInstance = "instances/textpoke-measure"

// Measure counts. It keeps to CPU 0, which is the patcher then, and so does a process that Do starts.
// If ctx ends, it returns the counts so far beside the error.
func (h *Here) Measure(ctx context.Context) (*Measurement, error) {
	if h.Interrupts == "" {
		h.Interrupts = interrupts.ProcFile
	}
	s, err := interrupts.Read(h.Interrupts)
	if err != nil {
		return nil, err
	}
	m := &Measurement{Arch: h.Arch, CPUs: make([]cpus.Role, len(s.CPUs))}
	for i, cpu := range s.CPUs {
		if i != cpu {
			return nil, fmt.Errorf("%s: CPU %d is offline: want all CPUs from 0 on", h.Interrupts, i)
		}
	}
	if len(s.CPUs) < 2 {
		return nil, fmt.Errorf("%s: one CPU has no other that it interrupts", h.Interrupts)
	}
	for _, cpu := range h.Isolated {
		if cpu < len(m.CPUs) {
			m.CPUs[cpu] = cpus.Isolated
		}
	}
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	m.Release = strings.TrimSpace(string(release))
	if err == nil {
		err = <-microbench.On(0, func() error { return h.measure(ctx, m) })
	}
	return m, err
}

func (h *Here) measure(ctx context.Context, m *Measurement) (err error) {
	directions := map[string]func() error{Enable: func() error { return h.Do(ctx) }}
	if h.Do == nil {
		turn, gone, err := h.instance()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, gone()) }()
		directions = map[string]func() error{Enable: turn("function"), Disable: turn("nop")}
	}
	for n := range h.Repetitions {
		longest := time.Duration(0)
		for _, direction := range []string{Enable, Disable} {
			if do := directions[direction]; do != nil {
				took, err := h.count(m, direction, n, do)
				if err != nil {
					return err
				}
				longest = max(longest, took)
			}
		}
		_, err := h.count(m, Control, n, func() error {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(longest):
				return nil
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// instance makes the instance, with the action's filter, and gives what turns its tracer.
func (h *Here) instance() (turn func(tracer string) func() error, gone func() error, err error) {
	_, filter, err := ledger.ParseAction(ledger.Actions(), h.Action)
	if err != nil {
		return nil, nil, err
	}
	made, err := h.Files.Mkdir(hereInstance)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("make an instance of tracefs: %w", err)
	case !made:
		return nil, nil, fmt.Errorf("tracefs has %s already: another measurement uses it, or left it (rmdir removes it)", hereInstance)
	}
	turn = func(tracer string) func() error {
		return func() error { return h.Files.Write(hereInstance+"/current_tracer", tracer, true) }
	}
	gone = func() error { return errors.Join(turn("nop")(), h.Files.Remove(hereInstance)) }
	for _, w := range [][2]string{{"tracing_on", "0"}, {"set_ftrace_filter", filter}} {
		if err := h.Files.Write(hereInstance+"/"+w[0], w[1], true); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("write %q into the instance's %s: %w", w[1], w[0], err), gone())
		}
	}
	return turn, gone, nil
}

// count adds a reading of every CPU's interrupts during do.
func (h *Here) count(m *Measurement, direction string, repetition int, do func() error) (time.Duration, error) {
	start := time.Time{}
	pair, err := interrupts.Sample(h.Interrupts, func() error {
		start = time.Now()
		return do()
	})
	took := time.Since(start)
	if err != nil {
		return 0, fmt.Errorf("action %s, %s: %w", h.Action, direction, err)
	}
	deltas, err := interrupts.Diff(pair.Before, pair.After)
	if err != nil {
		return 0, err
	}
	r := Reading{Action: h.Action, Direction: direction, Repetition: repetition, Took: took}
	for _, d := range deltas {
		if d.CPUs == nil || !d.Changed() || d.Missing() != "" {
			continue
		}
		counts := spelling.Each(d.Delta, func(n int64) int { return int(n) })
		r.Rows = append(r.Rows, Row{d.Name, d.Description, counts})
	}
	m.Readings = append(m.Readings, r)
	return took, nil
}
