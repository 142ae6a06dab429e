// SPDX-License-Identifier: Apache-2.0

package mutations

import (
	_ "embed"
	"fmt"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/internal/sheet"
	"github.com/textpoke/textpoke/sched"
)

// placement says what a mutation needs to show, beyond sites that are enabled and
// disabled again while another CPU executes them.
type placement struct {
	Mutation string `col:"mutation,key"`
	Needs    string `col:"needs"` // for the report
}

//go:embed placements.csv
var placementsText string

// placements has an entry for each mutation.
var placements = sheet.Must[placement]("placements.csv", placementsText)

// placed is that of a mutation; nil where it is not said.
func placed(mutation string) *placement {
	return experiments.Find(placements, func(p *placement) bool { return p.Mutation == mutation })
}

// put changes the questions of mutations that show only then.
var put = map[string]func(*check.Question){
	"unsorted-batch": func(q *check.Question) { q.Order, q.Lookup = sched.Descending, int3.Vector },
	"overfull-batch": func(q *check.Question) { q.Buffer = sched.Buffer{Slots: 1} },
}

// place puts a question's mutation where it can show.
func place(q *check.Question) error {
	if q.Mutation == "" {
		return nil
	}
	if placed(q.Mutation) == nil {
		return fmt.Errorf("placements.csv does not say what mutation %s needs to show", q.Mutation)
	}
	if put[q.Mutation] == nil {
		return nil
	}
	put[q.Mutation](q)
	return q.Build()
}
