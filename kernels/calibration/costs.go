// SPDX-License-Identifier: Apache-2.0

package calibration

import (
	_ "embed"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/textpoke/textpoke/internal/sheet"
)

// Costs holds the cost of each mechanism on one machine. Times are in nanoseconds, rates in events
// a second. The tags tell each one's name in files, its unit, and whether it is never 0, as other
// things happen once in every such time.
type Costs struct {
	// A round: the sender prepares it (RoundSetup), sends to one target after the
	// other (Send each), and looks at the answers. A target takes the interrupt
	// Delivery and an exponential delay of mean Jitter later, unless it masks
	// interrupts or handles something else; an idle one wakes up first (IdleWake).
	// Handler is what the target loses, from the interrupt's entry to its exit;
	// Answer is how long it takes until the sender sees that the last one is done.
	// StopWake is the time, beside that, until the stopper of a CPU runs.
	RoundSetup float64 `cost:"round_setup,ns" doc:"the sender prepares a round"`
	Send       float64 `cost:"send,ns" doc:"the sender interrupts one more target"`
	Delivery   float64 `cost:"delivery,ns" doc:"from sending until the target takes it"`
	Jitter     float64 `cost:"jitter,ns" doc:"mean of an exponential delay on top of delivery"`
	IdleWake   float64 `cost:"idle_wake,ns" doc:"an idle target wakes up first"`
	Handler    float64 `cost:"handler,ns" doc:"what the target loses, from entry to exit"`
	Answer     float64 `cost:"answer,ns" doc:"from the target's answer until the sender sees it"`
	StopWake   float64 `cost:"stop_wake,ns" doc:"a CPU's stopper gets to run, for stop_machine"`

	// The patcher's steps at one site, and in a batch.
	Verify       float64 `cost:"verify,ns" doc:"compare one site with the text that it must hold"`
	Publish      float64 `cost:"publish,ns" doc:"put one patch into the batch that handlers search"`
	Store        float64 `cost:"store,ns" doc:"one store to text, with its mapping and cache maintenance"`
	StoreLiteral float64 `cost:"store_literal,ns" doc:"one store to a site's literal"`
	Fence        float64 `cost:"fence,ns" doc:"the patcher's own fence and resynchronisation"`

	// A trap, with one comparison of its lookup and a reference. A line that another CPU has must
	// come first (LineTransfer), one CPU after the other.
	TrapEntry    float64 `cost:"trap_entry,ns" doc:"from the breakpoint into the handler"`
	TrapExit     float64 `cost:"trap_exit,ns" doc:"from the handler back to the code"`
	Comparison   float64 `cost:"comparison,ns" doc:"one comparison of a lookup"`
	Reference    float64 `cost:"reference,ns" doc:"take or give back a reference whose cache line is here"`
	LineTransfer float64 `cost:"line_transfer,ns" doc:"a cache line comes from another CPU"`

	// The way into the kernel and out of it.
	UserEntry     float64 `cost:"user_entry,ns" doc:"from user space into the kernel"`
	UserExit      float64 `cost:"user_exit,ns" doc:"from the kernel to user space"`
	DeferralEntry float64 `cost:"deferral_entry,ns" doc:"what an entry takes on top where rounds may leave CPUs out"`
	CatchUp       float64 `cost:"catch_up,ns" doc:"synchronisation at entry of a CPU that was left out"`

	// A CPU that does not synchronise goes on fetching old text for up to FetchLag after a store.
	MaskedStretch float64 `cost:"masked_stretch,ns" doc:"mean length of a stretch with interrupts masked"`
	FetchLag      float64 `cost:"fetch_lag,ns" doc:"longest time that old text is fetched without a synchronisation"`
	GracePeriod   float64 `cost:"grace_period,ns" doc:"least that synchronize_rcu_tasks takes"`
	Switch        float64 `cost:"switch,ns" doc:"switch between two tasks"`
	TickInterval  float64 `cost:"tick_interval,ns,never0" doc:"between two timer interrupts of a busy CPU"`
	Away          float64 `cost:"away,ns" doc:"mean time that a preempted task waits"`
	Migration     float64 `cost:"migration,ns" doc:"what a task loses that goes on on another CPU"`

	// The load of the machine. An isolated CPU enters the kernel Entries times a second and stays for
	// KernelStretch on average.
	Calls         float64 `cost:"calls,per_s" doc:"calls of traced functions on a busy CPU"`
	Skew          float64 `cost:"skew,number" doc:"exponent of Zipf's law over the functions called"`
	Tracer        float64 `cost:"tracer,ns" doc:"a call of a tracer"`
	Entries       float64 `cost:"entries,per_s" doc:"entries into the kernel of an isolated CPU"`
	KernelStretch float64 `cost:"kernel_stretch,ns" doc:"mean stay of an isolated CPU in the kernel"`
}

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

	field  int // of Costs
	never0 bool
}

// Of is the quantity of some costs.
func (q *Quantity) Of(c *Costs) *float64 {
	return reflect.ValueOf(c).Elem().Field(q.field).Addr().Interface().(*float64)
}

// Quantities are all of them, in the order in which files list them.
var Quantities = func() (all []Quantity) {
	t := reflect.TypeFor[Costs]()
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		words := strings.Split(tag.Get("cost"), ",")
		all = append(all, Quantity{words[0], Unit(words[1]), tag.Get("doc"), i, slices.Contains(words, "never0")})
	}
	return all
}()

// ByName finds a quantity; nil if there is none of that name.
func ByName(name string) *Quantity {
	i := slices.IndexFunc(Quantities, func(q Quantity) bool { return q.Name == name })
	if i < 0 {
		return nil
	}
	return &Quantities[i]
}

// Range is the range of a cost in publications, on any machines. Answers have it if a
// request names no calibration.
type Range struct {
	Name    string   `col:"cost"`
	Low     float64  `col:"low_ns"`
	High    float64  `col:"high_ns"`
	Source  string   `col:"source"`
	Sources []string // low first
}

//go:embed ranges.csv
var rangesText string

// Ranges lists what has been published, a round's range first. Where ends were computed from what
// stands in the source, it is said how. Shared: do not write.
var Ranges = sync.OnceValue(func() (out []Range) {
	lines, err := sheet.Read[Range]("ranges.csv", strings.NewReader(rangesText))
	if err != nil {
		panic(err) // a mistake of ours
	}
	for _, l := range lines {
		if last := len(out) - 1; last < 0 || out[last].Name != l.Name {
			out = append(out, l)
		}
		r := &out[len(out)-1]
		r.Sources = append(r.Sources, l.Source)
	}
	return out
})
