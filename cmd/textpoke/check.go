package main

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
	"github.com/textpoke/textpoke/sim/check"
)

// checkFlags is the flags of check.
type checkFlags struct {
	arch, protocol, mutate, fetch, buffer, order, lookup, refs []string
	cpus, plan, bug                                            []string
	sites                                                      []int
	preempt, fixed, early, exact, rate, list, resume           bool
	reduce, export, trace, replay, conform, checkpoint         string
	litmus                                                     []string
	limitStates, limitMemory                                   uint64 // memory in MiB
	limitTime, every                                           time.Duration
	workers                                                    int
}

func checkCommand(c *common) *cobra.Command {
	var k checkFlags
	cmd := &cobra.Command{
		Use:   "check",
		Short: "is it safe? every interleaving of a small machine",
		Long: "check explores every interleaving of a few CPUs that execute a few sites while a patcher\n" +
			"enables and disables them. Safe means that nothing can break; else there is the shortest way\n" +
			"that breaks it, and the exit code is 1." + columnsHelp(sim.CheckTable()),
		Example: "  textpoke check --arch x86_64\n" +
			"  textpoke check --arch x86_64 --mutate drop-sync-1\n" +
			"  textpoke check --arch x86_64,arm64,riscv64 --protocol breakpoint --cpus 2,3,4 --format csv\n" +
			"  textpoke check --plan my.plan --arch x86_64\n" +
			"  textpoke check --bug lost-text-mutex",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return k.run(cmd, c) },
	}
	k.register(cmd)
	k.registerSearch(cmd)
	return cmd
}

func (k *checkFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	names := func(to *[]string, flag string, preset, valid []string, usage string) {
		f.StringSliceVar(to, flag, preset, "`list` of "+usage+strings.Join(valid, ", "))
		offer(cmd, flag, valid)
	}
	names(&k.arch, "arch", cpus.ArchNames(), cpus.ArchNames(), "instruction sets: ")
	names(&k.protocol, "protocol", []string{poke.Native}, poke.Names(), "protocols: ")
	f.StringArrayVar(&k.plan, "plan", nil, "`file` with a protocol (docs/plan-files.md), in place of --protocol; repeatable")
	names(&k.mutate, "mutate", nil, poke.MutationNames(), "defects to put into the protocol: ")
	names(&k.fetch, "fetch", []string{"weak"}, cpus.FetchNames(), "ways in which versions of text mix in a fetch: ")
	names(&k.buffer, "buffer", []string{"dynamic"}, []string{"dynamic"}, "vector sizes: a number of slots, or as many as there are patches: ")
	names(&k.order, "order", []string{"table"}, checkOrders, "orders in which patches are queued: ")
	names(&k.lookup, "lookup", []string{"btree"}, int3.KindNames(), "indexes that trap handlers search: ")
	names(&k.refs, "refs", []string{"percpu"}, int3.RefsNames(), "kinds of handlers' reference counts: ")
	f.StringArrayVar(&k.cpus, "cpus", []string{"2"}, fmt.Sprintf("`machine`: a number of CPUs up to %d, several numbers, or roles such as busy=2,isolated=1; repeatable", check.MaxCPUs))
	f.IntSliceVar(&k.sites, "sites", []int{2}, fmt.Sprintf("`list` of numbers of sites, each up to %d", check.MaxSites))
	f.BoolVar(&k.preempt, "preempt", false, "tasks can be preempted between any two instructions, and go on later, anywhere")
	f.BoolVar(&k.early, "early", false, "traced code runs on the way in from user space too, before a CPU that rounds left out has caught up")
	f.StringArrayVar(&k.bug, "bug", nil, "`name` of a scenario of the bug museum (--list), in place of a protocol; repeatable")
	f.BoolVar(&k.fixed, "fixed", false, "with --bug: with the upstream fix")
	f.BoolVar(&k.list, "list", false, "list protocols, mutations, bugs, litmus tests, and what cannot be expressed")
}

// checkOrders are the orders that make sense for a handful of sites.
var checkOrders = []string{sched.Table.String(), sched.Descending.String()}

func (k *checkFlags) registerSearch(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&k.reduce, "reduce", "all", "what the search may leave out: "+strings.Join(check.ReductionNames(), ", "))
	offer(cmd, "reduce", check.ReductionNames())
	f.BoolVar(&k.exact, "exact", false, "keep whole states, not fingerprints of 64 bits: slower and larger, but never wrong")
	f.IntVar(&k.workers, "jobs", runtime.GOMAXPROCS(0), "`number` of cores to search on")
	f.Uint64Var(&k.limitStates, "limit-states", 0, "stop at this `number` of states, at the end of a level; 0 for none")
	f.Uint64Var(&k.limitMemory, "limit-memory", 4096, "stop when states and queue take so many `MiB`; 0 for no limit")
	f.DurationVar(&k.limitTime, "limit-time", 0, "stop after this `time`, such as 10m; 0 for none")
	f.StringVar(&k.checkpoint, "checkpoint", "", "save the search in this `file` when it is cut short, and every now and then")
	f.DurationVar(&k.every, "every", 10*time.Minute, "`time` between two checkpoints")
	f.BoolVar(&k.resume, "resume", false, "go on from the file of --checkpoint")
	f.BoolVar(&k.rate, "rate", false, "fill states_per_s in, which is another number every time")
	f.StringVar(&k.trace, "trace", "", "save the counterexample in this `file`, as JSON")
	_ = cmd.MarkFlagFilename("trace", "json")
}

