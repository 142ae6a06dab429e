// SPDX-License-Identifier: Apache-2.0

package mutations

import (
	"fmt"

	"github.com/textpoke/textpoke/check"

	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/sched"
)

// placement says what a mutation needs to show, beyond sites that are enabled and
// disabled again while another CPU executes them.
type placement struct {
	needs string // for the report
	put   func(*check.Question)
}

const asItIs = "nothing more"

// placements has an entry for each mutation.
var placements = map[string]placement{
	"drop-sync-1": {needs: "a CPU that has not fetched afresh since the site was last written: any other CPU"},
	"drop-sync-2": {needs: "likewise"},
	"drop-sync-3": {
		needs: "a site that is changed again at once, so that an old breakpoint meets the next update: patchers go on " +
			"for ever",
	},
	// No second look is needed for that: one old breakpoint will do.
	"drop-sync-3-no-recheck": {needs: asItIs},
	"no-breakpoint":          {needs: asItIs},
	"late-publish":           {needs: asItIs},
	"unsorted-batch": {
		needs: "patches that are queued from the highest address down, and a vector that is searched by bisection: " +
			"queued upwards the batch is sorted by chance, and a tree sorts for itself",
		put: func(q *check.Question) {
			q.Order, q.Lookup = sched.Descending, int3.Vector
		},
	},
	"overfull-batch": {
		needs: "a buffer of one slot: in one that grows as needed no patch is one too many",
		put:   func(q *check.Question) { q.Buffer = sched.Buffer{Slots: 1} },
	},
	"shifted-batch": {
		needs: "a batch of two sites, so that there is a neighbour: calls are relative, and what is one at its own site " +
			"is another one at the next",
	},
	"early-release":    {needs: asItIs},
	"no-fence":         {needs: "stores that wait in a store buffer; only architectures that have one offer it"},
	"no-publish-fence": {needs: "likewise, and breakpoints"},
	"no-attach-fence": {
		needs: "sites that call one ops and go over to another; the matrix has none, and offers it to none (textpoke " +
			"check --switch)",
	},
	"misaligned-literal": {
		needs: "two ops whose addresses differ in both halves, so that half of each is neither: those of the model do",
	},
	"no-grace-period": {
		needs: "an ops that is released in the end, and a CPU that is on its way to it: every program ends so",
	},
	"no-stop": {needs: asItIs},
	"no-mutex": {
		needs: "several patchers; the matrix is of one, and offers it to none (textpoke check --patchers 2)",
	},
}

// place puts a question's mutation where it can show.
func place(q *check.Question) error {
	if q.Mutation == "" {
		return nil
	}
	p, ok := placements[q.Mutation]
	if !ok {
		return fmt.Errorf("nobody has said what mutation %s needs to show", q.Mutation)
	}
	if p.put == nil {
		return nil
	}
	p.put(q)
	return q.Build()
}
