// SPDX-License-Identifier: Apache-2.0

// Package coexist asks which clients may share a function, and which error the second one
// gets. It runs the tracer's rules, pair by pair, in either order, and compares the answers
// with the kernel's documentation.
package coexist

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/sheet"
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

var spec = experiments.Spec[Config, *row]{
	Form: experiments.Text("coexist/coexist.experiment"), Cells: cells, Fields: (*Config).fields, Measure: measure,
}

// Experiment is the question.
var Experiment = spec.Experiment()

func (c *Config) fields() []*choice.Field {
	first, all := names(false), names(true)
	return []*choice.Field{
		choice.List(&c.First,
			"first", strings.Join(first, ","), "`list` of clients that are there", choice.OneOf(first)),
		choice.List(&c.Second,
			"second", strings.Join(all, ","), "`list` of clients that come", choice.OneOf(all)),
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

// documented is a case that the kernel, or a proposal, documents.
type documented struct {
	Arch   string        `col:"arch,maybe"` // "" for all
	First  string        `col:"first"`
	Second string        `col:"second"`
	Errno  tracers.Errno `col:"errno"`
	Source string        `col:"source"`
}

var cases = sheet.Must[documented]("cases.csv", experiments.Text("coexist/cases.csv"))

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

// cells are those that no field and no method is.
var cells = map[string]func(*row) any{
	"calls":   func(r *row) any { return results.OrEmpty(strings.Join(r.calls, ", ")) },
	"passes":  func(r *row) any { return len(r.report.Passes) },
	"patches": func(r *row) any { return r.report.Patches() },
	"images":  func(r *row) any { return r.report.Count(tracers.StepImage) },
}

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (any, error) {
	rows, err := s.Config.pairs()
	if err == nil {
		err = experiments.Each(ctx, s, rows, func(r *row) (*row, error) { return r, nil })
	}
	return s, err
}

// pairs tries all combinations.
func (c *Config) pairs() (rows []*row, err error) {
	for _, arch := range c.Arches {
		for _, first := range c.First {
			for _, second := range c.Second {
				r, err := pair(arch, kindNamed(first), kindNamed(second))
				if err != nil {
					return nil, fmt.Errorf("%s, then %s: %w", first, second, err)
				}
				r.Documented = experiments.Find(cases, func(d *documented) bool {
					return d.First == first && d.Second == second && (d.Arch == "" || d.Arch == r.Arch)
				})
				rows = append(rows, r)
			}
		}
	}
	return rows, nil
}

// pair lets two clients have the function, one after the other.
func pair(arch isa.Arch, first, second kind) (*row, error) {
	r := &row{Arch: arch.Traits().Name, First: first.name, Second: second.name, Result: shared}
	w, err := newWorld(arch)
	if err != nil {
		return r, err
	}
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
