package main

import (
	"fmt"
	"os"
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
	records, filter, cpus                                      []string
	kallsyms                                                   string
}

func (g *gridFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&g.arch, "arch", cpus.ArchNames(), "instruction sets")
	f.StringSliceVar(&g.protocol, "protocol", []string{poke.Native}, "protocols: "+strings.Join(poke.Names(), ", "))
	f.StringSliceVar(&g.buffer, "buffer", []string{"256", "dynamic"}, "slots of the vector (TP_VEC_MAX), or dynamic: as many as patches")
	f.StringSliceVar(&g.order, "order", []string{"table"}, "order in which patches are queued: "+strings.Join(sched.OrderNames(), ", "))
	f.StringSliceVar(&g.lookup, "lookup", []string{"btree"}, "index that trap handlers search: "+strings.Join(int3.KindNames(), ", "))
	f.StringSliceVar(&g.refs, "refs", []string{"percpu"}, "handlers' reference counts: "+strings.Join(int3.RefsNames(), ", "))
	f.StringSliceVar(&g.fetch, "fetch", []string{"weak"}, "how finely versions of text mix in a fetch: "+strings.Join(cpus.FetchNames(), ", "))
	f.StringSliceVar(&g.mutate, "mutate", nil, "defects to put into the protocol: "+strings.Join(poke.MutationNames(), ", "))
	f.StringArrayVar(&g.records, "records", nil, "`table` of records: a built-in one (records list), a file, gen:n=40000,...; repeatable (default: each architecture's own kernel)")
	f.StringVar(&g.kallsyms, "kallsyms", "", "`file` with the addresses for a list of functions without")
	f.StringArrayVar(&g.filter, "filter", nil, "which records to change, in the kernel's filter syntax; repeatable")
	f.StringArrayVar(&g.cpus, "cpus", []string{"8"}, "`machine`: a number of CPUs, several numbers, or roles such as busy=6,isolated=2; repeatable")
}

// grid reads the flags.
func (g *gridFlags) grid(cmd *cobra.Command, c *common) (*sim.Grid, error) {
	grid := &sim.Grid{
		Records: g.records, AnyArch: !cmd.Flags().Changed("arch"),
		Options: records.Options{Kallsyms: g.kallsyms}, Seed: c.seed,
	}
	c.note(append(g.records, g.kallsyms)...)
	var err error
	read := func(e error) {
		if err == nil {
			err = e
		}
	}
	var e error
	grid.Arches, e = namedList("arch", g.arch, cpus.ArchNames(), cpus.ParseArch)
	read(e)
	grid.Protocols, e = namedList("protocol", g.protocol, poke.Names(), identity)
	read(e)
	grid.Buffers, e = list("buffer", g.buffer, sched.ParseBuffer)
	read(e)
	grid.Orders, e = namedList("order", g.order, sched.OrderNames(), sched.ParseOrder)
	read(e)
	grid.Lookups, e = namedList("lookup", g.lookup, int3.KindNames(), int3.ParseKind)
	read(e)
	grid.Refs, e = namedList("refs", g.refs, int3.RefsNames(), int3.ParseRefs)
	read(e)
	grid.Fetches, e = namedList("fetch", g.fetch, cpus.FetchNames(), cpus.ParseFetch)
	read(e)
	if len(g.mutate) > 0 {
		grid.Mutations, e = namedList("mutate", g.mutate, poke.MutationNames(), identity)
		read(e)
	}
	grid.Machines, e = list("cpus", machines(g.cpus), cpus.ParseRoles)
	read(e)
	grid.Filter, e = records.ParseFilter(g.filter)
	if e != nil {
		read(fmt.Errorf("--filter: %w", e))
	}
	return grid, err
}

// note remembers the files among the inputs, for the manifest.
func (c *common) note(inputs ...string) {
	for _, path := range inputs {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			c.inputs = append(c.inputs, path)
		}
	}
}

// machines splits a list of plain numbers, "2,8,64", into its machines; what
// names roles is one machine.
func machines(specs []string) []string {
	var out []string
	for _, s := range specs {
		if strings.Contains(s, "=") {
			out = append(out, s)
			continue
		}
		out = append(out, strings.Split(s, ",")...)
	}
	return out
}
