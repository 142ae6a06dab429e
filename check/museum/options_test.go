// SPDX-License-Identifier: Apache-2.0

package museum

import (
	"slices"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
)

// exhibits are those of the catalogue, in the catalogue's order.
func exhibits() []Bug { return slices.DeleteFunc(All(), func(b Bug) bool { return b.Number == "" }) }

// option changes the machine that a bug is shown on, not the bug.
type option func(*explore.Model)

// withCPUs adds busy CPUs until there are n. A bug that is shown on one CPU is about
// that CPU alone, and stays there.
func withCPUs(n int) option {
	return func(m *explore.Model) {
		for alone := len(m.Roles) == 1; !alone && len(m.Roles) < n; {
			m.Roles = append(m.Roles, cpus.Busy)
		}
	}
}

// withFetch chooses how finely versions mix in a fetch.
func withFetch(f cpus.Fetch) option {
	return func(m *explore.Model) { m.Code.Fetch = f }
}

// with is Model on another machine.
func (b *Bug) with(fixed bool, options []option) (*explore.Model, error) {
	m, err := b.laidOut(fixed)
	if err != nil {
		return nil, err
	}
	for _, o := range options {
		o(m)
	}
	return m, m.Prepare()
}
