// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"strings"
	"testing"

	"github.com/textpoke/textpoke/experiments"
)

// Pairs holds every published figure against the range of the model: it lies inside, or
// it is listed by name with the mechanism that is missing, and not both. Figures whose
// names begin with own are all those of the experiment that are listed.
func Pairs(t *testing.T, own string, all []experiments.Comparison) {
	t.Helper()
	met, ranged := map[string]bool{}, 0
	for _, c := range all {
		if !c.Ranged() {
			continue
		}
		ranged++
		met[c.What] = true
		switch listed := c.Missing() != ""; {
		case c.Inside() && listed:
			t.Errorf("%s: %g lies within %g to %g, and is listed as outside", c.What, c.Published, c.Low, c.High)
		case !c.Inside() && !listed:
			t.Errorf("%s: %g lies outside of %g to %g, and no missing mechanism is named", c.What, c.Published, c.Low, c.High)
		}
	}
	if ranged == 0 {
		t.Error("no figure has a range")
	}
	for _, what := range experiments.Listed() {
		if strings.HasPrefix(what, own) && !met[what] {
			t.Errorf("%s is listed, and no figure of that name was held against anything", what)
		}
	}
}
