package dispatch

import (
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers/metadata"
)

// Kind is a way as the command line names it.
type Kind struct {
	Name, Doc string
	// Direct says that the first tracer of a function is a direct trampoline; those
	// that join it are callbacks.
	Direct bool
	New    func(sites []records.Addr) Way
}

const (
	// bpfArgs is how many arguments functions have where nobody says otherwise.
	bpfArgs = 2
	// poolNodes is what a pool has for a few CPUs.
	poolNodes = 64
	// buckets are those of the series' first table.
	buckets = 256
)

// Kinds are all ways, the kernel's first.
func Kinds() []Kind {
	type addrs = []records.Addr
	args := func(int) int { return bpfArgs }
	return []Kind{
		{Name: "list", Doc: "list function for every call", New: func(s addrs) Way { return NewList(s, Transition) }},
		{Name: "global", Doc: "one function and ops for all sites, or the list", New: func(s addrs) Way { return NewGlobal(s, Transition) }},
		{Name: "call-ops", Doc: "a literal at each site names its ops", New: func(s addrs) Way { return NewCallOps(s, Transition, false) }},
		{Name: "direct", Doc: "the site calls the direct trampoline", Direct: true, New: func(s addrs) Way { return NewCallOps(s, Transition, true) }},
		{Name: "direct-ops", Doc: "direct trampoline out of branch range: through the ops", Direct: true, New: func(s addrs) Way { return NewCallOps(s, Transition, false) }},
		{Name: "single-direct", Doc: "one ops for all direct trampolines, in branch range", Direct: true, New: func(s addrs) Way { return NewSingleDirect(s, Transition, true) }},
		{Name: "single-direct-far", Doc: "one ops for all direct trampolines, each call looks its address up", Direct: true, New: func(s addrs) Way { return NewSingleDirect(s, Transition, false) }},
		{Name: "intermediate", Doc: "turned down: the literal names a record that names the ops", New: func(s addrs) Way { return NewIntermediate(s, Transition) }},
		{Name: "ops-trampoline", Doc: "turned down: the literal names a trampoline of the ops", New: func(s addrs) Way { return NewOpsTrampoline(s, Transition) }},
		{Name: "site-trampoline", Doc: "turned down: the direct trampoline's address beside the literal", Direct: true, New: func(s addrs) Way { return NewSiteTrampoline(s, Transition) }},
		{Name: "fprobe", Doc: "fprobe without its four costs", New: func(s addrs) Way { return NewFprobe(s, FprobeCosts{}, poolNodes) }},
		{Name: "fprobe-2022", Doc: "fprobe with all four costs", New: func(s addrs) Way { return NewFprobe(s, FprobeCosts{true, true, true, true}, poolNodes) }},
		{Name: "kprobe", Doc: "breakpoint and lookup, then a jump", New: func(s addrs) Way { return NewKprobe(s, true) }},
		{Name: "kprobe-stepped", Doc: "breakpoint and lookup, then a single step", New: func(s addrs) Way { return NewKprobe(s, false) }},
		{Name: "bpf", Doc: "trampoline generated for the function, programs inside", New: func(s addrs) Way { return NewBPF(s, bpfArgs) }},
		{Name: "global-trampoline", Doc: "one trampoline for all functions, programs looked up in 256 buckets", New: func(s addrs) Way { return NewGlobalTrampoline(s, args, metadata.NewFixed(buckets)) }},
		{Name: "global-trampoline-resizable", Doc: "the same, looked up in a hash that grows and shrinks", New: func(s addrs) Way { return NewGlobalTrampoline(s, args, metadata.NewResizable()) }},
		{Name: "global-trampoline-padding", Doc: "the same, found by a number in the function's padding", New: func(s addrs) Way { return NewGlobalTrampoline(s, args, padding(s)) }},
	}
}

// Names are the names of all kinds.
func Names() (out []string) {
	for _, k := range Kinds() {
		out = append(out, k.Name)
	}
	return out
}

// Parse finds a kind by its name.
func Parse(name string) (Kind, error) {
	all := Kinds()
	if i := slices.IndexFunc(all, func(k Kind) bool { return k.Name == name }); i >= 0 {
		return all[i], nil
	}
	return Kind{}, fmt.Errorf("dispatch %w", spelling.NotOneOf(name, Names()))
}

// Hit is a callback that counts its calls, as samples/ftrace/ftrace-ops.c does with
// check_count.
func Hit(_ records.Addr, _ *Ops, ctx *Context) { ctx.Hits++ }

// Sample attaches so many tracers to the functions at ips, and as many others as
// irrelevant says to a function elsewhere, that nobody calls: what
// samples/ftrace/ftrace-ops.c does. It returns all of them, those that matter first.
func (k Kind) Sample(w Way, ips []records.Addr, relevant, irrelevant int, elsewhere records.Addr) ([]*Ops, error) {
	var out []*Ops
	at, other := NewHash(ips...), NewHash(elsewhere)
	for i := range relevant + irrelevant {
		o := &Ops{Func: Hit, Filter: at, Direct: k.Direct && i == 0}
		if i >= relevant {
			o.Filter, o.Direct = other, false
		}
		if err := w.Attach(o); err != nil {
			return out, fmt.Errorf("tracer %d of %d: %w", i+1, relevant+irrelevant, err)
		}
		out = append(out, o)
	}
	return out, nil
}
