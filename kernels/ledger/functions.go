// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"errors"
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers"
)

// functions is the function tracer of a replay, and who is attached to it.
type functions struct {
	table *records.Table // nil where only the number of records is known
	total int            // that number
	names map[string]int // records that were named, where there is no table

	core  *tracers.Core // nil before anybody attaches
	bpf   *tracers.BPF
	ops   map[string]*tracers.Ops   // by the name of their function
	progs map[string][]tracers.Prog // on functions, by their names
	count int                       // programs that were attached
}

// paper is an instruction set without instructions: the price of a ledger's steps does not
// depend on the bytes of sites, or on the reach of branches.
type paper struct{ traits isa.Traits }

func (p paper) Traits() isa.Traits { return p.traits }

func (p paper) Site(rec records.Addr, _ isa.Layout) (isa.Site, error) {
	return isa.Site{Addr: rec, Len: 1}, nil
}

func (p paper) Disabled(isa.Site) isa.Text { return 0 }

func (p paper) Enabled(isa.Site, isa.Destination) (isa.Text, isa.Via, error) {
	return 0, isa.Direct, nil
}

// fewRecords is how many functions can be named where the number of records is unknown.
const fewRecords = 16

// tracer is the core as the kernel's mechanisms make it, with the kernel's own program
// attached where it has one.
func (r *Replay) tracer() *tracers.Core {
	if r.core != nil {
		return r.core
	}
	arch, err := cpus.ParseArch(r.k.Arch)
	if err != nil {
		panic(err) // a kernel is made of one that is known
	}
	traits := arch.Traits()
	traits.CallOps = r.mech(image.EntryCalls) == 0
	traits.OpsTrampolines = r.mech(image.TrampolineAims) > 0
	traits.SingleDirectOps = r.k.Facts.value(image.DirectShared) > 0
	var addrs []records.Addr
	if r.table != nil {
		addrs = r.table.Addrs()
	} else {
		if r.total == 0 {
			r.total = fewRecords
		}
		addrs = make([]records.Addr, r.total)
		for i := range addrs {
			addrs[i] = records.Addr(i + 1)
		}
	}
	r.core, err = tracers.New(tracers.Config{Arch: paper{traits}, Records: addrs, Release: tracers.Release{
		EntryAgain:  r.mech(image.EntryKept) == 0,
		SkipProgram: r.k.Facts.value(image.DirectCuts) > 0,
		Used:        !r.firstUse,
	}})
	if err != nil {
		panic(err) // there are records
	}
	r.bpf = tracers.NewBPF(r.core, addrs[len(addrs)-1]+1<<32)
	r.ops, r.progs, r.names = map[string]*tracers.Ops{}, map[string][]tracers.Prog{}, map[string]int{}
	if r.k.Facts.value(image.DirectAtBoot) > 0 {
		rec, err := r.named("__hid_bpf_tail_call")
		if err != nil {
			rec = len(addrs) - 1 // it is not among these
		}
		if _, err := r.bpf.Link(rec, tracers.Prog{Number: -1}); err != nil {
			r.fail("the kernel's own program: %w", err)
		}
	}
	return r.core
}

// ErrNoTable says that an action names functions of a kernel whose records are unknown.
var ErrNoTable = errors.New("no table of its records")

// matched are the records that a filter matches; nil, which is all, without a filter.
func (r *Replay) matched(filter string) ([]int, error) {
	switch {
	case r.table == nil && (filter != "" || r.total == 0):
		return nil, ErrNoTable
	case filter == "":
		return nil, nil
	}
	f, err := records.ParseFilter(strings.Fields(filter))
	if err != nil {
		return nil, err
	}
	which := f.Match(r.table)
	if len(which) == 0 {
		return nil, fmt.Errorf("filter %q: no record matches", filter)
	}
	return which, nil
}

// named is the record of a function: the first of that name. Without a table each name
// gets a record of its own, from the last one downwards.
func (r *Replay) named(symbol string) (int, error) {
	r.tracer()
	if r.table != nil {
		which, err := r.matched(symbol)
		if err == nil && strings.ContainsAny(symbol, "*?[ ") {
			err = fmt.Errorf("function %q: want one name", symbol)
		}
		if err != nil {
			return 0, err
		}
		return which[0], nil
	}
	rec, ok := r.names[symbol]
	if !ok {
		rec = len(r.core.Records) - 1 - len(r.names)
		if rec < 0 {
			return 0, ErrNoTable
		}
		r.names[symbol] = rec
	}
	return rec, nil
}

// ownOps is an ops of the kernel's, or of a client that has it for itself: those that may
// be freed get a trampoline each time.
func (r *Replay) ownOps(calls string, flags tracers.OpsFlags) *tracers.Ops {
	r.tracer()
	o := r.ops[calls]
	if o == nil {
		o = tracers.NewOps(calls, &tracers.Func{Name: calls}, flags)
		if flags&tracers.OpsStub != 0 {
			o.Func, o.Trampoline = tracers.FuncStub, r.core.Places.Entry // its trampoline is the common entry's
		}
		r.ops[calls] = o
	}
	return o
}

// The kernel's ops, by their functions.
const (
	globalOps  = "function_trace_call"
	instance   = "function_trace_call of an instance"
	graphOps   = "ftrace_graph_func"
	graphStub  = "function_graph"
	kprobeOps  = "kprobe_ftrace_handler"
	fprobeOps  = "fprobe_ftrace_entry" // one for all, since Linux 7.0
	fprobeEach = "fprobe_handler"      // of each fprobe
)

// on tells whether an ops is attached.
func (r *Replay) on(calls string) bool {
	o := r.ops[calls]
	return o != nil && o.Flags&tracers.OpsEnabled != 0
}

// attach attaches an ops to records, nil for all.
func (r *Replay) attach(o *tracers.Ops, recs []int) {
	r.did(r.core.SetFilter(o, recs...))
	r.did(r.core.Attach(o))
}

// Instance has the function tracer of an instance trace these records and no others, none of
// them for switching it off, and tells what that sends.
func (r *Replay) Instance(recs []int) ([]Line, error) {
	o := r.ownOps(instance, tracers.OpsDynamic)
	switch on := r.on(instance); {
	case len(recs) > 0 && on:
		r.did(r.core.SetFilter(o, recs...))
	case len(recs) > 0:
		r.record(true)
		r.attach(o, recs)
	case on:
		r.detach(o)
		r.record(false)
	}
	return r.Take()
}

func (r *Replay) detach(o *tracers.Ops) { r.did(r.core.Detach(o)) }
