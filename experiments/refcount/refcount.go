// Package refcount asks why one reference count, shared by the breakpoint handlers of
// all CPUs, cost seconds on a machine of 480.
package refcount

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/modelled"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

const (
	name     = "refcount"
	question = "Why did one shared counter cost seconds on 480 CPUs? Until Linux 6.15 every breakpoint handler took and gave back a reference " +
		"of one counter: how does an update's time grow with the number of CPUs, and how with a counter for each?"
)

// Experiment is the question.
var Experiment = experiments.Experiment{
	Name: name, Question: question,
	Short: "why did one shared counter cost seconds on 480 CPUs? a model of the cache line, against CPUs",
	About: "refcount carries out one update on the timed engine, with handlers that share a reference count and\n" +
		"with a count for each CPU, on machines of more and more CPUs, all of which call what is patched. It\n" +
		"is a model: the cache line is at one CPU at a time, and taking a reference is a loop that others\n" +
		"spoil. The report says what of the published figures went into the calibration and what did not.",
	Examples: []string{
		"refcount --out refcount",
		"refcount --calibration refcount-480 --out-of-turn 0.0003,0.001,0.003 --refs shared --entries 164",
		"refcount --calibration gold-6248@20,gold-6248 --calls 2000 --format csv",
	},
	Table: table,
	Flags: func(f *pflag.FlagSet) experiments.Run {
		r := &request{calls: -1}
		experiments.Calibrations(f, &r.machines, "refcount-480@2,refcount-480@8,refcount-480@30,refcount-480@60,refcount-480@120,refcount-480@240,refcount-480")
		experiments.Counts(f, &r.entries, "entries", "2,164", "`list` of numbers of patches in the batch", 1, 10_000)
		experiments.Refs(f, &r.refs, "percpu,shared")
		experiments.Rates(f, &r.outOfTurn, "out-of-turn", "0.001,0.01,1", "`list` of shares of visits of the cache line in which the one that has waited longest changes places with any of those that wait: near 0 serves in turn, 1 draws lots")
		experiments.Rate(f, &r.calls, "calls", "calls of each patched function a second on each CPU (default: the calibration's calls, spread over 164)")
		f.StringVar(&r.file, "published", "", "`file` in place of the published figures: CSV with measurement, entries, hardware_threads, update_us, program_ns, source")
		return r.run
	},
}

// request is what the flags ask for.
type request struct {
	machines  []experiments.Calibrated
	entries   []int
	refs      []int3.Refs
	outOfTurn []float64
	calls     float64
	file      string
}

// publishedEntries is the size of the batch whose functions are the programs that the
// published load runs, 50 million a second on 480 CPUs (4334336e769b).
const publishedEntries = 164

// point is what one update is asked about.
type point struct {
	machine   experiments.Calibrated
	entries   int
	refs      int3.Refs
	outOfTurn float64 // 0 but for a shared counter
}

func (p *point) shared() bool { return p.refs == int3.SharedRef }

// row is one update.
type row struct {
	point
	modelled.Update
	calls     float64            // of what is patched, a second and CPU
	published published.Refcount // Entries is 0 where there is none
}

// ratio is how many times the published figure the model's is; 0 where there is none.
func (r *row) ratio() float64 {
	if r.published.Entries == 0 {
		return 0
	}
	return float64(r.Modelled.Update) / (r.published.UpdateUS.Value * 1000)
}

func table() results.Table {
	return results.Table{Name: name, Columns: []results.Column{
		{Name: "calibration", Doc: "machine that times are modelled of"},
		{Name: "seed", Detail: true, Doc: "of every random choice"},
		{Name: "revision", Detail: true, Doc: "of the program"},
		{Name: "arch", Detail: true, Doc: "instruction set"},
		{Name: "cpus", Doc: "CPUs, all of which call what is patched"},
		{Name: "entries", Doc: "patches in the batch"},
		{Name: "refs", Doc: "how handlers are counted"},
		{Name: "out_of_turn", Doc: "share of visits of the shared line that break the order of waiting"},
		{Name: "calls_per_s", Doc: "calls of patched functions on each CPU"},
		{Name: "rounds", Doc: "requests to all other CPUs to synchronise"},
		{Name: "traps", Doc: "breakpoints that CPUs ran into"},
		{Name: "update_ns", Doc: "from the first verification to the last answer, modelled"},
		{Name: "stolen_mean_ns", Doc: "time taken from a CPU by interrupts and traps, modelled"},
		{Name: "stolen_max_ns", Detail: true, Doc: "from the CPU that lost most, modelled"},
		{Name: "published_ns", Doc: "what was published for an update of as many entries on as many CPUs"},
		{Name: "ratio", Doc: "the model's time over the published one"},
		{Name: "events", Detail: true, Doc: "events of the timed engine"},
	}}
}

