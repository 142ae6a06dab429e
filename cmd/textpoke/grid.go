package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

// gridFlags is the flags that plan and run share: what to change, how, on which
// machine. Lists mean the cross product.
type gridFlags struct {
	arch, protocol, buffer, order, lookup, refs, fetch, mutate []string
	records, filter, cpus, plan                                []string
	kallsyms                                                   string
}

func (g *gridFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	names := func(to *[]string, flag string, preset, valid []string, usage string) {
		f.StringSliceVar(to, flag, preset, "`list` of "+usage+strings.Join(valid, ", "))
		offer(cmd, flag, valid)
	}
	names(&g.arch, "arch", cpus.ArchNames(), cpus.ArchNames(), "instruction sets: ")
	names(&g.protocol, "protocol", []string{poke.Native}, poke.Names(), "protocols: ")
	f.StringArrayVar(&g.plan, "plan", nil, "`file` with a protocol (docs/plan-files.md), in place of --protocol; repeatable")
	// The flag stands right here: it cannot be missing.
	_ = cmd.MarkFlagFilename("plan", "plan")
	names(&g.buffer, "buffer", []string{"256", "dynamic"}, []string{"dynamic"}, "vector sizes: a number of slots (TP_VEC_MAX), or as many as there are patches: ")
	names(&g.order, "order", []string{"table"}, sched.OrderNames(), "orders in which patches are queued: ")
	names(&g.lookup, "lookup", []string{"btree"}, int3.KindNames(), "indexes that trap handlers search: ")
	names(&g.refs, "refs", []string{"percpu"}, int3.RefsNames(), "kinds of handlers' reference counts: ")
	names(&g.fetch, "fetch", []string{"weak"}, cpus.FetchNames(), "ways in which versions of text mix in a fetch: ")
	names(&g.mutate, "mutate", nil, poke.MutationNames(), "defects to put into the protocol: ")
	f.StringArrayVar(&g.records, "records", nil, "`table` of records: a built-in one (textpoke records list), a file, or gen:n=40000,groups=7,... (textpoke records show --help); repeatable (default: each architecture's own kernel)")
	f.StringVar(&g.kallsyms, "kallsyms", "", "`file` with the addresses for a list of functions without")
	f.StringArrayVar(&g.filter, "filter", nil, "`pattern` of records to change, in the kernel's filter syntax: vfs_*, :mod:ext4, !tcp_*; repeatable")
	f.StringArrayVar(&g.cpus, "cpus", []string{"8"}, "`machine`: a number of CPUs, several numbers, or roles (busy, idle, isolated, irqsoff, offline) such as busy=6,isolated=2; repeatable")
}

// grid reads the flags.
func (g *gridFlags) grid(cmd *cobra.Command, c *common) (*sim.Grid, error) {
	grid := &sim.Grid{
		Records: g.records, AnyArch: !cmd.Flags().Changed("arch"),
		Options: records.Options{Kallsyms: g.kallsyms}, Seed: c.seed,
	}
	c.note(g.records...)
	err := c.kallsyms(g.kallsyms)
	read := func(e error) {
		if err == nil {
			err = e
		}
	}
	var e error
	grid.Arches, e = namedList("arch", g.arch, cpus.ArchNames(), cpus.ParseArch)
	read(e)
	if g.plan == nil {
		grid.Protocols, e = namedList("protocol", g.protocol, poke.Names(), identity)
	} else {
		grid.Plans, e = g.plans(cmd, c)
	}
	read(e)
	grid.Buffers, e = list("buffer", g.buffer, buffer)
	read(e)
	grid.Orders, e = namedList("order", g.order, sched.OrderNames(), sched.ParseOrder)
	read(e)
	grid.Lookups, e = namedList("lookup", g.lookup, int3.KindNames(), int3.ParseKind)
	read(e)
	grid.Refs, e = namedList("refs", g.refs, int3.RefsNames(), int3.ParseRefs)
	read(e)
	grid.Fetches, e = namedList("fetch", g.fetch, cpus.FetchNames(), cpus.ParseFetch)
	read(e)
	if cmd.Flags().Changed("mutate") {
		grid.Mutations, e = namedList("mutate", g.mutate, poke.MutationNames(), identity)
		read(e)
	}
	grid.Machines, e = list("cpus", machines(g.cpus), machine)
	read(e)
	grid.Filter, e = records.ParseFilter(g.filter)
	if e != nil {
		read(fmt.Errorf("--%w", e))
	}
	return grid, err
}

// jobs works the combinations out and says what a person should know first.
func (c *common) jobs(ctx context.Context, grid *sim.Grid) ([]*sim.Job, error) {
	jobs, err := grid.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	log, said := c.logger(), map[string]bool{}
	for _, j := range jobs {
		for _, w := range j.Warnings() {
			if !said[w] {
				said[w] = true
				log.Warn(w)
			}
		}
	}
	return jobs, nil
}
