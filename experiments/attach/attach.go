// Package attach asks why attaching to many functions takes minutes, and where the
// time goes.
package attach

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/attachcost"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
)

const (
	name     = "attach"
	question = "Why does attaching to many functions take minutes? One ops a function, twelve or one: how many rounds, records, hash entries and " +
		"grace periods does each take, and where does the time go?"
)

// Experiment is the question.
var Experiment = experiments.Legacy{
	Name: name, Question: question,
	Short: "why does attaching take minutes? functions by number of ops, and where the time goes",
	About: "attach counts what attaching to functions takes, and detaching from them, by every way that a kernel\n" +
		"has: a trampoline a function, one by one; twelve ops; one update of one ops; one ops of kprobe_multi.\n" +
		"Counts are exact; those of rounds are held against what real kernels took (measured.csv). Times are\n" +
		"modelled from a calibration and from assumed costs, and held against published ones (predicted.csv):\n" +
		"which rows a prediction was fitted to, and its error, are stated.",
	Examples: []string{
		"attach --out attach",
		"attach --functions 50000 --way fentry,kprobe-multi --calibration refcount-480",
		"attach --published mine.csv --format csv",
	},
	Table: table,
	Flags: func(f *pflag.FlagSet) experiments.LegacyRun {
		r := &request{}
		experiments.Register(f, experiments.Counts(&r.functions, "functions", "1,1000,5000,10000,20000,50000", "`list` of numbers of functions", 1, records))
		experiments.Names(f, &r.kernels, "kernel", "`list` of kernels", kernelNames(), kernelNamed)
		experiments.Names(f, &r.ways, "way", "`list` of ways to attach", attachcost.WayNames(), attachcost.ParseWay)
		f.StringArrayVar(&r.calibrations, "calibration", nil, "`calibration` that times rest on, of its instruction set: a built-in one or a file; repeatable (default: for each the one whose CPUs are nearest to 64)")
		f.StringVar(&r.file, "published", "", "`file` in place of the published times: CSV with case, functions, attach_s, detach_s, note, source")
		return r.run
	},
}.Experiment()

// records is how many a table has: as many functions as are attached to at most.
const records = 50000

// nearTo is how many CPUs a machine should have that nobody asked for.
const nearTo = 64

// request is what the flags ask for.
type request struct {
	functions    []int
	kernels      []*attachcost.Kernel
	ways         []attachcost.Way
	calibrations []string
	file         string
	machines     map[string]*attachcost.Machine // by instruction set
	asked        int
}

// known are the kernels that the data knows.
func known() []*attachcost.Kernel {
	all, err := attachcost.Kernels()
	if err != nil {
		panic(fmt.Sprintf("attach: %v", err)) // embedded data: a mistake of ours
	}
	return all
}

func kernelNames() (out []string) {
	for _, k := range known() {
		out = append(out, k.Name)
	}
	return out
}

func kernelNamed(s string) (*attachcost.Kernel, error) {
	for _, k := range known() {
		if k.Name == s {
			return k, nil
		}
	}
	return nil, fmt.Errorf("no kernel is called %q", s)
}

// row is one number of functions, attached or detached in one way.
type row struct {
	kernel    *attachcost.Kernel
	way       attachcost.Way
	direction string
	counts    attachcost.Counts
	machine   *attachcost.Machine
	parts     []attachcost.Part
	largest   int64 // published number of functions of that way
}

func (r *row) seconds() float64 { return attachcost.Whole(r.parts) / 1e9 }

func table() results.Table {
	t := results.Table{Name: name, Columns: []results.Column{
		{Name: "kernel", Doc: "instruction set and release"},
		{Name: "way", Doc: "how functions are attached to"},
		{Name: "direction", Doc: "attach or detach"},
		{Name: "functions", Doc: "attached to, of a table of 50,000"},
		{Name: "ops", Doc: "objects that they are attached through"},
		{Name: "calls", Doc: "of the kernel's interface, one after the other"},
		{Name: "trampolines", Doc: "generated, or given up", Detail: true},
		{Name: "rounds", Doc: "of interrupts that each other CPU takes"},
	}}
	for c := range attachcost.NumCauses {
		t.Columns = append(t.Columns, results.Column{Name: "rounds_" + column(attachcost.Cause(c).String()), Doc: "of these, for " + roundDocs[c], Detail: true})
	}
	t.Columns = append(t.Columns,
		results.Column{Name: "site_stores", Doc: "stores to sites and their literals", Detail: true},
		results.Column{Name: "records_walked", Doc: "records that the kernel's loops look at"},
		results.Column{Name: "entries_copied", Doc: "entries of hashes made"},
		results.Column{Name: "allocations", Doc: "of memory, entries included", Detail: true},
		results.Column{Name: "list_changes", Doc: "of the list of ops", Detail: true},
		results.Column{Name: "grace_periods", Doc: "waits until every task has scheduled, one after the other"},
		results.Column{Name: "calibration", Doc: "machine that times are modelled for"})
	for _, p := range attachcost.PartNames {
		t.Columns = append(t.Columns, results.Column{Name: column(p) + "_ns", Doc: "modelled time of: " + p, Detail: true})
	}
	t.Columns = append(t.Columns, results.Column{Name: "modelled_ns", Doc: "modelled time of all of it"},
		results.Column{Name: "extrapolated", Doc: "more functions than in any published case of the way"})
	return t
}

