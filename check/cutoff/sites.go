// SPDX-License-Identifier: Apache-2.0

package cutoff

import (
	"context"
	"fmt"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// The names of the conditions on sites, besides AllStates.
const (
	OnePatcher  = "one-patcher"   // one patcher, for ever, and no task is preempted
	Alike       = "alike"         // where a site begins makes no difference
	Batches     = "batches"       // a batch has every site's entry, however many there are
	SamePlans   = "same-plans"    // more sites add nothing to what one of them sees of the plans
	SameForSite = "same-for-site" // what one site sees of a step is steps of a machine of that site among others
)

// Sites finds the machine of one site among others that stands for those of any number of
// sites, with the CPUs of the setup: where it is safe, so are they. It is not of the
// setup's own number of sites. limit bounds the states of each machine that is looked at;
// 0 stands for Limit.
//
// Where the machine is not safe that may be a false alarm: the others do what no sites do
// together.
func Sites(ctx context.Context, s *explore.Setup, limit uint64) (*Answer, error) {
	a := &Answer{Roles: s.Roles, Examined: s.Roles}
	if limit == 0 {
		limit = Limit
	}
	if c := onePatcher(s); !c.Holds {
		a.Conditions = []Condition{c}
		return a, nil
	}
	models := map[int]*explore.Model{}
	for n := 2; n <= explore.MaxEndless; n++ {
		of := *s
		of.Sites = n
		m, err := of.Model()
		if err != nil {
			return nil, fmt.Errorf("cutoff: %d sites: %w", n, err)
		}
		models[n] = m
	}
	among := func(n int, kept ...int) *explore.Model {
		m, err := models[n].Among(kept...)
		if err != nil {
			panic(err) // models that are too large have been refused above
		}
		return m
	}
	a.Model = among(2, 0)
	a.Conditions = []Condition{onePatcher(s), alike(s), batches(s, models[explore.MaxEndless]),
		{SamePlans, true, "more sites add no update"}}
	// The second site's updates too: any of the sites can be the one that is broken.
	for _, pair := range [][2]*explore.Model{
		{among(2, 1), a.Model}, {among(3, 0), a.Model}, {among(4, 0, 1), among(3, 0, 1)},
	} {
		if update := pair[0].Differs(pair[1]); update != "" {
			a.Conditions[2] = Condition{SamePlans, false, update}
		}
	}
	all := Condition{Name: AllStates, Holds: true}
	same := Condition{SameForSite, true, "every step that one of two sites sees is steps of the machine of one site " +
		"among others, about it only if the step is"}
	for _, m := range []*explore.Model{models[2], among(3, 0, 1)} {
		x, err := explore.ExamineSites(ctx, m, limit)
		if err != nil {
			return nil, err
		}
		a.States, a.Steps = a.States+x.States, a.Steps+x.Steps
		if x.Cut != "" {
			all.Holds, all.Why = false, x.Cut
		}
		if len(x.Unlike) > 0 {
			same.Holds, same.Why = false, x.Unlike[0].String()
		}
	}
	if all.Holds {
		all.Why = fmt.Sprintf("%d states and %d steps of machines of two sites", a.States, a.Steps)
	}
	a.Conditions = append(a.Conditions, all, same)
	return a, nil
}

func onePatcher(s *explore.Setup) Condition {
	c := Condition{Name: OnePatcher}
	switch {
	case s.Patchers > 1:
		c.Why = "several patchers: what is other sites to one is not to another"
	case s.Workload != explore.Endless:
		c.Why = "the workload is not endless: other sites are changed before and after this one"
	case s.Preempt:
		c.Why = "a task that is preempted at one site is gone on with by a CPU that is at another one"
	case len(s.Lengths) > 1:
		c.Why = "sites of several lengths: none stands for all"
	default:
		c.Holds, c.Why = true, "one patcher changes any of the sites for ever"
	}
	return c
}

// alike asks whether it makes a difference where in an aligned quadword a site begins. The
// models lay all out in the same way.
func alike(s *explore.Setup) Condition {
	c := Condition{Name: Alike}
	switch crossings, err := s.Crossings(); {
	case err != nil:
		c.Why = err.Error()
	case s.Fetch == cpus.Weak:
		c.Holds, c.Why = true, "with weak fetches any byte may be of any version, wherever a site begins"
	case len(crossings) == 1:
		c.Holds, c.Why = true, "sites that lie across a border of quadwords do so at the same byte"
	default:
		c.Why = fmt.Sprintf("with %s fetches it makes a difference at which byte a site crosses a border of quadwords",
			s.Fetch)
	}
	return c
}

// batches asks of batches what package int3 shows of every index: that what it holds is
// found. The largest update that is looked at must be of several batches where a larger
// one is.
func batches(s *explore.Setup, largest *explore.Model) Condition {
	switch {
	case s.Mutation.Overfull:
		return Condition{Batches, false, "a batch of more sites overflows"}
	case s.Mutation.Filling != poke.Sorted:
		return Condition{Batches, false, "what a batch says of a site depends on the sites beside it"}
	case largest.Slots >= explore.MaxEndless:
		return Condition{Batches, false, fmt.Sprintf("an update of several batches of %d slots has more sites than "+
			"any that is looked at", largest.Slots)}
	case largest.Slots > 0 && largest.Publishes() > largest.Slots:
		return Condition{Batches, false, "a batch of more sites overflows"}
	}
	return Condition{Batches, true, "a batch is sorted and fits its vector, and an index finds what it holds"}
}
