// SPDX-License-Identifier: Apache-2.0

package cutoff

import (
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
)

func allStates(a *Answer, x *explore.Examination) Condition {
	if x.Cut != "" {
		return Condition{AllStates, false, x.Cut}
	}
	return Condition{AllStates, true, fmt.Sprintf("%d states and %d steps of a machine of %s", x.States, x.Steps,
		words(a.Examined))}
}

func words(roles []cpus.Role) string {
	if s := cpus.FormatRoles(roles); len(s) > 1 {
		return s
	}
	return fmt.Sprintf("%d CPUs", len(roles))
}

func noted(x *explore.Examination) Condition {
	if len(x.Unnoted) > 0 {
		return Condition{Noted, false, x.Unnoted[0].String()}
	}
	return Condition{Noted, true, fmt.Sprintf("%d footprints; each step does the same whatever the rest of the machine is",
		len(x.Footprints))}
}

// private looks for a CPU that reads what another one writes. A counter that all share is
// no such thing if it is enough to know one CPU that holds a reference: sameWithout
// tells, with two CPUs of each role.
func private(m *explore.Model, x *explore.Examination) Condition {
	counter := false
	for _, f := range x.Footprints {
		for _, g := range x.Footprints {
			both := f.Reads & (g.Writes | g.Adds)
			if f.Patcher || g.Patcher || f.Who == g.Who || both == 0 {
				continue
			}
			if m.SharesReferences() && both == explore.Things(0).With(explore.References) {
				counter = true
				continue
			}
			return Condition{Private, false, fmt.Sprintf("%s, which %s, reads %s; %s, which %s, writes it",
				f.Actor(), f.What, both, g.Actor(), g.What)}
		}
	}
	if counter {
		return Condition{Private, true, "no CPU reads what another one writes, but for whether any holds a reference, " +
			"for which one that does is enough"}
	}
	return Condition{Private, true, "no CPU reads what another one writes"}
}

// everyCPU looks for a patcher's step that touches one CPU and not another one like it.
func everyCPU(m *explore.Model, x *explore.Examination) Condition {
	homes := m.Homes()
	for _, f := range x.Footprints {
		if !f.Patcher {
			continue
		}
		for _, touched := range []explore.Things{f.Reads, f.Writes, f.Adds} {
			for _, first := range []explore.Thing{explore.Registers, explore.Mail, explore.Parked} {
				var some, all int
				for cpu := range m.Roles {
					if slices.Contains(homes, cpu) {
						continue
					}
					if all++; touched.Has(first + explore.Thing(cpu)) {
						some++
					}
				}
				if some != 0 && some != all {
					return Condition{EveryCPU, false, fmt.Sprintf("%s, which %s, touches %s, and not that of every CPU",
						f.Actor(), f.What, touched)}
				}
			}
		}
	}
	return Condition{EveryCPU, true, "what patchers do to a CPU they do to every CPU"}
}

func sameWithout(x *explore.Examination) Condition {
	if len(x.Unlike) > 0 {
		return Condition{SameWithout, false, x.Unlike[0].String()}
	}
	return Condition{SameWithout, true, "every step is the same where a CPU is left out that does not make it, " +
		"a wait is over no later, and nobody can tell the steps of the one that is left out"}
}