func (r *row) cells() []any {
	cells := []any{
		r.machine.Name, r.Seed, r.Revision, r.Arch.Traits().Name, len(r.Roles), r.entries, r.refs.String(), results.Empty, r.calls,
		r.Rounds, r.Traps, int64(r.Modelled.Update), r.Modelled.StolenMean, int64(r.Modelled.StolenMax), results.Empty, results.Empty, r.Modelled.Events,
	}
	if r.shared() {
		cells[7] = r.outOfTurn
	}
	if r.ratio() > 0 {
		cells[14], cells[15] = r.published.UpdateUS.Value*1000, r.ratio()
	}
	return cells
}

func (r *request) run(ctx context.Context, lab *experiments.Lab) (*experiments.Answer, error) {
	for _, share := range r.outOfTurn {
		if !(share > 0 && share <= 1) {
			return nil, fmt.Errorf("--out-of-turn %g: want shares above 0, to 1: in strict order a few CPUs can keep the others out for minutes", share)
		}
	}
	figures, err := published.Refcounts.Read(r.file)
	if err != nil {
		return nil, err
	}
	points := r.points()
	a := &answer{asked: len(points)}
	for _, p := range points {
		row := &row{point: p}
		if err := r.update(ctx, lab, row); err != nil {
			return a.answer(), err
		}
		row.find(figures)
		a.rows = append(a.rows, row)
		if err := lab.Add(row.cells()...); err != nil {
			return a.answer(), err
		}
	}
	return a.answer(), nil
}

// points are all combinations, machine by machine.
func (r *request) points() (out []point) {
	for _, m := range r.machines {
		for _, n := range r.entries {
			for _, refs := range r.refs {
				for _, share := range r.shares(refs) {
					out = append(out, point{m, n, refs, share})
				}
			}
		}
	}
	return out
}

// shares are the orders of waiting that there are: one where nobody waits.
func (r *request) shares(refs int3.Refs) []float64 {
	if refs != int3.SharedRef {
		return []float64{0}
	}
	return r.outOfTurn
}

// update carries the row's update out.
func (r *request) update(ctx context.Context, lab *experiments.Lab, row *row) error {
	each := r.calls
	if each < 0 {
		each = row.machine.Costs.Calls / publishedEntries
	}
	row.calls = each * float64(row.entries)
	arch, err := row.machine.ISA()
	if err != nil {
		return err
	}
	t, err := records.Open(ctx, fmt.Sprintf("gen:n=%d,order=sorted", row.entries), records.Options{})
	if err != nil {
		return err
	}
	row.Update, err = modelled.Enable(ctx, lab, sim.Config{
		Arch: arch, Protocol: "breakpoint", Buffer: sched.Dynamic, Lookup: int3.Vector, Refs: row.refs, Table: t, Roles: row.machine.Busy(),
		Seed: lab.Seed, Calibration: row.machine.Calibration, Calls: row.calls, Entries: -1, OutOfTurn: row.outOfTurn,
	}, math.MaxInt)
	return err
}

// find finds what was published of such an update.
func (r *row) find(figures []published.Refcount) {
	for _, f := range figures {
		if strings.HasPrefix(f.Measurement, "shared") == r.shared() && int(f.Entries) == r.entries && int(f.Threads) == r.machine.CPUs && r.machine.CPUs == r.machine.Online && f.UpdateUS.Known {
			r.published = f
		}
	}
}
