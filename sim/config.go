package sim

import (
	"fmt"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
)

// Config is one combination to be counted or run.
type Config struct {
	Arch     isa.Arch
	Protocol string // see poke.Names
	Mutation string // a defect to put in, "" for none; see poke.MutationNames
	Buffer   sched.Buffer
	Order    sched.Ordering
	Lookup   int3.Kind
	Refs     int3.Refs
	Fetch    cpus.Fetch
	Roles    []cpus.Role

	Table  *records.Table
	Filter records.Filter // which records to patch; CPUs call all of them

	Seed    uint64
	Migrate bool // the patcher may change CPUs in the middle
}

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

// String names the combination for people.
func (c *Config) String() string {
	s := fmt.Sprintf("%s %s, buffer %s, order %s, %s CPUs, %s, lookup %s, fetch %s",
		c.Arch.Traits().Name, c.Protocol, c.Buffer, c.Order, cpus.FormatRoles(c.Roles), c.Table.Name(), c.Lookup, c.Fetch)
	if c.Mutation != "" {
		s += ", mutation " + c.Mutation
	}
	return s
}

// Flags is the combination as the command line spells it, but for the records and
// the filter, which may need quoting.
func (c *Config) Flags() string {
	s := fmt.Sprintf("--arch %s --protocol %s --buffer %s --order %s --cpus %s --lookup %s --refs %s --fetch %s --seed %d",
		c.Arch.Traits().Name, c.Protocol, c.Buffer, c.Order, cpus.FormatRoles(c.Roles), c.Lookup, c.Refs, c.Fetch, c.Seed)
	if c.Mutation != "" {
		s += " --mutate " + c.Mutation
	}
	if c.Migrate {
		s += " --migrate"
	}
	return s
}
