// SPDX-License-Identifier: Apache-2.0

package mutations

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sim/axis"
)

// Config says which combinations are put to the checker, and what a search may cost.
// Its fields are the flags of mutations.experiment.
type Config struct {
	Arches    []isa.Arch
	Protocols []string
	Fetches   []cpus.Fetch
	Machines  []string // as the axis cpus has them
	Sites     []int
	Preempt   bool
	check.Search
}

//go:embed mutations.experiment
var declared string

var spec = experiments.Spec[Config, check.VerdictRow]{
	Form: declared, Cells: cells, Columns: columns, Fields: (*Config).fields, Measure: measure,
}

// Experiment is the question.
var Experiment = spec.Experiment()

func (c *Config) fields() []*experiments.Field {
	return append([]*experiments.Field{
		experiments.List(&c.Protocols,
			"protocol", strings.Join(poke.Names(), ","), "`list` of protocols", experiments.OneOf(poke.Names())),
		experiments.NamedList(&c.Fetches, "fetch", "`list` of ways in which versions of text mix in a fetch",
			cpus.FetchNames(), cpus.ParseFetch, cpus.Fetch.String),
		experiments.Strings(&c.Machines, "cpus", "machine",
			"2", fmt.Sprintf("`machine`: a number of CPUs up to %d, several numbers, or roles "+
				"(busy, idle, isolated, irqsoff, offline) such as busy=2,isolated=1; "+
				"repeatable", explore.MaxCPUs), nil),
		experiments.Counts(&c.Sites, "sites",
			"2", fmt.Sprintf("`list` of numbers of sites, each up to %d", explore.MaxSites), 1, explore.MaxSites),
	}, c.Search.Fields()...)
}

// columns are those of the checker.
var columns = results.Of(check.Columns, func(r check.VerdictRow) *check.VerdictRow { return &r })

// choices are what the Config asks about, with every mutation. Buffers, orders, indexes
// and counts are left to the experiment.
func (c *Config) choices() axis.Choices {
	choices := axis.Choices{
		"protocol": c.Protocols, "cpus": c.Machines, "preempt": {strconv.FormatBool(c.Preempt)}, "mutate": {check.AllMutations},
	}
	add := func(flag, value string) { choices[flag] = append(choices[flag], value) }
	for _, a := range c.Arches {
		add("arch", a.Traits().Name)
	}
	for _, f := range c.Fetches {
		add("fetch", f.String())
	}
	for _, n := range c.Sites {
		add("sites", strconv.Itoa(n))
	}
	return choices
}

func measure(ctx context.Context, s *experiments.Study[Config, check.VerdictRow]) (*experiments.Findings, error) {
	questions, err := Questions(s.Config.choices())
	if err != nil {
		return nil, err
	}
	o, err := s.Config.Options()
	if err != nil {
		return nil, err
	}
	if s.Progress != nil {
		o.Watch = func(p explore.Progress) { s.Progress(p.String()) }
	}
	cut := false
	err = experiments.Each(ctx, s, questions, func(q *check.Question) (check.VerdictRow, error) {
		r, err := q.Ask(ctx, o)
		if err == nil && r.Verdict == explore.Incomplete {
			cut = true
			s.Log.Warn(r.CutShort())
		}
		return r, err
	})
	if err == nil && cut {
		err = experiments.ErrLimits
	}
	return (&Answer{s}).findings(), err
}

// findings are what the rows say.
func (a *Answer) findings() *experiments.Findings {
	return &experiments.Findings{Report: a, No: a.Unexpected()}
}

// cells are where a row stands in the picture and how it looks there: lines are those of the protocols,
// each as it is and with the mutations as they are listed; properties have their initials.
var cells = map[string]func(check.VerdictRow) any{
	"line": func(r check.VerdictRow) any { return r.Protocol + ", " + mutationName(&r) },
	"place": func(r check.VerdictRow) any {
		return 100*slices.Index(poke.Names(), r.Protocol) + slices.Index(poke.MutationNames(), r.Mutation)
	},
	"code": func(r check.VerdictRow) any { return code(&r) },
	"mark": func(r check.VerdictRow) any {
		if r.Verdict == explore.Incomplete {
			return "cut short: nothing is known"
		}
		return outcome(&r) + " (" + code(&r) + ")"
	},
}

// code is the initials of what breaks.
func code(r *check.VerdictRow) (letters string) {
	if r.Verdict == explore.Incomplete {
		return "?"
	}
	for word := range strings.SplitSeq(outcome(r), "-") {
		letters += strings.ToUpper(word[:1])
	}
	return letters
}

// outcome is what breaks, or else the verdict.
func outcome(r *check.VerdictRow) string {
	if r.Violation != nil {
		return string(r.Violation.Property)
	}
	return string(r.Verdict)
}
