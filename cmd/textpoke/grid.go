package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

// gridFlags is the flags that plan and run share: what to change, how, on which
// machine. Lists mean the cross product.
type gridFlags struct {
	sweepFlags
	arch, layout, protocol, buffer, order, lookup, refs, fetch, mutate []string
	records, filter, cpus, plan                                        []string
	kallsyms                                                           string
}

func (g *gridFlags) register(cmd *cobra.Command) {
	g.sweepFlags.register(cmd)
	f := cmd.Flags()
	names := func(to *[]string, flag string, preset, valid []string, usage string) {
		f.StringSliceVar(to, flag, preset, "`list` of "+usage+strings.Join(valid, ", "))
		offer(cmd, flag, valid)
	}
	names(&g.arch, "arch", cpus.ArchNames(), cpus.ArchNames(), "instruction sets: ")
	names(&g.layout, "layout", []string{sim.AutoLayout}, sim.LayoutNames(), "layouts of sites, by kernel configuration: ")
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
	f.StringArrayVar(&g.records, "records", nil, "`table` of records: a built-in one (textpoke records list), a file, or gen:n=40000,groups=7,... (textpoke records show --help), or several; repeatable (default: each architecture's own kernel)")
	f.StringVar(&g.kallsyms, "kallsyms", "", "`file` with the addresses for a list of functions without")
	f.StringArrayVar(&g.filter, "filter", nil, "`pattern` of records to change, in the kernel's filter syntax: vfs_*, :mod:ext4, !tcp_*; repeated, each adds to it; separated by commas, they are several filters")
	f.StringArrayVar(&g.cpus, "cpus", []string{"8"}, "`machine`: a number of CPUs, several numbers, or roles (busy, idle, isolated, irqsoff, offline) such as busy=6,isolated=2; repeatable")
}

// grid reads the flags.
func (g *gridFlags) grid(cmd *cobra.Command, c *common) (*sim.Grid, error) {
	grid := &sim.Grid{
		Records: sources(g.records), AnyArch: !cmd.Flags().Changed("arch"),
		Options: records.Options{Kallsyms: g.kallsyms}, Seeds: c.seeds,
	}
	c.note(grid.Records...)
	err := c.kallsyms(g.kallsyms)
	read := func(e error) {
		if err == nil {
			err = e
		}
	}
	var e error
	grid.Arches, e = namedList("arch", g.arch, cpus.ArchNames(), cpus.ParseArch)
	read(e)
	if cmd.Flags().Changed("layout") {
		grid.Layouts, e = namedList("layout", g.layout, sim.LayoutNames(), identity)
		read(e)
	}
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
	grid.Filters, e = filters(g.filter)
	read(e)
	g.limits, e = g.sweepFlags.read(cmd)
	read(e)
	if err == nil && !g.yes {
		err = refuseMany(grid.Points())
	}
	return grid, err
}

// manyPoints is how many combinations nobody asks for by mistake.
const manyPoints = 10_000

// refuseMany refuses cross products that are probably a slip, before anything is
// opened.
func refuseMany(points int) error {
	if points <= manyPoints {
		return nil
	}
	n := fmt.Sprint(points)
	if points == math.MaxInt {
		n = "more than " + n
	}
	return fmt.Errorf("the lists make %s combinations: want at most %d, or --yes to do them all", n, manyPoints)
}

// filters reads the values of --filter. Each may be several, separated by commas;
// what is repeated is combined with each of them.
func filters(values []string) ([]records.Filter, error) {
	combined := [][]string{nil}
	for _, value := range values {
		var more [][]string
		for _, before := range combined {
			for _, pattern := range alternatives(value) {
				more = append(more, append(slices.Clone(before), pattern))
			}
			if len(more) > maxFilters {
				return nil, fmt.Errorf("--filter %q: more than %d filters", value, maxFilters)
			}
		}
		combined = more
	}
	var out []records.Filter
	for _, patterns := range combined {
		f, err := records.ParseFilter(patterns)
		if err != nil {
			return nil, fmt.Errorf("--%w", err)
		}
		out = append(out, f)
	}
	return out, nil
}

// maxFilters is what the filters of one command line may multiply to.
const maxFilters = 100_000

// alternatives splits a list of patterns at its commas, but for those that a glob
// quotes or has between brackets.
func alternatives(list string) (out []string) {
	from, class := 0, false
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case c == '\\':
			i++
		case c == '[' || c == ']':
			class = c == '['
		case c == ',' && !class:
			out = append(out, list[from:i])
			from = i + 1
		}
	}
	return append(out, list[from:])
}

// sources splits the values of --records. What is a file or a table is itself,
// commas and all; the keys behind a gen: are its own.
func sources(values []string) (out []string) {
	for _, value := range values {
		if isSource(value) {
			out = append(out, value)
			continue
		}
		generated := false
		for part := range strings.SplitSeq(value, ",") {
			if generated && !isSource(part) && !strings.HasPrefix(part, "gen:") {
				out[len(out)-1] += "," + part
				continue
			}
			out = append(out, part)
			generated = strings.HasPrefix(part, "gen:")
		}
	}
	return out
}

// isSource tells whether there is a table or a file of that name.
func isSource(name string) bool {
	_, err := os.Stat(name)
	return err == nil || isBuiltin(name)
}

func isBuiltin(name string) bool {
	return slices.ContainsFunc(records.Builtins(), func(b records.Builtin) bool { return b.Name == name })
}

// combinations works the combinations out and says what a person should know
// first.
func (c *common) combinations(ctx context.Context, grid *sim.Grid) ([]sim.Config, error) {
	configs, warnings, err := grid.Combinations(ctx)
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		c.logger().Warn(w)
	}
	return configs, nil
}

// withChosen shows, in tables for people too, the columns of what several were asked
// for, as rows cannot be told apart without.
func withChosen(t results.Table, grid *sim.Grid) results.Table {
	several := map[string]int{
		"table": len(grid.Records), "filter": len(grid.Filters), "refs": len(grid.Refs),
		"lookup": len(grid.Lookups), "seed": len(grid.Seeds),
	}
	for i := range t.Columns {
		if several[t.Columns[i].Name] > 1 {
			t.Columns[i].Detail = false
		}
	}
	return t
}
