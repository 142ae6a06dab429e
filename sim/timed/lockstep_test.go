// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// inLockstep is a machine of one site whose patcher sits on CPU 0.
func inLockstep(t *testing.T, roles string) *Lockstep {
	t.Helper()
	c := plain("x86_64", "breakpoint", 1, roles, plainCosts())
	r := newRig(t, c)
	l, err := NewLockstep(r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	l.Sit(0, 0)
	return l
}

// TestLockstepUserSpace: who has said to be in user space is left out by lazy rounds,
// whatever its role; a lazy round inside of stop_machine does not let it go on; and a grace
// period asks it all the same.
func TestLockstepUserSpace(t *testing.T) {
	for _, roles := range []string{"busy=2", "busy=1,isolated=1"} {
		l := inLockstep(t, roles)
		l.LeaveKernel(1)
		if !l.StopMachine(true) || !l.Stopped() || l.Pending(1, false) {
			t.Errorf("%s: stop_machine waits for a CPU in user space", roles)
		}
		l.Send(cpus.Sync, true)
		if !l.Answered() || l.Resumed(1) {
			t.Errorf("%s: a lazy round inside of stop_machine lets a CPU go on, or waits for it", roles)
		}
		l.ResumeMachine()
		if !l.Resumed(1) {
			t.Errorf("%s: the CPU must stand still though the machine goes on", roles)
		}
		if is := l.EnterKernel(1); !is.Owes() {
			t.Errorf("%s: the CPU owes nothing, and was left out", roles)
		}
		l.LeaveKernel(1)
		for _, c := range []cpus.Cause{cpus.Quiesce, cpus.QuiesceCPUs} {
			l.Send(c, false)
			taken, ok := l.Take(1, false)
			if !ok || taken.Cause != c || l.Answered() {
				t.Errorf("%s: %v does not ask a CPU in user space", roles, c)
			}
			l.Answer(taken.Ticket)
			if !l.Answered() {
				t.Errorf("%s: %v waits for nobody", roles, c)
			}
		}
	}
}

var _ poke.Ground = (*Lockstep)(nil)
