// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/kernels/tracefs"
	"github.com/textpoke/textpoke/kernels/watch"
	"github.com/textpoke/textpoke/results/interrupts"
	"github.com/textpoke/textpoke/service"
	"github.com/textpoke/textpoke/service/journal"
	"github.com/textpoke/textpoke/sim"
)

// calls is the description of the row that counts calls of functions on other CPUs
// (arch/x86/kernel/irq.c, arch/arm64/kernel/smp.c, arch/riscv/kernel/smp.c).
const calls = "Function call interrupts"

// among tells whether a row counts what CPUs send each other.
func among(description string) bool {
	return description == calls || description == "Rescheduling interrupts" || description == "TLB shootdowns" ||
		description == "IRQ work interrupts" || description == "CPU stop interrupts"
}

// since is how much the rows grew that count what CPUs send each other, by CPU.
func since(before, after interrupts.Snapshot) map[string][]int64 {
	grown := map[string][]int64{}
	for _, a := range after.Rows {
		if after.Global(a) || !among(a.Description) {
			continue
		}
		b, _ := before.Row(a.Name)
		counts := make([]int64, slices.Max(after.CPUs)+1)
		for i, cpu := range after.CPUs {
			// A CPU that came meanwhile counts from its first boot on: how much of that is new is not known.
			if at := slices.Index(before.CPUs, cpu); at >= 0 && at < len(b.Counts) {
				counts[cpu] = a.Counts[i] - b.Counts[at]
			}
		}
		grown[a.Name] = counts
	}
	return grown
}

// thisCPU is the CPU that this thread is on (proc_pid_stat(5), the field processor); -1 where that cannot be read.
func thisCPU() int {
	const behind, processor = ")", 36 // the field's number, counted from 0 behind the name
	b, _ := os.ReadFile("/proc/thread-self/stat")
	fields := strings.Fields(string(b[strings.LastIndex(string(b), behind)+1:]))
	if len(fields) <= processor {
		return -1
	}
	cpu, err := strconv.Atoi(fields[processor])
	if err != nil {
		return -1
	}
	return cpu
}

// receipt is what was counted around an update, beside what was forecast. It is called with mu
// held, once the instance traces what is wanted; cpu is where it was carried out, -1 for several.
func (h *Host) receipt(before interrupts.Snapshot, cpu int) (*journal.Receipt, error) {
	after, err := h.read()
	if err != nil {
		h.log.Error("an update's interrupts cannot be read", zap.Error(err))
		return nil, nil
	}
	r := &journal.Receipt{}
	if cpu >= 0 {
		r.Patcher = &cpu
	}
	for _, row := range after.Rows {
		if row.Description == calls {
			r.Row = row.Name
		}
	}
	for cpu, n := range since(before, after)[r.Row] {
		if slices.Contains(after.CPUs, cpu) && slices.Contains(before.CPUs, cpu) {
			r.Taken = append(r.Taken, journal.Taken{CPU: cpu, Interrupts: n})
		}
	}
	r.Forecast = h.foreseen(r.Row)
	for i := range r.Taken {
		r.Taken[i].Others = others(r.Taken[i], cpu, r.Forecast)
	}
	if r.Missed() {
		h.log.Warn("the forecast does not hold, or others interrupted every CPU meanwhile", zap.Any("receipt", r))
	}
	return r, nil
}

// others is how many of the interrupts that a CPU took others must have sent: beyond the most that the update sends, and
// all of the patcher's CPU, which sends itself none.
func others(t journal.Taken, patcher int, f *journal.Forecast) int64 {
	switch {
	case t.CPU == patcher:
		return t.Interrupts
	case f == nil || f.OrMore:
		return 0
	}
	return max(0, t.Interrupts-int64(f.Most))
}

// foreseen is what the image says of an update that was carried out; nil where it says nothing.
func (h *Host) foreseen(row string) *journal.Forecast {
	if h.replay == nil {
		return nil
	}
	lines, err := h.replay.to(h.wants())
	switch {
	case errors.Is(err, errGraph):
		h.log.Info("no forecast", zap.Error(err))
		return nil
	case err != nil:
		h.log.Warn("no forecast any more", zap.Error(err))
		h.replay = nil
		return nil
	}
	all := h.cfg.Kernel.Totals(len(lines), func(i int) *ledger.Entry { return &lines[i].Entry })
	total := spelling.First(all, func(t ledger.Total) bool { return t.Row.Name == row })
	return &journal.Forecast{Interrupts: total.Rounds, Least: total.Within.Least, Most: total.Within.Most,
		OrMore: total.Within.OrMore}
}

