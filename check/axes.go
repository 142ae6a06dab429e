// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
	"github.com/textpoke/textpoke/sim/axis"
)

// AllMutations is every mutation that a protocol offers, and none.
const AllMutations = "all"

// Axes are the choices of a question, in the order in which lists are multiplied: those of
// a combination that the checker knows, and its own.
var Axes = func() axis.Table[Question] {
	t := slices.Concat(ownAxes(), axis.Of(sim.Axes.For(sim.UseCheck), func(q *Question) *sim.Config { return &q.Config }))
	t.Named("buffer").Default = sched.Dynamic.String()
	t.Named("order").Names = []string{sched.Table.String(), sched.Descending.String()} // others are one of these
	t.Named("cpus").Default = "2"
	t.Named("cpus").Doc = fmt.Sprintf("`machine`: a number of CPUs up to %d, several numbers, or roles "+
		"(busy, idle, isolated, irqsoff, offline) such as busy=2,isolated=1; repeatable", explore.MaxCPUs)
	layout := t.Named("layout") // there is no table that would say
	layout.Names, layout.Default = cpus.LayoutNames(), ""
	layout.Doc = "layouts of sites, by kernel configuration (default: each instruction set's usual one)"
	mutate := t.Named("mutate")
	named := mutate.Parse
	mutate.Names = append(slices.Clone(mutate.Names), AllMutations)
	mutate.Parse = func(name string) (axis.Set[Question], error) {
		if name == AllMutations { // which Questions multiplies
			return func(q *Question) error { q.Mutation = name; return nil }, nil
		}
		return named(name)
	}
	return inOrder(t, "arch", "layout", "plan", "protocol", "place", "cpus", "sites", "buffer", "order", "lookup", "refs",
		"patchers", "contend", "switch", "mutate", "fetch", "preempt") // the mutations depend on the choices before them
}()

// inOrder puts some axes first.
func inOrder(t axis.Table[Question], names ...string) axis.Table[Question] {
	place := func(a axis.Axis[Question]) int {
		if i := slices.Index(names, a.Name); i >= 0 {
			return i
		}
		return len(names)
	}
	slices.SortStableFunc(t, func(a, b axis.Axis[Question]) int { return cmp.Compare(place(a), place(b)) })
	return t
}

// ownAxes are the axes that only the checker knows.
func ownAxes() axis.Table[Question] {
	sites := axis.Field("sites", fmt.Sprintf("`list` of numbers of sites, each up to %d", explore.MaxSites),
		parseCount, func(q *Question) *int { return &q.Sites }, strconv.Itoa)
	sites.Default = "2"
	workload := axis.Field(
		"workload",
		"what patchers do: "+"endless, any sites are enabled or disabled, in any order, for ever; "+
			"once, all are enabled and disabled again",
		explore.ParseWorkload,
		func(q *Question) *explore.Workload { return &q.Workload },
		explore.Workload.String,
	)
	workload.Names, workload.Default = explore.WorkloadNames(), explore.WorkloadNames()[0]
	patchers := axis.Field("patchers", fmt.Sprintf("`number` of patchers, up to %d, that share the sites between them, "+
		"each with an ops of its own", explore.MaxPatchers), parseCount, func(q *Question) *int { return &q.Patchers },
		func(n int) string {
			if n <= 1 { // as always
				return ""
			}
			return strconv.Itoa(n)
		})
	patchers.Form, patchers.Default = axis.One, "1"
	return axis.Table[Question]{
		sites, placeAxis(), workload,
		axis.Bool("preempt", "tasks can be preempted between any two instructions, and go on later, anywhere",
			func(q *Question) *bool { return &q.Preempt }),
		axis.Bool(
			"early",
			"traced code also runs on the way in from user space, before a CPU that rounds left out has caught up",
			func(q *Question) *bool { return &q.Early },
		),
		patchers,
		axis.Bool("contend", "every patcher wants all sites, and takes what it finds there under text_mutex for the old text",
			func(q *Question) *bool { return &q.Contend }),
		axis.Bool(
			"switch",
			"every site calls one ops throughout and goes over to another, in place of being enabled and disabled",
			func(q *Question) *bool { return &q.Switch },
		),
	}
}

// AllPlaces is every offset that sites can have.
const AllPlaces = "all"

// placeAxis is where sites lie. An offset at which an architecture has none in that layout is
// left out where others are asked for, too.
func placeAxis() axis.Axis[Question] {
	a := axis.Axis[Question]{
		Spec: choice.Spec{Name: "place", Names: append(explore.OffsetNames(), AllPlaces), Doc: "`list` of offsets of sites " +
			"within an aligned quadword (default: where kernels have them: 4, or 0 for pairs of instructions)"},
		Parse: func(value string) (axis.Set[Question], error) {
			offset, err := explore.ParseOffset(value)
			return func(q *Question) error {
				q.Offset = offset
				if err := q.build(); err != nil {
					return err
				}
				var misaligned *isa.MisalignedError
				if err := q.Setup.CanLie(); errors.As(err, &misaligned) {
					return axis.Unfit(fmt.Sprintf("place %s: %v", value, err))
				}
				return nil
			}, err
		},
		Print: func(q *Question) string { return q.Offset.String() },
	}
	a.Split = func(given []string) (out []string, err error) {
		for _, v := range given {
			if v == AllPlaces {
				out = append(out, explore.OffsetNames()...)
			} else {
				out = append(out, v)
			}
		}
		return out, nil
	}
	return a
}

// parseCount reads whole numbers from 1; the model knows how many are too many.
func parseCount(value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q: want a whole number from 1", value)
	}
	return n, nil
}

// Questions builds the model of every combination of choices, so that a wrong one costs
// nothing. Errors about one value begin with its name. Notes say what was left out because
// it lacks the mutation that others have.
func Questions(choices axis.Choices) (out []*Question, notes []string, err error) {
	g, err := Axes.Read(choices)
	if err != nil {
		return nil, nil, err
	}
	all, err := g.Cross([]Question{{}}, func(name string, so []Question) ([]Question, error) {
		if name == "mutate" {
			return withMutations(so)
		}
		return so, nil
	})
	if err != nil {
		return nil, nil, err
	}
	var passed poke.Passed
	for i := range all {
		left, err := passed.Take(all[i].Mutation, all[i].Build())
		if err != nil {
			return nil, nil, err
		}
		if !left {
			out = append(out, &all[i])
		}
	}
	notes, err = passed.Notes()
	return out, notes, err
}

// withMutations multiplies the questions about all mutations by those that their
// protocol offers, and none.
func withMutations(questions []Question) (out []Question, err error) {
	for _, q := range questions {
		if q.Mutation != AllMutations {
			out = append(out, q)
			continue
		}
		q.Mutation = ""
		if err := q.build(); err != nil {
			return nil, err
		}
		shape, err := q.Setup.Shape()
		if err != nil {
			return nil, err
		}
		for _, m := range append([]poke.Mutation{{}}, q.Setup.Protocol.Mutations(shape)...) {
			q.Mutation = m.Name
			out = append(out, q)
		}
	}
	return out, nil
}
