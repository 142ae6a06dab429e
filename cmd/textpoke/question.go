package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/cpus/isa"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sched"
)

// machineFlags is the flags that say which protocols are to be checked on what.
// Lists mean the cross product.
type machineFlags struct {
	arch, layout, protocol, fetch, cpus []string
	sites                               []int
	preempt                             bool
}

// questionFlags is the flags that say all that can be asked of a protocol.
type questionFlags struct {
	machineFlags
	mutate, buffer, order, lookup, refs []string
	early, switches                     bool
	patchers                            int
}

// questionFlagNames are their names.
var questionFlagNames = []string{
	"arch", "layout", "protocol", "plan", "mutate", "fetch", "buffer", "order", "lookup", "refs", "cpus", "sites", "preempt", "early", "patchers", "switch",
}

// checkOrders are the orders that differ for a handful of sites.
var checkOrders = []string{sched.Table.String(), sched.Descending.String()}

// names adds a flag that is a list of names, of which the shell knows the valid ones.
func names(cmd *cobra.Command, to *[]string, flag string, preset, valid []string, usage string) {
	cmd.Flags().StringSliceVar(to, flag, preset, "`list` of "+usage+strings.Join(valid, ", "))
	offer(cmd, flag, valid)
}

// register adds the flags; protocols and fetches are what is checked by default.
func (k *machineFlags) register(cmd *cobra.Command, protocols, fetches []string) {
	f := cmd.Flags()
	names(cmd, &k.arch, "arch", cpus.ArchNames(), cpus.ArchNames(), "instruction sets: ")
	names(cmd, &k.layout, "layout", nil, cpus.LayoutNames(), "layouts of sites, by kernel configuration (default: each instruction set's usual one): ")
	names(cmd, &k.protocol, "protocol", protocols, poke.Names(), "protocols: ")
	names(cmd, &k.fetch, "fetch", fetches, cpus.FetchNames(), "ways in which versions of text mix in a fetch: ")
	f.StringArrayVar(&k.cpus, "cpus", []string{"2"}, fmt.Sprintf("`machine`: a number of CPUs up to %d, several numbers, or roles (busy, idle, isolated, irqsoff, offline) such as busy=2,isolated=1; repeatable", explore.MaxCPUs))
	f.IntSliceVar(&k.sites, "sites", []int{2}, fmt.Sprintf("`list` of numbers of sites, each up to %d", explore.MaxSites))
	f.BoolVar(&k.preempt, "preempt", false, "tasks can be preempted between any two instructions, and go on later, anywhere")
}

func (k *questionFlags) register(cmd *cobra.Command) {
	k.machineFlags.register(cmd, []string{poke.Native}, []string{"weak"})
	names(cmd, &k.mutate, "mutate", nil, poke.MutationNames(), "defects to put into the protocol: ")
	names(cmd, &k.buffer, "buffer", []string{"dynamic"}, []string{"dynamic"}, "vector sizes: a number of slots, or as many as there are patches: ")
	names(cmd, &k.order, "order", []string{"table"}, checkOrders, "orders in which patches are queued: ")
	names(cmd, &k.lookup, "lookup", []string{"btree"}, int3.KindNames(), "indexes that trap handlers search: ")
	names(cmd, &k.refs, "refs", []string{"percpu"}, int3.RefsNames(), "kinds of handlers' reference counts: ")
	cmd.Flags().IntVar(&k.patchers, "patchers", 1, fmt.Sprintf("`number` of patchers, up to %d, that share the sites between them, each with an ops of its own", explore.MaxPatchers))
	cmd.Flags().BoolVar(&k.switches, "switch", false, "every site calls one ops throughout and goes over to another, in place of being enabled and disabled")
	cmd.Flags().BoolVar(&k.early, "early", false, "traced code also runs on the way in from user space, before a CPU that rounds left out has caught up")
}

// grid reads the flags.
func (k *machineFlags) grid() (*check.Grid, error) {
	g := &check.Grid{Preempts: []bool{k.preempt}, Sites: k.sites}
	var errs [5]error
	g.Arches, errs[0] = namedList("arch", k.arch, cpus.ArchNames(), cpus.ParseArch)
	g.Protocols, errs[1] = namedList("protocol", k.protocol, poke.Names(), identity)
	g.Fetches, errs[2] = namedList("fetch", k.fetch, cpus.FetchNames(), cpus.ParseFetch)
	g.Machines, errs[3] = list("cpus", machines(k.cpus), machine)
	if len(k.layout) > 0 && errs[0] == nil {
		g.Arches, errs[4] = k.laidOut(g.Arches)
	}
	return g, cmp.Or(errs[:]...)
}

// laidOut are instruction sets with each layout of sites that is asked for.
func (k *machineFlags) laidOut(arches []isa.Arch) (out []isa.Arch, err error) {
	layouts, err := namedList("layout", k.layout, cpus.LayoutNames(), identity)
	for _, a := range arches {
		for _, l := range layouts {
			with, e := cpus.WithLayout(a, l)
			out, err = append(out, with), cmp.Or(err, e)
		}
	}
	return out, err
}

