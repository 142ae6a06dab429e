// Package directops asks what one ops for all direct trampolines changes, for a
// call and for attaching, and what the trampoline's address in the ops was for.
package directops

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/attachcost"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
)

const (
	name     = "direct-ops"
	question = "What does one ops for all direct trampolines change? What does a call take on the fast path and on the slow one, with an ops for " +
		"each trampoline and with one for all, what does attaching take, and what was the field in the ops for?"
)

// Experiment is the question.
var Experiment = experiments.Legacy{
	Name: name, Question: question,
	Short: "what does one ops for all trampolines change? fast and slow path, attaching, and the field in the ops",
	About: "direct-ops counts what a call to a direct trampoline takes, exactly: on the fast path, where the\n" +
		"trampoline is the function's only user, and on the slow one, where somebody traces all functions\n" +
		"too; in branch range and out of it; with an ops for each trampoline, which has its address\n" +
		"(ops->direct_call), and with one ops for all and a lookup by address. With --out it also writes\n" +
		"what attaching takes (attach.csv).",
	Examples: []string{
		"direct-ops --out direct-ops",
		"direct-ops --arch arm64 --trampolines 1,100,20000 --format csv",
	},
	Table: table,
	Flags: func(f *pflag.FlagSet) experiments.LegacyRun {
		r := &request{}
		experiments.Register(f, experiments.Arches(&r.arches))
		experiments.Register(f, experiments.Counts(&r.trampolines, "trampolines", "1,27,1000,20000", "`list` of numbers of trampolines, each for a function of its own", 1, 40000))
		f.StringVar(&r.file, "published", "", "`file` in place of the published times: CSV with case, functions, attach_s, detach_s, note, source")
		return r.run
	},
}.Experiment()

// request is what the flags ask for.
type request struct {
	arches      []isa.Arch
	trampolines []int
	file        string
}

// row is the calls of one set-up.
type row struct {
	arch        isa.Arch
	setup       setup
	trampolines int
	inKernel    bool
	mean
}

func table() results.Table {
	return results.Table{Name: name, Columns: []results.Column{
		{Name: "arch", Doc: "instruction set"},
		{Name: "ops", Doc: "each: every trampoline has one, with its address; one: all of them together"},
		{Name: "in_kernel", Doc: "whether some kernel up to 7.2 does it so on that instruction set"},
		{Name: "trampolines", Doc: "attached, each to a function of its own"},
		{Name: "range", Doc: "near: trampolines lie in branch range of the sites; far: they do not"},
		{Name: "path", Doc: "fast: the trampoline is the only user; slow: somebody traces all functions too"},
		{Name: "loads", Doc: "objects that a call reads because another one gave their address, mean over functions"},
		{Name: "hash_lookups", Doc: "of them, in hashes by address, mean"},
		{Name: "list_entries", Doc: "ops of the list that are gone over, mean"},
		{Name: "saves_registers", Doc: "whether the entry saves registers first"},
	}}
}

func (r *row) cells() []any {
	return []any{r.arch.Traits().Name, r.setup.ops(), r.inKernel, r.trampolines, r.setup.place(), r.setup.path(), r.loads, r.lookups, r.entries, r.saves}
}

func (r *request) run(ctx context.Context, lab *experiments.Lab) (*experiments.Answer, error) {
	times, err := published.AttachTimes.Read(r.file)
	if err != nil {
		return nil, err
	}
	kernels, err := attachcost.Kernels()
	if err != nil {
		return nil, err
	}
	a := &answer{times: times}
	if a.attach, err = r.attach(kernels); err != nil {
		return nil, err
	}
	for _, arch := range r.arches {
		a.asked += 2 * len(setups(arch)) * len(r.trampolines)
	}
	for _, arch := range r.arches {
		t, err := records.Open(ctx, records.DefaultFor(arch.Traits().Name), records.Options{})
		if err != nil {
			return nil, err
		}
		for _, s := range setups(arch) {
			for _, n := range r.trampolines {
				if err := a.count(ctx, lab, s, t.Addrs()[:n], row{arch: arch, trampolines: n, inKernel: has(kernels, arch, s[0])}); err != nil {
					return a.answer(), err
				}
			}
		}
	}
	return a.answer(), nil
}

// count counts the fast path and then the slow one of trampolines of these functions.
func (a *answer) count(ctx context.Context, lab *experiments.Lab, paths [2]setup, ips []records.Addr, r row) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c, err := gather(r.arch, paths[0], ips)
	if err != nil {
		return err
	}
	for _, s := range paths {
		if s.slow {
			if err := c.traceAll(); err != nil {
				return err
			}
		}
		done := r
		done.setup, done.mean = s, c.calls(s.slow)
		a.rows = append(a.rows, &done)
		if err := lab.Add(done.cells()...); err != nil {
			return err
		}
	}
	return nil
}

// has tells whether a kernel does it so: all that are known have one or the other.
func has(kernels []*attachcost.Kernel, arch isa.Arch, s setup) bool {
	for _, k := range kernels {
		if k.Arch == arch.Traits().Name && k.SharedDirectOps == s.one {
			return true
		}
	}
	return false
}
