package calibration

// Unit is what a quantity is given in.
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
}

// Quantities are all of them, in the order in which files list them.
var Quantities = []Quantity{
	{"round_setup", Time, "the sender prepares a round", func(c *Costs) *float64 { return &c.RoundSetup }},
	{"send", Time, "the sender interrupts one more target", func(c *Costs) *float64 { return &c.Send }},
	{"delivery", Time, "from sending until the target takes it", func(c *Costs) *float64 { return &c.Delivery }},
	{"jitter", Time, "mean of an exponential delay on top of delivery", func(c *Costs) *float64 { return &c.Jitter }},
	{"idle_wake", Time, "an idle target wakes up first", func(c *Costs) *float64 { return &c.IdleWake }},
	{"handler", Time, "what the target loses, from entry to exit", func(c *Costs) *float64 { return &c.Handler }},
	{"answer", Time, "from the target's answer until the sender sees it", func(c *Costs) *float64 { return &c.Answer }},
	{"stop_wake", Time, "a CPU's stopper gets to run, for stop_machine", func(c *Costs) *float64 { return &c.StopWake }},
	{"verify", Time, "compare one site with what is expected", func(c *Costs) *float64 { return &c.Verify }},
	{"publish", Time, "put one patch into the batch that handlers search", func(c *Costs) *float64 { return &c.Publish }},
	{"store", Time, "one store to text, with its mapping and cache maintenance", func(c *Costs) *float64 { return &c.Store }},
	{"store_literal", Time, "one store to a site's literal", func(c *Costs) *float64 { return &c.StoreLiteral }},
	{"fence", Time, "the patcher's own fence and resynchronisation", func(c *Costs) *float64 { return &c.Fence }},
	{"trap_entry", Time, "from the breakpoint into the handler", func(c *Costs) *float64 { return &c.TrapEntry }},
	{"trap_exit", Time, "from the handler back to the code", func(c *Costs) *float64 { return &c.TrapExit }},
	{"comparison", Time, "one comparison of a lookup", func(c *Costs) *float64 { return &c.Comparison }},
	{"reference", Time, "take or give back a reference whose cache line is here", func(c *Costs) *float64 { return &c.Reference }},
	{"line_transfer", Time, "a cache line comes from another CPU", func(c *Costs) *float64 { return &c.LineTransfer }},
	{"user_entry", Time, "from user space into the kernel", func(c *Costs) *float64 { return &c.UserEntry }},
	{"user_exit", Time, "from the kernel to user space", func(c *Costs) *float64 { return &c.UserExit }},
	{"deferral_entry", Time, "what an entry takes on top where rounds may leave CPUs out", func(c *Costs) *float64 { return &c.DeferralEntry }},
	{"catch_up", Time, "synchronisation at entry of a CPU that was left out", func(c *Costs) *float64 { return &c.CatchUp }},
	{"masked_stretch", Time, "mean length of a stretch with interrupts masked", func(c *Costs) *float64 { return &c.MaskedStretch }},
	{"fetch_lag", Time, "longest time that old text is fetched without a synchronisation", func(c *Costs) *float64 { return &c.FetchLag }},
	{"grace_period", Time, "least that synchronize_rcu_tasks takes", func(c *Costs) *float64 { return &c.GracePeriod }},
	{"switch", Time, "switch between two tasks", func(c *Costs) *float64 { return &c.Switch }},
	{"tick", Time, "a timer interrupt", func(c *Costs) *float64 { return &c.Tick }},
	{"tick_interval", Time, "between two timer interrupts of a busy CPU", func(c *Costs) *float64 { return &c.TickInterval }},
	{"away", Time, "mean time that a preempted task waits", func(c *Costs) *float64 { return &c.Away }},
	{"migration", Time, "what a task loses that goes on on another CPU", func(c *Costs) *float64 { return &c.Migration }},
	{"calls", Rate, "calls of traced functions on a busy CPU", func(c *Costs) *float64 { return &c.Calls }},
	{"skew", Number, "exponent of Zipf's law over the functions called", func(c *Costs) *float64 { return &c.Skew }},
	{"tracer", Time, "a call of a tracer", func(c *Costs) *float64 { return &c.Tracer }},
	{"entries", Rate, "entries into the kernel of an isolated CPU", func(c *Costs) *float64 { return &c.Entries }},
	{"kernel_stretch", Time, "mean stay of an isolated CPU in the kernel", func(c *Costs) *float64 { return &c.KernelStretch }},
}
