// SPDX-License-Identifier: Apache-2.0

// Package coexist asks who may share a function with whom, and what the second one
// is told. The answers come from running the tracer's rules, pair by pair, in
// either order, and are held against what the kernel documents.
package coexist

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/tracers"
)

// Config says which pairs are tried: every combination of its lists.
// Its fields are the flags of coexist.experiment.
type Config struct {
	Arches []isa.Arch
	First  []string // clients that are there, by name
	Second []string // that come
}

//go:embed coexist.experiment
var declared string

// Experiment is the question.
var Experiment = (&experiments.Spec[Config, *row]{
	Form: declared, Cells: cells, Fields: (*Config).fields, Measure: measure,
}).Experiment()

func (c *Config) fields() []*experiments.Field {
	first, all := names(false), names(true)
	return []*experiments.Field{
		experiments.List(&c.First,
			"first", strings.Join(first, ","), "`list` of clients that are there", experiments.OneOf(first)),
		experiments.List(&c.Second,
			"second", strings.Join(all, ","), "`list` of clients that come", experiments.OneOf(all)),
	}
}

// result is how a pair ends.
type result string

// The results.
const (
	shared      result = "shared"      // both are attached, and the function's calls reach them
	silent      result = "silent"      // both are attached, and none of them is called
	apart       result = "apart"       // one of them does not go through the tracer
	refused     result = "refused"     // the second one gets an error
	unsupported result = "unsupported" // the first one gets an error
)

// row is one pair.
type row struct {
	Arch          string
	First, Second string
	Result        result
	Errno         tracers.Errno
	Why, Rule     string
	site          string
	calls         []string
	report        tracers.Report
	Documented    *documented // nil where nothing is
}

// agrees tells whether the row is as it is documented.
func (r *row) agrees() bool { return r.Documented == nil || r.Documented.Errno == r.Errno }

// cells are those that no field and no method is.
var cells = map[string]func(*row) any{
	"calls":   func(r *row) any { return results.OrEmpty(strings.Join(r.calls, ", ")) },
	"passes":  func(r *row) any { return len(r.report.Passes) },
	"patches": func(r *row) any { return r.report.Patches() },
	"images":  func(r *row) any { return r.report.Count(tracers.StepImage) },
}

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (*experiments.Findings, error) {
	type point struct {
		arch          isa.Arch
		first, second string
	}
	var points []point
	for _, arch := range s.Config.Arches {
		for _, first := range s.Config.First {
			for _, second := range s.Config.Second {
				points = append(points, point{arch, first, second})
			}
		}
	}
	err := experiments.Each(ctx, s, points, func(p point) (*row, error) {
		r, err := pair(p.arch, kindNamed(p.first), kindNamed(p.second))
		if err != nil {
			err = fmt.Errorf("%s, then %s: %w", p.first, p.second, err)
		}
		return r, err
	})
	a := answer{s}
	return &experiments.Findings{Report: a, Pictures: []experiments.Picture{{Picture: a.picture()}}, No: a.wrong()}, err
}

// pair lets two clients have the function, one after the other.
func pair(arch isa.Arch, first, second kind) (*row, error) {
	r := &row{Arch: arch.Traits().Name, First: first.name, Second: second.name, Result: shared}
	w, err := newWorld(arch)
	if err != nil {
		return r, err
	}
	r.Documented = lookUp(r.Arch, r.First, r.Second)
	if _, err := first.attach(w); err != nil {
		if !errors.Is(err, errApart) {
			return r, r.end(err, unsupported)
		}
		r.Result, r.Why = apart, err.Error()
	}
	r.report, err = second.attach(w)
	switch {
	case errors.Is(err, errApart):
		r.Result, r.Why = apart, err.Error()
	case errors.Is(err, errJoins):
		r.Why = err.Error()
	case err != nil:
		if err := r.end(err, refused); err != nil {
			return r, err
		}
	}
	r.site = w.site()
	if r.calls, err = w.called(); err != nil {
		return r, err
	}
	if r.Result == shared && len(r.calls) == 0 {
		r.Result, r.Why = silent, "tracing is switched off"
	}
	return r, nil
}

// end notes how a client was refused.
func (r *row) end(err error, how result) error {
	var e *tracers.Error
	if !errors.As(err, &e) {
		return err
	}
	r.Result, r.Errno, r.Why, r.Rule = how, e.Errno, e.Why, e.Source
	return nil
}