func (k *checkFlags) run(cmd *cobra.Command, c *common) error {
	o, err := k.options()
	if err != nil {
		return err
	}
	questions, err := k.questions(cmd, c)
	if err != nil {
		return err
	}
	if len(questions) > 1 && (k.trace != "" || k.checkpoint != "") {
		return fmt.Errorf("--trace and --checkpoint are for one question, and these are %d", len(questions))
	}
	if c.stderrIsTerminal() {
		o.Watch = c.watch
	}
	var unsafe []sim.VerdictRow
	cut := false
	err = c.rows(cmd.Context(), sim.CheckTable(), len(questions), func(i int, out *output) error {
		row, err := questions[i].Ask(cmd.Context(), o)
		if o.Watch != nil {
			c.clearLine()
		}
		if err != nil {
			return err
		}
		row.Rate = k.rate
		switch row.Verdict {
		case check.Unsafe:
			unsafe = append(unsafe, row)
		case check.Incomplete:
			cut = true
			c.logger().Warn("incomplete", incomplete(&row)...)
		}
		return out.add(row.Cells()...)
	})
	c.printTraces(unsafe)
	if e := k.saveTrace(unsafe); err == nil {
		err = e
	}
	switch {
	case err != nil:
		return err
	case len(unsafe) > 0:
		return errNo
	case cut:
		return errCut
	}
	return nil
}

// options reads the flags of the search.
func (k *checkFlags) options() (o check.Options, err error) {
	reduce, err := named("reduce", k.reduce, check.ReductionNames(), check.ParseReductions)
	switch {
	case err != nil:
		return o, err
	case k.workers < 1:
		return o, fmt.Errorf("--jobs %d: want 1 or more", k.workers)
	case k.limitTime < 0:
		return o, fmt.Errorf("--limit-time %v: want a time above 0, or 0 for none", k.limitTime)
	case k.every <= 0:
		return o, fmt.Errorf("--every %v: want a time above 0", k.every)
	case k.resume && k.checkpoint == "":
		return o, errors.New("--resume goes with --checkpoint")
	}
	return check.Options{
		Reduce: reduce, Exact: k.exact, Workers: k.workers,
		LimitStates: k.limitStates, LimitTime: k.limitTime, LimitMemory: k.limitMemory << 20,
		Checkpoint: k.checkpoint, Every: k.every, Resume: k.resume,
	}, nil
}

// questions reads the flags of what is to be checked.
func (k *checkFlags) questions(cmd *cobra.Command, c *common) ([]*sim.Question, error) {
	g := &sim.CheckGrid{Preempts: []bool{k.preempt}, Sites: k.sites, Early: k.early, Mutations: []string{""}}
	var err error
	read := func(e error) {
		if err == nil {
			err = e
		}
	}
	var e error
	g.Arches, e = namedList("arch", k.arch, cpus.ArchNames(), cpus.ParseArch)
	read(e)
	if k.plan == nil {
		g.Protocols, e = namedList("protocol", k.protocol, poke.Names(), identity)
	} else {
		g.Plans, e = (&gridFlags{plan: k.plan}).plans(cmd, c)
	}
	read(e)
	if cmd.Flags().Changed("mutate") {
		g.Mutations, e = namedList("mutate", k.mutate, poke.MutationNames(), identity)
		read(e)
	}
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
	if err != nil {
		return nil, err
	}
	return g.Questions()
}

// printTraces prints how each unsafe question breaks, for people.
func (c *common) printTraces(unsafe []sim.VerdictRow) {
	if c.format != results.FormatTable {
		return
	}
	for i := range unsafe {
		r := &unsafe[i]
		fmt.Fprintf(c.streams.out, "\n%s\n", r.Flags())
		if r.Trace == nil {
			continue
		}
		fmt.Fprint(c.streams.out, r.Trace.Explain())
	}
}


// saveTrace writes the counterexample of the one question.
func (k *checkFlags) saveTrace(unsafe []sim.VerdictRow) error {
	if k.trace == "" || len(unsafe) == 0 || unsafe[0].Trace == nil {
		return nil
	}
	return unsafe[0].Trace.Save(k.trace)
}