// replay is a replay on the kernel's image that follows the wanted records.
type replay struct {
	*ledger.Replay
	events []tracefs.Function // by record
	on     map[int]bool       // of them
	graph  bool               // whether function_graph was on
}

func (h *Host) newReplay() (*replay, error) {
	r, err := h.cfg.Kernel.In(h.cfg.State).NewReplay(h.cfg.Records.Functions)
	return &replay{r, h.parts[eventOps].all, map[int]bool{}, false}, err
}

// read reads what CPUs took. Unlike the files of a request, this one is also read when the server has been told to stop: an
// update that it has begun comes to its end.
func (h *Host) read() (interrupts.Snapshot, error) {
	b, err := os.ReadFile(h.cfg.Interrupts)
	if err != nil {
		return interrupts.Snapshot{}, err
	}
	return interrupts.Parse(h.cfg.Interrupts, bytes.NewReader(b))
}

// errGraph is the part of the ledger that lacks rules: a graph tracer beside another tracer.
var errGraph = errors.New("the ledger has no rule for function_graph in an instance")

// to brings the replay to the wanted records, in the order of the writes to the kernel, and returns the interrupts of that.
func (r *replay) to(next wants) ([]ledger.Line, error) {
	was := r.graph
	r.graph = len(next[graphOps]) > 0
	lines, err := r.Instance(slices.Sorted(maps.Keys(next[functionOps])))
	turn := func(which map[int]bool, unless map[int]bool, on bool) {
		for _, rec := range slices.Sorted(maps.Keys(which)) {
			if err != nil || unless[rec] {
				continue
			}
			var more []ledger.Line
			more, err = r.Switch("tracepoint:"+r.events[rec].Name, on)
			lines = append(lines, more...)
		}
	}
	turn(next[eventOps], r.on, true)
	turn(r.on, next[eventOps], false)
	r.on = maps.Clone(next[eventOps])
	if err == nil && (was || r.graph) {
		err = errGraph
	}
	return lines, err
}

// forecast is the interrupts of switching records, from the instance's present state.
func (h *Host) forecast(recs []int) (row sim.PlanRow, err error) {
	if h.cfg.Kernel == nil {
		return row, service.ErrNoForecast
	}
	h.mu.Lock()
	now := h.wants()
	h.mu.Unlock()
	next, _ := h.with(now, recs, func(i int) bool {
		ops, record := service.Split(h.cfg.Records.All.Len(), recs[i])
		return !now[ops][record]
	})
	r, err := h.newReplay()
	if err == nil {
		_, err = r.to(now)
	}
	var lines []ledger.Line
	if err == nil {
		lines, err = r.to(next)
	}
	if err != nil {
		return row, fmt.Errorf("%w: %w", service.ErrNoForecast, err)
	}
	for _, t := range h.cfg.Kernel.Totals(len(lines), func(i int) *ledger.Entry { return &lines[i].Entry }) {
		row.Rounds += t.Rounds
	}
	row.Patches, row.IPIsPerCPU = len(recs), row.Rounds
	for _, c := range h.CPUs() {
		if c.Online {
			row.IPIs += row.Rounds
		}
	}
	row.IPIs -= row.Rounds // the patcher sends itself none
	return row, nil
}

// roles are those of this machine's CPUs: isolated ones are named by the kernel, all others are
// taken for busy.
func roles(dir string) ([]cpus.Role, error) {
	file := filepath.Join(dir, "possible")
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	possible, err := watch.ParseCPUs(strings.TrimSpace(string(b)))
	if err == nil && len(possible) == 0 {
		err = errors.New("no CPU")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	out := make([]cpus.Role, slices.Max(possible)+1)
	for i := range out {
		out[i] = cpus.Busy
	}
	for _, name := range []string{"isolated", "nohz_full"} {
		for _, cpu := range watch.IsolatedCPUs(filepath.Join(dir, name)) {
			if cpu < len(out) {
				out[cpu] = cpus.Isolated
			}
		}
	}
	return out, nil
}