var roundDocs = [attachcost.NumCauses]string{"the sites", "the calls in the common entries", "the order of what entries load", "trampolines that are made",
	"trampolines that are cut off", "an ops' own trampoline"}

// column makes a name fit a column.
func column(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c == ' ' || c == '-' {
			b[i] = '_'
		}
	}
	return string(b)
}

func (r *row) cells() []any {
	c := &r.counts
	out := []any{r.kernel.Name, r.way.Name, r.direction, c.Functions, c.Ops, c.Calls, c.Images, c.AllRounds()}
	for _, n := range c.Rounds {
		out = append(out, n)
	}
	out = append(out, c.SiteStores, c.Walked, c.Copied, c.Allocations, c.ListChanges, c.Waits, r.machine.Name)
	for _, p := range r.parts {
		out = append(out, p.NS)
	}
	return append(out, attachcost.Whole(r.parts), c.Functions > r.largest)
}

func (r *request) run(ctx context.Context, lab *experiments.Lab) (*experiments.Answer, error) {
	times, err := published.AttachTimes.Read(r.file)
	if err != nil {
		return nil, err
	}
	all := known()
	if err := r.open(all); err != nil {
		return nil, err
	}
	a := &answer{request: r}
	if a.measured, err = compare(all); err != nil {
		return nil, err
	}
	if a.predicted, err = predict(all, times); err != nil {
		return nil, err
	}
	for i := range times {
		if wayOf(&times[i]) == "" {
			a.unknown = append(a.unknown, times[i].Case)
		}
	}
	jobs := r.jobs(times)
	a.asked = len(jobs)
	for _, j := range jobs {
		if err := ctx.Err(); err != nil {
			return a.answer(), err
		}
		if err := j.count(); err != nil {
			return a.answer(), err
		}
		a.rows = append(a.rows, j)
		if err := lab.Add(j.cells()...); err != nil {
			return a.answer(), err
		}
	}
	return a.answer(), nil
}

// open finds the machine for each instruction set.
func (r *request) open(all []*attachcost.Kernel) error {
	r.machines = map[string]*attachcost.Machine{}
	for _, k := range all {
		r.machines[k.Arch] = attachcost.NewMachine(calibration.Nearest(k.Arch, nearTo), attachcost.Assumed)
	}
	for _, name := range r.calibrations {
		c, err := calibration.Open(name)
		if err != nil {
			return err
		}
		if _, known := r.machines[c.Arch]; !known {
			return fmt.Errorf("calibration %s is of %s, of which no kernel is", name, c.Arch)
		}
		r.machines[c.Arch] = attachcost.NewMachine(c, attachcost.Assumed)
	}
	return nil
}

// jobs are the rows to come: what a kernel cannot do is left out.
func (r *request) jobs(times []published.AttachTime) (out []*row) {
	for _, k := range r.kernels {
		for _, w := range r.ways {
			if w.In(k) != nil {
				continue
			}
			for _, n := range r.functions {
				for _, direction := range []string{published.Attach, published.Detach} {
					out = append(out, &row{
						kernel: k, way: w, direction: direction, counts: attachcost.Counts{Functions: int64(n)},
						machine: r.machines[k.Arch], largest: largest(times, w.Name),
					})
				}
			}
		}
	}
	return out
}

// count fills a row in.
func (r *row) count() (err error) {
	r.counts, err = counted(r.kernel, r.way, r.direction, r.counts.Functions, records)
	if err == nil {
		r.parts = r.machine.Waterfall(&r.counts, r.direction == published.Attach)
	}
	return err
}

func counted(k *attachcost.Kernel, w attachcost.Way, direction string, n, total int64) (attachcost.Counts, error) {
	if direction == published.Attach {
		return attachcost.Attach(k, w, n, total)
	}
	return attachcost.Detach(k, w, n, total)
}
