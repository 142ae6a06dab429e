// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/tracers"
	"github.com/textpoke/textpoke/tracers/dispatch"
)

// Tracers says which tracers an enabled site calls, and by which way: so many that trace every
// function, and so many others that trace one that is never called.
type Tracers struct {
	Dispatch             dispatch.Kind
	Relevant, Irrelevant int
}

// The most tracers of a request: the seed tables go up to 200 of each.
const (
	maxRelevant   = 200
	maxIrrelevant = 10_000
)

// ParseTracers reads numbers of tracers, such as relevant=1,irrelevant=100. Without a number there
// is one relevant tracer, and no irrelevant one.
func ParseTracers(s string) (t Tracers, err error) {
	t.Relevant = 1
	for part := range strings.SplitSeq(s, ",") {
		name, value, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(value)
		switch {
		case name != "relevant" && name != "irrelevant":
			return t, fmt.Errorf("%q: %w", name, spelling.NotOneOf(name, []string{"relevant", "irrelevant"}))
		case name == "relevant" && (err != nil || n < 1 || n > maxRelevant):
			return t, fmt.Errorf("relevant=%s: want a number from 1 to %d", value, maxRelevant)
		case err != nil || n < 0 || n > maxIrrelevant:
			return t, fmt.Errorf("irrelevant=%s: want a number from 0 to %d", value, maxIrrelevant)
		case name == "relevant":
			t.Relevant = n
		default:
			t.Irrelevant = n
		}
	}
	return t, nil
}

// tracing is tracers on one engine, with each CPU's task and counts.
type tracing struct {
	*Tracers
	way      *dispatch.Way
	tasks    []*task
	relevant []*tracers.Ops
}

// task is one CPU's: padded, as each CPU writes its own all the time.
type task struct {
	dispatch.Task
	counts dispatch.Counts
	calls  int64
	_      [64]byte
}

// DispatchCounts is what the calls that were dispatched took, all CPUs together.
type DispatchCounts struct {
	dispatch.Counts
	Calls int64 // that were dispatched
}

// newTracing attaches those that are irrelevant, from now on, and lets the code's
// sites call through the way. Without tracers it does nothing, and is nil.
func newTracing(j *Job, code *cpus.Code) (*tracing, error) {
	if j.Tracers == nil {
		return nil, nil
	}
	way, err := j.Tracers.Dispatch.New(dispatch.Config{Sites: code.Sites, Elsewhere: []records.Addr{code.Entry}})
	if err != nil {
		return nil, err
	}
	t := &tracing{Tracers: j.Tracers, way: way}
	for range j.Roles {
		one := &task{}
		one.Count(&one.counts)
		t.tasks = append(t.tasks, one)
	}
	for range t.Irrelevant {
		if err := t.way.Attach(tracers.NewOps("irrelevant", tracers.CountHits, 0, len(code.Sites))); err != nil {
			return nil, err
		}
	}
	code.Dispatch = t.call
	return t, nil
}

// call is cpus.Code.Dispatch.
func (t *tracing) call(cpu, site int) cpus.Outcome {
	one := t.tasks[cpu]
	before := one.Hits
	one.calls++
	t.way.Call(site, &one.Task)
	if one.Hits == before {
		return cpus.CalledNobody
	}
	return cpus.CalledTracer
}

// begin attaches those that are relevant before text changes to call them, as
// register_ftrace_function does; a failed update may have left them there.
func (t *tracing) begin(enable bool) error {
	if t == nil {
		return nil
	}
	for enable && len(t.relevant) < t.Relevant {
		o := tracers.NewOps("relevant", tracers.CountHits, 0)
		if t.Dispatch.Direct && len(t.relevant) == 0 {
			o.Func, o.Direct = nil, tracers.CountHits
		}
		if err := t.way.Attach(o); err != nil {
			return err
		}
		t.relevant = append(t.relevant, o)
	}
	return nil
}

// end detaches them again, where text calls them no more. Each CPU has been between two
// calls since, so that none is on its way to them.
func (t *tracing) end(enable bool) error {
	if t == nil || enable {
		return nil
	}
	for _, o := range t.relevant {
		if err := t.way.Detach(o); err != nil {
			return err
		}
	}
	t.relevant = nil
	return nil
}

// of is what a CPU has counted, which rests between two calls.
func (t *tracing) of(cpu int) DispatchCounts {
	if t == nil {
		return DispatchCounts{}
	}
	return DispatchCounts{t.tasks[cpu].counts, t.tasks[cpu].calls}
}

// all is what all of them have.
func (t *tracing) all() (sum DispatchCounts) {
	if t == nil {
		return sum
	}
	for cpu := range t.tasks {
		sum = sum.add(t.of(cpu), 1)
	}
	return sum
}

// add adds so many times another count.
func (d DispatchCounts) add(e DispatchCounts, times int64) DispatchCounts {
	return DispatchCounts{d.Counts.Add(e.Counts.Times(times)), d.Calls + times*e.Calls}
}

// tracerColumns are what a row says of tracers that are told apart.
var tracerColumns = results.Declare(declared, "tracer", map[string]func(*RunRow) any{
	"loads_per_call":  func(r *RunRow) any { return r.Dispatched.perCall(r.Dispatched.Loads) },
	"walked_per_call": func(r *RunRow) any { return r.Dispatched.perCall(r.Dispatched.Walked) },
	"callbacks":       (*RunRow).callbacks,
	"callbacks_ns":    (*RunRow).callbackTime,
})

// perCall is the mean of a count over the calls that were dispatched.
func (d *DispatchCounts) perCall(n int64) float64 { return float64(n) / float64(d.Calls) }

// callbacks is how many tracers were called. The timed engine only counts calls that
// can meet nothing; each of these reaches everybody who is attached.
func (r *RunRow) callbacks() any {
	d := r.Dispatched
	return d.Called + (int64(r.Traced)-d.Calls)*int64(r.Tracers.Relevant)
}

func (r *RunRow) callbackTime() any {
	if r.Modelled == nil {
		return results.Empty
	}
	return float64(r.Tracers.Relevant) * r.costs().Tracer
}
