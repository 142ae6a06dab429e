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

// TestGraceAsksTasks: synchronize_rcu_tasks waits for tasks that are preempted, and each of
// them once; synchronize_rcu waits for CPUs alone.
func TestGraceAsksTasks(t *testing.T) {
	for cause, tasks := range map[cpus.Cause]int{cpus.Quiesce: 1, cpus.QuiesceCPUs: 0} {
		m := newRig(t, plain("x86_64", "breakpoint", 1, "busy=4,offline=1", plainCosts())).Machine
		m.sit(0)
		m.cpus[1].task = cpus.Task{Phase: cpus.Calling}
		m.cpus[2].task = cpus.Task{Phase: cpus.Calling, Quiet: true}
		m.Send(cause, false)
		if want := 3 + tasks; m.patch.left != want || m.cpus[1].task.Quiet != (tasks > 0) {
			t.Errorf("%v waits for %d answers, want %d", cause, m.patch.left, want)
		}
	}
}

// TestIdleWakeTakesTime: a round to a CPU that is idle takes longer by what it takes to
// wake it; one to a CPU that runs does not.
func TestIdleWakeTakesTime(t *testing.T) {
	k := plainCosts()
	k.Jitter, k.Calls = 0, 0
	took := func(roles string, wake float64) Nanos {
		c := plain("arm64", "", 1, roles, k)
		c.plan = parsed(t, "    for each patch\n        Write word\n    end\n    Fence\n    Sync 1\n")
		c.Costs.IdleWake = wake
		return newRig(t, c).update(true).Update
	}
	const wake = 1e6
	for roles, want := range map[string]Nanos{"busy=2": 0, "busy=1,idle=1": wake} {
		if got := took(roles, wake) - took(roles, 0); got != want {
			t.Errorf("%s: a round takes %d ns longer where waking takes %v ns, want %d", roles, got, wake, want)
		}
	}
}

var _ poke.Ground = (*Lockstep)(nil)
