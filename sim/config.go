// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim/axis"
	"github.com/textpoke/textpoke/sim/timeline"
)

// Config is one combination to be counted or run. The zero Config is what its fields
// say as default: the kernel of the first architecture, eight busy CPUs, the protocol
// that the architecture's kernel has.
type Config struct {
	// Table is the records. Default: the built-in kernel of Arch.
	Table  *records.Table
	source string // that it is to be opened from
	// Filter is which of them to patch; CPUs call all. Default: all.
	Filter records.Filter
	// Arch is the instruction set. Default: the table's; where it does not say, the
	// first of cpus.ArchNames.
	Arch isa.Arch
	// Layout is the layout of sites, by a name of cpus.LayoutNames, or AutoLayout. Default: the one that
	// fits the table.
	Layout string

	// Protocol is how text is changed, by a name of poke.Names. Default: poke.Native.
	Protocol string
	// Plan is a protocol from a file, in place of Protocol.
	Plan *poke.Protocol
	// Mutation is a defect to put in, by a name of poke.MutationNames. Default: none.
	Mutation string
	// Buffer is the vector that patches are queued in. Default: as many slots as patches.
	Buffer sched.Buffer
	// Order is the order in which they are queued. Default: the table's.
	Order sched.Ordering
	// Lookup is the index that trap handlers search, Refs how they are counted.
	// Default: a btree, a count for each CPU.
	Lookup int3.Lookup
	Refs   int3.Refs
	// Fetch is how finely versions of text mix in a fetch. Default: as finely as can be.
	Fetch cpus.Fetch

	// Roles is the machine, a role for each CPU. Default: DefaultCPUs busy ones.
	Roles []cpus.Role
	// Seed fixes every random choice.
	Seed uint64
	// Migrate lets the patcher change CPUs in the middle of an update.
	Migrate bool
	// Tracers is who is called by enabled sites, and by which way. Default: one, at once.
	Tracers *Tracers

	// Timeline, where set, records one run at a time; Listener is told what happens.
	Timeline *timeline.Recorder
	Listener *cpus.Listener

	// Revision is the program's, for rows. Log is told of every update, at level debug.
	// Default: none.
	Revision string
	Log      *zap.Logger

	// Engine executes the plans. Default: the live one. The fields that follow are for the
	// timed engine alone.
	Engine EngineKind
	// Calibration has the time of every step. Default: none, and only counts.
	Calibration *calibration.Calibration
	// Scenario is everything else that the kernel sends. Default: the records' rounds alone.
	Scenario *Scenario
	// Calls is how many calls of traced functions a busy CPU makes a second, Entries
	// how often an isolated one enters the kernel. Default: the calibration's.
	Calls, Entries *float64
	// OutOfTurn is the share of visits of a shared reference count that break the order
	// of waiting, to 1. Default: timed.UsuallyOutOfTurn.
	OutOfTurn float64
	// InProcess executes broken plans on the hardware engine in this process, too, which
	// may die of them. Default: a process of their own.
	InProcess bool
	// Borderless lets a round of the hardware engine be over when membarrier is, which is
	// not enough (experiment round).
	Borderless bool
	// Even lets threads of the hardware engine call all sites alike. Default: half of the
	// calls go to those that are being changed.
	Even bool
	// Preempt lets tasks be preempted inside tracers, and the patcher between batches.
	Preempt bool
}

// DefaultCPUs is how many CPUs a machine has unless something else is asked for.
const DefaultCPUs = 8

