package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
	"github.com/textpoke/textpoke/sim/check"
)

// questionFlags is the flags that say what is to be checked. Lists mean the cross
// product.
type questionFlags struct {
	arch, protocol, mutate, fetch, buffer, order, lookup, refs, cpus []string
	sites                                                            []int
	preempt, early                                                   bool
}

// questionFlagNames are their names.
var questionFlagNames = []string{
	"arch", "protocol", "plan", "mutate", "fetch", "buffer", "order", "lookup", "refs", "cpus", "sites", "preempt", "early",
}

// checkOrders are the orders that differ for a handful of sites.
var checkOrders = []string{sched.Table.String(), sched.Descending.String()}

func (k *questionFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	names := func(to *[]string, flag string, preset, valid []string, usage string) {
		f.StringSliceVar(to, flag, preset, "`list` of "+usage+strings.Join(valid, ", "))
		offer(cmd, flag, valid)
	}
	names(&k.arch, "arch", cpus.ArchNames(), cpus.ArchNames(), "instruction sets: ")
	names(&k.protocol, "protocol", []string{poke.Native}, poke.Names(), "protocols: ")
	names(&k.mutate, "mutate", nil, poke.MutationNames(), "defects to put into the protocol: ")
	names(&k.fetch, "fetch", []string{"weak"}, cpus.FetchNames(), "ways in which versions of text mix in a fetch: ")
	names(&k.buffer, "buffer", []string{"dynamic"}, []string{"dynamic"}, "vector sizes: a number of slots, or as many as there are patches: ")
	names(&k.order, "order", []string{"table"}, checkOrders, "orders in which patches are queued: ")
	names(&k.lookup, "lookup", []string{"btree"}, int3.KindNames(), "indexes that trap handlers search: ")
	names(&k.refs, "refs", []string{"percpu"}, int3.RefsNames(), "kinds of handlers' reference counts: ")
	f.StringArrayVar(&k.cpus, "cpus", []string{"2"}, fmt.Sprintf("`machine`: a number of CPUs up to %d, several numbers, or roles such as busy=2,isolated=1; repeatable", check.MaxCPUs))
	f.IntSliceVar(&k.sites, "sites", []int{2}, fmt.Sprintf("`list` of numbers of sites, each up to %d", check.MaxSites))
	f.BoolVar(&k.preempt, "preempt", false, "tasks can be preempted between any two instructions, and go on later, anywhere")
	f.BoolVar(&k.early, "early", false, "traced code also runs on the way in from user space, before a CPU that rounds left out has caught up")
}

// grid reads the flags, but for the mutations.
func (k *questionFlags) grid() (*sim.CheckGrid, error) {
	g := &sim.CheckGrid{Preempts: []bool{k.preempt}, Sites: k.sites, Early: k.early, Mutations: []string{""}}
	var err, e error
	read := func(e error) {
		if err == nil {
			err = e
		}
	}
	g.Arches, e = namedList("arch", k.arch, cpus.ArchNames(), cpus.ParseArch)
	read(e)
	g.Protocols, e = namedList("protocol", k.protocol, poke.Names(), identity)
	read(e)
	g.Buffers, e = list("buffer", k.buffer, buffer)
	read(e)
	g.Orders, e = namedList("order", k.order, checkOrders, sched.ParseOrder)
	read(e)
	g.Lookups, e = namedList("lookup", k.lookup, int3.KindNames(), int3.ParseKind)
	read(e)
	g.Refs, e = namedList("refs", k.refs, int3.RefsNames(), int3.ParseRefs)
	read(e)
	g.Fetches, e = namedList("fetch", k.fetch, cpus.FetchNames(), cpus.ParseFetch)
	read(e)
	g.Machines, e = list("cpus", machines(k.cpus), machine)
	read(e)
	return g, err
}

// searchFlags is the flags that say how a search is made.
type searchFlags struct {
	reduce                   string
	exact, rate              bool
	jobs                     int
	limitStates, limitMemory uint64 // memory in MiB
	limitTime                time.Duration
}

func (s *searchFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.reduce, "reduce", "all", "what the search may leave out: "+strings.Join(check.ReductionNames(), ", "))
	offer(cmd, "reduce", check.ReductionNames())
	f.BoolVar(&s.exact, "exact", false, "keep whole states, not fingerprints of 64 bits: slower and larger, but never wrong")
	f.IntVar(&s.jobs, "jobs", runtime.GOMAXPROCS(0), "`number` of cores to search on")
	f.Uint64Var(&s.limitStates, "limit-states", 0, "stop at this `number` of states, at the end of a level; 0 for none")
	f.Uint64Var(&s.limitMemory, "limit-memory", 4096, "stop when states and queue take so many `MiB`; 0 for no limit")
	f.DurationVar(&s.limitTime, "limit-time", 0, "stop after this `time`, such as 10m; 0 for none")
	f.BoolVar(&s.rate, "rate", false, "fill in states_per_s, which is another number every time")
}

func (s *searchFlags) options() (check.Options, error) {
	reduce, err := named("reduce", s.reduce, check.ReductionNames(), check.ParseReductions)
	switch {
	case err != nil:
		return check.Options{}, err
	case s.jobs < 1:
		return check.Options{}, fmt.Errorf("--jobs %d: want 1 or more", s.jobs)
	case s.limitTime < 0:
		return check.Options{}, fmt.Errorf("--limit-time %v: want a time above 0, or 0 for none", s.limitTime)
	}
	return check.Options{
		Reduce: reduce, Exact: s.exact, Workers: s.jobs,
		LimitStates: s.limitStates, LimitTime: s.limitTime, LimitMemory: s.limitMemory << 20,
	}, nil
}

// ask puts questions to the checker, a row each, and returns those that are
// unsafe. The error says what the answers mean for the exit code.
func (s *searchFlags) ask(ctx context.Context, c *common, questions []*sim.Question, o check.Options, out *output) (unsafe []sim.VerdictRow, err error) {
	if c.stderrIsTerminal() {
		o.Watch = c.watch
	}
	cut := false
	err = c.each(ctx, out, len(questions), func(i int, out *output) error {
		row, err := questions[i].Ask(ctx, o)
		if o.Watch != nil {
			c.clearLine()
		}
		if err != nil {
			return err
		}
		row.Rate = s.rate
		switch row.Verdict {
		case check.Unsafe:
			unsafe = append(unsafe, row)
		case check.Incomplete:
			cut = true
			c.logger().Warn("incomplete", incomplete(&row)...)
		}
		return out.add(row.Cells()...)
	})
	switch {
	case err != nil:
	case len(unsafe) > 0:
		err = errNo
	case cut:
		err = errCut
	}
	return unsafe, err
}
