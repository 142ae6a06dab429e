// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/kernels/tracefs"
	"github.com/textpoke/textpoke/records"
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
	Table    *records.Table
	// Kernel is this kernel's image, for forecasts; nil for none. State is what is so already (ledger.Kernel.Here).
	Kernel *ledger.Kernel
	State  []string
	// Interrupts is where interrupts are read, "" for /proc/interrupts; CPUs is sysfs's folder of
	// CPUs, "" for /sys/devices/system/cpu.
	Interrupts, CPUs string
}

// Host is this machine's kernel.
type Host struct {
	cfg      Config
	log      *zap.Logger
	instance *tracefs.Instance
	lock     io.Closer
	all      []tracefs.Function // by record
	roles    []cpus.Role
	first    interrupts.Snapshot // as of the start
	started  time.Time
	replay   *ledger.Replay // of what the instance traces; nil without forecasts

	mu   sync.Mutex
	want map[int]bool       // what the instance traces, but for what the kernel lost
	gone []tracefs.Function // of it, what the kernel lost, as of the last change
}

// Machine makes a service's machine of the kernel. The instance is made where it is not there.
func Machine(cfg Config) service.Maker {
	if cfg.Interrupts == "" {
		cfg.Interrupts = interrupts.ProcFile
	}
	if cfg.CPUs == "" {
		cfg.CPUs = "/sys/devices/system/cpu"
	}
	return func(_ *cpus.Listener, log *zap.Logger) (service.Machine, error) {
		h := &Host{cfg: cfg, log: log, all: functions(cfg.Table), want: map[int]bool{}, started: time.Now()}
		err := h.open()
		if err != nil {
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
	if h.lock, err = h.cfg.Files.Lock("instances/" + h.cfg.Instance); err != nil {
		return fmt.Errorf("instance %s: %w", h.cfg.Instance, err)
	}
	if h.first, err = interrupts.Read(h.cfg.Interrupts); err != nil {
		return err
	}
	if h.roles, err = roles(h.cfg.CPUs); err != nil {
		return err
	}
	if err := h.found(); err != nil {
		return err
	}
	if h.cfg.Kernel != nil {
		h.replay, err = h.cfg.Kernel.In(h.cfg.State).NewReplay(h.cfg.Table)
	}
	return err
}

// found tells which other tracers are on, and what the instance holds that an earlier server left.
func (h *Host) found() error {
	others, err := h.instance.Foreign()
	if err != nil {
		return err
	}
	if len(others) > 0 {
		h.log.Info("other tracers are on: their interrupts are counted too", zap.Strings("instances", others))
	}
	on, err := h.instance.On()
	if err != nil || !on {
		return err
	}
	held, all, err := h.instance.Filter()
	if err != nil {
		return err
	}
	if all {
		h.log.Warn("the instance traces every function: somebody else emptied its filter", zap.String("instance", h.cfg.Instance))
		return nil
	}
	h.log.Info("the instance traces already", zap.String("instance", h.cfg.Instance), zap.Int("functions", len(held)))
	return nil
}

// Patchable tells that every function which the kernel lists can be traced.
func (h *Host) Patchable(int) bool { return true }

// Apply has the instance trace what is wanted after some changes. Functions that the kernel
// did not take end the update, and all is as it was before; so does a failed write.
func (h *Host) Apply(_ context.Context, changes []coordinator.Change) (*journal.Receipt, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	next := maps.Clone(h.want)
	var on []tracefs.Function
	for _, c := range changes {
		if c.Enable {
			next[c.Record] = true
			on = append(on, h.all[c.Record])
		} else {
			delete(next, c.Record)
		}
	}
	before, err := interrupts.Read(h.cfg.Interrupts)
	if err == nil {
		_, err = h.instance.On() // with another tracer nothing can be changed, or taken back
	}
	if err != nil {
		return nil, err
	}
	missing, err := h.instance.Trace(h.functions(next))
	if refused := both(missing, on); err == nil && len(refused) > 0 {
		err = fmt.Errorf("the kernel did not take %d of %d functions: %s", len(refused), len(on), few(refused))
	}
	if err != nil {
		if _, undo := h.instance.Trace(h.functions(h.want)); undo != nil {
			return nil, fmt.Errorf("%w: %w, and what was before could not be brought back: %w", service.ErrStuck, err, undo)
		}
		return nil, err
	}
	h.want = next
	h.lost(missing)
	return h.receipt(before)
}

// Restored takes away what the instance traces and no client wants.
func (h *Host) Restored(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	missing, err := h.instance.Trace(h.functions(h.want))
	if err == nil {
		h.lost(missing)
	}
	return err
}

// Agree looks whether the instance still traces what is wanted, tells where somebody else
// changed it, and makes it agree again. Functions that the kernel lost are asked for again: their module may be back.
func (h *Host) Agree(ctx context.Context) error {
	h.mu.Lock()
	on, err := h.instance.On()
	var held []tracefs.Function
	if err == nil && on {
		held, _, err = h.instance.Filter()
	}
	agrees, gone := h.holds(on, held), len(h.gone)
	h.mu.Unlock()
	switch {
	case err != nil || agrees && gone == 0:
		return err
	case agrees:
		return h.Restored(ctx)
	}
	h.log.Warn("the instance was changed by somebody else", zap.Bool("on", on), zap.Int("functions", len(held)))
	return h.Restored(ctx)
}

// holds tells whether the instance traces what is wanted and not gone, and nothing else. Its filter does not tell
// functions of one name apart.
func (h *Host) holds(on bool, held []tracefs.Function) bool {
	counts := map[tracefs.Function]int{}
	add := func(fs []tracefs.Function, n int) {
		for _, f := range fs {
			f.Nth = 0
			counts[f] += n
		}
	}
	add(held, 1)
	add(h.functions(h.want), -1)
	add(h.gone, 1)
	for _, n := range counts {
		if n != 0 {
			return false
		}
	}
	return on == (len(h.want) > len(h.gone))
}

func (h *Host) functions(which map[int]bool) []tracefs.Function {
	fs := make([]tracefs.Function, 0, len(which))
	for _, rec := range slices.Sorted(maps.Keys(which)) {
		fs = append(fs, h.all[rec])
	}
	return fs
}

// lost tells of functions that went with their module and are still wanted, once.
func (h *Host) lost(missing []tracefs.Function) {
	told := slices.Equal(missing, h.gone)
	if h.gone = missing; len(missing) > 0 && !told {
		h.log.Warn("wanted, and not in the kernel any more", zap.Int("functions", len(missing)), zap.String("such as", few(missing)))
	}
}

func both(a, b []tracefs.Function) (out []tracefs.Function) {
	in := map[tracefs.Function]bool{}
	for _, f := range b {
		in[f] = true
	}
	for _, f := range a {
		if in[f] {
			out = append(out, f)
		}
	}
	return out
}

// few names the first of some functions.
func few(fs []tracefs.Function) string {
	const most = 3
	var names []string
	for _, f := range fs[:min(len(fs), most)] {
		names = append(names, f.String())
	}
	if len(fs) > most {
		names = append(names, fmt.Sprintf("and %d more", len(fs)-most))
	}
	return strings.Join(names, ", ")
}

// Cost is what switching records would send, by the kernel's image.
func (h *Host) Cost(_ context.Context, recs []int, buffer *sched.Buffer) (row sim.PlanRow, err error) {
	if buffer != nil {
		return row, fmt.Errorf("another vector than the kernel's: %w", service.ErrNoForecast)
	}
	return h.forecast(recs)
}

// CPUs is every CPU that may be there, with what it took of calls, wake-ups and flushes.
func (h *Host) CPUs() []service.CPU {
	out := make([]service.CPU, len(h.roles))
	for i := range out {
		out[i] = service.CPU{ID: i, Role: h.roles[i].String(), Taken: map[string]uint64{}}
	}
	now, err := interrupts.Read(h.cfg.Interrupts)
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

// Tallies are nothing: what this machine's CPUs call is not ours to see.
func (h *Host) Tallies(context.Context) ([]cpus.Tally, error) {
	return make([]cpus.Tally, len(h.roles)), nil
}

// Plug is refused.
func (h *Host) Plug(context.Context, int, bool) error {
	return &service.FieldError{Field: "cpu", Reason: "it is this machine's own: unplug it in " + h.cfg.CPUs}
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

// SetGait changes nothing.
func (h *Host) SetGait(cpus.Gait) {}

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
