// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
)

// answer is the rows, and how many runs the claims were put to.
type answer struct {
	*experiments.Study[Config, *row]
	RunCount int
}

// Multi tells whether the program is attached by a multi form.
func (r *row) Multi() bool { return strings.Contains(r.Mechanism, "-multi") }

// Source is where the claim and the runs stand.
func (j *judged) Source() string { return published.TriggerRuns.Source }
