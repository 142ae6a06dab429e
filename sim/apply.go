// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"io"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results/interrupts"
	"github.com/textpoke/textpoke/sched/coordinator"
)

// Attach lets the one tracer be called from now on, whichever sites Apply enables.
func (l *Live) Attach() { l.machine.SetOps(l.ops, cpus.CalledTracer) }

// Patchable tells whether the architecture lets a record be patched.
func (l *Live) Patchable(record int) bool { return l.sites.site[record] >= 0 }

// Fault makes stores of the following updates fail as f says; nil for none. No
// update may be running.
func (l *Live) Fault(f func(st poke.Step, patch int32) error) { l.patcher.Fault = f }

// Apply carries changes out with one update, all or none, and looks afterwards
// whether every site is as it should be; it is a sched.Apply. One call at a time.
func (l *Live) Apply(ctx context.Context, changes []coordinator.Change) error {
	patches := make([]poke.Patch, len(changes))
	for i, c := range changes {
		patches[i] = l.sites.patch(c.Record, c.Enable)
	}
	u, err := l.job.update(patches, false)
	if err != nil {
		return err
	}
	err = l.patcher.Run(ctx, u)
	var failed *poke.Error
	if errors.As(err, &failed) && failed.State == poke.AllOld {
		for i := range patches {
			patches[i].New, patches[i].NewOps = patches[i].Old, patches[i].OldOps
		}
	}
	l.checkSites(patches)
	return err
}

// CheckAll holds every site of the table against what live says of its record.
// No update may be running; what is wrong is in Violations.
func (l *Live) CheckAll(live func(record int) bool) {
	all := make([]poke.Patch, len(l.sites.records))
	for i, rec := range l.sites.records {
		all[i] = l.sites.patch(rec, live(rec))
	}
	l.checkSites(all)
}

// Unplug takes a CPU out, and Plug brings one in; see cpus.Machine.
func (l *Live) Unplug(ctx context.Context, cpu int) error { return l.machine.Unplug(ctx, cpu) }

// Plug is the other half of Unplug.
func (l *Live) Plug(ctx context.Context, cpu int) error { return l.machine.Plug(ctx, cpu) }

// Online tells whether a CPU takes part.
func (l *Live) Online(cpu int) bool { return l.machine.Online(cpu) }

// SetGait says how much the CPUs' own tasks do while no update runs.
func (l *Live) SetGait(g cpus.Gait) { l.machine.SetGait(g) }

// Now is the time by the machine's clock, in nanoseconds since it was built.
func (l *Live) Now() int64 { return l.machine.Now() }

// Tallies reads what each CPU has done, taking one after the other over for a
// moment.
func (l *Live) Tallies(ctx context.Context) ([]cpus.Tally, error) { return l.machine.Tallies(ctx) }

// WriteInterrupts prints the interrupts since the machine was built of the CPUs
// that are online, laid out as /proc/interrupts.
func (l *Live) WriteInterrupts(w io.Writer) error {
	present := l.job.Config
	present.Roles = make([]cpus.Role, l.machine.CPUs())
	for cpu := range present.Roles {
		if present.Roles[cpu] = l.machine.Role(cpu); !l.machine.Online(cpu) {
			present.Roles[cpu] = cpus.Offline
		} else if present.Roles[cpu] == cpus.Offline { // was plugged in
			present.Roles[cpu] = cpus.Busy
		}
	}
	return interrupts.Write(w, snapshot(RunRow{PlanRow: PlanRow{Config: &present}}, l.Counts()))
}
