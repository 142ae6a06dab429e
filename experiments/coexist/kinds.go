// SPDX-License-Identifier: Apache-2.0

package coexist

import (
	"errors"
	"fmt"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers"
)

// kind is a way to get a function's calls.
type kind struct {
	name, about string
	attach      func(*world) (tracers.Report, error)
	second      bool // only makes sense after something else
}

// kinds are the clients of the matrix.
var kinds = []kind{
	{"function", "the function tracer, all functions", func(w *world) (tracers.Report, error) {
		return w.core.Attach(tracers.NewOps("function", w.next(), 0))
	}, false},
	{"graph", "the function graph tracer", (*world).graphUser, false},
	{"kprobe", "a kprobe at the function's entry, through ftrace", probed("kprobe", 0), false},
	{"kprobe-ip", "a kprobe that may change the instruction pointer: one with a post_handler",
		probed("kprobe-ip", tracers.OpsIPModify), false},
	{"fprobe", "an fprobe or kprobe_multi link without an exit handler", (*world).fprobe, false},
	{"fprobe-exit", "an fprobe or kprobe_multi link with an exit handler", (*world).graphUser, false},
	{"livepatch", "a live patch of the function", (*world).livepatch, false},
	{"direct", "a module's own direct trampoline", (*world).direct, false},
	{"fentry", "a BPF program at the entry", linked(tracers.FEntry), false},
	{"fexit", "a BPF program at entry and return", linked(tracers.FExit), false},
	{"fmod_ret", "a BPF program that may replace the return value", linked(tracers.FModRet), false},
	{"tracing-multi", "one BPF program on many functions, each with its trampoline (7.2 cycle)", (*world).multi, false},
	{"global-trampoline", "one BPF program on many functions, one trampoline (proposal of 2025)",
		(*world).globalTrampoline, false},
	{"off", "kernel.ftrace_enabled=0", func(w *world) (tracers.Report, error) { return w.core.Switch(false) }, false},
	{"fentry-same", "the fentry program that is there already, once more", func(w *world) (tracers.Report, error) {
		return w.bpf.Link(f, tracers.Prog{Kind: tracers.FEntry, Number: 1}) // which fentry attached first, if it did
	}, true},
	{"fentry-38", "38 more fentry programs", (*world).fentry38, true},
}

// function f is the one that everybody wants.
const f = 1

// Where the records and trampolines lie: trampolines in the modules' area, within
// reach of all sites.
const (
	sites   records.Addr = 0xffffffff81000004
	images  records.Addr = 0xffffffff84000000
	globals records.Addr = 0xffffffff85000000
	modules records.Addr = 0xffffffff86000000
)

// errApart says that a client does not come through the function tracer.
var errApart = errors.New("it puts a breakpoint of its own: the architecture has no kprobes through ftrace")

// errJoins says that a client joins one that is there, and the tracer is not asked.
var errJoins = errors.New("it joins the probe that is there; the function tracer is not asked")

// world is a kernel with its clients.
type world struct {
	core       *tracers.Core
	bpf        *tracers.BPF
	global     *tracers.GlobalTramps
	graph, klp *tracers.Ops // one ops for all graph users; one for the live patches of a function
	probe      *tracers.Ops // one for the kprobes of a function
	fprobes    *tracers.Ops
	n          int // programs and functions so far
	traits     isa.Traits
}

func newWorld(arch isa.Arch) (*world, error) {
	core, err := tracers.New(tracers.Config{Arch: arch, Records: []records.Addr{sites, sites + 64, sites + 128}})
	if err != nil {
		return nil, err
	}
	w := &world{core: core, bpf: tracers.NewBPF(core, images), traits: arch.Traits()}
	w.global = tracers.NewGlobalTramps(w.bpf, globals)
	return w, nil
}

// next is a function of the next client.
func (w *world) next() *tracers.Func {
	w.n++
	return &tracers.Func{Name: fmt.Sprintf("client %d", w.n)}
}

// regs asks for all registers where an entry saves them.
const regs = tracers.OpsSaveRegs | tracers.OpsSaveRegsIfSupported