// grid reads the flags, but for the mutations.
func (k *questionFlags) grid() (*check.Grid, error) {
	g, err := k.machineFlags.grid()
	g.Early, g.Mutations = k.early, []string{""}
	if g.Patchers, g.Switch = k.patchers, k.switches; g.Patchers < 1 {
		return nil, fmt.Errorf("--patchers %d: want 1 to %d", k.patchers, explore.MaxPatchers)
	}
	errs := [5]error{err}
	g.Buffers, errs[1] = list("buffer", k.buffer, buffer)
	g.Orders, errs[2] = namedList("order", k.order, checkOrders, sched.ParseOrder)
	g.Lookups, errs[3] = namedList("lookup", k.lookup, int3.KindNames(), int3.ParseKind)
	g.Refs, errs[4] = namedList("refs", k.refs, int3.RefsNames(), int3.ParseRefs)
	return g, cmp.Or(errs[:]...)
}

// searchFlags is the flags that say how a search is made.
type searchFlags struct {
	effortFlags
	rate bool
}

func (s *searchFlags) register(cmd *cobra.Command) {
	s.effortFlags.register(cmd)
	cmd.Flags().BoolVar(&s.rate, "rate", false, "fill in states_per_s, which is another number every time")
}

// effortFlags is the flags that say what a search may cost, and leave out.
type effortFlags struct {
	reduce                   string
	exact                    bool
	jobs                     int
	limitStates, limitMemory uint64 // memory in MiB
	limitTime                time.Duration
}

func (s *effortFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.reduce, "reduce", "all", "`parts` that the search may leave out: "+strings.Join(explore.ReductionNames(), ", "))
	offer(cmd, "reduce", explore.ReductionNames())
	f.BoolVar(&s.exact, "exact", false, "keep whole states, not fingerprints of 64 bits: slower and larger, but never wrong")
	f.IntVar(&s.jobs, "jobs", runtime.GOMAXPROCS(0), "`number` of cores to search on")
	f.Uint64Var(&s.limitStates, "limit-states", 0, "stop at this `number` of states, at the end of a level; 0 for none")
	f.Uint64Var(&s.limitMemory, "limit-memory", 4096, "stop when states and queue take so many `MiB`; 0 for no limit")
	f.DurationVar(&s.limitTime, "limit-time", 0, "stop after this `time`, such as 10m; 0 for none")
}

func (s *effortFlags) options() (explore.Options, error) {
	reduce, err := named("reduce", s.reduce, explore.ReductionNames(), explore.ParseReductions)
	switch {
	case err != nil:
		return explore.Options{}, err
	case s.jobs < 1:
		return explore.Options{}, fmt.Errorf("--jobs %d: want 1 or more", s.jobs)
	case s.limitMemory > 1<<40:
		return explore.Options{}, fmt.Errorf("--limit-memory %d: want at most %d MiB, or 0 for no limit", s.limitMemory, 1<<40)
	case s.limitTime < 0:
		return explore.Options{}, fmt.Errorf("--limit-time %v: want a time above 0, or 0 for none", s.limitTime)
	}
	return explore.Options{
		Reduce: reduce, Exact: s.exact, Workers: s.jobs,
		LimitStates: s.limitStates, LimitTime: s.limitTime, LimitMemory: s.limitMemory << 20,
	}, nil
}

// ask puts questions to the checker, a row each. The error says what the answers
// mean for the exit code.
func (s *searchFlags) ask(ctx context.Context, c *common, questions []*check.Question, o explore.Options, out *output) (rows []check.VerdictRow, err error) {
	unsafe := false
	cut, err := c.answers(ctx, questions, o, out, func(row *check.VerdictRow) {
		row.Rate = s.rate
		unsafe = unsafe || row.Verdict == explore.Unsafe
		rows = append(rows, *row)
	})
	switch {
	case err != nil:
	case unsafe:
		err = errNo
	case cut:
		err = errCut
	}
	return rows, err
}

// answers puts questions to the checker and writes a row each, which seen sees
// first. It tells whether any was cut short by limits.
func (c *common) answers(ctx context.Context, questions []*check.Question, o explore.Options, out *output, seen func(*check.VerdictRow)) (cut bool, err error) {
	err = c.each(ctx, out, len(questions), func(i int, out *output) error {
		row, err := c.answer(ctx, questions[i], o)
		if err != nil {
			return err
		}
		seen(&row)
		cut = cut || row.Verdict == explore.Incomplete
		return out.add(check.Columns.Cells(&row)...)
	})
	return cut, err
}

// answer puts one question to the checker, watched by whoever sits at a terminal.
func (c *common) answer(ctx context.Context, q *check.Question, o explore.Options) (check.VerdictRow, error) {
	if c.stderrIsTerminal() {
		o.Watch = c.watch
		defer c.clearLine()
	}
	row, err := q.Ask(ctx, o)
	if err == nil && row.Verdict == explore.Incomplete {
		c.logger().Warn("incomplete", incomplete(&row)...)
	}
	return row, err
}
