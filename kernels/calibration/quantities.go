// SPDX-License-Identifier: Apache-2.0

package calibration

// Unit is a quantity's unit.
type Unit string

// The units. Times may be given in any unit of time, and are kept in nanoseconds.
const (
	Time   Unit = "ns"
	Rate   Unit = "per_s"
	Number Unit = "number"
)

// Quantity is one of the costs as files and people name it.
type Quantity struct {
	Name string
	Unit Unit
	Doc  string // one line
	Of   func(*Costs) *float64

	never0 bool // other things happen once in every such time
}

// ByName finds a quantity; nil if there is none of that name.
func ByName(name string) *Quantity {
	for i := range Quantities {
		if Quantities[i].Name == name {
			return &Quantities[i]
		}
	}
	return nil
}

// Quantities are all of them, in the order in which files list them.
var Quantities = []Quantity{
	{Name: "round_setup", Unit: Time, Doc: "the sender prepares a round",
		Of: func(c *Costs) *float64 { return &c.RoundSetup }},
	{Name: "send", Unit: Time, Doc: "the sender interrupts one more target",
		Of: func(c *Costs) *float64 { return &c.Send }},
	{Name: "delivery", Unit: Time, Doc: "from sending until the target takes it",
		Of: func(c *Costs) *float64 { return &c.Delivery }},
	{Name: "jitter", Unit: Time, Doc: "mean of an exponential delay on top of delivery",
		Of: func(c *Costs) *float64 { return &c.Jitter }},
	{Name: "idle_wake", Unit: Time, Doc: "an idle target wakes up first",
		Of: func(c *Costs) *float64 { return &c.IdleWake }},
	{Name: "handler", Unit: Time, Doc: "what the target loses, from entry to exit",
		Of: func(c *Costs) *float64 { return &c.Handler }},
	{Name: "answer", Unit: Time, Doc: "from the target's answer until the sender sees it",
		Of: func(c *Costs) *float64 { return &c.Answer }},
	{Name: "stop_wake", Unit: Time, Doc: "a CPU's stopper gets to run, for stop_machine",
		Of: func(c *Costs) *float64 { return &c.StopWake }},
	{Name: "verify", Unit: Time, Doc: "compare one site with what is expected",
		Of: func(c *Costs) *float64 { return &c.Verify }},
	{Name: "publish", Unit: Time, Doc: "put one patch into the batch that handlers search",
		Of: func(c *Costs) *float64 { return &c.Publish }},
	{Name: "store", Unit: Time, Doc: "one store to text, with its mapping and cache maintenance",
		Of: func(c *Costs) *float64 { return &c.Store }},
	{Name: "store_literal", Unit: Time, Doc: "one store to a site's literal",
		Of: func(c *Costs) *float64 { return &c.StoreLiteral }},
	{Name: "fence", Unit: Time, Doc: "the patcher's own fence and resynchronisation",
		Of: func(c *Costs) *float64 { return &c.Fence }},
	{Name: "trap_entry", Unit: Time, Doc: "from the breakpoint into the handler",
		Of: func(c *Costs) *float64 { return &c.TrapEntry }},
	{Name: "trap_exit", Unit: Time, Doc: "from the handler back to the code",
		Of: func(c *Costs) *float64 { return &c.TrapExit }},
	{Name: "comparison", Unit: Time, Doc: "one comparison of a lookup",
		Of: func(c *Costs) *float64 { return &c.Comparison }},
	{Name: "reference", Unit: Time, Doc: "take or give back a reference whose cache line is here",
		Of: func(c *Costs) *float64 { return &c.Reference }},
	{Name: "line_transfer", Unit: Time, Doc: "a cache line comes from another CPU",
		Of: func(c *Costs) *float64 { return &c.LineTransfer }},
	{Name: "user_entry", Unit: Time, Doc: "from user space into the kernel",
		Of: func(c *Costs) *float64 { return &c.UserEntry }},
	{Name: "user_exit", Unit: Time, Doc: "from the kernel to user space",
		Of: func(c *Costs) *float64 { return &c.UserExit }},
	{Name: "deferral_entry", Unit: Time, Doc: "what an entry takes on top where rounds may leave CPUs out",
		Of: func(c *Costs) *float64 { return &c.DeferralEntry }},
	{Name: "catch_up", Unit: Time, Doc: "synchronisation at entry of a CPU that was left out",
		Of: func(c *Costs) *float64 { return &c.CatchUp }},
	{Name: "masked_stretch", Unit: Time, Doc: "mean length of a stretch with interrupts masked",
		Of: func(c *Costs) *float64 { return &c.MaskedStretch }},
	{Name: "fetch_lag", Unit: Time, Doc: "longest time that old text is fetched without a synchronisation",
		Of: func(c *Costs) *float64 { return &c.FetchLag }},
	{Name: "grace_period", Unit: Time, Doc: "least that synchronize_rcu_tasks takes",
		Of: func(c *Costs) *float64 { return &c.GracePeriod }},
	{Name: "switch", Unit: Time, Doc: "switch between two tasks", Of: func(c *Costs) *float64 { return &c.Switch }},
	{Name: "tick_interval", Unit: Time, Doc: "between two timer interrupts of a busy CPU",
		Of: func(c *Costs) *float64 { return &c.TickInterval }, never0: true},
	{Name: "away", Unit: Time, Doc: "mean time that a preempted task waits",
		Of: func(c *Costs) *float64 { return &c.Away }},
	{Name: "migration", Unit: Time, Doc: "what a task loses that goes on on another CPU",
		Of: func(c *Costs) *float64 { return &c.Migration }},
	{Name: "calls", Unit: Rate, Doc: "calls of traced functions on a busy CPU",
		Of: func(c *Costs) *float64 { return &c.Calls }},
	{Name: "skew", Unit: Number, Doc: "exponent of Zipf's law over the functions called",
		Of: func(c *Costs) *float64 { return &c.Skew }},
	{Name: "tracer", Unit: Time, Doc: "a call of a tracer", Of: func(c *Costs) *float64 { return &c.Tracer }},
	{Name: "entries", Unit: Rate, Doc: "entries into the kernel of an isolated CPU",
		Of: func(c *Costs) *float64 { return &c.Entries }},
	{Name: "kernel_stretch", Unit: Time, Doc: "mean stay of an isolated CPU in the kernel",
		Of: func(c *Costs) *float64 { return &c.KernelStretch }},
}
