// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"math/bits"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/poke"
)

// Workload is what the patchers of a Setup do.
type Workload uint8

// The workloads.
const (
	// Once: each enables all its sites, disables them again, and that is all; or makes
	// all go over from one ops to another.
	Once Workload = iota
	// Endless: each picks any of its sites that are disabled and enables them, or any that
	// are enabled and disables them, and so on for ever; or it moves any from one ops to
	// the other. In between, the CPU that it sat on goes on with its own task.
	Endless
)

// MaxEndless bounds the sites of a patcher that goes on for ever: it can pick any subset.
const MaxEndless = 4

var workloadNames = [...]string{Once: "once", Endless: "endless"}

// WorkloadNames lists the workloads, the checker's default first.
func WorkloadNames() []string { return []string{Endless.String(), Once.String()} }

func (w Workload) String() string { return workloadNames[w] }

// ParseWorkload reads a workload's name.
func ParseWorkload(s string) (Workload, error) {
	return spelling.Number[Workload]("workload", s, workloadNames[:])
}

// endless is a patcher's work for ever: every subset of its patches, each way. In one update the
// sites come in the order in which the protocol queues them; the updates say in which order they
// change beyond that. A released ops is attached again by the next update that leads to it.
func (s *Setup) endless(shape poke.Shape, patches []poke.Patch) (Program, error) {
	if n := len(patches); n > MaxEndless {
		return Program{}, fmt.Errorf("%d sites of one patcher: it picks any subset of up to %d for ever; "+
			"the workload once takes more", n, MaxEndless)
	}
	p := Program{Menu: poke.Menu{}}
	all := uint64(1)<<len(patches) - 1
	for set := all; set > 0; set-- {
		var own []poke.Patch
		for i := range patches {
			if set>>i&1 != 0 {
				own = append(own, patches[i])
			}
		}
		from := int32(len(p.Patches))
		p.Patches = append(p.Patches, own...)
		for _, undo := range []bool{false, true} {
			for _, u := range s.updates(set, all, undo) {
				plan, err := s.update(shape, own, u)
				if err != nil {
					return Program{}, err
				}
				u.From = len(p.Plan)
				for _, st := range plan {
					if st.To > st.From {
						st.From, st.To = st.From+from, st.To+from
					}
					p.Plan = append(p.Plan, st)
				}
				u.To = len(p.Plan)
				p.Menu = append(p.Menu, u.Choice)
			}
		}
	}
	return p, nil
}

// variant is an update of some sites, one way: whether it is the first that leads to an
// ops, and whether nothing leads to the other one afterwards.
type variant struct {
	poke.Choice
	attach, release bool
}

// updates are the updates that change a set of a patcher's sites one way, one for each state
// of its other sites.
func (s *Setup) updates(set, all uint64, undo bool) (out []variant) {
	if s.Contend {
		// The update reads the sites under text_mutex. Once all are disabled, by any
		// patcher, none leads to this patcher's ops.
		return []variant{{poke.Choice{Sites: set, Undo: undo}, !undo, undo && set == all}}
	}
	rest := all &^ set
	either, never := []bool{false, true}, []bool{false}
	attaches, releases := either, either
	if !s.Switch { // no ops is attached where no site is enabled
		if undo {
			attaches = never
		} else {
			releases = never
		}
	}
	for _, attach := range attaches {
		for _, release := range releases {
			var w poke.Guard
			from, to, someFrom, someTo := &w.Old, &w.New, &w.SomeOld, &w.SomeNew
			if undo {
				from, to, someFrom, someTo = to, from, someTo, someFrom
			}
			*from = set
			switch {
			case rest == 0 && (len(attaches) > 1 && !attach || len(releases) > 1 && !release),
				rest != 0 && attach && release:
				continue // that cannot be
			}
			if attach {
				*from |= rest
			} else if len(attaches) > 1 {
				*someTo = rest
			}
			if release {
				*to |= rest
			} else if len(releases) > 1 {
				*someFrom = rest
			}
			if attach { // all of the rest: some is said already
				*someFrom = 0
			}
			if release {
				*someTo = 0
			}
			out = append(out, variant{poke.Choice{Sites: set, Undo: undo, When: w}, attach, release})
		}
	}
	return out
}

// update is the plan of one, about its patches alone.
func (s *Setup) update(shape poke.Shape, patches []poke.Patch, u variant) ([]poke.Step, error) {
	shape.Patches, shape.Detach = bits.OnesCount64(u.Sites), u.release
	plan, err := s.compile(shape, patches, u.Undo)
	if err != nil {
		return nil, err
	}
	return s.bare(plan, s.spared(shape, s.life(shape).Update(plan, u.Undo, u.attach, u.release))), nil
}
