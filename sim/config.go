package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim/axis"
	"github.com/textpoke/textpoke/sim/timeline"
)

// Config is one combination to be counted or run.
type Config struct {
	Arch     isa.Arch
	Layout   string         // of its sites: see LayoutNames; "" for what the table speaks for
	Protocol string         // see poke.Names; that of Plan, where there is one
	Plan     *poke.Protocol // a protocol from a file, nil for a built-in one
	Mutation string         // a defect to put in, "" for none; see poke.MutationNames
	Buffer   sched.Buffer
	Order    sched.Ordering
	Lookup   int3.Kind
	Refs     int3.Refs
	Fetch    cpus.Fetch
	Roles    []cpus.Role

	Table  *records.Table
	source string         // that it is to be opened from
	Filter records.Filter // which records to patch; CPUs call all of them

	Seed    uint64
	Migrate bool // the patcher may change CPUs in the middle

	Tracers *Tracers // who is called by enabled sites, and how; nil for one, without a way to it

	Timeline *timeline.Recorder // where set, is told what happens; one run at a time
	Listener *cpus.Listener     // is told what happens too; nil for nobody

	Engine Kind
	// For the timed engine alone.
	Scenario    *Scenario                // what else the kernel sends, nil for the records' rounds alone
	Calibration *calibration.Calibration // what everything takes, nil for counts only
	Calls       float64                  // calls of traced functions a second on a busy CPU; below 0: the calibration's
	Entries     float64                  // entries into the kernel a second of an isolated CPU; below 0: the calibration's
	OutOfTurn   float64                  // share of visits of a shared reference count that break the order of waiting, to 1; 0: timed.UsuallyOutOfTurn
	Preempt     bool                     // tasks may be preempted inside tracers, and the patcher between batches
}

// costs are the calibration's, with the load that was asked for.
func (c *Config) costs() *calibration.Costs {
	costs := c.Calibration.Costs
	if c.Calls >= 0 {
		costs.Calls = c.Calls
	}
	if c.Entries >= 0 {
		costs.Entries = c.Entries
	}
	return &costs
}

// Calling is how often a busy CPU calls traced functions on the timed engine, in
// calls a second.
func (c *Config) Calling() float64 { return c.costs().Calls }

// Online is the number of CPUs that take part from the start.
func (c *Config) Online() (n int) {
	for _, r := range c.Roles {
		if r != cpus.Offline {
			n++
		}
	}
	return n
}

// Isolated is the number of CPUs that run in user space until interrupted.
func (c *Config) Isolated() (n int) {
	for _, r := range c.Roles {
		if r == cpus.Isolated {
			n++
		}
	}
	return n
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
	s := fmt.Sprintf("%s %s, buffer %s, order %s, %s CPUs, %s, lookup %s, fetch %s",
		c.Arch.Traits().Name, protocol, c.Buffer, c.Order, cpus.FormatRoles(c.Roles), c.Table.Name(), c.Lookup, c.Fetch)
	for _, a := range Axes {
		value := a.Print(c)
		switch usual := len(a.Preset) == 1 && a.Preset[0] == value; {
		case value == "" || usual || slices.Contains(inSentence, a.Flag):
		case a.Form == axis.Switch:
			s += ", " + a.Flag
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
	quoted := []string{"textpoke"}
	for _, w := range words {
		quoted = append(quoted, ShellQuote(w))
	}
	return strings.Join(quoted, " ")
}

// ShellQuote makes one word of the shell out of text.
func ShellQuote(s string) string {
	plain := func(r rune) bool {
		return r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-+=:,./@%", r))
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
