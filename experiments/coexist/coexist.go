// Package coexist asks who may share a function with whom, and what the second one
// is told. The answers come from running the tracer's rules, pair by pair, in
// either order, and are held against what the kernel documents.
package coexist

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/tracers"
)

const (
	name     = "coexist"
	question = "Who may share a function? One client traces it, another one comes: is it let in, what is it told if not, " +
		"and does the order matter?"
)

// Experiment is the question.
var Experiment = experiments.Experiment{
	Name: name, Question: question,
	Short: "who may share a function with whom? every pair of clients in either order, with the error number",
	About: "coexist attaches every pair of clients to one function, in either order, on a tracer that follows\n" +
		"the kernel's rules, and says what the second one is told, by which rule, and who is called in the\n" +
		"end. Cases that the kernel documents are held against what comes out; the exit code is 1 when one\n" +
		"disagrees. With --out it writes the table, a matrix of it and report.md.",
	Examples: []string{
		"coexist --out coexist",
		"coexist --arch x86_64 --first livepatch",
		"coexist --second direct,fentry --format csv",
	},
	Table: table,
	Flags: func(f *pflag.FlagSet) experiments.Run {
		r := &request{}
		experiments.Arches(f, &r.arches)
		clients(f, &r.first, "first", "`list` of clients that are there", func(k kind) bool { return !k.second })
		clients(f, &r.second, "second", "`list` of clients that come", func(kind) bool { return true })
		return r.run
	},
}

// clients registers a list of clients.
func clients(f *pflag.FlagSet, to *[]kind, flag, usage string, suits func(kind) bool) {
	var names []string
	byName := map[string]kind{}
	for _, k := range kinds {
		if suits(k) {
			names = append(names, k.name)
			byName[k.name] = k
		}
	}
	experiments.Names(f, to, flag, usage, names, func(s string) (kind, error) {
		if k, ok := byName[s]; ok {
			return k, nil
		}
		return kind{}, errors.New("no such client")
	})
}

// request is what the flags ask for.
type request struct {
	arches        []isa.Arch
	first, second []kind
}

// result is how a pair ends.
type result string

// The results.
const (
	shared      result = "shared"      // both are attached, and the function's calls reach them
	silent      result = "silent"      // both are attached, and nobody is called
	apart       result = "apart"       // one of them does not go through the tracer
	refused     result = "refused"     // the second one gets an error
	unsupported result = "unsupported" // the first one gets an error
)

// row is one pair.
type row struct {
	arch          string
	first, second string
	result        result
	errno         tracers.Errno
	why, source   string
	site          string
	calls         []string
	report        tracers.Report
	documented    *documented
}

// agrees tells whether the row is as it is documented.
func (r *row) agrees() bool { return r.documented == nil || r.documented.errno == r.errno }

func table() results.Table {
	return results.Table{Name: name, Columns: []results.Column{
		{Name: "arch", Doc: "instruction set"},
		{Name: "first", Doc: "the client that is there"},
		{Name: "second", Doc: "the client that comes"},
		{Name: "result", Doc: "shared, silent (attached, but nobody is called), apart (not through the function tracer), refused, or unsupported (the first one was refused)"},
		{Name: "errno", Doc: "what the second one is told, 0 for success; of an unsupported pair, what the first one is told"},
		{Name: "why", Doc: "the rule"},
		{Name: "rule", Detail: true, Doc: "where the rule stands: function and release"},
		{Name: "site", Doc: "how the function's site calls them afterwards"},
		{Name: "calls", Doc: "who a call reaches, in order"},
		{Name: "passes", Detail: true, Doc: "update passes while the second one attached"},
		{Name: "patches", Detail: true, Doc: "sites changed meanwhile, each way counted"},
		{Name: "images", Detail: true, Doc: "BPF trampolines generated meanwhile"},
		{Name: "again", Detail: true, Doc: "of these, generated again for a live patch"},
		{Name: "documented", Doc: "the error number that the kernel documents, where it does"},
		{Name: "documented_in", Detail: true, Doc: "and where"},
	}}
}

func (r *row) cells() []any {
	var doc, in any = results.Empty, results.Empty
	if r.documented != nil {
		doc, in = r.documented.errno.String(), r.documented.source
	}
	text := func(s string) any {
		if s == "" {
			return results.Empty
		}
		return s
	}
	return []any{
		r.arch, r.first, r.second, string(r.result), r.errno.String(), text(r.why), text(r.source), text(r.site), text(strings.Join(r.calls, ", ")),
		len(r.report.Passes), r.report.Patches(), r.report.Images, r.report.Regenerations, doc, in,
	}
}

func (r *request) run(ctx context.Context, lab *experiments.Lab) (*experiments.Answer, error) {
	a := &answer{asked: len(r.arches) * len(r.first) * len(r.second), first: r.first, second: r.second}
	for _, arch := range r.arches {
		for _, first := range r.first {
			for _, second := range r.second {
				if err := ctx.Err(); err != nil {
					return a.answer(), err
				}
				row, err := pair(arch, first, second)
				if err != nil {
					return a.answer(), fmt.Errorf("%s, then %s: %w", first.name, second.name, err)
				}
				a.rows = append(a.rows, row)
				if err := lab.Add(row.cells()...); err != nil {
					return a.answer(), err
				}
			}
		}
	}
	return a.answer(), nil
}

// pair lets two clients have the function, one after the other.
func pair(arch isa.Arch, first, second kind) (row, error) {
	r := row{arch: arch.Traits().Name, first: first.name, second: second.name, result: shared}
	w, err := newWorld(arch)
	if err != nil {
		return r, err
	}
	r.documented = lookUp(r.arch, r.first, r.second)
	if _, err := first.attach(w); err != nil {
		if !errors.Is(err, errApart) {
			return r, r.end(err, unsupported)
		}
		r.result, r.why = apart, err.Error()
	}
	r.report, err = second.attach(w)
	switch {
	case errors.Is(err, errApart):
		r.result, r.why = apart, err.Error()
	case errors.Is(err, errJoins):
		r.why = err.Error()
	case err != nil:
		if err := r.end(err, refused); err != nil {
			return r, err
		}
	}
	r.site = w.site()
	if r.calls, err = w.called(); err != nil {
		return r, err
	}
	if r.result == shared && len(r.calls) == 0 {
		r.result, r.why = silent, "tracing is switched off"
	}
	return r, nil
}

// end notes how a client was refused.
func (r *row) end(err error, how result) error {
	var e *tracers.Error
	if !errors.As(err, &e) {
		return err
	}
	r.result, r.errno, r.why, r.source = how, e.Errno, e.Why, e.Source
	return nil
}
