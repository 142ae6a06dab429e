// SPDX-License-Identifier: Apache-2.0

package callopsalternatives

import (
	"slices"

	"github.com/textpoke/textpoke/experiments"
)

// answer is what the rows say that were finished.
type answer struct {
	*experiments.Study[Config, *row]
}

// Designs are all of them.
func (a *answer) Designs() []design { return designs }

// find is the row of a design with users and the most irrelevant tracers.
func (a *answer) find(design string, u users) *row {
	for _, r := range slices.Backward(a.Rows) {
		if r.Name == design && r.Users == u {
			return r
		}
	}
	return nil
}

// Direct are the rows of a direct trampoline with the most irrelevant tracers.
func (a *answer) Direct() (out []*row) {
	for _, d := range designs {
		if r := a.find(d.Name, direct); r != nil {
			out = append(out, r)
		}
	}
	return out
}

// Verdict is what the checker says of a design.
func (a *answer) Verdict(design string) string {
	if r := a.find(design, callback); r != nil && r.verdict != "" {
		return string(r.verdict)
	}
	return "cannot be asked"
}

// Last is the number of tracers of another function that the picture is of.
func (a *answer) Last() int { return a.Config.Irrelevant[len(a.Config.Irrelevant)-1] }
