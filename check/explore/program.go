// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
)

// Program is what one patcher does: its plan once, or the updates of a menu for ever.
type Program struct {
	Patches []poke.Patch
	Plan    []poke.Step
	Menu    poke.Menu
}

// Workload is what the model's patchers do.
func (m *Model) Workload() Workload {
	if slices.ContainsFunc(m.Programs, func(p Program) bool { return p.Menu != nil }) {
		return Endless
	}
	return Once
}

// patcher is one that has not begun.
func (p *Program) patcher(code *cpus.Code) poke.Patcher {
	return poke.Patcher{Code: code, Patches: p.Patches, Plan: p.Plan, Menu: p.Menu, At: p.Menu.Starts(p.Plan)}
}

// updates are the plan's: one, or those of the menu.
func (p *Program) updates() poke.Menu {
	if p.Menu == nil {
		return poke.Menu{{To: len(p.Plan)}}
	}
	return p.Menu
}

// update is the one that a step belongs to.
func (p *Program) update(at int) int {
	return slices.IndexFunc(p.updates(), func(c poke.Choice) bool { return c.From <= at && at < c.To })
}

// place names a step of the plan for people.
func (p *Program) place(at int) string {
	i := p.update(at)
	u := p.updates()[i]
	name := fmt.Sprintf("step %d, %s", at-u.From+1, p.Plan[at])
	if p.Menu != nil {
		name = p.title(&u) + ": " + name
	}
	return name
}

// title names an update of the menu: its sites, and which way they change.
func (p *Program) title(u *poke.Choice) string {
	var sites []string
	for i := range p.Patches {
		if u.Sites>>i&1 != 0 {
			sites = append(sites, fmt.Sprint(p.Patches[i].Site))
		}
	}
	name := "site "
	switch len(sites) {
	case 0:
		name = "other sites"
	case 1:
	default:
		name = "sites "
	}
	if name += strings.Join(sites, ", "); u.Undo {
		name += " back"
	}
	return name
}

// left is what an update leaves at a site.
type left struct {
	site, patch int32 // the patch that says so
	text        isa.Text
	ops         uint64 // of the literal
}

// finals works out the text and literal that each update of a program leaves at its sites:
// those of the last patch of a site that the update verifies or promises; its literal also where
// the update writes it alone. A program that is one update leaves the others as they were.
func (p *Program) finals(initial []isa.Text, literals []uint64) (out [][]left) {
	for _, u := range p.updates() {
		var list []left
		of := func(site int32) *left {
			k := slices.IndexFunc(list, func(l left) bool { return l.site == site })
			if k < 0 {
				k, list = len(list), append(list, left{site: site, text: initial[site], ops: literals[site]})
			}
			return &list[k]
		}
		for i := 0; p.Menu == nil && i < len(p.Patches); i++ {
			of(p.Patches[i].Site)
		}
		for _, s := range p.Plan[u.From:u.To] {
			text := s.Op == poke.Verify || s.Op == poke.Settle
			if !text && !s.WritesLiteral() {
				continue
			}
			for i := s.From; i < s.To; i++ {
				patch := &p.Patches[i]
				l := of(patch.Site)
				if i < l.patch {
					continue
				}
				if l.patch, l.ops = i, patch.Ops(s.Undo); text {
					l.text = patch.Change(s.Undo).To
				}
			}
		}
		out = append(out, list)
	}
	return out
}

// ahead is what the patcher may still do: all of it, where it goes on for ever.
func (w *world) ahead(i int) []poke.Step {
	if p := &w.patcher[i]; !p.Endless() {
		return p.Plan[p.At:]
	}
	return w.patcher[i].Plan
}

// Texts are, by site, every text that it can have.
func (m *Model) Texts() [][]isa.Text { return m.texts }

// findMeant lists what sites hold at first, and what patches lead from and to.
func (m *Model) findMeant() {
	meant := slices.Clone(m.Initial)
	for _, p := range m.Programs {
		for i := range p.Patches {
			meant = append(meant, p.Patches[i].Old, p.Patches[i].New)
		}
	}
	slices.Sort(meant)
	m.Code.Meant = slices.Compact(meant)
}

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
