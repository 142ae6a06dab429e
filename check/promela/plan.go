// SPDX-License-Identifier: Apache-2.0

package promela

import (
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
)

// line is one statement of the patcher, with its purpose.
type line struct{ Code, Note string }

// plan writes the program's steps, a line for each access or the few that belong
// together.
func (x *export) plan() (lines []line) {
	for _, st := range x.program.Plan {
		first := len(lines)
		add := func(format string, args ...any) { lines = append(lines, line{Code: fmt.Sprintf(format, args...)}) }
		for i := st.From; i < st.To; i++ {
			x.each(st, &x.program.Patches[i], add)
		}
		if code := x.once(st); code != "" {
			add("%s", code)
		}
		if len(lines) == first {
			add("skip")
		}
		lines[first].Note = st.String()
	}
	return lines
}

// each is the effect of a step on one patch.
func (x *export) each(st poke.Step, p *poke.Patch, add func(string, ...any)) {
	text, ops := p.New, p.NewOps
	if st.Undo != (st.Op == poke.Verify) { // what must be there is the other one
		text, ops = p.Old, p.OldOps
	}
	s := &x.sites[p.Site]
	switch {
	case st.Op == poke.Verify:
		add("verify(%d, %d)", p.Site, having(s.versions, text))
		if x.code.Literals() {
			add("verify_literal(%d, %d)", p.Site, having(s.literals, ops))
		}
	case st.Op == poke.Write && st.Part >= poke.Literal:
		add("write_literal(%d)", p.Site)
	case st.Op == poke.Write:
		add("write(%d)", p.Site)
	case st.Op == poke.Settle:
		add("settle(%d, %d)", p.Site, having(s.versions, text))
	}
}

// having is the versions that are v, as bits.
func having[T comparable](versions []T, v T) (set uint) {
	for i := range versions {
		if versions[i] == v {
			set |= 1 << i
		}
	}
	return set
}

// leaves says what the program must have left at each of its sites.
func (x *export) leaves() (lines []string) {
	for i := range x.program.Patches {
		site := x.program.Patches[i].Site
		lines = append(lines, fmt.Sprintf("leave(%d, %d)", site, having(x.sites[site].versions, x.final(site))))
	}
	return lines
}

// once is the effect that a step has once, for any number of patches.
func (x *export) once(st poke.Step) string {
	switch st.Op {
	case poke.Publish:
		patches := x.program.Patches[st.From:st.To]
		x.batch(patches, st.Undo)
		if x.m.Slots > 0 && len(patches) > x.m.Slots {
			return "violate(overflow)"
		}
		return fmt.Sprintf("publish(%d)", len(x.acts))
	case poke.Attach, poke.Release:
		if ops, changes := x.changes(st); changes {
			return fmt.Sprintf("%s(%d)", strings.ToLower(st.Op.String()), ops)
		}
		return ""
	}
	return map[poke.Op]string{
		poke.Fence: "fence()", poke.Sync: "round()", poke.StopMachine: "stop_machine()", poke.Resume: "resume()",
		poke.Unpublish: "unpublish()", poke.WaitHandlers: "wait_handlers()", poke.Clear: "clear()",
		poke.GracePeriod: "grace_period()", poke.SynchronizeRCU: "grace_period()", // no task is preempted
	}[st.Op]
}

// changes tells which ops a step attaches or releases; the one that calls no tracer never
// changes.
func (x *export) changes(st poke.Step) (ops uint, changes bool) {
	p := &x.program.Patches[st.From]
	addr := p.NewOps
	if st.Undo != (st.Op == poke.Release) {
		addr = p.OldOps
	}
	return x.opsNumber(addr), (st.Op == poke.Attach || st.Op == poke.Release) && addr != x.m.NopOps
}

// final is what the program leaves at a site: of several patches the last one
// counts.
func (x *export) final(site int32) (t isa.Text) {
	for i := range x.program.Patches {
		p := &x.program.Patches[i]
		for _, st := range x.program.Plan {
			about := int(st.From) <= i && i < int(st.To) && (st.Op == poke.Verify || st.Op == poke.Settle)
			switch {
			case p.Site != site || !about:
			case st.Undo:
				t = p.Old
			default:
				t = p.New
			}
		}
	}
	return t
}

// batch works out what handlers find in a batch, by site.
func (x *export) batch(patches []poke.Patch, undo bool) {
	index, acts := poke.Batch(x.code, x.m.Lookup, x.m.Filling, patches, undo)
	row := make([]uint, len(x.sites))
	for i := range x.sites {
		slot, ok := index.Find(x.sites[i].addr, &x.probe)
		switch {
		case !ok:
		case acts[slot].Kind == isa.Call && !x.does(cpus.InHandler, cpus.DoSkip):
			row[i] = 2 + x.callee(acts[slot])
		default:
			row[i] = 1
		}
	}
	x.acts = append(x.acts, row)
}

// actsWrong tells whether handlers may find an instruction that the plan does not allow
// there. With one patcher its place decides which batch is published and which changes have
// begun. So this needs no search, and the exported model need not check it.
func actsWrong(m *explore.Model) bool {
	if slices.Contains(m.Code.Path.Program(cpus.InHandler).Steps(), cpus.DoSkip) {
		return false
	}
	p := &m.Programs[0]
	var probe cpus.Probe
	begun, found := map[int]cpus.Change{}, map[int]isa.Insn{}
	for _, st := range p.Plan {
		switch {
		case st.Op == poke.Publish || st.Op == poke.Write && st.Part == poke.Breakpoint:
			for i := st.From; i < st.To; i++ {
				begun[int(p.Patches[i].Site)] = p.Patches[i].Change(st.Undo)
			}
		case st.Op == poke.WaitHandlers || st.Op == poke.Clear:
			clear(found)
		}
		if st.Op == poke.Publish {
			index, acts := poke.Batch(m.Code, m.Lookup, m.Filling, p.Patches[st.From:st.To], st.Undo)
			clear(found)
			for site, at := range m.Code.Sites {
				if slot, ok := index.Find(at, &probe); ok && acts[slot].Kind != isa.Breakpoint {
					found[site] = acts[slot]
				}
			}
		}
		for site, act := range found {
			if !begun[site].Allows(m.Code, site, act) {
				return true
			}
		}
	}
	return false
}
