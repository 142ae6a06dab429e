package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sim"
)

// scenarioFlags says what a kernel sends besides the rounds of the records.
type scenarioFlags struct {
	scenario, without []string
	kernel            string
}

func (s *scenarioFlags) register(cmd *cobra.Command) {
	names := scenarioNames()
	f := cmd.Flags()
	f.StringSliceVar(&s.scenario, "scenario", nil, "`list` of tracers to switch on and off, with all that a kernel sends for it (then --buffer is 256 unless given): "+strings.Join(names, ", "))
	offer(cmd, "scenario", names)
	f.StringVar(&s.kernel, "kernel", "", "`name` of the kernel whose ledger a scenario follows, and whose protocol and instruction set unless given: "+strings.Join(ledger.Names(), ", "))
	offer(cmd, "kernel", ledger.Names())
	f.StringSliceVar(&s.without, "without-cause", nil, "`list` of causes and parts that a scenario leaves out: "+strings.Join(ledger.SwitchNames(), ", "))
	offer(cmd, "without-cause", ledger.SwitchNames())
}

func scenarioNames() (names []string) {
	for _, n := range ledger.Scenarios() {
		names = append(names, string(n))
	}
	return names
}

// on tells whether a scenario was asked for.
func (s *scenarioFlags) on(cmd *cobra.Command) bool { return cmd.Flags().Changed("scenario") }

// shape lets a scenario choose what the grid's flags leave open, and checks what
// goes with what.
func (s *scenarioFlags) shape(cmd *cobra.Command, g *gridFlags) error {
	changed := cmd.Flags().Changed
	if !s.on(cmd) {
		for _, flag := range []string{"kernel", "without-cause"} {
			if changed(flag) {
				return fmt.Errorf("--%s goes with --scenario", flag)
			}
		}
		return nil
	}
	if changed("steps") {
		return fmt.Errorf("--steps does not go with --scenario")
	}
	if _, err := namedList("scenario", s.scenario, scenarioNames(), identity); err != nil {
		return err
	}
	if changed("without-cause") {
		if _, err := namedList("without-cause", s.without, ledger.SwitchNames(), identity); err != nil {
			return err
		}
	}
	if !changed("buffer") {
		g.buffer = g.buffer[:1]
	}
	if !changed("kernel") {
		return nil
	}
	k, err := named("kernel", s.kernel, ledger.Names(), ledger.Named)
	if err != nil {
		return err
	}
	switch {
	case !changed("arch"):
		g.arch = []string{k.Arch}
		// As if it had been given: other tables do not fit.
		cmd.Flags().Lookup("arch").Changed = true
	case !slices.Equal(g.arch, []string{k.Arch}):
		return fmt.Errorf("--kernel %s does not go with --arch %s", s.kernel, strings.Join(g.arch, ","))
	}
	if !changed("protocol") && g.plan == nil {
		g.protocol = []string{k.Protocol}
	}
	return nil
}

// ledgerTable is a table for what a scenario sends.
func ledgerTable() results.Table {
	return results.Table{Name: "ledger", Columns: []results.Column{
		{Name: "kernel", Doc: "whose ledger it is"},
		{Name: "scenario", Doc: "what is switched"},
		{Name: "direction", Doc: "enable or disable"},
		{Name: "protocol", Doc: "how the records are changed"},
		{Name: "buffer", Doc: "slots of the vector that they are queued in"},
		{Name: "order", Doc: "order in which they are queued"},
		{Name: "cpus", Doc: "CPUs by role"},
		{Name: "patches", Doc: "records changed"},
		{Name: "part", Doc: "of the tracer's work; records: their own rounds; total: of the row"},
		{Name: "cause", Doc: "of the interrupts; empty for a total"},
		{Name: "row", Doc: "of /proc/interrupts, or counter of the firmware, in which they are seen"},
		{Name: "pokes", Doc: "keys, sites or calls; empty where there are none to count"},
		{Name: "rounds", Doc: "that are sent for it, each an interrupt of every other CPU: what a receiver takes"},
		{Name: "ipis", Doc: "interrupts that all other CPUs take together"},
		{Name: "basis", Detail: true, Doc: "how the number is known: counted, source or assumed; plan: by counting the plan"},
		{Name: "source", Detail: true, Doc: "where it stands"},
	}}
}

// scenarios are those that were asked for, nil for none; their kernel is the one
// that each architecture stands for, unless it was named.
func (s *scenarioFlags) scenarios() (out []sim.Scenario, err error) {
	off, err := ledger.ParseSwitch(s.without)
	if err != nil {
		return nil, err
	}
	var k *ledger.Kernel
	if s.kernel != "" {
		if k, err = ledger.Named(s.kernel); err != nil {
			return nil, fmt.Errorf("--%w", err)
		}
	}
	for _, name := range s.scenario {
		out = append(out, sim.Scenario{Name: ledger.Scenario(name), Kernel: k, Off: off})
	}
	return out, nil
}

