// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"context"
	"errors"
	"fmt"
)

// ErrLastOne says that a CPU cannot be unplugged because no other one is online
// that patchers may run on.
var ErrLastOne = errors.New("it is the last one that patchers may run on")

// ErrAlready says that a CPU is as it was to become.
var ErrAlready = errors.New("already")

// Unplug takes a CPU out: it answers the requests that still wait for it, and from then on no round
// has it as a target. It waits for a patcher that occupies the CPU, and for a round or a
// stop_machine that is being sent (cpu_down, kernel/cpu.c). One CPU that patchers may run on must
// remain online.
func (m *Machine) Unplug(ctx context.Context, cpu int) error {
	r := m.runners[cpu]
	if err := r.sit(ctx); err != nil {
		return fmt.Errorf("unplug cpu %d: %w", cpu, err)
	}
	defer r.stand()
	// Only now, and before the CPU is taken over: a patcher that holds the
	// lock in stop_machine needs the CPU to arrive.
	m.hotplug.Lock()
	defer m.hotplug.Unlock()
	switch {
	case !m.online[cpu].Load():
		return fmt.Errorf("unplug cpu %d: it is offline %w", cpu, ErrAlready)
	case m.roles[cpu].RunsPatcher() && m.patcherCPUsOnline() == 1:
		return fmt.Errorf("unplug cpu %d: %w", cpu, ErrLastOne)
	}
	r.lease()
	(&Lease{r}).answerInterrupts()
	m.online[cpu].Store(false)
	r.synced.Store(fetchesNothing)
	return nil // the goroutine rests in its hand-over until Plug
}

// HoldHotplug keeps CPUs from being brought up (cpus_read_lock), false while one is;
// LetHotplug gives that back.
func (m *Machine) HoldHotplug() bool {
	for {
		n := m.readers.Load()
		if n < 0 {
			return false
		}
		if m.readers.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// LetHotplug is the other half of HoldHotplug.
func (m *Machine) LetHotplug() { m.readers.Add(-1) }

// BringUp implements Shared: the lock is cpus_write_lock. Only where a path says how CPUs come
// online; see Plug. From now on the text keeps the versions that the CPU may fetch until it
// synchronises.
func (m *Machine) BringUp(cpu int) bool {
	if !m.readers.CompareAndSwap(0, -1) {
		return false
	}
	m.runners[cpu].synced.Store(uint64(m.Seq()))
	return true
}

// ComeOnline and CameUp implement Shared.
func (m *Machine) ComeOnline(cpu int) { m.online[cpu].Store(true) }

// CameUp is the end of BringUp.
func (m *Machine) CameUp(int) { m.readers.Store(0) }

// Plug brings a CPU in. Bringing up serialises: it fetches afresh.
func (m *Machine) Plug(ctx context.Context, cpu int) error {
	r := m.runners[cpu]
	if err := r.sit(ctx); err != nil {
		return fmt.Errorf("plug cpu %d: %w", cpu, err)
	}
	m.hotplug.Lock()
	defer m.hotplug.Unlock()
	if m.online[cpu].Load() {
		r.stand()
		return fmt.Errorf("plug cpu %d: it is online %w", cpu, ErrAlready)
	}
	l := &Lease{r}
	l.Sync()
	m.online[cpu].Store(true)
	l.Release()
	return nil
}