// complete fills in the defaults, and says what is wrong with the rest that needs no
// look at records or protocol.
func (c *Config) complete() (err error) {
	if c.Arch == nil {
		name := cpus.ArchNames()[0]
		if c.Table != nil {
			name = cmp.Or(c.Table.Arch(), name)
		}
		if c.Arch, err = cpus.ParseArch(name); err != nil {
			return err
		}
	}
	if c.Table == nil {
		// A built-in table is in the program: there is nothing to wait for.
		c.Table, err = records.Open(context.Background(), records.DefaultFor(c.Arch.Traits().Name), records.Options{})
		if err != nil {
			return err
		}
	}
	if c.Protocol == "" && c.Plan == nil {
		c.Protocol = poke.Native
	}
	if c.Engine == HardwareEngine {
		if err := c.completeHardware(); err != nil {
			return err
		}
	}
	if c.Roles == nil {
		c.Roles = make([]cpus.Role, DefaultCPUs)
	}
	if s := c.Scenario; s != nil {
		if s.Kernel == nil {
			s = &Scenario{Name: s.Name, Kernel: ledger.For(c.Arch.Traits().Name), Off: s.Off}
			c.Scenario = s
		}
		if s.Name == "" || s.Kernel == nil {
			return fmt.Errorf("scenario %q: want a name, and a kernel that has it", s.Name)
		}
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	return c.validate()
}

func (c *Config) validate() error {
	if err := c.validateNames(); err != nil {
		return err
	}
	switch n := len(c.Roles); {
	case n == 0 || n > cpus.MaxCPUs:
		return fmt.Errorf("%d CPUs: want 1 to %d", n, cpus.MaxCPUs)
	case slices.ContainsFunc(c.Roles, func(r cpus.Role) bool { return !r.Valid() }):
		return errors.New("a CPU has a role that there is not")
	case cpus.Housekeeper(c.Roles) < 0:
		return fmt.Errorf("CPUs %s: no CPU that a patcher may run on", cpus.FormatRoles(c.Roles))
	case c.Buffer.Slots < 0:
		return fmt.Errorf("buffer of %d slots: want 1 or more, or 0 for as many as patches", c.Buffer.Slots)
	case !(c.OutOfTurn >= 0 && c.OutOfTurn <= 1):
		return fmt.Errorf("share of visits out of turn %g: want 0 to 1", c.OutOfTurn)
	case c.Plan != nil && !c.Plan.Stated():
		return errors.New("a plan without any step: read it from a file, or name a protocol")
	case c.Plan != nil && c.Protocol != "" && c.Protocol != c.Plan.Name:
		return fmt.Errorf("protocol %s and plan %s: want one of them", c.Protocol, c.Plan.Name)
	case c.Tracers != nil && (c.Tracers.Dispatch.New == nil || c.Tracers.Relevant < 0 || c.Tracers.Irrelevant < 0):
		return errors.New("tracers: want a way of dispatch, and numbers of tracers that are 0 or more")
	case c.Engine == LiveEngine && c.Preempt:
		return errors.New("the live engine preempts no tasks inside tracers: that is for the timed one")
	}
	for name, rate := range map[string]*float64{"calls": c.Calls, "entries": c.Entries} {
		if rate != nil && !(*rate >= 0) {
			return fmt.Errorf("%s: %g a second: want 0 or more", name, *rate)
		}
	}
	return nil
}

// validateNames refuses numbers that no name stands for.
func (c *Config) validateNames() error {
	for _, axis := range []struct {
		what   string
		number uint8
		names  []string
	}{
		{"order", uint8(c.Order), sched.OrderNames()}, {"lookup", uint8(c.Lookup), int3.LookupNames()},
		{"kind of references", uint8(c.Refs), int3.RefsNames()}, {"fetch model", uint8(c.Fetch), cpus.FetchNames()},
		{"engine", uint8(c.Engine), engineNames},
	} {
		if int(axis.number) >= len(axis.names) {
			return fmt.Errorf("%s number %d: there are %d", axis.what, axis.number, len(axis.names))
		}
	}
	return nil
}

// costs are the calibration's, with the load that was asked for.
func (c *Config) costs() *calibration.Costs {
	costs := c.Calibration.Costs
	return c.asked(&costs)
}

// asked puts into costs what the request says in the calibration's place.
func (c *Config) asked(costs *calibration.Costs) *calibration.Costs {
	if c.Calls != nil {
		costs.Calls = *c.Calls
	}
	if c.Entries != nil {
		costs.Entries = *c.Entries
	}
	return costs
}

// Calling is how often a busy CPU calls traced functions on the timed engine, in
// calls a second.
func (c *Config) Calling() float64 { return c.costs().Calls }

// Online is the number of CPUs that take part from the start.
func (c *Config) Online() int { return len(c.Roles) - c.of(cpus.Offline) }

// Isolated is the number of CPUs that run in user space until interrupted.
func (c *Config) Isolated() int { return c.of(cpus.Isolated) }

// of is the number of CPUs of a role.
func (c *Config) of(role cpus.Role) int {
	return spelling.Count(c.Roles, func(r cpus.Role) bool { return r == role })
}

// inSentence are the axes that String words, or leaves out.
var inSentence = []string{
	"arch", "records", "filter", "plan", "protocol", "order", "cpus", "fetch", "lookup", "buffer", "seed", "engine",
}

// String names the combination for people: what always matters, and what else is not as
// usual.
func (c *Config) String() string {
	protocol := c.Protocol
	if c.Plan != nil {
		protocol += " of " + c.Plan.File
	}
	s := fmt.Sprintf("%s %s, buffer %s, order %s, %s CPUs, %s", c.Arch.Traits().Name, protocol, c.Buffer, c.Order,
		cpus.FormatRoles(c.Roles), c.Table.Name())
	if c.Engine != HardwareEngine {
		s += fmt.Sprintf(", lookup %s, fetch %s", c.Lookup, c.Fetch)
	}
	for _, a := range Axes {
		value := a.Print(c)
		switch {
		case value == "" || value == a.Default || slices.Contains(inSentence, a.Name):
		case a.Form == axis.Switch:
			s += ", " + a.Name
		default:
			s += ", " + a.ColumnName() + " " + value
		}
	}
	return s
}

// Flags are the words of a command line that choose this combination.
func (c *Config) Flags() []string { return Axes.Flags(c) }

// Command is the command line that asks for words, quoted for the shell.
func Command(words ...string) string {
	return strings.Join(append([]string{"textpoke"}, spelling.Each(words, ShellQuote)...), " ")
}

// ShellQuote makes one word of the shell out of text.
func ShellQuote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-+=:,./@%", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
