// SPDX-License-Identifier: Apache-2.0

package promela

import (
	"slices"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
)

// actsWrong tells whether handlers may find an instruction that the plan does not allow
// there. There is one patcher: its place says what is published and what is begun, so
// that no search is needed, and the exported model need not ask.
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
