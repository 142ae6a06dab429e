// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"

	"github.com/textpoke/textpoke/cpus/isa"
)

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
