// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/kernels/tracefs"
	"github.com/textpoke/textpoke/results/interrupts"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sched/coordinator"
	"github.com/textpoke/textpoke/service"
	"github.com/textpoke/textpoke/service/journal"
	"github.com/textpoke/textpoke/sim"
)

// Config names the parts by which a kernel is served.
type Config struct {
	Files    tracefs.Files
	Instance string // its name
	// Lock keeps other servers from the instance; nil where it is to be locked.
	Lock    io.Closer
	Records *Records
	// Kernel is this kernel's image, for forecasts; nil for none. State is what is so already (ledger.Kernel.Here).
	Kernel *ledger.Kernel
	State  []string
	// Interrupts is where interrupts are read, "" for /proc/interrupts; CPUs is sysfs's folder of
	// CPUs, "" for /sys/devices/system/cpu; Enabled tells whether functions are patched at all, "" for
	// /proc/sys/kernel/ftrace_enabled.
	Interrupts, CPUs, Enabled string
}

// Host is this machine's kernel.
type Host struct {
	cfg      Config
	log      *zap.Logger
	instance *tracefs.Instance
	graph    *tracefs.Instance
	lock     io.Closer
	roles    []cpus.Role
	first    interrupts.Snapshot // as of the start
	started  time.Time
	replay   *replay // of the traced functions; nil without forecasts

	mu       sync.Mutex
	parts    []*part // by the places of Ops
	pipe     *pipe   // of the instance: functions and events
	graphs   *pipe   // of its graph instance
	restored bool    // see Restored
}

// Machine makes a service's machine of the kernel. The instance is made where it is not there.
func Machine(cfg Config) service.Maker {
	cfg.Interrupts = cmp.Or(cfg.Interrupts, interrupts.ProcFile)
	cfg.CPUs = cmp.Or(cfg.CPUs, "/sys/devices/system/cpu")
	cfg.Enabled = cmp.Or(cfg.Enabled, "/proc/sys/kernel/ftrace_enabled")
	return func(_ *cpus.Listener, log *zap.Logger) (service.Machine, error) {
		h := &Host{cfg: cfg, log: log, lock: cfg.Lock, started: time.Now()}
		if err := h.open(); err != nil {
			if h.instance != nil {
				err = errors.Join(err, h.instance.Abandon())
			}
			h.Close()
			return nil, fmt.Errorf("this machine's kernel: %w", err)
		}
		return h, nil
	}
}

func (h *Host) open() (err error) {
	if h.instance, err = tracefs.Open(h.cfg.Files, h.cfg.Instance); err != nil {
		return err
	}
	if err = h.hold(); err != nil {
		return err
	}
	if h.first, err = h.read(); err != nil {
		return err
	}
	if h.roles, err = roles(h.cfg.CPUs); err != nil {
		return err
	}
	var ok bool
	if h.graph, ok, err = h.instance.Graph(); err != nil {
		return err
	}
	tracers := []tracer{h.instance, h.graph, h.instance.Events()}
	if !ok {
		tracers[graphOps] = absent{}
	}
	all := functions(h.cfg.Records.All)
	for i, ops := range Ops() {
		h.parts = append(h.parts, &part{ops: ops, tracer: tracers[i], all: all, log: h.log, want: map[int]bool{}})
	}
	h.pipe = &pipe{open: h.instance.Pipe, parser: func() parser { return tracefs.ParseLine }, log: h.log}
	h.graphs = &pipe{open: h.graph.Pipe, parser: func() parser { return new(tracefs.Graph).Parse }, log: h.log}
	if err := h.found(); err != nil {
		return err
	}
	if h.cfg.Kernel != nil {
		h.replay, err = h.newReplay()
	}
	return err
}

