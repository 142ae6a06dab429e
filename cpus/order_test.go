// SPDX-License-Identifier: Apache-2.0

package cpus

import "testing"

// TestNoWakeupIsLost puts what wakes a sleeper at every point of its falling asleep:
// it leaves something, then it looks at the flag and rings.
func TestNoWakeupIsLost(t *testing.T) {
	wakers := map[string]func(m *Machine, r *runner){
		"interrupt": func(m *Machine, r *runner) { m.boxes[r.id].push(maskable, &request{cause: Sync}) },
		"lease":     func(_ *Machine, r *runner) { r.wanted.Store(true) },
	}
	for name, leave := range wakers {
		for leaves := range len(fallAsleep) + 1 {
			for rings := leaves; rings <= len(fallAsleep); rings++ {
				m := newFixture(t, "x86_64", 1, busy(2), noHandler{}, Weak).Machine // at rest
				r := m.runners[1]
				awake := false
				for at := range len(fallAsleep) + 1 {
					if at == leaves {
						leave(m, r)
					}
					if at == rings {
						r.ring()
					}
					if at < len(fallAsleep) && !awake {
						awake = !fallAsleep[at](r)
					}
				}
				if !awake && len(r.bell) == 0 {
					t.Errorf("%s before access %d, ring before access %d: it sleeps for ever", name, leaves, rings)
				}
			}
		}
	}
}

// TestRoundsHoldTheHotplugLock: from choosing its targets until they have all been
// asked a round holds the lock that a CPU needs to come or go, and stop_machine
// until it resumes (cpus_read_lock in kernel/smp.c and kernel/stop_machine.c).
func TestRoundsHoldTheHotplugLock(t *testing.T) {
	m := newFixture(t, "x86_64", 1, busy(3), noHandler{}, Weak).Machine // at rest: nobody answers
	free := func() bool {
		if !m.hotplug.TryLock() {
			return false
		}
		m.hotplug.Unlock()
		return true
	}
	var during []bool
	m.listener = Tee(&Listener{Round: func(uint64, int, Cause, int, int64) { during = append(during, free()) }})
	s := m.Sender(0)
	s.Send(0, Sync, false)
	if len(during) != 1 || during[0] || !free() {
		t.Errorf("a round: free while it was sent: %v, and after it: %t", during, free())
	}
	if !s.StopMachine(0, false) {
		t.Fatal("somebody else has the machine stopped")
	}
	s.Send(0, Sync, false)
	if len(during) != 3 || during[1] || during[2] || free() {
		t.Errorf("stop_machine: free while rounds were sent: %v, while CPUs stand: %t", during[1:], free())
	}
	s.ResumeMachine()
	if !free() {
		t.Error("nobody may come or go after stop_machine")
	}
}
