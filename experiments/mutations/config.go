// SPDX-License-Identifier: Apache-2.0

package mutations

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
	"time"

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
	Arches      []isa.Arch
	Protocols   []string
	Fetches     []cpus.Fetch
	Machines    []string // as the axis cpus has them
	Sites       []int
	Preempt     bool
	Reduce      string
	Exact       bool
	Jobs        int
	LimitStates uint64
	LimitMemory uint64 // MiB
	LimitTime   time.Duration
}

//go:embed mutations.experiment
var declared string

var spec = experiments.Spec[Config, check.VerdictRow]{
	Form: declared, Columns: columns, Fields: (*Config).fields, Measure: measure,
}

// Experiment is the question.
var Experiment = spec.Experiment()

// upTo is a number up to high; 0 is one of them.
func upTo(high uint64, want string) experiments.FieldKind[uint64] {
	return experiments.FieldKind[uint64]{
		Type: "count", Format: func(n uint64) string { return strconv.FormatUint(n, 10) },
		Parse: func(s string) (uint64, error) {
			n, err := strconv.ParseUint(s, 10, 64)
			if err != nil || n > high {
				return 0, errors.New("want " + want)
			}
			return n, nil
		},
	}
}

var atMost = experiments.FieldKind[time.Duration]{
	Type: "time", Format: time.Duration.String,
	Parse: func(s string) (time.Duration, error) {
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 {
			return 0, errors.New("want a time above 0, or 0 for none")
		}
		return d, nil
	},
}

func (c *Config) fields() []*experiments.Field {
	return []*experiments.Field{
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
		experiments.One(&c.Reduce, "reduce", "all",
			"`parts` that the search may leave out", experiments.OneOf(explore.ReductionNames())),
		experiments.Count(&c.Jobs, "jobs", runtime.GOMAXPROCS(0), "`number` of cores to search on", 1, 1<<16),
		experiments.One(&c.LimitStates, "limit-states", "",
			"stop at this `number` of states, at the end of a level; 0 for none",
			upTo(math.MaxUint64, "a number, or 0 for none")),
		experiments.One(&c.LimitMemory, "limit-memory", "4096",
			"stop when states and queue take so many `MiB`; 0 for no limit",
			upTo(1<<40, fmt.Sprintf("at most %d MiB, or 0 for no limit", uint64(1)<<40))),
		experiments.One(&c.LimitTime, "limit-time", "", "stop after this `time`, such as 10m; 0 for none", atMost),
	}
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

// options says how a search is made.
func (c *Config) options() (explore.Options, error) {
	reduce, err := explore.ParseReductions(c.Reduce)
	return explore.Options{
		Reduce: reduce, Exact: c.Exact, Workers: c.Jobs,
		LimitStates: c.LimitStates, LimitTime: c.LimitTime, LimitMemory: c.LimitMemory << 20,
	}, err
}

func measure(ctx context.Context, s *experiments.Study[Config, check.VerdictRow]) (*experiments.Findings, error) {
	questions, err := Questions(s.Config.choices())
	if err != nil {
		return nil, err
	}
	o, err := s.Config.options()
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
	return &experiments.Findings{
		Report: a.report(), Pictures: []experiments.Picture{{Picture: a.Matrix().Picture()}}, No: a.Unexpected(),
	}
}
