// SPDX-License-Identifier: Apache-2.0

// Package callopsalternatives asks for the price of other designs in place of a pointer
// to the ops at each site.
package callopsalternatives

import (
	"context"
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/call"
	"github.com/textpoke/textpoke/experiments/internal/clock"
	"github.com/textpoke/textpoke/internal/sheet"
	"github.com/textpoke/textpoke/results/fit"
	"github.com/textpoke/textpoke/tracers"
	"github.com/textpoke/textpoke/tracers/dispatch"
)

// Config says what is called, and beside what.
// Its fields are the flags of call-ops-alternatives.experiment.
type Config struct {
	Irrelevant []int
	Functions  int
	NoTime     bool
	Repeats    int
}

// Experiment is the question.
var Experiment = experiments.New("callopsalternatives/call-ops-alternatives.experiment", measure)

// row is one design with some tracers.
type row struct {
	*design
	Users      users
	Irrelevant int
	*call.Call
	functions int
	Last      bool          // number of irrelevant tracers
	Time      *fit.Estimate // nil with NoTime
	repeats   int
	verdict   explore.Verdict // "" where it cannot be asked
}

// AllocationsFor are those of one more function.
func (r *row) AllocationsFor() int { return r.allocations(r.functions) }

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (any, error) {
	c := &s.Config
	var rows []*row
	for i := range designs {
		for _, u := range designs[i].users() {
			for _, n := range c.Irrelevant {
				rows = append(rows, &row{design: &designs[i], Users: u, Irrelevant: n, functions: c.Functions, Last: n == c.Irrelevant[len(c.Irrelevant)-1]})
			}
		}
	}
	s.Asked = len(rows)
	verdicts, err := askChecker(ctx)
	if err == nil {
		err = experiments.Each(ctx, s, rows, func(r *row) (*row, error) {
			r.verdict = verdicts[r.Asked()]
			return r, c.measure(ctx, r)
		})
	}
	return s, err
}

// measure attaches, counts one call, and times many.
func (c *Config) measure(ctx context.Context, row *row) error {
	kind, err := dispatch.Parse(row.Way)
	if err != nil {
		return err
	}
	own := []*tracers.Ops{call.Callback(), call.Callback()}
	if row.Direct { // out of branch range
		own[0].Func, own[0].Direct = nil, tracers.CountHits
	}
	switch row.Users {
	case callback:
		own = own[1:]
	case direct:
		own = own[:1]
	}
	if row.Call, err = call.New(kind.New, row.Irrelevant, own...); err != nil {
		return fmt.Errorf("%s: %w", row.Name, err)
	}
	if c.NoTime {
		return ctx.Err()
	}
	row.repeats = c.Repeats
	var task dispatch.Task
	row.Time, err = clock.Time(ctx, c.Repeats, callsAtOnce, func() { row.Repeat(callsAtOnce, &task) })
	return err
}

// callsAtOnce is between two looks at the clock, which take as long as some calls.
const callsAtOnce = 1 << 10

// askChecker explores what the designs can be asked.
func askChecker(ctx context.Context) (map[string]explore.Verdict, error) {
	out := map[string]explore.Verdict{}
	for i := range designs {
		d := &designs[i]
		if d.Bug == "" || out[d.Asked()] != "" {
			continue
		}
		q, err := check.BugQuestions([]string{d.Bug}, d.Fixed)
		if err != nil {
			return nil, err
		}
		r, err := q[0].Ask(ctx, explore.Options{})
		if err != nil {
			return nil, err
		}
		out[d.Asked()] = r.Verdict
	}
	return out, nil
}

// users is who is attached to the function.
type users uint8

const (
	callback users = iota
	direct
	both
)

func (u users) String() string { return [...]string{"callback", "direct", "both"}[u] }

// design is one way, and what it keeps: bytes where a pointer has 8. What is said of attaching is from
// kernel/trace/ftrace.c of Linux 7.1 where the kernel has the design, and follows from
// the words that it has where the kernel has not. An entry of a hash is struct ftrace_func_entry,
// kernel/trace/ftrace.h: a node of two pointers, ip and direct. A trampoline is what create_trampoline of
// arch/x86/kernel/ftrace.c takes for one ops: executable memory comes in pages.
//
// The checker is asked what is read in one word or in two, in which order a table and its sites change, or when
// something may be freed. Its words stand for whatever a design keeps in them.
type design struct {
	Name          string `col:"name,key"`
	Way           string `col:"way"`
	Direct        bool   `col:"direct"` // it knows direct trampolines, here out of branch range
	SiteBytes     int    `col:"site_bytes"`
	FunctionBytes int    `col:"function_bytes"`
	OpsBytes      int    `col:"ops_bytes"`
	Copies        bool   `col:"copies"`    // attaching copies the hash of all direct functions, entry by entry
	Generates     bool   `col:"generates"` // attaching generates code
	Words         int    `col:"words"`

	Attach string `col:"attach"`
	Detach string `col:"detach"`
	Modify string `col:"modify"`
	Bug    string `col:"bug"`
	Fixed  bool   `col:"fixed"`
	Why    string `col:"why"` // the verdict
}

var designs = sheet.Must[design]("designs.csv", experiments.Text("callopsalternatives/designs.csv"))

// Asked is what the checker is asked about, as the command line puts it: a case of the museum's, as it breaks or as it is
// done right; "" for nothing.
func (d *design) Asked() string {
	if d.Bug == "" {
		return ""
	}
	return strings.Join((&check.Question{Bug: d.Bug, Fixed: d.Fixed}).Flags(), " ")
}

// users are those that the design knows.
func (d *design) users() []users {
	if d.Direct {
		return []users{callback, direct, both}
	}
	return []users{callback, both}
}

// allocations are those that can fail when one more function is attached beside n.
func (d *design) allocations(n int) (out int) {
	if d.Copies { // the hash, its buckets, and each entry (d05cb470663a, Linux 6.7)
		out += 2 + n + 1
	}
	if d.Generates {
		out++
	}
	return out
}
