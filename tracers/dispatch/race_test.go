// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers"
)

// quiet is how often a task has been between two calls: a voluntary switch, to RCU-tasks.
type quiet struct {
	Task
	times atomic.Uint64
}

// synchronize waits until each task has been so since: synchronize_rcu_tasks, which
// unregister_ftrace_function waits for where an ops may be freed.
func synchronize(tasks []*quiet) {
	for _, t := range tasks {
		for was := t.times.Load(); t.times.Load() == was; {
			runtime.Gosched()
		}
	}
}

// TestAttachWhileCalling attaches and detaches tracers while others call: who is attached
// throughout is called exactly once for every call, and who is detached and waited for is
// called no more.
func TestAttachWhileCalling(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.Name, func(t *testing.T) { attachWhileCalling(t, k) })
	}
}

func attachWhileCalling(t *testing.T, k Kind) {
	const callers, rounds = 3, 60
	w := sole(t, k)
	keep := tracers.NewOps("keep", tracers.CountHits, 0, 0)
	if k.Direct {
		keep.Func, keep.Direct = nil, tracers.CountHits
	}
	if err := w.Attach(keep); err != nil {
		t.Fatal(err)
	}
	var (
		stop atomic.Bool
		late atomic.Int64 // calls of tracers that had been released
		wait sync.WaitGroup
	)
	tasks, calls := make([]*quiet, callers), make([]uint64, callers)
	for i := range tasks {
		tasks[i] = &quiet{}
		wait.Go(func() {
			for !stop.Load() {
				w.Call(0, &tasks[i].Task)
				calls[i]++
				tasks[i].times.Add(1)
				if calls[i]%8 == 0 {
					runtime.Gosched() // there may be fewer CPUs than tasks
				}
			}
		})
	}
	for i := range rounds {
		released := new(atomic.Bool)
		o := tracers.NewOps("comes and goes", &tracers.Func{Entry: func(records.Addr, *tracers.Ops, *tracers.Task) {
			runtime.Gosched() // stays on its way for a while
			if released.Load() {
				late.Add(1)
			}
		}}, []tracers.OpsFlags{tracers.OpsRecursion, 0}[i%2], 0)
		if err := w.Attach(o); err != nil {
			t.Fatal(err)
		}
		synchronize(tasks)
		if err := w.Detach(o); err != nil {
			t.Fatal(err)
		}
		synchronize(tasks)
		released.Store(true)
	}
	stop.Store(true)
	wait.Wait()
	for i, ctx := range tasks {
		if ctx.Hits != calls[i] || ctx.Missed != 0 || calls[i] == 0 {
			t.Errorf("task %d: %d calls, %d hits, %d missed", i, calls[i], ctx.Hits, ctx.Missed)
		}
	}
	if n := late.Load(); n != 0 {
		t.Errorf("%d calls of tracers that had been released", n)
	}
}

// TestPool: nodes that are taken by several CPUs at once are each with one of them.
func TestPool(t *testing.T) {
	const nodes, cpus, times = 4, 3, 5000
	p := newPool(nodes)
	var held [nodes]atomic.Int32
	var wait sync.WaitGroup
	for range cpus {
		wait.Go(func() {
			for i := range times {
				n := p.get()
				if n == nil {
					t.Error("no node, though there are more than CPUs")
					return
				}
				if held[n.index].Add(1) != 1 {
					t.Error("two CPUs have the same node")
				}
				if i%64 == 0 {
					runtime.Gosched()
				}
				held[n.index].Add(-1)
				p.put(n)
			}
		})
	}
	wait.Wait()
	// Whoever has read the head and next of a node before it went and came back must not
	// succeed: the head is another number each time.
	was := p.head.Load()
	a, b := p.get(), p.get()
	p.put(b)
	if p.put(a); p.head.Load() == was {
		t.Error("the head is what it was, though nodes have come and gone")
	}
	seen := map[*node]bool{}
	for n := p.get(); n != nil; n = p.get() {
		if seen[n] {
			t.Fatal("a node twice")
		}
		seen[n] = true
	}
	if len(seen) != nodes {
		t.Errorf("%d nodes are left of %d", len(seen), nodes)
	}
}