// plan prints what each combination sends, cause by cause in the order in which
// it does, and what each receiver takes.
func (s *scenarioFlags) plan(ctx context.Context, c *common, configs []sim.Config) error {
	var all []*direction
	for i := range configs {
		both, err := switchesOf(&configs[i])
		if err != nil {
			return err
		}
		all = append(all, both...)
	}
	return c.rows(ctx, ledgerTable(), len(all), func(i int, o *output) error {
		return all[i].print(ctx, o)
	})
}

// direction is one switch of one combination.
type direction struct {
	job     *sim.Job
	kernel  *ledger.Kernel
	enable  bool
	entries []ledger.Entry
}

// switchesOf are both directions of a scenario; of what only enables, that.
func switchesOf(c *sim.Config) (out []*direction, err error) {
	j, err := sim.NewJob(*c)
	if err != nil {
		return nil, err
	}
	for _, enable := range []bool{true, false} {
		entries, err := c.Scenario.Entries(enable)
		if err != nil && out == nil {
			return nil, fmt.Errorf("--%w", err)
		}
		if err == nil {
			out = append(out, &direction{j, c.Scenario.Kernel, enable, entries})
		}
	}
	return out, nil
}

// print adds the ledger's rows: what precedes the records, the records, what
// follows them, and what each receiver takes in all.
func (l *direction) print(ctx context.Context, o *output) error {
	count, err := l.job.Count(ctx)
	if err != nil {
		return err
	}
	p := &ledgerPrinter{l: l, count: &count, o: o, totals: map[string]sent{}}
	others := l.job.Online() - 1
	before, after := ledger.Split(l.entries)
	for _, e := range before {
		p.entry(e)
	}
	// Lazy rounds leave out CPUs; wakeups never do.
	p.records(cpus.Sync, sent{count.Rounds, count.IPIs - count.Stops*others})
	p.records(cpus.Stop, sent{count.Stops, count.Stops * others})
	for _, e := range after {
		p.entry(e)
	}
	for _, r := range l.kernel.Rows() {
		if n, ok := p.totals[r.Name]; ok {
			p.add("total", results.Empty, r.Name, results.Empty, n, results.Empty, r.About)
		}
	}
	return p.err
}

// sent is rounds, and the interrupts that they come to.
type sent struct{ rounds, ipis int }

// ledgerPrinter adds rows until one fails, and sums them up.
type ledgerPrinter struct {
	l      *direction
	count  *sim.PlanRow
	o      *output
	totals map[string]sent // by row
	err    error
}

func (p *ledgerPrinter) entry(e ledger.Entry) {
	n := sent{e.Rounds(), e.Rounds() * (p.l.job.Online() - 1)}
	p.sum(e.Row, n)
	p.add(e.Part, e.Cause.String(), e.Row, e.Pokes, n, string(e.Basis), e.Source)
}

// records adds what the plan sends for the records themselves. That it sends
// nothing is said once.
func (p *ledgerPrinter) records(cause cpus.Cause, n sent) {
	k := p.l.kernel
	if n.rounds == 0 && (cause == cpus.Stop || p.count.Stops > 0) {
		return
	}
	var row, source any = results.Empty, results.Empty
	if n.rounds > 0 {
		row = k.RowOf(cause)
		p.sum(k.RowOf(cause), n)
	}
	if p.count.Plan == nil && (p.count.Protocol == k.Protocol || p.count.Protocol == poke.Native) {
		source = k.Records.Source
	}
	p.add("records", cause.String(), row, p.count.Patches, n, "plan", source)
}

func (p *ledgerPrinter) sum(row string, n sent) {
	t := p.totals[row]
	p.totals[row] = sent{t.rounds + n.rounds, t.ipis + n.ipis}
}

func (p *ledgerPrinter) add(part string, cause, row, pokes any, n sent, basis, source any) {
	if p.err != nil {
		return
	}
	direction := "disable"
	if p.l.enable {
		direction = "enable"
	}
	buffer := any(results.Empty)
	if p.count.Buffered {
		buffer = p.count.Buffer.String()
	}
	c := p.count.Config
	p.err = p.o.add(p.l.kernel.Name(), string(p.l.job.Scenario.Name), direction, c.Protocol, buffer, c.Order.String(), cpus.FormatRoles(c.Roles),
		p.count.Patches, part, cause, row, pokes, n.rounds, n.ipis, basis, source)
}
