// Package callopsalternatives asks what the designs would cost that could take the
// place of a pointer to the ops at each site.
package callopsalternatives

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/check/museum"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/tracers"
	"github.com/textpoke/textpoke/tracers/dispatch"
)

const (
	name     = "call-ops-alternatives"
	question = "What would the other designs cost? A site can name its ops, a structure that names the ops, a trampoline, or a trampoline beside the ops, " +
		"or its address can be looked up: loads for every call, memory, allocations that can fail, and what has to change together?"
)

// Experiment is the question.
var Experiment = experiments.Legacy{
	Name: name, Question: question,
	Short: "what would the designs cost that were turned down? loads, bytes, allocations, stores that belong together, time, verdict",
	About: "call-ops-alternatives calls through each design with one callback, with one direct trampoline that lies\n" +
		"out of branch range, and with both on one function. Loads are counted; bytes and allocations follow\n" +
		"from what the design keeps. Times are this machine's, of what Go makes of the design: the median of\n" +
		"--repeats measurements and the interval that holds it with 95 % confidence; --no-time leaves them\n" +
		"out. The verdict is the checker's, of what the column asked says.",
	Examples: []string{
		"call-ops-alternatives --out call-ops-alternatives",
		"call-ops-alternatives --irrelevant 0,200 --functions 50000 --no-time --format csv",
	},
	Table: table,
	Flags: func(f *pflag.FlagSet) experiments.LegacyRun {
		r := &request{}
		experiments.Register(f, experiments.Counts(&r.irrelevant, "irrelevant", "0,100", "`list` of numbers of tracers of another function", 0, 10_000))
		f.IntVar(&r.functions, "functions", 20_000, "`number` of functions that have a direct trampoline already when one more is attached")
		f.BoolVar(&r.noTime, "no-time", false, "count only: the same bytes on every machine")
		f.IntVar(&r.repeats, "repeats", 15, "`number` of measurements of each, 6 or more")
		return r.run
	},
}.Experiment()

// request is what the flags ask for.
type request struct {
	irrelevant []int
	functions  int
	noTime     bool
	repeats    int
}

// row is one design with some tracers.
type row struct {
	*design
	users      users
	irrelevant int
	cost       dispatch.Counts
	functions  int
	time       *timing
	verdict    explore.Verdict // "" where it cannot be asked
}

func table() results.Table {
	return results.Table{Name: name, Columns: []results.Column{
		{Name: "design", Doc: "what a site leads to"},
		{Name: "users", Doc: "who is attached to the function: a callback, a direct trampoline out of branch range, or both; two callbacks where there are no trampolines"},
		{Name: "irrelevant", Doc: "tracers of another function"},
		{Name: "loads", Doc: "objects that a call reads on its way"},
		{Name: "hashes", Doc: "of these ways, lookups of an address in a hash"},
		{Name: "walked", Doc: "entries of lists that a call walks"},
		{Name: "bytes_per_site", Doc: "memory at each site, or in its record, attached or not"},
		{Name: "bytes_per_function", Doc: "memory for each function with a direct trampoline"},
		{Name: "bytes_per_ops", Doc: "memory for each ops"},
		{Name: "allocations", Doc: "allocations that can fail when one more function gets a direct trampoline, beside the trampoline and its ops"},
		{Name: "words", Doc: "words that change one after the other when another tracer takes a function over"},
		{Name: "asked", Doc: "what the checker was asked (textpoke check); empty where it cannot be"},
		{Name: "verdict", Doc: "is it safe? the checker's"},
		{Name: "call_ns", Doc: "time of a call on this machine, median of the measurements"},
		{Name: "call_low_ns", Doc: "lower end of the interval that holds the median with 95 % confidence"},
		{Name: "call_high_ns", Doc: "and its upper end"},
		{Name: "repeats", Detail: true, Doc: "measurements; each is of thousands of calls"},
	}}
}

func (r *row) cells() []any {
	asked, verdict := any(results.Empty), any(results.Empty)
	if r.verdict != "" {
		asked, verdict = r.checked.String(), string(r.verdict)
	}
	direct := func(n int) any {
		if !r.kind.Direct {
			return results.Empty
		}
		return n
	}
	cells := []any{r.name, r.users.String(), r.irrelevant, r.cost.Loads, r.cost.Hashes, r.cost.Walked,
		r.siteBytes, direct(r.functionBytes), r.opsBytes, direct(r.allocations(r.functions)), r.words, asked, verdict}
	if r.time == nil {
		return append(cells, results.Empty, results.Empty, results.Empty, results.Empty)
	}
	return append(cells, r.time.median, r.time.low, r.time.high, r.time.repeats)
}

func (r *request) check() error {
	const most = 10_000_000
	switch {
	case !r.noTime && r.repeats < minRepeats:
		return fmt.Errorf("--repeats %d: want %d or more: fewer measurements bound no median with 95 %% confidence", r.repeats, minRepeats)
	case r.functions < 0 || r.functions > most:
		return fmt.Errorf("--functions %d: want a number from 0 to %d", r.functions, most)
	}
	return nil
}

func (r *request) run(ctx context.Context, lab *experiments.Lab) (*experiments.Answer, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	a := &answer{request: r}
	verdicts, err := askChecker(ctx)
	if err != nil {
		return a.answer(), err
	}
	for i := range designs {
		for _, u := range designs[i].users() {
			for _, n := range r.irrelevant {
				row := &row{design: &designs[i], users: u, irrelevant: n, functions: r.functions, verdict: verdicts[designs[i].checked]}
				if err := r.measure(ctx, row); err != nil {
					return a.answer(), err
				}
				a.rows = append(a.rows, row)
				if err := lab.Add(row.cells()...); err != nil {
					return a.answer(), err
				}
			}
		}
	}
	return a.answer(), nil
}

// Where the function is that is called, and that which nobody calls.
const (
	called    records.Addr = 0xffffffff81001000
	elsewhere records.Addr = 0xffffffff81002000
)

// measure attaches, counts one call, and times many.
func (r *request) measure(ctx context.Context, row *row) error {
	w, err := row.kind.New(dispatch.Config{Sites: []records.Addr{called}, Elsewhere: []records.Addr{elsewhere}})
	if err != nil {
		return err
	}
	var ops []*tracers.Ops
	if row.users != callback {
		o := tracers.NewOps("first", tracers.CountHits, 0, 0)
		if row.kind.Direct {
			o.Func, o.Direct = nil, tracers.CountHits
		}
		ops = append(ops, o)
	}
	if row.users != direct {
		ops = append(ops, tracers.NewOps("callback", tracers.CountHits, 0, 0))
	}
	for range row.irrelevant {
		ops = append(ops, tracers.NewOps("irrelevant", tracers.CountHits, 0, 1))
	}
	for _, o := range ops {
		if err := w.Attach(o); err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
	}
	row.cost = w.Cost(0)
	if r.noTime {
		return ctx.Err()
	}
	row.time, err = timeCalls(ctx, w, r.repeats)
	return err
}

// askChecker explores what the designs can be asked.
func askChecker(ctx context.Context) (map[checked]explore.Verdict, error) {
	out := map[checked]explore.Verdict{}
	for i := range designs {
		which := designs[i].checked
		if which.bug == "" || out[which] != "" {
			continue
		}
		bug, err := museum.Named(which.bug)
		if err != nil {
			return nil, err
		}
		m, err := bug.Model(which.fixed)
		if err != nil {
			return nil, err
		}
		r, err := explore.Explore(ctx, m, explore.Options{})
		if err != nil {
			return nil, err
		}
		out[which] = r.Verdict
	}
	return out, nil
}