// hold keeps other servers from the instance. One that somebody removed is made anew.
func (h *Host) hold() error {
	if b, err := os.ReadFile(h.cfg.Enabled); err == nil && strings.TrimSpace(string(b)) == "0" {
		return errors.New("the kernel patches no function: sysctl kernel.ftrace_enabled is 0, want 1")
	}
	made, err := h.instance.Make()
	if err != nil || h.lock != nil && !made {
		return err
	}
	if h.lock != nil {
		h.log.Warn("the instance was removed by somebody else", zap.String("instance", h.cfg.Instance))
		h.Close()
	}
	if h.lock, err = h.cfg.Files.Lock("instances/" + h.cfg.Instance); err != nil {
		return fmt.Errorf("instance %s: %w", h.cfg.Instance, err)
	}
	return nil
}

// found tells which other tracers are on, and the functions and events in the instance that an earlier server left.
func (h *Host) found() error {
	others, err := h.instance.Foreign()
	if err != nil {
		return err
	}
	if len(others) > 0 {
		h.log.Info("other tracers are on: their interrupts are counted too", zap.Strings("instances", others))
	}
	for _, p := range h.parts {
		held, all, err := p.tracer.Held()
		switch {
		case errors.Is(err, tracefs.ErrOther):
			h.log.Warn("the instance was changed by somebody else", zap.String("ops", p.ops), zap.Error(err))
		case err != nil:
			return err
		case all:
			h.log.Warn("the instance traces every function: somebody else emptied its filter", zap.String("ops", p.ops))
		case len(held) > 0:
			h.log.Info("the instance traces already", zap.String("ops", p.ops), zap.Int("functions", len(held)))
		}
	}
	return nil
}

// The ops that a record is not for.
var (
	errEvent    = errors.New("it is a trace event: want the ops event")
	errFunction = errors.New("it is a function: want the ops function or graph")
)

// Patchable tells that functions are for tracers of functions, and events for themselves.
func (h *Host) Patchable(ops string, record int) error {
	switch isEvent := record >= h.cfg.Records.Functions.Len(); {
	case isEvent && ops != Ops()[eventOps]:
		return errEvent
	case !isEvent && ops == Ops()[eventOps]:
		return errFunction
	}
	return nil
}

// wants are the wanted records, by the places of Ops.
type wants []map[int]bool

// wants is called with mu held.
func (h *Host) wants() wants {
	return spelling.Each(h.parts, func(p *part) map[int]bool { return p.want })
}

// with is what is wanted after some numbers were switched (service.Number), and what came new of each ops.
func (h *Host) with(now wants, numbers []int, enable func(i int) bool) (next wants, fresh [][]tracefs.Function) {
	next, fresh = slices.Clone(now), make([][]tracefs.Function, len(now))
	cloned := make([]bool, len(now))
	for i, n := range numbers {
		ops, record := service.Split(h.cfg.Records.All.Len(), n)
		if !cloned[ops] {
			next[ops], cloned[ops] = maps.Clone(now[ops]), true
		}
		if enable(i) {
			next[ops][record] = true
			fresh[ops] = append(fresh[ops], h.parts[ops].all[record])
		} else {
			delete(next[ops], record)
		}
	}
	return next, fresh
}

// Apply has the instance trace what is wanted after some changes. Functions that the kernel
// did not take end the update, and all is as it was before; so does a failed write.
func (h *Host) Apply(_ context.Context, changes []coordinator.Change) (*journal.Receipt, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	numbers := spelling.Each(changes, func(c coordinator.Change) int { return c.Record })
	runtime.LockOSThread() // so that CPUs are this thread's
	defer runtime.UnlockOSThread()
	cpu := thisCPU()
	next, fresh := h.with(h.wants(), numbers, func(i int) bool { return changes[i].Enable })
	before, err := h.read()
	if err = errors.Join(err, h.hold()); err != nil {
		return nil, err
	}
	missing := make([][]tracefs.Function, len(h.parts))
	for i, p := range h.parts {
		if maps.Equal(next[i], p.want) {
			missing[i] = p.gone
			continue
		}
		if missing[i], err = p.bring(next[i], fresh[i], h.restored); err != nil {
			return nil, h.undo(h.parts[:i+1], err)
		}
	}
	for i, p := range h.parts {
		p.want = next[i]
		p.lost(missing[i])
	}
	if thisCPU() != cpu {
		cpu = -1
	}
	return h.receipt(before, cpu)
}

