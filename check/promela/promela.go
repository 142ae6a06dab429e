// SPDX-License-Identifier: Apache-2.0

package promela

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/template"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
)

//go:embed machine.tmpl
var machineText string

//go:embed cpu.tmpl
var cpuText string

//go:embed patcher.tmpl
var patcherText string

var templates = template.Must(template.New("model").Parse(machineText + cpuText + patcherText))

// ErrUnsupported stands before the part of a model that Promela's export does not have.
var ErrUnsupported = errors.New("a Promela model cannot have")

// Write writes a Promela model of m, which must be Prepared. An ErrUnsupported
// names what m has that is left out.
func Write(w io.Writer, m *explore.Model) error {
	if err := supported(m); err != nil {
		return err
	}
	x := &export{m: m, code: m.Code, program: &m.Programs[0]}
	x.findOps()
	x.findSites()
	page := x.page()
	if x.callsNobody && !m.Code.Literals() {
		return fmt.Errorf("%w text that calls an ops without a tracer", ErrUnsupported)
	}
	return templates.Execute(w, page)
}

// supported names the first thing of a model that is left out.
func supported(m *explore.Model) error {
	no := func(what string, args ...any) error {
		return fmt.Errorf("%w %s", ErrUnsupported, fmt.Sprintf(what, args...))
	}
	switch {
	case m.Programs[0].Menu != nil:
		return no("the workload endless, but it can have the workload once")
	case len(m.Programs) != 1:
		return no("%d patchers", len(m.Programs))
	case m.Preempt:
		return no("tasks that are preempted")
	case m.Code.Path.After == cpus.DoLookUpDirect:
		return no("calls that are looked up by the address of their site")
	case m.Code.Path.NMIs:
		return no("non-maskable interrupts")
	case m.Code.Path.Guards:
		return no("a word that guards a site")
	case m.Code.Path.Signals:
		return no("a handler that is a signal's")
	case m.Code.Path.GoesBack:
		return no("a handler that goes back to the site")
	case m.Code.Path.Masks():
		return no("an entry that masks interrupts")
	case m.Code.Path.Apart:
		return no("an ops that is loaded apart from the function that is called with it")
	case m.Code.Literals() && m.Code.Path.After != cpus.DoLoadLiteral:
		return no("a site's literal that no step loads")
	}
	for site, list := range m.Texts() {
		for _, t := range list {
			for off := range m.Code.Insns(site, t) {
				if off%m.Code.Traits.FetchLen != 0 {
					return no("a site of several instructions that are shorter than a fetch")
				}
			}
		}
	}
	for _, r := range m.Roles {
		if r != cpus.Busy {
			return no("%s CPUs", r)
		}
	}
	if m.Code.Always && callsNobody(m) {
		return no("a site that makes no call meanwhile, though it must always lead to a tracer")
	}
	if actsWrong(m) {
		return no("handlers that act as an instruction that is not the site's")
	}
	stopped, writes := false, 0
	for _, st := range m.Programs[0].Plan {
		switch st.Op {
		case poke.Lock, poke.Unlock, poke.Map, poke.Raise, poke.Expect, poke.Walk, poke.Split, poke.Collapse, poke.Free:
			return no("a step %s", st)
		case poke.StopMachine, poke.Resume:
			if stopped == (st.Op == poke.StopMachine) {
				return no("a step %s that is not paired", st)
			}
			stopped = !stopped
		case poke.Write:
			if st.Part == poke.Bytes {
				return no("a step %s", st)
			}
			if writes += int(st.To - st.From); writes > maxWrites {
				return no("over %d stores", maxWrites)
			}
			if st.Part == poke.Breakpoint && m.Code.Several() {
				return no("breakpoints in pairs of instructions")
			}
		}
	}
	return nil
}

// callsNobody tells whether a patch leads from or to text that calls no tracer.
func callsNobody(m *explore.Model) bool {
	for i := range m.Programs[0].Patches {
		p := &m.Programs[0].Patches[i]
		for _, t := range []isa.Text{p.Old, p.New} {
			if m.Code.Act(int(p.Site), t).Kind != isa.Call {
				return true
			}
		}
		if m.Code.Literals() && (p.OldOps == m.NopOps || p.NewOps == m.NopOps) {
			return true
		}
	}
	return false
}

// maxWrites keeps a set of versions within the bits of an int, which has a sign.
const maxWrites = 29

// export is one model on its way to text.
type export struct {
	m       *explore.Model
	code    *cpus.Code
	program *explore.Program

	ops   []uint64 // from number 1 on; 0 is whatever is none of them
	sites []site
	acts  [][]uint // by batch, from 1 on, and site: the instruction that handlers act as
	probe cpus.Probe

	callsNobody bool // some text, or handler, calls through the ops that calls no tracer
}

// opsNumber is the number of an ops, 0 for an address that is none.
func (x *export) opsNumber(addr uint64) uint { return uint(1 + slices.Index(x.ops, addr)) }

// findOps lists the ops that calls can go through.
func (x *export) findOps() {
	x.ops = append(slices.Clone(x.m.Attached), x.m.NopOps)
	for i := range x.program.Patches {
		x.ops = append(x.ops, x.program.Patches[i].OldOps, x.program.Patches[i].NewOps)
	}
	slices.Sort(x.ops)
	x.ops = slices.Compact(x.ops)
}