// graphUser is a user of the graph tracer: all share an ops, whose filter is the
// union of theirs (kernel/trace/fgraph.c, 6.11 and later).
func (w *world) graphUser() (tracers.Report, error) {
	if w.graph != nil {
		return w.core.SetFilter(w.graph, f)
	}
	w.graph = tracers.NewOps("graph", w.next(), tracers.OpsGraph, f)
	return w.core.StartGraph(w.graph)
}

// probed is a probe at the entry: those of one function are one to
// the tracer (register_aggr_kprobe, kernel/kprobes.c), and the first decides
// whether they may change the instruction pointer.
func probed(name string, flags tracers.OpsFlags) func(*world) (tracers.Report, error) {
	return func(w *world) (tracers.Report, error) {
		if !w.traits.RegsEntry {
			return tracers.Report{}, errApart
		}
		if w.probe != nil {
			return tracers.Report{}, errJoins
		}
		w.probe = tracers.NewOps(name, w.next(), flags|tracers.OpsSaveRegs, f)
		return w.core.Attach(w.probe)
	}
}

func (w *world) fprobe() (tracers.Report, error) {
	if w.fprobes != nil {
		return w.core.SetFilter(w.fprobes, f)
	}
	w.fprobes = tracers.NewOps("fprobe", w.next(), regs, f)
	return w.core.Attach(w.fprobes)
}

// livepatch is a live patch; a second one of the same function goes on top of the
// first one's stack (klp_patch_func, kernel/livepatch/patch.c).
func (w *world) livepatch() (tracers.Report, error) {
	if w.klp != nil {
		return tracers.Report{}, nil
	}
	w.klp = tracers.NewOps("livepatch", w.next(), regs|tracers.OpsDynamic|tracers.OpsIPModify|tracers.OpsPermanent, f)
	return w.core.Attach(w.klp)
}

func (w *world) direct() (tracers.Report, error) {
	w.n++
	return w.core.RegisterDirect(tracers.NewOps("direct", nil, tracers.OpsDynamic, f), modules+records.Addr(w.n)*4096)
}

// linked is another BPF program of that kind.
func linked(k tracers.ProgKind) func(*world) (tracers.Report, error) {
	return func(w *world) (tracers.Report, error) {
		w.n++
		return w.bpf.Link(f, tracers.Prog{Kind: k, Number: w.n})
	}
}

func (w *world) fentry38() (r tracers.Report, err error) {
	for range 38 {
		if r, err = linked(tracers.FEntry)(w); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (w *world) multi() (tracers.Report, error) {
	w.n++
	return w.bpf.LinkMulti([]int{0, f, 2}, tracers.Prog{Kind: tracers.FEntry, Number: w.n})
}

func (w *world) globalTrampoline() (tracers.Report, error) {
	w.n++
	return w.global.Link(1, tracers.Prog{Kind: tracers.FEntry, Number: w.n}, 0, f, 2)
}

// called is who a call of the function reaches, in order.
func (w *world) called() ([]string, error) {
	called, err := w.core.Call(f)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, c := range called {
		switch {
		case c.Direct == 0:
			out = append(out, c.Ops.Name)
		case c.Direct >= modules:
			out = append(out, "direct")
		case c.Direct >= globals:
			out = append(out, "global trampoline")
		default:
			out = append(out, "BPF trampoline")
		}
	}
	return out, nil
}

// site says how the function's site calls them.
func (w *world) site() string {
	flags, now := w.core.Flags(f), w.core.Text(f)
	switch {
	case now.Decided == 0:
		return "nop"
	case flags&tracers.DirectEn != 0 && now.Via == isa.Direct:
		return "direct trampoline"
	case flags&tracers.DirectEn != 0:
		return "direct trampoline, through the entry"
	case now.Literal != nil && flags&tracers.CallOpsEn != 0:
		return "entry, by literal"
	case flags&tracers.TrampEn != 0:
		return "own trampoline"
	}
	s := "list"
	if flags&tracers.RegsEn != 0 {
		s += ", all registers"
	}
	return s
}

// names are the clients that can be there first, or those that can come second.
func names(second bool) []string {
	there := spelling.Where(kinds, func(k kind) bool { return second || !k.second })
	return spelling.Each(there, func(k kind) string { return k.name })
}

// kindNamed is the client of that name.
func kindNamed(name string) kind {
	return spelling.First(kinds, func(k kind) bool { return k.name == name })
}