// undo has the kernel trace again what was wanted before an update that failed.
func (h *Host) undo(parts []*part, why error) error {
	for _, p := range parts {
		if _, err := p.tracer.Trace(p.functions(p.want)); err != nil {
			return fmt.Errorf("%w: %w, and the state before could not be brought back: %w", service.ErrStuck, why, err)
		}
	}
	return why
}

// Restored takes functions and events out of the instance that no client wants. From now on an update fails if the
// kernel does not take its records. Wanted ones that went before the start have been told.
func (h *Host) Restored(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.restored = true
	return h.each((*part).now)
}

// Agree makes the kernel trace the wanted records, no more and no less.
func (h *Host) Agree(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.hold(); err != nil {
		return err
	}
	var errs []error
	for _, i := range []*tracefs.Instance{h.instance, h.graph} {
		held, err := i.Settle()
		if errs = append(errs, err); len(held) > 0 {
			h.log.Warn("the instance was changed by somebody else", zap.String("instance", i.Name()), zap.Strings("held", held))
		}
	}
	return errors.Join(append(errs, h.each((*part).agree))...)
}

func (h *Host) each(do func(*part) error) error {
	return errors.Join(spelling.Each(h.parts, do)...)
}

// Cost is what switching records would send, by the kernel's image.
func (h *Host) Cost(_ context.Context, recs []int, buffer *sched.Buffer) (row sim.PlanRow, err error) {
	if buffer != nil {
		return row, fmt.Errorf("another vector than the kernel's: %w", service.ErrNoForecast)
	}
	return h.forecast(recs)
}

// CPUs is every CPU that may be there, with its interrupts of calls, wake-ups and flushes.
func (h *Host) CPUs() []service.CPU {
	out := make([]service.CPU, len(h.roles))
	for i := range out {
		out[i] = service.CPU{ID: i, Role: h.roles[i].String(), Taken: map[string]uint64{}}
	}
	now, err := h.read()
	if err != nil {
		h.log.Error("interrupts cannot be read", zap.Error(err))
		return out
	}
	for _, id := range now.CPUs {
		if id < len(out) {
			out[id].Online = true
		}
	}
	for row, counts := range since(h.first, now) {
		for cpu, n := range counts {
			if n > 0 && cpu < len(out) {
				out[cpu].Taken[row] = uint64(n)
			}
		}
	}
	return out
}

// Tallies are zero: the calls of this machine's CPUs cannot be counted.
func (h *Host) Tallies(context.Context) ([]cpus.Tally, error) {
	return make([]cpus.Tally, len(h.roles)), nil
}

// Plug is refused.
func (h *Host) Plug(context.Context, int, bool) error {
	return &service.FieldError{Field: "id", Reason: "it is this machine's own: unplug it in " + h.cfg.CPUs}
}

// Interrupts prints those of this machine, since it was booted.
func (h *Host) Interrupts(w io.Writer) error {
	b, err := os.ReadFile(h.cfg.Interrupts)
	if err == nil {
		_, err = w.Write(b)
	}
	return err
}

// Violations are none: a kernel's promises are not watched from inside of it.
func (h *Host) Violations() []cpus.Violation { return nil }

// SetPacing changes nothing.
func (h *Host) SetPacing(cpus.Pacing) {}

// Now is the time since the start.
func (h *Host) Now() int64 { return time.Since(h.started).Nanoseconds() }

// Close leaves the instance as it is: clients want its functions until they say otherwise.
func (h *Host) Close() {
	if h.lock != nil {
		if err := h.lock.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			h.log.Error("release the instance's lock", zap.Error(err))
		}
	}
}
