// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// findChanges lists what updates make of each site. Two that exchange the same
// instructions, either way, are one: where there are no others a state has nothing to
// tell of it.
func (m *Model) findChanges() error {
	m.changes = make([][]cpus.Change, len(m.Code.Sites))
	for i := range m.Programs {
		for k := range m.Programs[i].Patches {
			p := &m.Programs[i].Patches[k]
			if c := p.Change(false); m.changeIndex(int(p.Site), c) < 0 {
				m.changes[p.Site] = append(m.changes[p.Site], c)
			}
		}
	}
	for _, list := range m.changes {
		m.layout.change = max(m.layout.change, width(len(list)))
	}
	return nil
}

// changeIndex is the number of a change among those of its site, -1 where it is none.
func (m *Model) changeIndex(site int, c cpus.Change) int {
	from, to := m.Code.Act(site, c.From), m.Code.Act(site, c.To)
	return slices.IndexFunc(m.changes[site], func(o cpus.Change) bool {
		a, b := m.Code.Act(site, o.From), m.Code.Act(site, o.To)
		return a == from && b == to || a == to && b == from
	})
}

// manyChanges tells whether a step begins an update of a site that is changed otherwise
// elsewhere.
func (m *Model) manyChanges(p *Program, st poke.Step) bool {
	return slices.ContainsFunc(p.Patches[st.From:st.To], func(patch poke.Patch) bool {
		return len(m.changes[patch.Site]) > 1
	})
}
