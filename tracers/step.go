// SPDX-License-Identifier: Apache-2.0

package tracers

// StepKind is what a step of a change does.
type StepKind uint8

// The kinds of steps. A step's cost depends on the kernel; package ledger prices them.
const (
	StepTrampoline StepKind = iota // an ops gets a trampoline of its own
	StepAim                        // its trampoline is there already, and gets its function again
	StepFree                       // its trampoline is given back
	StepImage                      // a BPF trampoline is generated
	StepSkip                       // a program that goes is patched out of its BPF trampoline, or the trampoline cut off
	StepUpdateFunc                 // the calls in the common entries go to a function; nothing where sites have literals
	StepRecords                    // the sites of a pass, in order; package sched cuts them into batches
	StepSetOp                      // function_trace_op := the ops of the wanted function
	StepSync                       // smp_wmb and one round of interrupts that execute smp_rmb (ftrace_sync_ipi)
	StepGraphStart                 // the graph caller is enabled
	StepGraphStop                  // and disabled
	StepRude                       // a wait until every CPU has switched tasks (synchronize_rcu_tasks_rude)
	StepTasks                      // a wait until every task has scheduled, about 100 ms (synchronize_rcu_tasks)
)

var stepNames = [...]string{"make trampoline", "aim trampoline", "free trampoline", "generate image", "skip program",
	"update_ftrace_func", "patch records", "set function_trace_op", "sync", "start graph caller", "stop graph caller",
	"wait for CPUs", "wait for tasks"}

// Step is one step of a change.
type Step struct {
	Kind StepKind
	Ops  *Ops  // whose trampoline it is
	Func *Func // of StepUpdateFunc
	Pass *Pass // of StepRecords
}

// String is the step, with the function that the common entries are to call.
func (s Step) String() string {
	if s.Kind == StepUpdateFunc {
		return stepNames[s.Kind] + " " + s.Func.Name
	}
	return stepNames[s.Kind]
}

// step notes a step that was taken.
func (x *change) step(kind StepKind, o *Ops) { x.Steps = append(x.Steps, Step{Kind: kind, Ops: o}) }

// Count is how many steps of a kind a change took.
func (r *Report) Count(kind StepKind) (n int) {
	for _, s := range r.Steps {
		if s.Kind == kind {
			n++
		}
	}
	return n
}
