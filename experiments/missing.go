// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	_ "embed"

	"github.com/textpoke/textpoke/internal/sheet"
)

// missing.csv has the mechanisms that models are known to lack. trial.Pairs holds it against what comes out, both
// ways: a figure that lies inside may not stand there.
//
//go:embed missing.csv
var missingText string

// missing is the mechanism by figure.
var missing = func() map[string]string {
	out := map[string]string{}
	for _, l := range sheet.Must[struct {
		Mechanism string `col:"mechanism"`
		Figure    string `col:"figure,key"`
	}]("missing.csv", missingText) {
		out[l.Figure] = l.Mechanism
	}
	return out
}()

// Listed are the figures of which a mechanism is known to be missing.
func Listed() (out []string) {
	for what := range missing {
		out = append(out, what)
	}
	return out
}
